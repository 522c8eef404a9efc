package jobs

import (
	"fmt"
	"reflect"
	"slices"
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

// Nodewise does not make choices that only the owner can make; the message says what is needed.
func TestWhatCannotBeChosen(t *testing.T) {
	for text, expected := range map[string]string{
		`{apiVersion: v1, kind: Pod}`: "is not a kind whose number of nodes can be chosen",
		`{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, spec: {replicatedJobs: [{name: a, template: {}}, {name: b, template: {}}]}}`:                             `name the replicated job whose nodes to choose: one of ["a" "b"]`,
		`{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, spec: {replicatedJobs: [{name: a, replicas: 0, template: {}}]}}`:                                         "replicated job a has 0 replicas of 1 pods",
		`{apiVersion: ray.io/v1, kind: RayJob, spec: {clusterSelector: {ray.io/cluster: a}}}`:                                                                          "spec.rayClusterSpec.workerGroupSpecs has no worker group",
		`{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, spec: {slotsPerWorker: 8, mpiReplicaSpecs: {Launcher: {replicas: 1}, Worker: {replicas: 2}}}}`:               "mpirun of an MPIJob's launcher sets the number of processes",
		`{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, spec: {minAvailable: 3, tasks: [{replicas: 3, name: a}]}}`:                                                 "spec.minAvailable",
		`{apiVersion: kubeflow.org/v1, kind: PyTorchJob, spec: {pytorchReplicaSpecs: {Master: {}}}}`:                                                                   "has no Worker",
		`{apiVersion: ray.io/v1, kind: RayJob, metadata: {annotations: {nodewise.dev/worker-group: c}}, spec: {rayClusterSpec: {workerGroupSpecs: [{groupName: a}]}}}`: `is "c"; name the worker group whose nodes to choose: one of ["a"]`,
	} {
		if _, err := Of(read(t, text)); err == nil || !strings.Contains(err.Error(), expected) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestDevicesOfANode(t *testing.T) {
	for text, expected := range map[string]int32{
		`{apiVersion: batch/v1, kind: Job, spec: {}}`: 0,
		`{apiVersion: batch/v1, kind: Job, spec: {template: {spec: {containers: [{resources: {limits: {amd.com/gpu: 4}}}, {resources: {requests: {amd.com/gpu: "2"}}}]}}}}`: 6,
		`{apiVersion: batch/v1, kind: Job, spec: {template: {spec: {containers: [{resources: {limits: {google.com/tpu: 4}}}]}}}}`:                                           4,
		`{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, spec: {trainer: {numProcPerNode: 4}}}`:                                                                 4,
		`{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, spec: {trainer: {numProcPerNode: auto}}}`:                                                              0,
		`{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, spec: {trainer: {numProcPerNode: auto, resourcesPerNode: {limits: {nvidia.com/gpu: 4}}}}}`:             4,
		`{apiVersion: kubeflow.org/v1, kind: PyTorchJob, spec: {nprocPerNode: "2", pytorchReplicaSpecs: {Worker: {}}}}`:                                                     2,
	} {
		job, err := Of(read(t, text))
		if err != nil || job.DevicesPerNode() != expected {
			t.Error(text, job.DevicesPerNode(), err)
		}
	}
}

func gpuPods(metadata string) string {
	return `{metadata: ` + metadata + `, spec: {containers: [{name: c, resources: {limits: {nvidia.com/gpu: 8}}}]}}`
}

func jobOf(annotations, spec string) string {
	return `{apiVersion: batch/v1, kind: Job, metadata: {name: a, annotations: ` + annotations + `}, spec: {` + spec + `}}`
}

func jobSetOf(rest, job string) string {
	return `{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: a}, spec: {` + rest + `replicatedJobs: [{name: w, ` + job + `}]}}`
}

func pyTorchOf(rest, worker string) string {
	return `{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: a}, spec: {` + rest + `pytorchReplicaSpecs: {Master: {replicas: 1}, Worker: {` + worker + `}}}}`
}

func rayOf(rest, group string) string {
	return `{apiVersion: ray.io/v1, kind: RayJob, metadata: {name: a}, spec: {rayClusterSpec: {` + rest + `workerGroupSpecs: [{groupName: g, ` + group + `}]}}}`
}

func trainJobOf(trainer string) string {
	return `{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: a}, spec: {runtimeRef: {name: r}, trainer: ` + trainer + `}}`
}

const sliced = `{annotations: {kueue.x-k8s.io/podset-slice-size: "4", kueue.x-k8s.io/podset-slice-required-topology: rack}}`

// Fields that depend on the number of nodes change with it, within the object's limits. The owner allows 1 to 16 nodes.
func TestWhatDependsOnTheNodes(t *testing.T) {
	for name, test := range map[string]struct {
		object, runtime string
		before          int64
		allowed         string   // first, last, step
		nodes           int64    // are written
		after           []string // parts of the object afterwards
	}{
		"job alone":                   {jobOf("{}", ""), "", 1, "1-16/1", 3, []string{"parallelism: 3"}},
		"pods train together":         {jobOf("{}", "parallelism: 2, completions: 2"), "", 2, "1-16/1", 3, []string{"completions: 3", "parallelism: 3"}},
		"pods share a list of work":   {jobOf("{}", "parallelism: 2, completions: 10"), "", 2, "1-10/1", 3, []string{"completions: 10", "parallelism: 3"}},
		"more pods than work":         {jobOf("{}", "parallelism: 8, completions: 4"), "", 4, "1-16/1", 6, []string{"completions: 6", "parallelism: 6"}},
		"partial admission":           {jobOf(`{kueue.x-k8s.io/job-min-parallelism: "5"}`, "parallelism: 20, completions: 20, completionMode: Indexed"), "", 20, "6-16/1", 6, []string{`job-min-parallelism: "5"`, "completions: 6", "parallelism: 6"}},
		"all must succeed":            {jobOf("{}", "parallelism: 8, completions: 8, completionMode: Indexed, maxFailedIndexes: 5, successPolicy: {rules: [{succeededIndexes: 0-7}]}"), "", 8, "1-16/1", 4, []string{"maxFailedIndexes: 4", "succeededIndexes: 0-3", "completions: 4"}},
		"all must succeed, of more":   {jobOf("{}", "parallelism: 8, completions: 8, completionMode: Indexed, maxFailedIndexes: 8, successPolicy: {rules: [{succeededIndexes: 0-7, succeededCount: 8}]}"), "", 8, "1-16/1", 12, []string{"maxFailedIndexes: 12", "succeededIndexes: 0-11", "succeededCount: 12"}},
		"the first must succeed":      {jobOf("{}", "parallelism: 8, completions: 8, completionMode: Indexed, successPolicy: {rules: [{succeededIndexes: '0'}]}"), "", 8, "1-16/1", 1, []string{`succeededIndexes: "0"`}},
		"one pod, which must succeed": {jobOf("{}", "parallelism: 1, completions: 1, completionMode: Indexed, successPolicy: {rules: [{succeededIndexes: '0'}]}"), "", 1, "1-16/1", 5, []string{`succeededIndexes: "0"`}},
		"some must succeed":           {jobOf("{}", "parallelism: 8, completions: 8, completionMode: Indexed, successPolicy: {rules: [{succeededIndexes: '0,5'}, {succeededCount: 7}]}"), "", 8, "7-16/1", 9, []string{"succeededIndexes: 0,5", "succeededCount: 7"}},
		"some of the last must":       {jobOf("{}", "parallelism: 8, completions: 8, completionMode: Indexed, successPolicy: {rules: [{succeededIndexes: '0,2-7', succeededCount: 5}]}"), "", 8, "6-16/1", 6, []string{"succeededIndexes: 0,2-5", "succeededCount: 5"}},
		"nodes by variables":          {jobOf("{}", `parallelism: 8, template: {spec: {containers: [{name: a, args: ["--nnodes=$(NNODES)", --num_workers=4], env: [{name: NNODES, valueFrom: {}}, {name: OMP_NUM_THREADS, value: "8"}]}]}}`), "", 8, "1-16/1", 3, []string{"parallelism: 3"}},
		"gang of Kubernetes":          {jobOf("{}", "parallelism: 8, completions: 8, scheduling: {schedulingPolicy: {gang: {minCount: 8}}}"), "", 8, "1-16/1", 2, []string{"minCount: 2"}},
		"smaller gang of Kubernetes":  {jobOf("{}", "parallelism: 8, completions: 8, scheduling: {schedulingPolicy: {gang: {minCount: 4}}}"), "", 8, "4-16/1", 5, []string{"minCount: 4"}},
		"slices":                      {jobOf("{}", "parallelism: 8, completions: 8, template: "+gpuPods(sliced)), "", 8, "4-16/4", 12, []string{`podset-slice-size: "4"`, "parallelism: 12"}},
		"slices of slices":            {jobOf("{}", `parallelism: 8, completions: 8, template: `+gpuPods(`{annotations: {kueue.x-k8s.io/podset-slice-required-topology-constraints: '[{"topology": "block", "size": 6}, {"topology": "rack", "size": 2}]'}}`)), "", 8, "6-12/6", 12, []string{"parallelism: 12"}},
		"group of pods of Kueue":      {jobOf("{}", "parallelism: 2, completions: 2, template: "+gpuPods(`{annotations: {kueue.x-k8s.io/pod-group-total-count: "2"}}`)), "", 2, "1-16/1", 3, []string{`pod-group-total-count: "3"`}},
		"gang of Volcano":             {jobOf(`{scheduling.volcano.sh/group-min-member: "2"}`, "parallelism: 2, completions: 2"), "", 2, "1-16/1", 3, []string{`group-min-member: "3"`}},
		"gang of YuniKorn":            {jobOf("{}", `parallelism: 2, completions: 2, template: `+gpuPods(`{annotations: {yunikorn.apache.org/task-group-name: w, yunikorn.apache.org/task-groups: '[{"name": "w", "minMember": 2}]'}}`)), "", 2, "1-16/1", 3, []string{`"minMember":3`}},
		"names grow with indexes":     {`{apiVersion: batch/v1, kind: Job, metadata: {name: ` + strings.Repeat("a", 61) + `}, spec: {completionMode: Indexed}}`, "", 1, "1-10/1", 10, []string{"parallelism: 10"}},
		"generated names grow":        {`{apiVersion: batch/v1, kind: Job, metadata: {generateName: ` + strings.Repeat("a", 56) + `}, spec: {completionMode: Indexed}}`, "", 1, "1-10/1", 10, []string{"parallelism: 10"}},

		"jobset, one job":               {jobSetOf("", "replicas: 1, template: {spec: {parallelism: 2, completions: 2, maxFailedIndexes: 2}}"), "", 2, "1-16/1", 3, []string{"parallelism: 3", "completions: 3", "maxFailedIndexes: 3"}},
		"jobset, slices":                {jobSetOf("", "replicas: 4, template: {spec: {parallelism: 2, completions: 2, maxFailedIndexes: 2}}"), "", 8, "2-16/2", 6, []string{"replicas: 3", "parallelism: 2", "completions: 2", "maxFailedIndexes: 2"}},
		"jobset, a job of one pod each": {jobSetOf("", "replicas: 4, template: {spec: {parallelism: 1}}"), "", 4, "1-16/1", 6, []string{"replicas: 6", "parallelism: 1"}},
		"jobset, slices of Kueue":       {jobSetOf("", "replicas: 4, template: {spec: {parallelism: 6, completions: 6, template: "+gpuPods(sliced)+"}}"), "", 24, "12-12/12", 12, []string{"replicas: 2"}},
		"jobset, coordinator's pod":     {jobSetOf("coordinator: {replicatedJob: w, jobIndex: 0, podIndex: 2}, ", "template: {spec: {parallelism: 4, completions: 4}}"), "", 4, "3-16/1", 3, []string{"podIndex: 2"}},
		"jobset, coordinator's job":     {jobSetOf("coordinator: {replicatedJob: w, jobIndex: 2, podIndex: 1}, ", "replicas: 4, template: {spec: {parallelism: 2, completions: 2}}"), "", 8, "6-16/2", 6, []string{"replicas: 3"}},
		"jobset, other coordinator":     {jobSetOf("coordinator: {replicatedJob: l, jobIndex: 2, podIndex: 5}, ", "template: {spec: {parallelism: 4, completions: 4}}"), "", 4, "1-16/1", 1, []string{"parallelism: 1"}},

		"pytorch, gang":         {pyTorchOf("runPolicy: {schedulingPolicy: {minAvailable: 4, minResources: {nvidia.com/gpu: '32', memory: 64Gi}}}, ", "replicas: 3"), "", 4, "2-16/1", 8, []string{"replicas: 7", "minAvailable: 8", `nvidia.com/gpu: "64"`, "memory: 128Gi"}},
		"pytorch, smaller gang": {pyTorchOf("runPolicy: {schedulingPolicy: {minAvailable: 3}}, ", "replicas: 7"), "", 8, "3-16/1", 4, []string{"replicas: 3", "minAvailable: 3"}},
		"pytorch, elastic":      {pyTorchOf("elasticPolicy: {minReplicas: 2, maxReplicas: 5}, ", "replicas: 2"), "", 3, "3-6/1", 4, []string{"replicas: 3", "minReplicas: 2", "maxReplicas: 5"}},
		"pytorch, slices":       {pyTorchOf("", "replicas: 4, template: "+gpuPods(sliced)), "", 5, "5-13/4", 9, []string{"replicas: 8"}},
		"pytorch, only one":     {`{apiVersion: kubeflow.org/v1, kind: PyTorchJob, spec: {elasticPolicy: {standalone: true}, pytorchReplicaSpecs: {Worker: {replicas: 1}}}}`, "", 1, "1-1/1", 1, []string{"replicas: 1"}},

		"ray, hosts":            {rayOf("", "replicas: 2, minReplicas: 1, maxReplicas: 2, numOfHosts: 4"), "", 8, "4-16/4", 12, []string{"replicas: 3", "maxReplicas: 3", "minReplicas: 1", "numOfHosts: 4"}},
		"ray, room is made":     {rayOf("", "replicas: 5, minReplicas: 4, maxReplicas: 9"), "", 5, "1-16/1", 3, []string{"maxReplicas: 9", "minReplicas: 3", "replicas: 3"}},
		"ray, fixed":            {rayOf("", "replicas: 2, minReplicas: 2, maxReplicas: 2"), "", 2, "1-16/1", 3, []string{"maxReplicas: 3", "minReplicas: 3", "replicas: 3"}},
		"ray, autoscaled":       {rayOf("enableInTreeAutoscaling: true, ", "replicas: 2, minReplicas: 2, maxReplicas: 3, numOfHosts: 4"), "", 8, "8-12/4", 12, []string{"maxReplicas: 3", "minReplicas: 2", "replicas: 3"}},
		"ray, slices and hosts": {rayOf("", "replicas: 2, numOfHosts: 6, template: "+gpuPods(sliced)), "", 12, "12-12/12", 12, []string{"replicas: 2"}},
		"ray cluster":           {`{apiVersion: ray.io/v1, kind: RayCluster, spec: {workerGroupSpecs: [{groupName: g, replicas: 1, numOfHosts: 2}]}}`, "", 2, "2-16/2", 6, []string{"replicas: 3"}},

		"trainjob":                 {trainJobOf("{numNodes: 2}"), "", 2, "1-16/1", 3, []string{"numNodes: 3"}},
		"trainjob of its runtime":  {trainJobOf("{numProcPerNode: auto}"), `{spec: {mlPolicy: {numNodes: 4}}}`, 4, "1-16/1", 3, []string{"numNodes: 3"}},
		"trainjob, elastic":        {trainJobOf("{}"), `{spec: {mlPolicy: {numNodes: 4, torch: {elasticPolicy: {minNodes: 2, maxNodes: 8}}}}}`, 4, "2-8/1", 3, []string{"numNodes: 3"}},
		"trainjob, slices":         {trainJobOf("{}"), `{spec: {mlPolicy: {numNodes: 4}, template: {spec: {replicatedJobs: [{name: node, template: {spec: {template: ` + gpuPods(sliced) + `}}}]}}}}`, 4, "4-16/4", 8, []string{"numNodes: 8"}},
		"trainjob, launcher alone": {trainJobOf("{}"), `{spec: {mlPolicy: {numNodes: 1, mpi: {runLauncherAsNode: true}}, template: {spec: {replicatedJobs: [{name: launcher}]}}}}`, 1, "1-1/1", 1, []string{"numNodes: 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			object := read(t, test.object)
			job, err := Of(object)
			if err != nil {
				t.Fatal(err)
			}
			if test.runtime != "" {
				job.UseRuntime(read(t, test.runtime))
			}
			if job.Nodes() != test.before {
				t.Error("it has", job.Nodes(), "nodes")
			}
			wish, err := job.Within(Wish{First: 1, Last: 16})
			counts := wish.Question("", 0).Counts()
			if err != nil || fmt.Sprintf("%d-%d/%d", wish.First, counts[len(counts)-1], wish.Step) != test.allowed {
				t.Error("it allows", wish.First, counts, wish.Step, err)
			}
			for _, nodes := range counts {
				if err := job.allows(int64(nodes)); err != nil {
					t.Error(err)
				}
			}
			if err := job.SetNodes(test.nodes); err != nil || job.Nodes() != test.nodes {
				t.Error(job.Nodes(), err)
			}
			for _, part := range test.after {
				if out, _ := yaml.Marshal(object.Object); !strings.Contains(string(out), part) {
					t.Errorf("no %s in\n%s", part, out)
				}
			}
		})
	}
}

// If the object allows none of the numbers of nodes, the reason names the fields, and nothing changes.
func TestWhatIsNotAllowed(t *testing.T) {
	for text, expected := range map[string]string{
		jobOf(`{kueue.x-k8s.io/job-min-parallelism: "5"}`, "parallelism: 20, completions: 20"):                                     "annotation kueue.x-k8s.io/job-min-parallelism is 5, which must stay below the number of nodes",
		jobOf(`{kueue.x-k8s.io/job-min-parallelism: some}`, "parallelism: 20, completions: 20"):                                    "annotation kueue.x-k8s.io/job-min-parallelism is some, which is not a whole number",
		jobOf("{}", "parallelism: 8, template: "+gpuPods(`{annotations: {kueue.x-k8s.io/podset-slice-size: "8"}}`)):                "annotation kueue.x-k8s.io/podset-slice-size is 8",
		jobOf("{}", "parallelism: 8, template: "+gpuPods(`{labels: {scheduling.x-k8s.io/pod-group: g}}`)):                          "label scheduling.x-k8s.io/pod-group is g: another object states the number of its pods",
		jobOf("{}", "parallelism: 8, template: "+gpuPods(`{annotations: {kueue.x-k8s.io/pod-group-total-count: "4"}}`)):            "pod-group-total-count is 4, the job has 8 nodes",
		jobOf("{}", "parallelism: 8, template: {spec: {schedulingGroup: {podGroupName: g}}}"):                                      "spec.template.spec.schedulingGroup",
		jobOf("{}", "parallelism: 8, completions: 8, completionMode: Indexed, successPolicy: {rules: [{succeededIndexes: '6'}]}"):  `spec.successPolicy.rules[].succeededIndexes is "6"`,
		jobOf("{}", "parallelism: 8, completions: 8, completionMode: Indexed, successPolicy: {rules: [{succeededIndexes: many}]}"): `give indexes such as "0,2-7"`,
		jobOf("{}", "parallelism: 8, template: {spec: {containers: [{name: a, command: [torchrun, --nnodes=8, train.py]}]}}"):      "spec.template.spec.containers states --nnodes=8",
		jobOf("{}", "parallelism: 8, template: {spec: {containers: [{name: a, args: [--num-nodes, '8']}]}}"):                       "states --num-nodes 8",
		jobOf("{}", "parallelism: 8, template: {spec: {containers: [{name: a}, {name: b, env: [{name: NNODES, value: '8'}]}]}}"):   "states NNODES=8",
		trainJobOf("{numNodes: 8, command: [sh, -c, 'torchrun --nnodes 8 a.py']}"):                                                 "spec.trainer states --nnodes 8",
		rayOf("", "replicas: 2, numOfHosts: 8"):                                        "the nodes change by 8 at a time",
		rayOf("enableInTreeAutoscaling: true, ", "replicas: 8, minReplicas: 6"):        "spec.rayClusterSpec.workerGroupSpecs.minReplicas is 6",
		pyTorchOf("runPolicy: {schedulingPolicy: {minAvailable: 6}}, ", "replicas: 7"): "spec.runPolicy.schedulingPolicy.minAvailable is 6",
		`{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {annotations: {nodewise.dev/replicated-job: a}}, spec: {replicatedJobs: [{name: a, template: {spec: {template: {metadata: {annotations: {kueue.x-k8s.io/podset-group-name: g}}}}}}, {name: b, replicas: 2, template: {spec: {template: {metadata: {annotations: {kueue.x-k8s.io/podset-group-name: g}}}}}}]}}`: "groups it with replicated job b of 2 pods",
	} {
		object := read(t, text)
		written := object.DeepCopy()
		job, err := Of(object)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := job.Within(Wish{First: 1, Last: 5}); err == nil || !strings.Contains(err.Error(), expected) {
			t.Errorf("%s: %v", text, err)
		}
		if err := job.SetNodes(3); err == nil || !reflect.DeepEqual(object, written) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Fewer fields of an existing Job can change.
func TestWhatAStartedJobAllows(t *testing.T) {
	for text, expected := range map[string]string{
		jobOf("{}", "parallelism: 2, completions: 2, completionMode: Indexed, maxFailedIndexes: 2, successPolicy: {rules: [{succeededIndexes: '0'}]}"): "",
		jobOf("{}", "parallelism: 2"):                 "",
		jobOf("{}", "parallelism: 2, completions: 2"): "spec.completions would have to change with the nodes",
		jobOf("{}", "parallelism: 2, completions: 9"): "",
		jobOf("{}", "parallelism: 2, completions: 2, completionMode: Indexed, successPolicy: {rules: [{succeededIndexes: '0-1'}]}"): "spec.successPolicy.rules[].succeededIndexes would have to change",
		jobOf(`{kueue.x-k8s.io/job-min-parallelism: "1"}`, "parallelism: 2"):                                                        "annotation kueue.x-k8s.io/job-min-parallelism",
		jobOf("{}", "parallelism: 2, template: "+gpuPods(`{labels: {pod-group.scheduling.sigs.k8s.io/min-available: "2"}}`)):        "label pod-group.scheduling.sigs.k8s.io/min-available would have to change",
	} {
		job, err := Of(read(t, text))
		if err != nil {
			t.Fatal(err)
		}
		if err := job.Started(); (err == nil) != (expected == "") || err != nil && !strings.Contains(err.Error(), expected) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestPowersOfTwoWithinSteps(t *testing.T) {
	job, err := Of(read(t, rayOf("", "replicas: 2, numOfHosts: 4")))
	if err != nil {
		t.Fatal(err)
	}
	wish, err := job.Within(Wish{First: 1, Last: 40, PowersOfTwo: true})
	if counts := wish.Question("", 0).Counts(); err != nil || !slices.Equal(counts, []int32{4, 8, 16, 32}) {
		t.Error(counts, err)
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
