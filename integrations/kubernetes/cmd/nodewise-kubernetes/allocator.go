package main

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	nodewisev1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/allocator"
)

// isAbout reports whether an allocation is that of a job.
func isAbout(job *nodewisev1.ScheduleJob, given *nodewisev1.JobAllocation) bool {
	return job.GetJobId() == given.GetJobId()
}

func allocatorCommand(flags *flag.FlagSet) func(context.Context) error {
	options := commonFlags(flags)
	var settings allocator.Settings
	flags.DurationVar(&settings.Round, "round", time.Minute, "time between two decisions")
	flags.BoolVar(&settings.DryRun, "dry-run", false, "write events about what would change, and change nothing")
	flags.StringVar(&settings.Policy, "policy", "", "name of Nodewise's policy; empty = the server's default")
	flags.DurationVar(&settings.RestartCost, "restart-cost", time.Minute, "time that a change costs a job")
	flags.DurationVar(&settings.MinimumRun, "minimum-run", 10*time.Minute, "least time between a job's start or change and its next change")
	flags.Float64Var(&settings.LeastGain, "least-gain", 0.1, "least gain for which a job grows, as a share of its throughput")
	elect := flags.Bool("leader-elect", true, "only one of several replicas makes decisions")
	return func(ctx context.Context) error {
		if settings.Round <= 0 {
			return fmt.Errorf("-round is %v; give a time above 0, such as 1m", settings.Round)
		}
		asker, err := options.asker(ctx)
		if err != nil {
			return err
		}
		found, err := options.manager(manager.Options{
			LeaderElection: *elect, LeaderElectionID: "nodewise-allocator", LeaderElectionReleaseOnCancel: true,
		})
		if err != nil {
			return err
		}
		schedule := func(ctx context.Context, request *nodewisev1.ScheduleRequest) (reply *nodewisev1.ScheduleResponse, err error) {
			err = asker.Do(ctx, func(ctx context.Context) error {
				reply, err = options.client.Schedule(ctx, request)
				if err == nil && !slices.EqualFunc(request.GetJobs(), reply.GetAllocations(), isAbout) {
					err = fmt.Errorf("%s does not answer as Nodewise does: another program may listen there; correct -server", options.server)
				}
				return err
			})
			return reply, err
		}
		if err := found.Add(&allocator.Allocator{Cluster: found.GetClient(), Schedule: schedule, Curves: asker, Settings: settings}); err != nil {
			return err
		}
		return found.Start(ctx)
	}
}
