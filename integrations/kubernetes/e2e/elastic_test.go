package e2e

import (
	"context"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	nodesUntil(t, one, func(nodes int32) bool { return nodes == 4 })
	placed(t, "elastic-one", 4)
	eventOf(t, one, "NodesChanged")
	if *one.Spec.Completions != 4 || one.Annotations["nodewise.dev/chosen-nodes"] != "4" {
		t.Error(*one.Spec.Completions, one.Annotations)
	}
	two := job(t, "elastic-two", "elastic", asks)
	for _, each := range []*batchv1.Job{one, two} {
		nodesUntil(t, each, func(nodes int32) bool { return nodes == 2 })
		placed(t, each.Name, 2)
	}
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

// The allocator resizes an elastic Job of Kueue: Kueue replaces its workload by a new slice, admits it, and lets the new pods run.
func TestElasticSlices(t *testing.T) {
	addNodes(t, "slices", "V100", 4, "")
	startControllers(t)
	queue(t, "slices", "")
	store(t, "team/slices", measured(t, "V100"))
	asks := map[string]string{
		"kueue.x-k8s.io/elastic-job": "true", "nodewise.dev/profile": "team/slices", "nodewise.dev/nodes": "1-4", "nodewise.dev/elastic": "true",
		"nodewise.dev/settings": `{"global_batch_samples": 512}`, "nodewise.dev/samples": "1e9", "nodewise.dev/objective": "fewest-devices", "nodewise.dev/deadline-seconds": "1e9",
	}
	kind := controlledKinds[0]
	one := create(t, kind.in(t, "slices", "slices-one", asks))
	kind.running(t, one, 1)
	runProcess(t, "allocator", "-policy", "equal-share", "-round", "500ms", "-minimum-run", "0s", "-restart-cost", "1s")
	found := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: one.GetName(), Namespace: "default"}}
	nodesUntil(t, found, func(nodes int32) bool { return nodes == 4 && slices.Equal(slicesOf(t, one, true), []int64{4}) })
	kind.running(t, one, 4)
	two := create(t, kind.in(t, "slices", "slices-two", asks))
	other := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: two.GetName(), Namespace: "default"}}
	for each, job := range map[*unstructured.Unstructured]*batchv1.Job{one: found, two: other} {
		nodesUntil(t, job, func(nodes int32) bool { return nodes == 2 && slices.Equal(slicesOf(t, each, true), []int64{2}) })
		kind.running(t, each, 2)
	}
}

// An elastic Job of Kueue grows within the nominal quota of its queue, although more nodes are free: to what another job leaves, and to all of it
// once that job is gone.
func TestElasticQuota(t *testing.T) {
	addNodes(t, "quota", "V100", 5, "")
	startControllers(t)
	queueOf(t, "quota", "V100", 3*8, "")
	store(t, "team/quota", measured(t, "V100"))
	kind := controlledKinds[0]
	rigid := create(t, kind.in(t, "quota", "quota-rigid", nil))
	kind.running(t, rigid, 1)
	one := create(t, kind.in(t, "quota", "quota-one", map[string]string{
		"kueue.x-k8s.io/elastic-job": "true", "nodewise.dev/profile": "team/quota", "nodewise.dev/nodes": "1-4", "nodewise.dev/elastic": "true",
		"nodewise.dev/settings": `{"global_batch_samples": 512}`, "nodewise.dev/samples": "1e9", "nodewise.dev/objective": "fewest-devices", "nodewise.dev/deadline-seconds": "1e9",
	}))
	kind.running(t, one, 1)
	runProcess(t, "allocator", "-policy", "equal-share", "-round", "500ms", "-minimum-run", "0s", "-restart-cost", "1s")
	found := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: one.GetName(), Namespace: "default"}}
	for _, nodes := range []int64{2, 3} {
		nodesUntil(t, found, func(now int32) bool { return now > 1 && slices.Equal(slicesOf(t, one, true), []int64{nodes}) })
		kind.running(t, one, int(nodes))
		if all := slicesOf(t, one, false); slices.Max(all) > nodes {
			t.Error("with a quota of ", nodes, " nodes there were slices of ", all, " nodes")
		}
		background := metav1.DeletePropagationBackground
		if err := rig.kubernetes.Delete(t.Context(), rigid, &client.DeleteOptions{PropagationPolicy: &background}); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
}

// slicesOf returns the numbers of pods of a job's workloads: of all, or of those that are admitted and not finished.
func slicesOf(t *testing.T, job *unstructured.Unstructured, running bool) (found []int64) {
	t.Helper()
	all := &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(workloads)
	if err := rig.kubernetes.List(t.Context(), all, client.InNamespace("default")); err != nil {
		t.Fatal(err)
	}
	for _, each := range all.Items {
		for _, owner := range each.GetOwnerReferences() {
			if owner.UID == job.GetUID() && (!running || conditionIs(&each, "Admitted", "True") && !conditionIs(&each, "Finished", "True")) {
				found = append(found, at(each.Object, "spec.podSets.0.count").(int64))
			}
		}
	}
	return found
}
