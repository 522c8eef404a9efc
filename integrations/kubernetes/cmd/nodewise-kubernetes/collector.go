package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	nodewisev1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/collector"
)

func collectorCommand(flags *flag.FlagSet) func(context.Context) error {
	options := commonFlags(flags)
	window := flags.Duration("window", time.Minute, "time that one observation covers")
	warmUp := flags.Duration("warm-up", time.Minute, "time after a start, a restart or a resize of a job that no observation covers")
	prometheus := flags.String("prometheus", "", "URL of a Prometheus that answers the queries in annotations nodewise.dev/metrics-query; empty = none")
	tokenFile := flags.String("prometheus-token-file", "", "file of the bearer token for -prometheus, which may change; empty = none")
	authorities := flags.String("prometheus-ca-file", "", "file of the authorities of the certificate of -prometheus; empty = those of the system")
	elect := flags.Bool("leader-elect", true, "only one of several replicas collects")
	return func(ctx context.Context) error {
		if *window < time.Second {
			return fmt.Errorf("-window is %v; give at least 1s", *window)
		}
		collecting := &collector.Collector{Window: *window, WarmUp: *warmUp}
		if *warmUp < 0 {
			return fmt.Errorf("-warm-up is %v; give 0s or more", *warmUp)
		}
		if *prometheus != "" {
			querier, err := collector.Prometheus(*prometheus, *tokenFile, *authorities)
			if err != nil {
				return err
			}
			collecting.Prometheus = querier
		} else if *tokenFile != "" || *authorities != "" {
			return errors.New("-prometheus-token-file and -prometheus-ca-file need -prometheus, the URL of a Prometheus")
		}
		asker, err := options.asker(ctx)
		if err != nil {
			return err
		}
		found, err := options.manager(manager.Options{
			LeaderElection: *elect, LeaderElectionID: "nodewise-collector", LeaderElectionReleaseOnCancel: true,
			Client: client.Options{Cache: &client.CacheOptions{Unstructured: true}}, Cache: cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
		})
		if err != nil {
			return err
		}
		logs, err := kubernetes.NewForConfigAndClient(found.GetConfig(), found.GetHTTPClient())
		if err != nil {
			return err
		}
		appended := func(ctx context.Context, request *nodewisev1.AppendProfileRequest) error {
			return asker.Do(ctx, func(ctx context.Context) error {
				reply, err := options.client.AppendProfile(ctx, request)
				if err == nil && reply.GetProfile().GetRevision() == 0 {
					err = fmt.Errorf("%s does not answer as Nodewise does: another program may listen there; correct -server", options.server)
				}
				return err
			})
		}
		collecting.Cluster, collecting.Logs, collecting.Append = found.GetClient(), logs, appended
		if err := found.Add(collecting); err != nil {
			return err
		}
		return found.Start(ctx)
	}
}
