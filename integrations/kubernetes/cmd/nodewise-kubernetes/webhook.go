package main

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"net"
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/announce"
	nodewise "github.com/nodewise/nodewise/integrations/kubernetes/internal/webhook"
)

func webhookCommand(flags *flag.FlagSet) func(context.Context) error {
	options, serving := commonFlags(flags), servingFlags(flags, "9443")
	elect := flags.Bool("leader-elect", true, "of several replicas one alone writes events and time left")
	return func(ctx context.Context) error {
		asker, err := options.asker(ctx)
		if err != nil {
			return err
		}
		host, port, err := net.SplitHostPort(serving.listen)
		if err != nil {
			return fmt.Errorf("-listen is %q; give HOST:PORT: %w", serving.listen, err)
		}
		number, err := strconv.Atoi(port)
		if err != nil {
			return fmt.Errorf("-listen is %q; give HOST:PORT with a number: %w", serving.listen, err)
		}
		known := &tls.Config{}
		if err := serving.authenticate(known); err != nil {
			return err
		}
		found, err := options.manager(manager.Options{
			LeaderElection: *elect, LeaderElectionID: "nodewise-webhook", LeaderElectionReleaseOnCancel: true,
			WebhookServer: webhook.NewServer(webhook.Options{
				Host: host, Port: number, CertDir: serving.certificates,
				TLSOpts: []func(*tls.Config){func(config *tls.Config) {
					config.MinVersion, config.ClientCAs, config.ClientAuth = tls.VersionTLS12, known.ClientCAs, known.ClientAuth
				}},
			}),
		})
		if err != nil {
			return err
		}
		found.GetWebhookServer().Register("/choose-nodes", &admission.Webhook{Handler: nodewise.Handler(asker, found.GetAPIReader())})
		if err := found.AddReadyzCheck("webhook", found.GetWebhookServer().StartedChecker()); err != nil {
			return err
		}
		if err := announce.Watch(found); err != nil {
			return err
		}
		return found.Start(ctx)
	}
}
