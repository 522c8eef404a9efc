package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"runtime/debug"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	nodewise "github.com/nodewise/nodewise/clients/go"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/ask"
)

// common are the options that every process in a cluster has.
type common struct {
	server, metrics, health string
	settings                ask.Settings
	client                  *nodewise.Client
}

func commonFlags(flags *flag.FlagSet) *common {
	config.RegisterFlags(flags)
	found := &common{}
	flags.StringVar(&found.server, "server", cmp.Or(os.Getenv("NODEWISE_SERVER"), "127.0.0.1:50551"), "the Nodewise server, HOST:PORT; NODEWISE_TOKEN_FILE, NODEWISE_TLS_CA, ... name its token and certificates")
	flags.StringVar(&found.metrics, "metrics", ":8080", "address to serve Prometheus metrics on; 0 = none")
	flags.StringVar(&found.health, "health", ":8081", "address to serve /healthz and /readyz on; 0 = none")
	flags.DurationVar(&found.settings.Timeout, "timeout", 2*time.Second, "longest wait of a caller for Nodewise")
	flags.DurationVar(&found.settings.Fresh, "fresh", 30*time.Second, "how long an answer is used before it is requested again, in the background")
	flags.DurationVar(&found.settings.Keep, "keep", time.Hour, "how long an answer is used while Nodewise does not answer")
	return found
}

// asker creates the client of Nodewise. It does not wait for a connection.
func (c *common) asker(ctx context.Context) (*ask.Asker, error) {
	// The asker decides when another attempt is worthwhile, and no caller should wait for one.
	client, err := nodewise.NewClient(c.server, nodewise.FromEnvironment(), nodewise.WithRetry(false), nodewise.WithUserAgent("nodewise-kubernetes"))
	if err != nil {
		return nil, err
	}
	c.client = client
	return ask.New(ctx, client, c.settings), nil
}

// manager returns a manager for the work of a process.
func (c *common) manager(options manager.Options) (manager.Manager, error) {
	kubernetes, err := config.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("the cluster's configuration cannot be read: %w", err)
	}
	options.Metrics = metricsserver.Options{BindAddress: c.metrics}
	options.HealthProbeBindAddress = c.health
	found, err := ctrl.NewManager(kubernetes, options)
	if err != nil {
		return nil, err
	}
	if err := found.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	return found, found.AddReadyzCheck("ping", healthz.Ping)
}

// synced returns a readiness check: the caches must hold the state of the cluster.
func synced(ctx context.Context, all cache.Cache) healthz.Checker {
	return func(*http.Request) error {
		ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		if !all.WaitForCacheSync(ctx) {
			return errors.New("nodes and pods are still being read")
		}
		return nil
	}
}

// collectRarely trades memory for time. On one core a garbage collection delays all requests for about 50 ms, and little memory is live. GOGC
// and GOMEMLIMIT override this.
func collectRarely() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(1000)
	}
}

// serving are the options of a process that serves over TLS.
type serving struct {
	listen, certificates, clients string
}

func servingFlags(flags *flag.FlagSet, port string) *serving {
	found := &serving{}
	flags.StringVar(&found.listen, "listen", ":"+port, "address to listen on, HOST:PORT")
	flags.StringVar(&found.certificates, "certificates", "/etc/nodewise/tls", "folder with tls.crt and tls.key, which are read again when they change")
	flags.StringVar(&found.clients, "client-ca", "", "file of the authorities that clients' certificates must be signed by; empty = clients need no certificate")
	return found
}

// tls returns a configuration that follows the certificate's file, and the watcher of that file.
func (s *serving) tls() (*tls.Config, *certwatcher.CertWatcher, error) {
	watcher, err := certwatcher.New(s.certificates+"/tls.crt", s.certificates+"/tls.key")
	if err != nil {
		return nil, nil, fmt.Errorf("the certificate in %s cannot be read: %w", s.certificates, err)
	}
	found := &tls.Config{GetCertificate: watcher.GetCertificate, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	return found, watcher, s.authenticate(found)
}

// authenticate admits only clients with a certificate of the given authorities, if there are any.
func (s *serving) authenticate(config *tls.Config) error {
	if s.clients == "" {
		return nil
	}
	text, err := os.ReadFile(s.clients)
	if err != nil {
		return err
	}
	config.ClientCAs, config.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	if !config.ClientCAs.AppendCertsFromPEM(text) {
		return fmt.Errorf("%s holds no certificate in PEM form", s.clients)
	}
	return nil
}
