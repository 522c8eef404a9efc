package e2e

import (
	"context"
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/testcluster"
)

// A single elastic job gets the nodes that it gains from; a second job makes them share. In a dry run only events change.
func TestElasticJobsShare(t *testing.T) {
	addNodes(t, "elastic", "V100", 4, "")
	store(t, "team/elastic", measured(t, "V100"))
	asks := map[string]string{
		"nodewise.dev/profile": "team/elastic", "nodewise.dev/nodes": "1-4", "nodewise.dev/elastic": "true", "nodewise.dev/settings": `{"global_batch_samples": 512}`,
		"nodewise.dev/samples": "1e9", "nodewise.dev/objective": "fewest-devices", "nodewise.dev/deadline-seconds": "1e9",
	}
	run := func(options ...string) func() {
		if err := startProcess(t.Context(), "allocator", append(options, "-policy", "equal-share", "-round", "100ms", "-minimum-run", "0s", "-restart-cost", "1s")...); err != nil {
			t.Fatal(err)
		}
		stop := func() { end(rig.processes["allocator"]) }
		t.Cleanup(stop)
		return stop
	}
	one := job(t, "elastic-one", "elastic", asks)
	placed(t, "elastic-one", 1)
	stop := run("-dry-run")
	suggested := eventOf(t, one, "NodesSuggested")
	if err := rig.kubernetes.Get(t.Context(), client.ObjectKeyFromObject(one), one); err != nil || *one.Spec.Parallelism != 1 {
		t.Error("a dry run gave", *one.Spec.Parallelism, err, suggested.Message)
	}
	stop()
	run()
	grown := nodesUntil(t, one, func(nodes int32) bool { return nodes > 1 })
	placed(t, "elastic-one", int(grown))
	eventOf(t, one, "NodesChanged")
	if *one.Spec.Completions != grown || one.Annotations["nodewise.dev/chosen-nodes"] != fmt.Sprint(grown) {
		t.Error(*one.Spec.Completions, one.Annotations)
	}
	if grown < 4 {
		t.Fatal("alone it got", grown, "of 4 nodes")
	}
	two := job(t, "elastic-two", "elastic", asks)
	nodesUntil(t, one, func(nodes int32) bool { return nodes < 4 })
	nodesUntil(t, two, func(nodes int32) bool { return nodes >= 1 })
	placed(t, "elastic-two", int(*two.Spec.Parallelism))
}

// nodesUntil waits until a job's number of nodes meets a condition.
func nodesUntil(t *testing.T, of *batchv1.Job, awaited func(int32) bool) int32 {
	t.Helper()
	err := testcluster.Until(t.Context(), func(ctx context.Context) (bool, error) {
		err := rig.kubernetes.Get(ctx, client.ObjectKeyFromObject(of), of)
		return awaited(*of.Spec.Parallelism), err
	})
	if err != nil {
		t.Fatal(of.Name, " has ", *of.Spec.Parallelism, " nodes: ", err, rig.Log("allocator"))
	}
	return *of.Spec.Parallelism
}
