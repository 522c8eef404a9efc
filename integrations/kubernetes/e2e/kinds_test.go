package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/testcluster"
)

// pods is a template of pods that take 8 devices, as JSON.
const pods = `{"spec": {"containers": [{"name": "trainer", "image": "training", "resources": {"limits": {"nvidia.com/gpu": 8}}}]}}`

// The API server checks every kind against its operator's published definition, before and after its nodes are chosen.
func TestEveryKind(t *testing.T) {
	if rig.noModules != nil {
		t.Skip("the definitions of operators' kinds cannot be had here: ", rig.noModules)
	}
	store(t, "team/kinds", measured(t, "V100"))
	for _, kind := range []struct {
		name, version, kind, spec string
		counts                    map[string]int64 // fields that hold a number of nodes n as n plus so much
		annotated                 string           // of the pods' template
	}{
		{
			"jobset", "jobset.x-k8s.io/v1alpha2", "JobSet",
			`{"replicatedJobs": [
				{"name": "launcher", "template": {"spec": {"template": {"spec": {"containers": [{"name": "a", "image": "b"}]}}}}},
				{"name": "workers", "replicas": 1, "template": {"spec": {"parallelism": 1, "completions": 1, "template": ` + pods + `}}}]}`,
			map[string]int64{"spec.replicatedJobs.1.template.spec.parallelism": 0, "spec.replicatedJobs.1.template.spec.completions": 0},
			"spec.replicatedJobs.1.template.spec.template",
		},
		{
			"trainjob", "trainer.kubeflow.org/v1alpha1", "TrainJob",
			`{"runtimeRef": {"name": "torch-distributed"}, "trainer": {"numNodes": 1, "resourcesPerNode": {"limits": {"nvidia.com/gpu": 8}}}}`,
			map[string]int64{"spec.trainer.numNodes": 0}, "",
		},
		{
			"pytorchjob", "kubeflow.org/v1", "PyTorchJob",
			`{"pytorchReplicaSpecs": {"Master": {"replicas": 1, "template": ` + pods + `}, "Worker": {"replicas": 1, "template": ` + pods + `}}}`,
			map[string]int64{"spec.pytorchReplicaSpecs.Worker.replicas": -1}, "spec.pytorchReplicaSpecs.Worker.template",
		},
		{
			"rayjob", "ray.io/v1", "RayJob",
			`{"entrypoint": "python train.py", "rayClusterSpec": {
				"headGroupSpec": {"rayStartParams": {}, "template": {"spec": {"containers": [{"name": "head", "image": "ray"}]}}},
				"workerGroupSpecs": [{"groupName": "gpus", "replicas": 1, "minReplicas": 1, "maxReplicas": 1, "rayStartParams": {}, "template": ` + pods + `}]}}`,
			map[string]int64{"spec.rayClusterSpec.workerGroupSpecs.0.replicas": 0, "spec.rayClusterSpec.workerGroupSpecs.0.maxReplicas": 0},
			"spec.rayClusterSpec.workerGroupSpecs.0.template",
		},
	} {
		t.Run(kind.kind, func(t *testing.T) {
			made := read(t, `{"apiVersion": "`+kind.version+`", "kind": "`+kind.kind+`", "spec": `+kind.spec+`}`)
			made.SetName(kind.name)
			made.SetNamespace("default")
			made.SetAnnotations(map[string]string{
				"nodewise.dev/profile": "team/kinds", "nodewise.dev/nodes": "2-8", "nodewise.dev/settings": `{"global_batch_samples": 512}`, "nodewise.dev/replicated-job": "workers",
				"nodewise.dev/objective": "highest-throughput", "nodewise.dev/samples": "1000000",
			})
			if err := rig.kubernetes.Create(t.Context(), made); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = rig.kubernetes.Delete(context.WithoutCancel(t.Context()), made) })
			chosen := made.GetAnnotations()["nodewise.dev/chosen-nodes"]
			for path, more := range kind.counts {
				if found := fmt.Sprint(at(made.Object, path).(int64) - more); chosen == "" || found == "1" || found != chosen {
					t.Errorf("%s says %s nodes, chosen were %q: %s", path, found, chosen, made.GetAnnotations()["nodewise.dev/reason"])
				}
			}
			if kind.annotated != "" && at(made.Object, kind.annotated+".metadata.annotations").(map[string]any)["nodewise.dev/chosen-nodes"] != chosen {
				t.Error("its pods do not tell their number of nodes: ", at(made.Object, kind.annotated))
			}
			if kind.kind == "TrainJob" {
				timeLeft(t, made)
			}
		})
	}
}

// Fields that depend on the number of nodes change with it, and the API server accepts the object. A job that is not changed has an event that
// says why.
func TestWhatDependsOnTheNodesChangesToo(t *testing.T) {
	if rig.noModules != nil {
		t.Skip("the definitions of operators' kinds cannot be had here: ", rig.noModules)
	}
	store(t, "team/depends", measured(t, "V100"))
	runtimes := read(t, `{"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "ClusterTrainingRuntime", "metadata": {"name": "of-two", "labels": {"trainer.kubeflow.org/framework": "torch"}},
		"spec": {"mlPolicy": {"numNodes": 2, "torch": {}}, "template": {"spec": {"replicatedJobs": [{"name": "node", "template": {"spec": {"template": `+pods+`}}}]}}}}`)
	if err := rig.kubernetes.Create(t.Context(), runtimes); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rig.kubernetes.Delete(context.WithoutCancel(t.Context()), runtimes) })
	head := `"headGroupSpec": {"rayStartParams": {}, "template": {"spec": {"containers": [{"name": "head", "image": "ray"}]}}}`
	for _, kind := range []struct {
		name, version, kind, spec, nodes string
		expected                         map[string]string // fields afterwards
		event                            string            // part of its message
	}{
		{
			"depends-job", "batch/v1", "Job",
			`{"suspend": true, "parallelism": 8, "completions": 8, "completionMode": "Indexed", "backoffLimitPerIndex": 1, "maxFailedIndexes": 5,
				"successPolicy": {"rules": [{"succeededIndexes": "0-7", "succeededCount": 8}]}, "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "b"}]}}}`,
			"2-3", map[string]string{
				"spec.parallelism": "3", "spec.completions": "3", "spec.maxFailedIndexes": "3", "spec.successPolicy.rules.0.succeededIndexes": "0-2", "spec.successPolicy.rules.0.succeededCount": "3",
			}, "chose 3 nodes instead of 8",
		},
		{
			"depends-rayjob", "ray.io/v1", "RayJob",
			`{"entrypoint": "python train.py", "rayClusterSpec": {` + head + `,
				"workerGroupSpecs": [{"groupName": "gpus", "replicas": 2, "minReplicas": 0, "maxReplicas": 2, "numOfHosts": 2, "rayStartParams": {}, "template": ` + pods + `}]}}`,
			"2-7", map[string]string{"spec.rayClusterSpec.workerGroupSpecs.0.replicas": "3", "spec.rayClusterSpec.workerGroupSpecs.0.maxReplicas": "3"}, "chose 6 nodes instead of 4",
		},
		{
			"depends-raycluster", "ray.io/v1", "RayCluster",
			`{"enableInTreeAutoscaling": true, ` + head + `,
				"workerGroupSpecs": [{"groupName": "gpus", "replicas": 2, "minReplicas": 1, "maxReplicas": 3, "rayStartParams": {}, "template": ` + pods + `}]}`,
			"1-8", map[string]string{"spec.workerGroupSpecs.0.replicas": "3", "spec.workerGroupSpecs.0.maxReplicas": "3"}, "chose 3 nodes instead of 2",
		},
		{
			"depends-jobset", "jobset.x-k8s.io/v1alpha2", "JobSet",
			`{"replicatedJobs": [{"name": "slice", "replicas": 4, "template": {"spec": {"parallelism": 2, "completions": 2, "template": ` + pods + `}}}]}`,
			"1-6", map[string]string{"spec.replicatedJobs.0.replicas": "3", "spec.replicatedJobs.0.template.spec.parallelism": "2"}, "chose 6 nodes instead of 8",
		},
		{
			"depends-pytorchjob", "kubeflow.org/v1", "PyTorchJob",
			`{"runPolicy": {"schedulingPolicy": {"minAvailable": 4}}, "pytorchReplicaSpecs": {"Master": {"replicas": 1, "template": ` + pods + `}, "Worker": {"replicas": 3, "template": ` + pods + `}}}`,
			"2", map[string]string{"spec.pytorchReplicaSpecs.Worker.replicas": "1", "spec.runPolicy.schedulingPolicy.minAvailable": "2"}, "chose 2 nodes instead of 4",
		},
		{
			"depends-trainjob", "trainer.kubeflow.org/v1alpha1", "TrainJob",
			`{"runtimeRef": {"name": "of-two"}, "trainer": {}}`,
			"3", map[string]string{"spec.trainer.numNodes": "3"}, "chose 3 nodes instead of 2",
		},
		{
			"depends-mpijob", "kubeflow.org/v2beta1", "MPIJob",
			`{"slotsPerWorker": 8, "mpiReplicaSpecs": {"Launcher": {"replicas": 1}, "Worker": {"replicas": 2}}}`,
			"1-8", map[string]string{"spec.mpiReplicaSpecs.Worker.replicas": "2"}, "did not change the nodes: the number of nodes of this kind is never chosen: the mpirun",
		},
	} {
		t.Run(kind.name, func(t *testing.T) {
			made := read(t, `{"apiVersion": "`+kind.version+`", "kind": "`+kind.kind+`", "spec": `+kind.spec+`}`)
			made.SetName(kind.name)
			made.SetNamespace("default")
			made.SetAnnotations(map[string]string{
				"nodewise.dev/profile": "team/depends", "nodewise.dev/nodes": kind.nodes, "nodewise.dev/settings": `{"global_batch_samples": 512}`, "nodewise.dev/objective": "highest-throughput",
			})
			if err := rig.kubernetes.Create(t.Context(), made); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = rig.kubernetes.Delete(context.WithoutCancel(t.Context()), made) })
			for path, expected := range kind.expected {
				if found := fmt.Sprint(at(made.Object, path)); found != expected {
					t.Errorf("%s is %s, not %s: %s", path, found, expected, made.GetAnnotations()["nodewise.dev/reason"])
				}
			}
			reason := "NodesChosen"
			if !strings.HasPrefix(kind.event, "chose") {
				reason = "NodesNotChosen"
			}
			if event := eventOf(t, made, reason); !strings.Contains(event.Message, kind.event) {
				t.Error(event.Message)
			}
		})
	}
}

func read(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

// timeLeft waits until the status of a TrainJob says how long it takes.
func timeLeft(t *testing.T, made *unstructured.Unstructured) {
	t.Helper()
	err := testcluster.Until(t.Context(), func(ctx context.Context) (bool, error) {
		if err := rig.kubernetes.Get(ctx, client.ObjectKeyFromObject(made), made); err != nil {
			return false, err
		}
		left, _, err := unstructured.NestedInt64(made.Object, "status", "trainerStatus", "estimatedRemainingSeconds")
		return left > 0, err
	})
	if err != nil {
		t.Fatal(err, made.GetAnnotations(), rig.Log("webhook"))
	}
}

// at returns the value at a path of fields and list indexes.
func at(object any, path string) any {
	for field := range strings.SplitSeq(path, ".") {
		switch holder := object.(type) {
		case map[string]any:
			object = holder[field]
		case []any:
			object = holder[field[0]-'0']
		}
	}
	return object
}

func TestWhatIsNotAskedForIsLeftAlone(t *testing.T) {
	store(t, "team/alone", measured(t, "V100"))
	settings := `{"global_batch_samples": 512}`
	for name, each := range map[string]struct {
		annotations map[string]string
		reason      string // part of; empty = there is none
	}{
		"silent":        {map[string]string{}, ""},
		"profile-alone": {map[string]string{"nodewise.dev/profile": "team/alone"}, ""},
		"wrong-nodes":   {map[string]string{"nodewise.dev/profile": "team/alone", "nodewise.dev/nodes": "many"}, `nodewise.dev/nodes is "many"; give a range such as "1-16"`},
		"wrong-rule":    {map[string]string{"nodewise.dev/profile": "team/alone", "nodewise.dev/nodes": "1-8", "nodewise.dev/objective": "best"}, "give one of knee"},
		"wrong-share":   {map[string]string{"nodewise.dev/profile": "team/alone", "nodewise.dev/nodes": "1-8", "nodewise.dev/share": "2"}, "give a number above 0, at most 1"},
		"wrong-set":     {map[string]string{"nodewise.dev/profile": "team/alone", "nodewise.dev/nodes": "1-8", "nodewise.dev/settings": `{"batch": 1}`}, "is not JSON of nodewise.v1.ConfigurationSettings"},
		"no-profile":    {map[string]string{"nodewise.dev/profile": "team/nobody", "nodewise.dev/nodes": "1-8"}, "PROFILE_NOT_FOUND"},
		"no-deadline": {map[string]string{
			"nodewise.dev/profile": "team/alone", "nodewise.dev/nodes": "1-8", "nodewise.dev/settings": settings, "nodewise.dev/samples": "1e9",
			"nodewise.dev/objective": "fewest-devices", "nodewise.dev/deadline-seconds": "1",
		}, "kept 1 node as written: no allowed number of nodes"},
	} {
		t.Run(name, func(t *testing.T) {
			made := job(t, name, "nowhere", each.annotations)
			reason, told := made.Annotations["nodewise.dev/reason"]
			if *made.Spec.Parallelism != 1 || made.Annotations["nodewise.dev/chosen-nodes"] != "" || told != (each.reason != "") || !strings.Contains(reason, each.reason) {
				t.Error(*made.Spec.Parallelism, made.Annotations)
			}
		})
	}
}

// A number of nodes on which the model does not fit is never chosen, even if it would be the fastest otherwise.
func TestMemoryIsKept(t *testing.T) {
	store(t, "team/large", transformer(96, 12288)) // 175 billion parameters
	settings := `{"device_name": "A100-40GB", "batch_per_worker_samples": 1, "zero_stage": 3, "recomputation": "RECOMPUTATION_FULL"}`
	asks := map[string]string{"nodewise.dev/profile": "team/large", "nodewise.dev/device": "A100-40GB", "nodewise.dev/settings": settings, "nodewise.dev/objective": "least-cost", "nodewise.dev/samples": "1e5", "nodewise.dev/price-per-node-hour": "30"}
	with := func(nodes string) map[string]string {
		all := map[string]string{"nodewise.dev/nodes": nodes}
		for name, value := range asks {
			all[name] = value
		}
		return all
	}
	small := job(t, "large-small", "nowhere", with("1-4"))
	if *small.Spec.Parallelism != 1 || !strings.Contains(small.Annotations["nodewise.dev/reason"], "memory") {
		t.Error(*small.Spec.Parallelism, small.Annotations["nodewise.dev/reason"])
	}
	large := job(t, "large-large", "nowhere", with("1-64"))
	if *large.Spec.Parallelism < 8 || !strings.Contains(large.Annotations["nodewise.dev/reason"], "some numbers of nodes do not fit into memory") {
		t.Error(*large.Spec.Parallelism, large.Annotations["nodewise.dev/reason"])
	}
}
