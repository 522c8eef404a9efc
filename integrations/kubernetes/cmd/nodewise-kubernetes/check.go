package main

import (
	"context"
	"flag"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/check"
)

func checkCommand(flags *flag.FlagSet) func(context.Context) error {
	options := commonFlags(flags)
	elect := flags.Bool("leader-elect", true, "only one of several replicas answers checks")
	return func(ctx context.Context) error {
		asker, err := options.asker(ctx)
		if err != nil {
			return err
		}
		found, err := options.manager(manager.Options{LeaderElection: *elect, LeaderElectionID: "nodewise-check", LeaderElectionReleaseOnCancel: true})
		if err != nil {
			return err
		}
		if err := (&check.Checker{Cluster: found.GetClient(), Asker: asker}).Watch(found); err != nil {
			return err
		}
		return found.Start(ctx)
	}
}
