package main

import (
	"context"
	"flag"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/recommender"
)

func recommenderCommand(flags *flag.FlagSet) func(context.Context) error {
	options := commonFlags(flags)
	var settings recommender.Settings
	flags.StringVar(&settings.Plugin, "plugin", "nodewise", "name of this recommender in the annotation "+recommender.Plugin)
	flags.DurationVar(&settings.Patience, "patience", time.Minute, "time after which a job with that annotation is released without an answer")
	flags.DurationVar(&settings.Retry, "retry", 15*time.Second, "time between two attempts to get an answer about a job")
	elect := flags.Bool("leader-elect", true, "only one of several replicas changes jobs")
	return func(ctx context.Context) error {
		if settings.Retry <= 0 {
			return fmt.Errorf("-retry is %v; give a time above 0, such as 15s", settings.Retry)
		}
		asker, err := options.asker(ctx)
		if err != nil {
			return err
		}
		found, err := options.manager(manager.Options{LeaderElection: *elect, LeaderElectionID: "nodewise-recommender", LeaderElectionReleaseOnCancel: true})
		if err != nil {
			return err
		}
		if err := (&recommender.Recommender{Cluster: found.GetClient(), Asker: asker, Settings: settings}).Watch(found); err != nil {
			return err
		}
		return found.Start(ctx)
	}
}
