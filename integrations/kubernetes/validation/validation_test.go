// Package validation checks the changes to jobs with the validation code of their controllers. It is a separate module, so that the program does
// not depend on that code.
package validation

import (
	"fmt"
	"strings"
	"testing"

	trainingv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/kubeflow/training-operator/pkg/webhooks/pytorch"
	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	ray "github.com/ray-project/kuberay/ray-operator/controllers/ray/utils"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	jobsetwebhooks "sigs.k8s.io/jobset/pkg/webhooks"
	kueuejob "sigs.k8s.io/kueue/pkg/controller/jobs/job"
	"sigs.k8s.io/yaml"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/jobs"
)

// typed reads an object as its controller does.
func typed[Kind any](t *testing.T, object *unstructured.Unstructured) *Kind {
	t.Helper()
	found := new(Kind)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, found); err != nil {
		t.Fatal(err)
	}
	return found
}

// kueue is Kueue's webhook for Jobs.
func kueue(t *testing.T, object *unstructured.Unstructured) error {
	job := typed[batchv1.Job](t, object)
	_, err := (&kueuejob.JobWebhook{}).ValidateCreate(t.Context(), job)
	return err
}

func jobSet(t *testing.T, object *unstructured.Unstructured) error {
	set := typed[jobset.JobSet](t, object)
	webhook, err := jobsetwebhooks.NewJobSetWebhook(nil)
	if err != nil {
		t.Fatal(err)
	}
	for index := range set.Spec.ReplicatedJobs { // as the definition's defaults have it
		if group := &set.Spec.ReplicatedJobs[index]; group.GroupName == "" {
			group.GroupName = "default"
		}
		if group := &set.Spec.ReplicatedJobs[index]; group.Replicas == 0 {
			group.Replicas = 1
		}
	}
	if err := webhook.Default(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	_, err = webhook.ValidateCreate(t.Context(), set)
	return err
}

// pyTorch is the training operator's webhook, and the rule of its gang scheduling: no more pods than exist.
func pyTorch(t *testing.T, object *unstructured.Unstructured) error {
	job := typed[trainingv1.PyTorchJob](t, object)
	if _, err := (&pytorch.Webhook{}).ValidateCreate(t.Context(), job); err != nil {
		return err
	}
	pods := int32(0)
	for _, replicas := range job.Spec.PyTorchReplicaSpecs {
		pods += *replicas.Replicas
	}
	if policy := job.Spec.RunPolicy.SchedulingPolicy; policy != nil && policy.MinAvailable != nil && *policy.MinAvailable > pods {
		return fmt.Errorf("a gang of %d waits for %d pods", pods, *policy.MinAvailable)
	}
	return nil
}

// rayJob is KubeRay's validation, and its controller's count of pods, which must equal the chosen one.
func rayJob(t *testing.T, object *unstructured.Unstructured) error {
	job := typed[rayv1.RayJob](t, object)
	if err := ray.ValidateRayJobSpec(job); err != nil {
		return err
	}
	read, err := jobs.Of(object)
	if err != nil {
		return err
	}
	if pods := ray.GetWorkerGroupDesiredReplicas(t.Context(), job.Spec.RayClusterSpec.WorkerGroupSpecs[0]); int64(pods) != read.Nodes() {
		return fmt.Errorf("KubeRay starts %d pods, not %d", pods, read.Nodes())
	}
	return nil
}

const pods = `{containers: [{name: pytorch, image: i, resources: {limits: {nvidia.com/gpu: 8}}}], restartPolicy: Never}`

func jobOf(annotations, spec, podMetadata string) string {
	return `{apiVersion: batch/v1, kind: Job, metadata: {name: a, labels: {kueue.x-k8s.io/queue-name: q}, annotations: ` + annotations + `},
		spec: {` + spec + `, template: {metadata: ` + podMetadata + `, spec: ` + pods + `}}}`
}

func jobSetOf(rest, job string) string {
	return `{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: a}, spec: {` + rest + `replicatedJobs: [{name: w, ` + job + `, template: {spec: ` + pods + `}}}}]}}`
}

func pyTorchOf(rest, workers string) string {
	return `{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: a}, spec: {` + rest + ` pytorchReplicaSpecs: {
		Master: {replicas: 1, template: {spec: ` + pods + `}}, Worker: {replicas: ` + workers + `, template: {spec: ` + pods + `}}}}}`
}

func rayOf(rest, group string) string {
	return `{apiVersion: ray.io/v1, kind: RayJob, metadata: {name: a}, spec: {entrypoint: python, rayClusterSpec: {` + rest + `
		headGroupSpec: {rayStartParams: {}, template: {spec: ` + pods + `}}, workerGroupSpecs: [{groupName: g, ` + group + `, rayStartParams: {}, template: {spec: ` + pods + `}}]}}}`
}

// For every number of nodes that an object allows, its controller accepts the object. If the dependent fields did not change, the controllers
// would refuse all but the last object of each kind for some number: broken says so.
func TestControllersAcceptWhatIsWritten(t *testing.T) {
	const slices = `{annotations: {kueue.x-k8s.io/podset-slice-size: "4", kueue.x-k8s.io/podset-slice-required-topology: rack}}`
	for name, test := range map[string]struct {
		validate func(*testing.T, *unstructured.Unstructured) error
		object   string
		allowed  int // of 1 to 24
		broken   string
	}{
		"partial admission":        {kueue, jobOf(`{kueue.x-k8s.io/job-min-parallelism: "5"}`, "parallelism: 20, completions: 20, completionMode: Indexed", "{}"), 19, "parallelism: 5, completions: 5"},
		"completions are the pods": {kueue, jobOf(`{kueue.x-k8s.io/job-completions-equal-parallelism: "true"}`, "parallelism: 20, completions: 20, completionMode: Indexed", "{}"), 24, "parallelism: 5, completions: 20"},
		"slices":                   {kueue, jobOf("{}", "parallelism: 20, completions: 20, completionMode: Indexed", slices), 6, "parallelism: 2, completions: 2"},
		"coordinator's pod":        {jobSet, jobSetOf("coordinator: {replicatedJob: w, podIndex: 3}, ", "replicas: 1, template: {spec: {parallelism: 8, completions: 8"), 21, "parallelism: 2, completions: 2"},
		"coordinator's job":        {jobSet, jobSetOf("coordinator: {replicatedJob: w, jobIndex: 3}, ", "replicas: 4, template: {spec: {parallelism: 2, completions: 2"), 9, "replicas: 2"},
		"long names":               {jobSet, strings.Replace(jobSetOf("", "replicas: 1, template: {spec: {parallelism: 8, completions: 8"), "name: a", "name: "+strings.Repeat("a", 51), 1), 10, "parallelism: 11, completions: 11"},
		"gang":                     {pyTorch, pyTorchOf("runPolicy: {schedulingPolicy: {minAvailable: 8}},", "7"), 23, "Worker: {replicas: 3"},
		"smaller gang":             {pyTorch, pyTorchOf("runPolicy: {schedulingPolicy: {minAvailable: 4}},", "7"), 21, "Worker: {replicas: 2"},
		"hosts":                    {rayJob, rayOf("", "replicas: 2, minReplicas: 2, maxReplicas: 2, numOfHosts: 4"), 6, "replicas: 3,"},
		"autoscaler":               {rayJob, rayOf("enableInTreeAutoscaling: true, ", "replicas: 2, minReplicas: 2, maxReplicas: 4, numOfHosts: 4"), 3, "replicas: 5,"},
	} {
		t.Run(name, func(t *testing.T) {
			read := func(text string) *unstructured.Unstructured {
				object := &unstructured.Unstructured{}
				if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
					t.Fatal(err)
				}
				return object
			}
			job, err := jobs.Of(read(test.object))
			if err != nil {
				t.Fatal(err)
			}
			wish, err := job.Within(jobs.Wish{First: 1, Last: 24})
			if err != nil {
				t.Fatal(err)
			}
			counts := wish.Question("", 0).Counts()
			if len(counts) != test.allowed {
				t.Error("allowed are", counts)
			}
			for _, nodes := range counts {
				object := read(test.object)
				job, _ := jobs.Of(object)
				if err := job.SetNodes(int64(nodes)); err != nil {
					t.Error(err)
				}
				if err := test.validate(t, object); err != nil {
					t.Errorf("%d nodes: %v", nodes, err)
				}
			}
			if err := test.validate(t, read(replace(test.object, test.broken))); err == nil {
				t.Errorf("the controller accepts %s: this test shows nothing", test.broken)
			}
		})
	}
}

// replace writes other numbers into the fields that a text names.
func replace(object, fields string) string {
	for field := range strings.SplitSeq(fields, ", ") {
		name, value, _ := strings.Cut(strings.TrimSuffix(field, ","), ": ")
		if rest, number, nested := strings.Cut(value, ": "); nested {
			name, value = name+": "+rest, number
		}
		begin := strings.Index(object, "{"+name+": ") + len(name) + 3
		if begin < len(name)+3 {
			begin = strings.Index(object, " "+name+": ") + len(name) + 3
		}
		end := begin + strings.IndexAny(object[begin:], ",} \n")
		object = object[:begin] + value + object[end:]
	}
	return object
}
