package nodewise

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// Version of this client; part of its user agent.
const Version = "0.1.0"

const (
	defaultMaxReceiveBytes = 4 << 20
	// gRPC keeps what was sent for another attempt only up to so many bytes; its default is less than a large batch.
	retryBufferBytes = 16 << 20
)

// TokenSource gives the bearer token; it is asked at every call.
type TokenSource func(context.Context) (string, error)

type settings struct {
	tls             *tls.Config
	token           TokenSource
	timeout         time.Duration
	userAgent       string
	retry           bool
	maxReceiveBytes int
	dial            []grpc.DialOption
}

// Option changes how a [Client] speaks to its server.
type Option func(*settings) error

// set is an option that cannot be wrong.
func set(change func(*settings)) Option {
	return func(s *settings) error {
		change(s)
		return nil
	}
}

// WithTLS encrypts the connection; nil means TLS with the system's root certificates. A certificate in it identifies the client.
func WithTLS(config *tls.Config) Option {
	if config == nil {
		config = &tls.Config{}
	}
	return set(func(s *settings) { s.tls = config })
}

// WithTLSFiles is [WithTLS] from PEM files: root certificates (empty = the system's), and the client's own certificate with its key
// (both or neither).
func WithTLSFiles(authorities, certificate, key string) Option {
	return func(s *settings) error {
		config := &tls.Config{}
		if authorities != "" {
			text, err := os.ReadFile(authorities)
			if err != nil {
				return fmt.Errorf("nodewise: root certificates: %w", err)
			}
			config.RootCAs = x509.NewCertPool()
			if !config.RootCAs.AppendCertsFromPEM(text) {
				return fmt.Errorf("nodewise: %s holds no certificate in PEM form", authorities)
			}
		}
		if (certificate == "") != (key == "") {
			return errors.New("nodewise: the client's certificate and its key belong together; give both")
		}
		if certificate != "" {
			pair, err := tls.LoadX509KeyPair(certificate, key)
			if err != nil {
				return fmt.Errorf("nodewise: the client's certificate: %w", err)
			}
			config.Certificates = []tls.Certificate{pair}
		}
		s.tls = config
		return nil
	}
}

// WithToken sends a bearer token with every call. Without TLS that is refused by [NewClient] beyond loopback: others on the network could
// read it.
func WithToken(token string) Option {
	return func(s *settings) error {
		if strings.TrimSpace(token) == "" {
			return errors.New("nodewise: the token is empty; give one, or leave the option out")
		}
		s.token = func(context.Context) (string, error) { return token, nil }
		return nil
	}
}

// WithTokenSource asks for the token at every call, for tokens that change while the client lives; see [TokenFile].
func WithTokenSource(source TokenSource) Option {
	return set(func(s *settings) { s.token = source })
}

// TokenFile reads the token from a file, and again when the file changes.
func TokenFile(path string) TokenSource {
	var lock sync.Mutex
	var token string
	var seen time.Time
	var size int64
	return func(context.Context) (string, error) {
		found, err := os.Stat(path)
		if err != nil {
			return "", err
		}
		lock.Lock()
		defer lock.Unlock()
		if token == "" || !found.ModTime().Equal(seen) || found.Size() != size {
			text, err := os.ReadFile(path)
			if err != nil {
				return "", err
			}
			token, seen, size = strings.TrimSpace(string(text)), found.ModTime(), found.Size()
		}
		return token, nil
	}
}

// WithTimeout is the deadline of every call whose context has none. The default is that of the shared policy: 10 s, 60 s for calls that may
// compute or store for long, 600 s for long calls.
func WithTimeout(timeout time.Duration) Option {
	return func(s *settings) error {
		if timeout <= 0 {
			return fmt.Errorf("nodewise: the time-out is %v; every call has a deadline, so give one above 0", timeout)
		}
		s.timeout = timeout
		return nil
	}
}

// WithUserAgent names the caller; "nodewise-go/" and [Version] follow it.
func WithUserAgent(name string) Option {
	return set(func(s *settings) { s.userAgent = name + " " + s.userAgent })
}

// WithRetry says whether idempotent calls are tried again, and cut streams begun again, where the server is not there or going away. The
// default is true.
func WithRetry(retry bool) Option {
	return set(func(s *settings) { s.retry = retry })
}

// WithMaxReceiveBytes is the size of the largest message that is accepted from the server, in bytes. The default is 4 MiB.
func WithMaxReceiveBytes(most int) Option {
	return set(func(s *settings) { s.maxReceiveBytes = most })
}

// WithDialOptions passes options to gRPC, such as interceptors; they stand above those of this package.
func WithDialOptions(options ...grpc.DialOption) Option {
	return set(func(s *settings) { s.dial = append(s.dial, options...) })
}

// FromEnvironment takes the options that the environment states: NODEWISE_TOKEN (a token, or @FILE) or NODEWISE_TOKEN_FILE; NODEWISE_TLS_CA
// (a file of root certificates, or "system"), NODEWISE_TLS_CERT and NODEWISE_TLS_KEY.
func FromEnvironment() Option {
	return func(s *settings) error {
		if token := os.Getenv("NODEWISE_TOKEN"); strings.HasPrefix(token, "@") {
			s.token = TokenFile(token[1:])
		} else if token != "" {
			s.token = func(context.Context) (string, error) { return token, nil }
		} else if file := os.Getenv("NODEWISE_TOKEN_FILE"); file != "" {
			s.token = TokenFile(file)
		}
		authorities, certificate, key := os.Getenv("NODEWISE_TLS_CA"), os.Getenv("NODEWISE_TLS_CERT"), os.Getenv("NODEWISE_TLS_KEY")
		if authorities == "" && certificate == "" && key == "" {
			return nil
		}
		if authorities == "system" {
			authorities = ""
		}
		return WithTLSFiles(authorities, certificate, key)(s)
	}
}

func (s *settings) dialOptions(target string, config serviceConfig) ([]grpc.DialOption, error) {
	secure := credentials.TransportCredentials(insecure.NewCredentials())
	if s.tls != nil {
		secure = credentials.NewTLS(s.tls)
	}
	// A server that comes back is found at once: the default waits a second before it knocks again.
	again := backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(secure),
		grpc.WithUserAgent(s.userAgent),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: again, MinConnectTimeout: 5 * time.Second}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(s.maxReceiveBytes), grpc.MaxRetryRPCBufferSize(retryBufferBytes)),
		grpc.WithDisableServiceConfig(), // only that of a resolver; the default one below holds
	}
	if s.retry {
		options = append(options, grpc.WithDefaultServiceConfig(config.retries))
	} else {
		options = append(options, grpc.WithDisableRetry())
	}
	if s.token != nil {
		if s.tls == nil && !loopback(target) {
			return nil, fmt.Errorf("nodewise: a token would go to %s as plain text; use WithTLS, or a server on loopback", target)
		}
		options = append(options, grpc.WithPerRPCCredentials(bearer{s.token, s.tls != nil}))
	}
	return append(options, s.dial...), nil
}

// bearer sends the token.
type bearer struct {
	source TokenSource
	secure bool
}

func (b bearer) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	token, err := b.source(ctx)
	if err != nil {
		return nil, err
	}
	return map[string]string{"authorization": "Bearer " + token}, nil
}

func (b bearer) RequireTransportSecurity() bool { return b.secure }

// loopback tells whether a target stays on this machine.
func loopback(target string) bool {
	scheme, rest, found := strings.Cut(target, ":")
	switch {
	case found && (scheme == "unix" || scheme == "unix-abstract"):
		return true
	case found && (scheme == "dns" || scheme == "passthrough" || scheme == "ipv4" || scheme == "ipv6"):
		target = rest[strings.LastIndex(rest, "/")+1:]
	}
	host, _, err := net.SplitHostPort(target)
	if err != nil {
		host = strings.Trim(target, "[]")
	}
	address, err := netip.ParseAddr(host)
	return host == "localhost" || (err == nil && address.IsLoopback())
}
