package e2e

import (
	"context"
	"strings"
	"testing"
	"time"
)

// Without Nodewise a cluster works as before: at most one job waits, for the time-out; then no job waits until Nodewise is back.
func TestNodewiseIsStopped(t *testing.T) {
	addNodes(t, "stopped", "V100", 5, "")
	store(t, "team/stopped", measured(t, "V100"))
	asks := func(profile string) map[string]string {
		return map[string]string{"nodewise.dev/profile": profile, "nodewise.dev/nodes": "2-4", "nodewise.dev/settings": `{"global_batch_samples": 512}`}
	}
	known := job(t, "before", "stopped", asks("team/stopped"))
	placed(t, "before", int(*known.Spec.Parallelism))
	resume := pauseServer(t) // it hangs, which is worse than that it is gone
	begun := time.Now()
	first := job(t, "first-after", "stopped", asks("team/unknown"))
	waited := time.Since(begun)
	if !strings.Contains(first.Annotations["nodewise.dev/reason"], "no answer from Nodewise") || *first.Spec.Parallelism != 1 {
		t.Error(*first.Spec.Parallelism, first.Annotations)
	}
	if waited > 10*time.Second { // the webhook's time-out is 2 s; the API server would go without it after 5
		t.Error("the first job waited", waited)
	}
	begun = time.Now()
	for _, name := range []string{"second-after", "third-after", "fourth-after"} {
		if next := job(t, name, "nowhere", asks("team/unknown-too")); next.Annotations["nodewise.dev/reason"] == "" || *next.Spec.Parallelism != 1 {
			t.Error(*next.Spec.Parallelism, next.Annotations)
		}
	}
	if waited := time.Since(begun); waited > 4*time.Second { // three time-outs are 6 s; that it is none is held by the asker's own tests
		t.Error("three more jobs waited", waited)
	}
	placed(t, "first-after", 1)
	if again := job(t, "known-after", "nowhere", asks("team/stopped")); again.Annotations["nodewise.dev/chosen-nodes"] != known.Annotations["nodewise.dev/chosen-nodes"] {
		t.Error("what Nodewise said before is not used:", again.Annotations)
	}
	resume()
	store(t, "team/back", measured(t, "V100"))
	deadline := time.Now().Add(time.Minute)
	for number := 0; ; number++ {
		name := "back-" + string(rune('a'+number%26))
		if back := job(t, name, "nowhere", asks("team/back")); back.Annotations["nodewise.dev/chosen-nodes"] != "" {
			break
		} else if time.Now().After(deadline) || number == 25 {
			t.Fatal("Nodewise is back, but not asked:", back.Annotations)
		}
		time.Sleep(time.Second) // between probes
	}
}

// Without this module's processes, too, jobs are admitted and scheduled.
func TestWebhookAndExtenderAreStopped(t *testing.T) {
	addNodes(t, "without", "V100", 4, "")
	for _, name := range []string{"webhook", "extender"} {
		end(rig.processes[name])
	}
	t.Cleanup(func() {
		for _, name := range []string{"webhook", "extender"} {
			if err := startProcess(context.WithoutCancel(t.Context()), name); err != nil {
				t.Error(err)
			}
		}
	})
	asks := map[string]string{"nodewise.dev/profile": "team/without", "nodewise.dev/nodes": "2-4"}
	made := job(t, "without", "without", asks)
	if *made.Spec.Parallelism != 1 || made.Annotations["nodewise.dev/reason"] != "" {
		t.Error(*made.Spec.Parallelism, made.Annotations)
	}
	placed(t, "without", 1)
}
