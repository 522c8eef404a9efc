package conformance

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
)

var (
	namespace = flag.String("namespace", "default", "namespace of the TrainJobs")
	spec      = flag.String("spec", `{"runtimeRef": {"name": "torch-distributed"}}`, "specification of the TrainJobs, as JSON")
	optIn     = flag.String("opt-in", "", `annotations of the opt-in, as JSON, such as {"trainer.kubeflow.org/autoconf-plugin": "mine"}; empty = no test runs`)
	least     = flag.Int64("least", 2, "the lowest number of nodes that the opt-in allows")
	most      = flag.Int64("most", 4, "the highest number of nodes that the opt-in allows")
	reason    = flag.String("reason", "nodewise.dev/reason", "annotation with the recommender's reason; empty = it states none there")
	patience  = flag.Duration("patience", time.Minute, "longest wait for a recommendation")
	settle    = flag.Duration("settle", 10*time.Second, "time in which nothing may happen")
	stop      = flag.String("stop", "", "shell command that stops the recommender and waits until it has stopped")
	start     = flag.String("start", "", "shell command that starts it and waits until it runs; without both what needs them is skipped")
)

// The conformance of the recommender on a cluster, which the flags name; -kubeconfig is a flag of controller-runtime:
//
//	go test ./conformance -v -args -kubeconfig FILE -opt-in JSON
func TestConformance(t *testing.T) {
	if *optIn == "" {
		t.Skip("-opt-in does not say how an owner opts in")
	}
	settings := Settings{Namespace: *namespace, Least: *least, Most: *most, Reason: *reason, Patience: *patience, Settle: *settle, Stop: command(*stop), Start: command(*start)}
	for text, into := range map[*string]any{spec: &settings.Spec, optIn: &settings.OptIn} {
		if err := json.Unmarshal([]byte(*text), into); err != nil {
			t.Fatal(*text, ": ", err)
		}
	}
	kubernetes, err := config.GetConfig()
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := client.New(kubernetes, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	Check(t, cluster, settings)
}

func command(text string) func(context.Context) error {
	if text == "" {
		return nil
	}
	return func(ctx context.Context) error {
		command := exec.CommandContext(ctx, "sh", "-c", text) // #nosec G204 -- the user's own
		command.Stdout, command.Stderr = os.Stderr, os.Stderr
		if err := command.Run(); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
		return nil
	}
}
