// Nodewise-kubernetes lets Kubernetes act on Nodewise's predictions. Each of its commands is one process:
//
//	nodewise-kubernetes webhook     chooses the number of nodes of new jobs whose owners ask for it
//	nodewise-kubernetes extender    advises kube-scheduler: nodes to use, their scores, and pods to preempt
//	nodewise-kubernetes allocator   divides devices among elastic jobs in rounds
//	nodewise-kubernetes check       answers Kueue's AdmissionChecks: fits into memory, worth its nodes, done by its deadline
//	nodewise-kubernetes recommender chooses the number of nodes of suspended TrainJobs
//	nodewise-kubernetes collector   appends the speed of jobs, from their logs, metrics or status, to profiles
//	nodewise-kubernetes certificates   creates certificates for the webhook and the extender
//	nodewise-kubernetes load        sends requests to an extender at a fixed rate, and prints how it answers
//
// All of them continue without predictions if Nodewise does not answer.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// command is one command of the program. Its setUp adds flags to a set, and the returned function runs after they are parsed.
type command struct {
	name, does string
	setUp      func(*flag.FlagSet) func(context.Context) error
}

var commands = []command{
	{"extender", "advises kube-scheduler: nodes to use, their scores, and pods to preempt", extenderCommand},
	{"webhook", "chooses the number of nodes of new jobs whose owners ask for it", webhookCommand},
	{"allocator", "divides devices among elastic jobs in rounds", allocatorCommand},
	{"check", "answers Kueue's AdmissionChecks: fits into memory, worth its nodes, done by its deadline", checkCommand},
	{"recommender", "chooses the number of nodes of suspended TrainJobs", recommenderCommand},
	{"collector", "appends the speed of jobs, from their logs, metrics or status, to profiles", collectorCommand},
	{"certificates", "creates certificates for the webhook and the extender, installs them, and prints the authority for kube-scheduler", certificatesCommand},
	{"load", "sends requests to an extender at a fixed rate, and prints how it answers", loadCommand},
}

func main() {
	if err := start(ctrl.SetupSignalHandler(), os.Args[1:]); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "nodewise-kubernetes:", err)
		}
		os.Exit(1)
	}
}

func start(ctx context.Context, arguments []string) error {
	var names []string
	for _, each := range commands {
		names = append(names, each.name)
	}
	if len(arguments) == 0 || !slices.Contains(names, arguments[0]) {
		return fmt.Errorf("give a command: one of %s; COMMAND -help lists its options", strings.Join(names, ", "))
	}
	chosen := commands[slices.Index(names, arguments[0])]
	flags := flag.NewFlagSet(chosen.name, flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprintf(flags.Output(), "nodewise-kubernetes %s: %s\n\n", chosen.name, chosen.does)
		flags.PrintDefaults()
	}
	run := chosen.setUp(flags)
	if err := flags.Parse(arguments[1:]); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%s takes options only, not %q", chosen.name, flags.Arg(0))
	}
	ctrl.SetLogger(zap.New(zap.UseDevMode(false)))
	return run(ctx)
}
