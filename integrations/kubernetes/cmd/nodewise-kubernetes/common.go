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
	flags.StringVar(&found.server, "server", cmp.Or(os.Getenv("NODEWISE_SERVER"), "127.0.0.1:50551"), "the Nodewise server, HOST:PORT; its token and certificates come from NODEWISE_TOKEN_FILE, NODEWISE_TLS_CA, ...")
	flags.StringVar(&found.metrics, "metrics", ":8080", "where to serve Prometheus metrics; 0 = nowhere")
	flags.StringVar(&found.health, "health", ":8081", "where to serve /healthz and /readyz; 0 = nowhere")
	flags.DurationVar(&found.settings.Timeout, "timeout", 2*time.Second, "how long a caller may wait for Nodewise")
	flags.DurationVar(&found.settings.Fresh, "fresh", 30*time.Second, "how long an answer holds before it is asked for again, in the background")
	flags.DurationVar(&found.settings.Keep, "keep", time.Hour, "how long an answer is used while Nodewise is gone")
	return found
}

// asker connects to Nodewise. Nothing waits for it.
func (c *common) asker(ctx context.Context) (*ask.Asker, error) {
	// The asker knows when another attempt is worth it, and no caller is to wait for one.
	client, err := nodewise.NewClient(c.server, nodewise.FromEnvironment(), nodewise.WithRetry(false), nodewise.WithUserAgent("nodewise-kubernetes"))
	if err != nil {
		return nil, err
	}
	c.client = client
	return ask.New(ctx, client, c.settings), nil
}

// manager runs what belongs to a process until it ends.
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

// synced is readiness to be asked: the caches hold what the cluster has.
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

// collectRarely trades memory for time: on one core a collection of garbage holds up all that is asked meanwhile for some 50 ms, and what
// lives is little. GOGC and GOMEMLIMIT say otherwise.
func collectRarely() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(1000)
	}
}

// serving are the options of a process that is asked over TLS.
type serving struct {
	listen, certificates, clients string
}

func servingFlags(flags *flag.FlagSet, port string) *serving {
	found := &serving{}
	flags.StringVar(&found.listen, "listen", ":"+port, "where to be asked, HOST:PORT")
	flags.StringVar(&found.certificates, "certificates", "/etc/nodewise/tls", "folder with tls.crt and tls.key, read again when they change")
	flags.StringVar(&found.clients, "client-ca", "", "file of the authorities whose clients may ask; empty = anybody who reaches the port")
	return found
}

// tls is the configuration that follows the certificate's file, and what watches it.
func (s *serving) tls() (*tls.Config, *certwatcher.CertWatcher, error) {
	watcher, err := certwatcher.New(s.certificates+"/tls.crt", s.certificates+"/tls.key")
	if err != nil {
		return nil, nil, fmt.Errorf("the certificate in %s cannot be read: %w", s.certificates, err)
	}
	found := &tls.Config{GetCertificate: watcher.GetCertificate, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	return found, watcher, s.authenticate(found)
}

// authenticate lets in only clients whom the authorities know, where they are given.
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
