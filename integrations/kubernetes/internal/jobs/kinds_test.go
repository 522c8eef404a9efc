package jobs

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func read(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

// What is a choice of the owner's alone is left to him, and the message names what would be right.
func TestWhatCannotBeChosen(t *testing.T) {
	for text, expected := range map[string]string{
		`{apiVersion: v1, kind: Pod}`: "is not a kind whose number of nodes can be chosen",
		`{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, spec: {replicatedJobs: [{name: a, template: {}}, {name: b, template: {}}]}}`:                             `name the replicated job whose nodes are to be chosen: one of ["a" "b"]`,
		`{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, spec: {replicatedJobs: [{name: a, replicas: 3, template: {}}]}}`:                                         "replicated job a has 3 replicas",
		`{apiVersion: kubeflow.org/v1, kind: PyTorchJob, spec: {pytorchReplicaSpecs: {Master: {}}}}`:                                                                   "has no Worker",
		`{apiVersion: ray.io/v1, kind: RayJob, metadata: {annotations: {nodewise.dev/worker-group: c}}, spec: {rayClusterSpec: {workerGroupSpecs: [{groupName: a}]}}}`: `is "c"; name the worker group whose nodes are to be chosen: one of ["a"]`,
	} {
		if _, err := Of(read(t, text)); err == nil || !strings.Contains(err.Error(), expected) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestNodes(t *testing.T) {
	for text, expected := range map[string]struct {
		before, devices int64
		least, most     int64
		after           string // part of the object with 3 nodes
	}{
		`{apiVersion: batch/v1, kind: Job, spec: {}}`:                                                                                                                       {1, 0, 0, 0, "parallelism: 3"},
		`{apiVersion: batch/v1, kind: Job, spec: {parallelism: 2, completions: 100}}`:                                                                                       {2, 0, 0, 0, "completions: 100\n  parallelism: 3"},
		`{apiVersion: batch/v1, kind: Job, spec: {parallelism: 2, completions: 2}}`:                                                                                         {2, 0, 0, 0, "completions: 3\n  parallelism: 3"},
		`{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, spec: {trainer: {numProcPerNode: 4}}}`:                                                                 {1, 4, 0, 0, "numNodes: 3"},
		`{apiVersion: kubeflow.org/v1, kind: PyTorchJob, spec: {elasticPolicy: {minReplicas: 2, maxReplicas: 5}, pytorchReplicaSpecs: {Worker: {replicas: 2}}}}`:            {2, 0, 2, 5, "replicas: 3"},
		`{apiVersion: kubeflow.org/v1, kind: PyTorchJob, spec: {elasticPolicy: {maxReplicas: 5}, pytorchReplicaSpecs: {Master: {}, Worker: {replicas: 1}}}}`:                {2, 0, 0, 6, "replicas: 2"},
		`{apiVersion: ray.io/v1, kind: RayJob, spec: {rayClusterSpec: {workerGroupSpecs: [{groupName: a, replicas: 5, minReplicas: 4, maxReplicas: 9}]}}}`:                  {5, 0, 0, 0, "maxReplicas: 9\n      minReplicas: 3\n      replicas: 3"},
		`{apiVersion: batch/v1, kind: Job, spec: {template: {spec: {containers: [{resources: {limits: {amd.com/gpu: 4}}}, {resources: {requests: {amd.com/gpu: "2"}}}]}}}}`: {1, 6, 0, 0, "parallelism: 3"},
	} {
		object := read(t, text)
		job, err := Of(object)
		if err != nil {
			t.Fatal(text, err)
		}
		least, most := job.Bounds()
		if job.Nodes() != expected.before || int64(job.DevicesPerNode()) != expected.devices || least != expected.least || most != expected.most {
			t.Error(text, job.Nodes(), job.DevicesPerNode(), least, most)
		}
		if err := job.SetNodes(3); err != nil || job.Nodes() != 3 {
			t.Error(text, job.Nodes(), err)
		}
		if out, _ := yaml.Marshal(object.Object); !strings.Contains(string(out), expected.after) {
			t.Errorf("%s became\n%s", text, out)
		}
	}
}

func TestRangesOfNodes(t *testing.T) {
	for text, expected := range map[string][2]int32{"1-16": {1, 16}, "4": {4, 4}, "pow2:2-64": {2, 64}, "": {0, 0}} {
		wish, err := WishOf(map[string]string{Profile: "a", Nodes: text})
		if err != nil || wish.First != expected[0] || wish.Last != expected[1] || wish.PowersOfTwo != strings.HasPrefix(text, "pow2:") {
			t.Error(text, wish, err)
		}
	}
	for _, text := range []string{"0-4", "4-1", "1-", "-", "a-b", "1-2-3", "1-99999", "pow2:", "pow3:1-2", "1.5-2"} {
		if _, err := WishOf(map[string]string{Profile: "a", Nodes: text}); err == nil {
			t.Error(text, "is taken for a range of nodes")
		}
	}
}
