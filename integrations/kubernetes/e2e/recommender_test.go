package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodewise/nodewise/integrations/kubernetes/conformance"
	"github.com/nodewise/nodewise/integrations/kubernetes/internal/testcluster"
)

// trainJobKind is TrainJob in [controlledKinds].
var trainJobKind = controlledKinds[2]

const (
	patience = 30 * time.Second
	settle   = 2 * time.Second
)

// trainJob creates a TrainJob until the test ends.
func trainJob(t *testing.T, name, spec string, annotations, labels map[string]string) *unstructured.Unstructured {
	t.Helper()
	job := read(t, `{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, spec: `+spec+`}`)
	job.SetName(name)
	job.SetNamespace("default")
	job.SetAnnotations(annotations)
	job.SetLabels(labels)
	return create(t, job)
}

// waitFor waits until a TrainJob meets a condition.
func waitFor(t *testing.T, job *unstructured.Unstructured, is func(annotations map[string]string) bool) {
	t.Helper()
	err := testcluster.Until(t.Context(), func(ctx context.Context) (bool, error) {
		err := rig.kubernetes.Get(ctx, client.ObjectKeyFromObject(job), job)
		return err == nil && is(job.GetAnnotations()), err
	})
	if err != nil {
		t.Fatal(job.GetName(), ": ", err, job.GetAnnotations(), job.Object["spec"], lastLines(rig.Log("recommender"), 10))
	}
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// podsRun waits until so many pods of a TrainJob run.
func podsRun(t *testing.T, job *unstructured.Unstructured, count int) {
	t.Helper()
	found := 0
	err := testcluster.Until(t.Context(), func(ctx context.Context) (bool, error) {
		pods := &corev1.PodList{}
		err := rig.kubernetes.List(ctx, pods, client.MatchingLabels{trainJobKind.label: job.GetName()})
		found = 0
		for _, pod := range pods.Items {
			if pod.Status.Phase == corev1.PodRunning {
				found++
			}
		}
		return found == count, err
	})
	if err != nil {
		t.Error(job.GetName(), ": ", found, " pods run, not ", count, ": ", err, lastLines(rig.Log("trainer-controller-manager"), 3))
	}
}

// liftRule lets spec.trainer of TrainJobs change, until the test ends.
func liftRule(t *testing.T) {
	t.Helper()
	probe := trainJob(t, "probe", `{suspend: true, runtimeRef: {name: torch-recommended}, trainer: {numNodes: 1}}`, nil, nil)
	definition := read(t, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: trainjobs.trainer.kubeflow.org}}`)
	if err := rig.kubernetes.Get(t.Context(), client.ObjectKeyFromObject(definition), definition); err != nil {
		t.Fatal(err)
	}
	before := definition.DeepCopy()
	trainer := at(definition.Object, "spec.versions.0.schema.openAPIV3Schema.properties.spec.properties.trainer").(map[string]any)
	delete(trainer, "x-kubernetes-validations")
	if err := rig.kubernetes.Patch(t.Context(), definition, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		before.SetResourceVersion(definition.GetResourceVersion())
		if err := rig.kubernetes.Patch(context.WithoutCancel(t.Context()), before, client.MergeFrom(definition)); err != nil {
			t.Error(err)
		}
	})
	err := testcluster.Until(t.Context(), func(ctx context.Context) (bool, error) {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec": {"trainer": {"numNodes": 2}}}`))
		err := rig.kubernetes.Patch(ctx, probe.DeepCopy(), patch, client.DryRunAll)
		return err == nil, err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func resume(t *testing.T, job *unstructured.Unstructured) {
	t.Helper()
	if err := rig.kubernetes.Patch(t.Context(), job, client.RawPatch(types.MergePatchType, []byte(`{"spec": {"suspend": false}}`))); err != nil {
		t.Fatal(err)
	}
}

func suspended(job *unstructured.Unstructured) bool {
	found, _, _ := unstructured.NestedBool(job.Object, "spec", "suspend")
	return found
}

func numNodes(job *unstructured.Unstructured) int64 {
	found, _, _ := unstructured.NestedInt64(job.Object, "spec", "trainer", "numNodes")
	return found
}

// Suspended TrainJobs get their number of nodes after creation, and run on it, with and without Kueue. No failure of Nodewise changes a job.
func TestRecommender(t *testing.T) {
	addNodes(t, "recommended", "V100", 40, "")
	startControllers(t)
	without(t, "webhook") // as for jobs that were created before it was installed
	torchRuntime(t, "torch-recommended", `{name: node, image: pytorch, resources: {limits: {nvidia.com/gpu: 8}}}`)
	queue(t, "recommended", "stopPolicy: Hold,")
	store(t, "team/recommended", measured(t, "V100"))
	asks := map[string]string{
		"nodewise.dev/profile": "team/recommended", "nodewise.dev/nodes": "2-4", "nodewise.dev/settings": settingsOfChecked, "nodewise.dev/objective": "highest-throughput",
	}
	with := func(more map[string]string) map[string]string {
		all := maps.Clone(asks)
		maps.Copy(all, more)
		return all
	}
	const plain, stated = `{suspend: true, runtimeRef: {name: torch-recommended}}`, `{suspend: true, runtimeRef: {name: torch-recommended}, trainer: {numNodes: 1}}`
	start := func(ctx context.Context) error {
		return startProcess(ctx, "recommender", "-retry", "500ms", "-patience", "3s")
	}
	t.Cleanup(func() { end(rig.processes["recommender"]) })
	if err := start(t.Context()); err != nil {
		t.Fatal(err)
	}

	t.Run("conformance", func(t *testing.T) {
		conformance.Check(t, rig.kubernetes, conformance.Settings{
			Namespace: "default", Spec: map[string]any{"runtimeRef": map[string]any{"name": "torch-recommended"}}, OptIn: asks, Least: 2, Most: 4,
			Reason: "nodewise.dev/reason", Patience: patience, Settle: settle, Start: start,
			Stop: func(context.Context) error { end(rig.processes["recommender"]); return nil },
		})
	})

	t.Run("resumed", func(t *testing.T) {
		job := trainJob(t, "resumed", plain, with(map[string]string{"trainer.kubeflow.org/autoconf-plugin": "nodewise"}), nil)
		waitFor(t, job, func(annotations map[string]string) bool {
			return annotations["trainer.kubeflow.org/autoconf-plugin-done"] == "yes"
		})
		if annotations := job.GetAnnotations(); numNodes(job) != 4 || annotations["nodewise.dev/requested-nodes"] != "1" || annotations["nodewise.dev/chosen-nodes"] != "4" {
			t.Error(numNodes(job), annotations)
		}
		if event := eventOf(t, job, "NodesRecommended"); event.Message != job.GetAnnotations()["nodewise.dev/reason"] {
			t.Error(event.Message)
		}
		t.Log(job.GetAnnotations())
		resume(t, job)
		podsRun(t, job, 4)
	})

	t.Run("in a queue", func(t *testing.T) {
		job := trainJob(t, "queued", plain, asks, map[string]string{"kueue.x-k8s.io/queue-name": "recommended"})
		waitFor(t, job, func(map[string]string) bool { return numNodes(job) == 4 })
		held := read(t, `{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: recommended}}`)
		if err := rig.kubernetes.Patch(t.Context(), held, client.RawPatch(types.MergePatchType, []byte(`{"spec": {"stopPolicy": "None"}}`))); err != nil {
			t.Fatal(err)
		}
		trainJobKind.running(t, job, 4)
	})

	// Kueue admits at once, and whichever is first, the pods are as many as the job states.
	t.Run("beside an open queue", func(t *testing.T) {
		var all sync.WaitGroup
		for index := range 5 {
			job := trainJob(t, fmt.Sprint("race-", index), plain, asks, map[string]string{"kueue.x-k8s.io/queue-name": "recommended"})
			all.Go(func() {
				err := testcluster.Until(t.Context(), func(ctx context.Context) (bool, error) {
					err := rig.kubernetes.Get(ctx, client.ObjectKeyFromObject(job), job)
					return err == nil && !suspended(job), err
				})
				if err != nil {
					t.Error(job.GetName(), ": ", err)
					return
				}
				trainJobKind.running(t, job, int(max(numNodes(job), 1)))
				t.Log(job.GetName(), ": ", numNodes(job))
			})
		}
		all.Wait()
	})

	t.Run("another recommender's", func(t *testing.T) {
		job := trainJob(t, "others", plain, with(map[string]string{"trainer.kubeflow.org/autoconf-plugin": "another"}), nil)
		after := trainJob(t, "ours", plain, asks, nil)
		waitFor(t, after, func(map[string]string) bool { return numNodes(after) == 4 })
		waitFor(t, job, func(annotations map[string]string) bool {
			return annotations["nodewise.dev/reason"] == "" && numNodes(job) == 0
		})
	})

	// Up to Trainer 2.2 spec.trainer cannot change, so that the job keeps its number.
	t.Run("stated number", func(t *testing.T) {
		job := trainJob(t, "stated", stated, asks, nil)
		waitFor(t, job, func(annotations map[string]string) bool { return annotations["nodewise.dev/reason"] != "" })
		if reason := job.GetAnnotations()["nodewise.dev/reason"]; numNodes(job) != 1 || !strings.Contains(reason, "the cluster refused the change") || !strings.Contains(reason, "immutable") {
			t.Error(numNodes(job), reason)
		}
		eventOf(t, job, "NodesNotChosen")
		resume(t, job)
		podsRun(t, job, 1)
	})

	// KEP-3328 lifts that rule.
	t.Run("stated number that may change", func(t *testing.T) {
		liftRule(t)
		job := trainJob(t, "lifted", stated, asks, nil)
		waitFor(t, job, func(map[string]string) bool { return numNodes(job) == 4 })
		resume(t, job)
		podsRun(t, job, 4)
		process := fmt.Sprint(rig.processes["recommender"].Process.Pid)
		options := []string{
			"-kubeconfig", rig.KubeConfig, "-opt-in", asJSON(t, asks), "-settle", settle.String(), "-spec", `{"runtimeRef": {"name": "torch-recommended"}, "trainer": {"numNodes": 1}}`,
			"-stop", "kill -STOP " + process, "-start", "kill -CONT " + process,
		}
		out, err := exec.CommandContext(t.Context(), "go", append([]string{"test", "-count=1", "-v", "../conformance", "-args"}, options...)...).CombinedOutput() // #nosec G204 -- stated here
		if passed := strings.Count(string(out), "    --- PASS"); err != nil || passed != 5 {
			t.Error(err, passed, string(out))
		}
	})

	for name, server := range wrongServers(t) {
		t.Run(name, func(t *testing.T) {
			end(rig.processes["recommender"])
			if err := startProcess(t.Context(), "recommender", "-retry", "500ms", "-patience", "3s", "-server", server); err != nil {
				t.Fatal(err)
			}
			job := trainJob(t, "failing-"+name, plain, with(map[string]string{"trainer.kubeflow.org/autoconf-plugin": "nodewise"}), nil)
			waitFor(t, job, func(annotations map[string]string) bool {
				return annotations["trainer.kubeflow.org/autoconf-plugin-done"] == "yes"
			})
			if numNodes(job) != 0 || !strings.HasPrefix(job.GetAnnotations()["nodewise.dev/reason"], "kept 1 node as written: ") {
				t.Error(numNodes(job), job.GetAnnotations())
			}
			t.Log(job.GetAnnotations()["nodewise.dev/reason"])
			resume(t, job)
			podsRun(t, job, 1)
		})
	}
}
