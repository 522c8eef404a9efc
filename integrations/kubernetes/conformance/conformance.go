// Package conformance checks a recommender of Kubeflow's KEP-3328 on any cluster: what it may and may not do to a TrainJob whose owner delegates
// the number of nodes. It knows nothing of Nodewise; flags of its test say how an owner opts in (conformance_test.go).
package conformance

import (
	"context"
	"reflect"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Settings say what is checked. Durations are those of the recommender, on the cluster at hand.
type Settings struct {
	Namespace string
	// Spec is the specification of the TrainJobs. Up to Trainer 2.2 it must not have a field trainer, which cannot change after creation.
	Spec map[string]any
	// OptIn are the annotations by which an owner delegates the number of nodes to the recommender.
	OptIn map[string]string
	// Least and Most are the owner's limits, as OptIn states them. The runtime's number of nodes must lie outside them.
	Least, Most int64
	// Reason is the name of the annotation that holds the recommender's reason; empty = it states none there.
	Reason string
	// Patience is the longest wait for a recommendation, Settle the time in which nothing may happen.
	Patience, Settle time.Duration
	// Stop and Start stop and start the recommender; nil = what needs them is skipped.
	Stop, Start func(context.Context) error
}

var trainJobs = schema.GroupVersionKind{Group: "trainer.kubeflow.org", Version: "v1alpha1", Kind: "TrainJob"}

// Check runs the checks as subtests. It deletes the TrainJobs that it creates.
func Check(t *testing.T, cluster client.Client, settings Settings) {
	c := &checks{settings, cluster}
	t.Run("a suspended job gets a number of nodes within its limits, and a reason", func(t *testing.T) {
		job := c.create(t, true, settings.OptIn)
		c.recommended(t, job)
		if !suspended(job) {
			t.Error("the recommender resumed it, which is the owner's or the queue's task")
		}
		c.same(t, job, "a second time")
	})
	t.Run("a job without opt-in is unchanged", func(t *testing.T) {
		c.same(t, c.create(t, true, nil), "without opt-in")
	})
	t.Run("a job that is not suspended is unchanged", func(t *testing.T) {
		c.same(t, c.create(t, false, settings.OptIn), "although it is not suspended")
	})
	t.Run("a change by the owner stays", func(t *testing.T) {
		job := c.create(t, true, settings.OptIn)
		other := settings.Least
		if c.recommended(t, job) == other {
			other = settings.Most
		}
		if err := c.change(t, job, other, "spec", "trainer", "numNodes"); apierrors.IsInvalid(err) {
			t.Skip("this version of Trainer does not let owners change the number: ", err)
		} else if err != nil {
			t.Fatal(err)
		}
		c.same(t, job, "after its owner's change")
	})
	t.Run("a job can be resumed unchanged without the recommender", func(t *testing.T) {
		if settings.Stop == nil || settings.Start == nil {
			t.Skip("it is not stated how to stop and start the recommender")
		}
		if err := settings.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := settings.Start(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		})
		job := c.create(t, true, settings.OptIn)
		c.same(t, job, "without the recommender")
		if err := c.change(t, job, false, "spec", "suspend"); err != nil {
			t.Fatal(err)
		}
		c.same(t, job, "without the recommender")
	})
}

type checks struct {
	Settings
	cluster client.Client
}

func (c *checks) create(t *testing.T, suspend bool, annotations map[string]string) *unstructured.Unstructured {
	t.Helper()
	job := &unstructured.Unstructured{Object: map[string]any{"spec": (&unstructured.Unstructured{Object: c.Spec}).DeepCopy().Object}}
	job.SetGroupVersionKind(trainJobs)
	job.SetNamespace(c.Namespace)
	job.SetGenerateName("conformance-")
	job.SetAnnotations(annotations)
	if err := unstructured.SetNestedField(job.Object, suspend, "spec", "suspend"); err != nil {
		t.Fatal(err)
	}
	if err := c.cluster.Create(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.cluster.Delete(context.WithoutCancel(t.Context()), job) })
	return job
}

// recommended waits until a job has a number of nodes within its limits, and a reason, and returns the number.
func (c *checks) recommended(t *testing.T, job *unstructured.Unstructured) int64 {
	t.Helper()
	for end := time.Now().Add(c.Patience); ; time.Sleep(100 * time.Millisecond) {
		if err := c.cluster.Get(t.Context(), client.ObjectKeyFromObject(job), job); err != nil {
			t.Fatal(err)
		}
		nodes, stated, _ := unstructured.NestedInt64(job.Object, "spec", "trainer", "numNodes")
		if stated && nodes >= c.Least && nodes <= c.Most && (c.Reason == "" || job.GetAnnotations()[c.Reason] != "") {
			return nodes
		}
		if time.Now().After(end) {
			t.Fatalf("it has no number of nodes from %d to %d, with a reason in annotation %q, after %v: spec.trainer is %v, annotations are %v",
				c.Least, c.Most, c.Reason, c.Patience, trainer(job), job.GetAnnotations())
		}
	}
}

// same checks that spec.trainer of a job stays as it is.
func (c *checks) same(t *testing.T, job *unstructured.Unstructured, when string) {
	t.Helper()
	before := trainer(job)
	for end := time.Now().Add(c.Settle); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if err := c.cluster.Get(t.Context(), client.ObjectKeyFromObject(job), job); err != nil {
			t.Fatal(err)
		}
		if after := trainer(job); !reflect.DeepEqual(before, after) {
			t.Fatalf("spec.trainer changed %s from %v to %v; annotations are %v", when, before, after, job.GetAnnotations())
		}
	}
}

// change writes a field of a job as its owner would.
func (c *checks) change(t *testing.T, job *unstructured.Unstructured, value any, path ...string) error {
	t.Helper()
	before := job.DeepCopy()
	if err := unstructured.SetNestedField(job.Object, value, path...); err != nil {
		t.Fatal(err)
	}
	return c.cluster.Patch(t.Context(), job, client.MergeFrom(before))
}

func trainer(job *unstructured.Unstructured) map[string]any {
	found, _, _ := unstructured.NestedMap(job.Object, "spec", "trainer")
	return found
}

func suspended(job *unstructured.Unstructured) bool {
	found, _, _ := unstructured.NestedBool(job.Object, "spec", "suspend")
	return found
}
