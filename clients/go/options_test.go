package nodewise_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	nodewise "github.com/nodewise/nodewise/clients/go"
	nodewisev1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1"
)

// written makes a certificate for loopback that is its own authority, and gives the files of it and of its key.
func written(t *testing.T, name string) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	write := func(kind string, content []byte) string {
		path := filepath.Join(folder, strings.ReplaceAll(kind, " ", "-")+".pem")
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("CERTIFICATE", signed), write("PRIVATE KEY", secret)
}

func TestWhoTheClientIs(t *testing.T) {
	certificate, key := written(t, "server")
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	text, _ := os.ReadFile(certificate)
	roots.AppendCertsFromPEM(text)
	var seen metadata.MD
	server := &fake{predict: func(ctx context.Context, _ *nodewisev1.PredictRequest) (*nodewisev1.PredictResponse, error) {
		seen, _ = metadata.FromIncomingContext(ctx)
		return &nodewisev1.PredictResponse{}, nil
	}}
	server.serve(t, grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: roots, ClientAuth: tls.RequireAndVerifyClientCert})))
	token := filepath.Join(t.TempDir(), "token")
	for i, secret := range []string{"one", "another"} {
		if err := os.WriteFile(token, []byte(secret+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv([]string{"NODEWISE_TOKEN_FILE", "NODEWISE_TOKEN"}[i], []string{"", "@"}[i]+token)
		t.Setenv("NODEWISE_TLS_CA", certificate)
		t.Setenv("NODEWISE_TLS_CERT", certificate)
		t.Setenv("NODEWISE_TLS_KEY", key)
		if failure := ask(t, server.client(t, nodewise.FromEnvironment(), nodewise.WithUserAgent("mine/1"))); failure != nil {
			t.Fatal(i, failure)
		}
		if seen.Get("authorization")[0] != "Bearer "+secret || !strings.HasPrefix(seen.Get("user-agent")[0], "mine/1 nodewise-go/"+nodewise.Version+" ") {
			t.Error(seen)
		}
	}
	if failure := ask(t, server.client(t, nodewise.WithTLSFiles(certificate, "", ""), nodewise.WithRetry(false))); failure.Code != codes.Unavailable {
		t.Error("without a certificate of its own:", failure)
	}
	if failure := ask(t, server.client(t, nodewise.WithTLS(nil), nodewise.WithRetry(false))); failure.Code != codes.Unavailable {
		t.Error("a stranger's certificate was taken:", failure)
	}
}

func TestATokenIsAskedForAtEveryCall(t *testing.T) {
	var seen metadata.MD
	server := &fake{predict: func(ctx context.Context, _ *nodewisev1.PredictRequest) (*nodewisev1.PredictResponse, error) {
		seen, _ = metadata.FromIncomingContext(ctx)
		return &nodewisev1.PredictResponse{}, nil
	}}
	token := "a"
	client := server.serve(t).client(t, nodewise.WithTokenSource(func(context.Context) (string, error) { return token, nil }))
	for _, token = range []string{"a", "b"} {
		if failure := ask(t, client); failure != nil || seen.Get("authorization")[0] != "Bearer "+token {
			t.Error(failure, seen)
		}
	}
	if agent := seen.Get("user-agent")[0]; !strings.HasPrefix(agent, "nodewise-go/"+nodewise.Version+" ") {
		t.Error(agent)
	}
	_ = ask(t, server.client(t, nodewise.WithToken("c")))
	if seen.Get("authorization")[0] != "Bearer c" {
		t.Error(seen)
	}
	missing := server.client(t, nodewise.WithTokenSource(nodewise.TokenFile(filepath.Join(t.TempDir(), "none"))))
	if failure := ask(t, missing); failure == nil || failure.Code != codes.Unauthenticated {
		t.Error(failure)
	}
}

func TestOptionsThatCannotBe(t *testing.T) {
	certificate, key := written(t, "client")
	for want, given := range map[string]struct {
		target string
		option nodewise.Option
	}{
		"target is empty":                {"", nodewise.WithRetry(true)},
		"as plain text":                  {"nodewise.example:443", nodewise.WithToken("t")},
		"to dns:///10.0.0.1:5 as plain":  {"dns:///10.0.0.1:5", nodewise.WithToken("t")},
		"token is empty":                 {"a:1", nodewise.WithToken(" ")},
		"above 0":                        {"a:1", nodewise.WithTimeout(0)},
		"belong together":                {"a:1", nodewise.WithTLSFiles("", certificate, "")},
		"root certificates":              {"a:1", nodewise.WithTLSFiles("/none", "", "")},
		"no certificate in PEM form":     {"a:1", nodewise.WithTLSFiles(key, "", "")},
		"nodewise: the client's certifi": {"a:1", nodewise.WithTLSFiles("", key, key)},
	} {
		if client, err := nodewise.NewClient(given.target, given.option); err == nil || client != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for _, target := range []string{"localhost:1", "127.0.0.9:1", "[::1]:1", "dns:///localhost:1", "unix:/tmp/socket", "passthrough:///127.0.0.1:1", "localhost"} {
		if client, err := nodewise.NewClient(target, nodewise.WithToken("t")); err != nil {
			t.Error(target, err)
		} else {
			_ = client.Close()
		}
	}
	if client, err := nodewise.NewClient("nodewise.example:443", nodewise.WithToken("t"), nodewise.WithTLS(nil)); err != nil {
		t.Error(err)
	} else {
		_ = client.Close()
	}
}

func TestHealth(t *testing.T) {
	server := grpc.NewServer()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	healthv1.RegisterHealthServer(server, health.NewServer())
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	client := (&fake{target: listener.Addr().String()}).client(t)
	if told, err := client.Health(t.Context(), ""); err != nil || told != healthv1.HealthCheckResponse_SERVING {
		t.Error(told, err)
	}
	if _, err := client.Health(t.Context(), "none"); status.Code(err) != codes.NotFound {
		t.Error(err)
	}
	if reply, err := nodewisev1.NewPredictionServiceClient(client.Conn()).Predict(t.Context(), &nodewisev1.PredictRequest{}); status.Code(err) != codes.Unimplemented {
		t.Error(reply, err)
	}
}

// The file that this package carries is that of the contract, and the version that of the project, where both are at hand.
func TestWhatThePackageCarries(t *testing.T) {
	ours, err := os.ReadFile("nodewise_grpc_service_config.json")
	if err != nil || !json.Valid(ours) {
		t.Fatal(err)
	}
	theirs, err := os.ReadFile("../../protos/nodewise/v1/nodewise_grpc_service_config.json")
	if err != nil {
		t.Skip("the contract is not beside this package")
	}
	if string(ours) != string(theirs) {
		t.Error("nodewise_grpc_service_config.json is not the contract's; run `make stubs`")
	}
	project, err := os.ReadFile("../../pyproject.toml")
	if err != nil || !strings.Contains(string(project), "\nversion = \""+nodewise.Version+"\"\n") {
		t.Error("Version is not the project's")
	}
}
