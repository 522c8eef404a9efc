// Nodewise-kubernetes lets Kubernetes act on Nodewise's predictions. Each of its commands is one process:
//
//	nodewise-kubernetes webhook     chooses the number of nodes of jobs whose owners ask for it
//	nodewise-kubernetes extender    answers kube-scheduler: which nodes, how good, whom to preempt
//	nodewise-kubernetes allocator   shares devices among elastic jobs, round by round
//	nodewise-kubernetes collector   appends to profiles how fast jobs run, by their logs or metrics
//	nodewise-kubernetes certificates   makes certificates for both
//	nodewise-kubernetes load        asks an extender for so long so often, and prints how it answered
//
// All of them go on, a little less cleverly, where Nodewise does not answer.
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

// command is one of the program's. It adds its flags to a set, and runs once they are parsed.
type command struct {
	name, does string
	setUp      func(*flag.FlagSet) func(context.Context) error
}

var commands = []command{
	{"extender", "answers kube-scheduler: which nodes, how good, whom to preempt", extenderCommand},
	{"webhook", "chooses the number of nodes of jobs whose owners ask for it", webhookCommand},
	{"allocator", "shares devices among elastic jobs, round by round", allocatorCommand},
	{"collector", "appends to profiles how fast jobs run, by their logs or metrics", collectorCommand},
	{"certificates", "makes certificates for both, tells the API server, and prints the authority for kube-scheduler", certificatesCommand},
	{"load", "asks an extender for so long so often, and prints how it answered", loadCommand},
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
		return fmt.Errorf("say what to do: one of %s; COMMAND -help tells its options", strings.Join(names, ", "))
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
