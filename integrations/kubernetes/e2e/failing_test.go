package e2e

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/testcluster"
)

// logged waits until the log of one of this module's processes has a text so many times.
func logged(t *testing.T, name, text string, times int) {
	t.Helper()
	err := testcluster.Until(t.Context(), func(context.Context) (bool, error) {
		return strings.Count(rig.Log(name), text) >= times, nil
	})
	if err != nil {
		t.Fatalf("%s: %q: %v\n%s", name, text, err, lastLines(rig.Log(name), 10))
	}
}

// However Nodewise fails, no round of the allocator changes a job, and the process goes on.
func TestAllocatorWithoutNodewise(t *testing.T) {
	addNodes(t, "unshared", "V100", 2, "")
	one := job(t, "unshared", "unshared", map[string]string{
		"nodewise.dev/profile": "team/unshared", "nodewise.dev/nodes": "1-4", "nodewise.dev/elastic": "true", "nodewise.dev/settings": `{"global_batch_samples": 512}`,
	})
	placed(t, "unshared", 1)
	before := one.GetAnnotations()["nodewise.dev/reason"]
	for name, server := range wrongServers(t) {
		t.Run(name, func(t *testing.T) {
			runProcess(t, "allocator", "-server", server, "-timeout", "500ms", "-round", "200ms", "-minimum-run", "0s")
			logged(t, "allocator", "the round failed and changes nothing", 2)
			if err := rig.kubernetes.Get(t.Context(), client.ObjectKeyFromObject(one), one); err != nil || *one.Spec.Parallelism != 1 || one.Annotations["nodewise.dev/reason"] != before {
				t.Error(err, *one.Spec.Parallelism, one.Annotations)
			}
		})
	}
}

// However Nodewise fails, kube-scheduler places the pods of jobs that ask for it.
func TestExtenderWithoutNodewise(t *testing.T) {
	addNodes(t, "unscored", "V100", 8, "")
	without(t, "extender")
	for name, server := range wrongServers(t) {
		t.Run(name, func(t *testing.T) {
			runProcess(t, "extender", "-server", server)
			job(t, "unscored-"+name, "unscored", map[string]string{"nodewise.dev/profile": "team/unscored", "nodewise.dev/settings": `{"global_batch_samples": 512}`})
			placed(t, "unscored-"+name, 1)
		})
	}
}

// Processes of this module that hang delay jobs, and stop none.
func TestWebhookAndExtenderHang(t *testing.T) {
	addNodes(t, "hanging", "V100", 1, "")
	for _, name := range []string{"webhook", "extender"} {
		process := rig.processes[name].Process
		if err := process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = process.Signal(syscall.SIGCONT) })
	}
	made := job(t, "hanging", "hanging", map[string]string{"nodewise.dev/profile": "team/hanging", "nodewise.dev/nodes": "2-4"})
	if *made.Spec.Parallelism != 1 || made.Annotations["nodewise.dev/reason"] != "" {
		t.Error(*made.Spec.Parallelism, made.Annotations)
	}
	placed(t, "hanging", 1)
}

// Windows that end while Nodewise does not answer become observations once it does. However else it fails, the collector goes on.
func TestCollectorWithoutNodewise(t *testing.T) {
	addNodes(t, "unsent", "V100", 1, "")
	store(t, "team/unsent", measured(t, "V100"))
	job(t, "unsent", "unsent", map[string]string{
		"nodewise.dev/profile": "team/unsent", "nodewise.dev/settings": `{"global_batch_samples": 512, "sync_mode": "SYNC_MODE_ALLREDUCE"}`, "nodewise.dev/metrics-query": "sum(rate(steps_total[$window]))",
	})
	placed(t, "unsent", 1)
	address := steadyPrometheus(t)
	options := []string{"-window", "2s", "-warm-up", "0s", "-timeout", "500ms", "-prometheus", address}
	for name, server := range wrongServers(t) {
		t.Run(name, func(t *testing.T) {
			runProcess(t, "collector", append(options, "-server", server)...)
			logged(t, "collector", `"observation"`, 1)
			if name == "invalid" {
				logged(t, "collector", "Nodewise refused an observation", 1)
			} else {
				logged(t, "collector", "the window cannot be read", 1)
			}
		})
	}
	if found := observations(t.Context(), t, "team/unsent"); len(found.GetStepsPerSecond()) != 3 {
		t.Fatal(found)
	}
	resume := pauseServer(t)
	runProcess(t, "collector", options...)
	logged(t, "collector", "no answer from Nodewise", 2)
	resumed := float64(time.Now().Unix())
	resume()
	err := testcluster.Until(t.Context(), func(ctx context.Context) (bool, error) {
		sent := observations(ctx, t, "team/unsent").GetMeasuredAtUnixSeconds()[3:]
		return len(sent) > 2 && sent[0] < resumed, fmt.Errorf("%v, resumed at %v", sent, resumed)
	})
	if err != nil {
		t.Error(err, lastLines(rig.Log("collector"), 10))
	}
}
