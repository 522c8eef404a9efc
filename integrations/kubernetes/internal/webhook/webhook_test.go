package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/ask"
	"github.com/nodewise/nodewise/integrations/kubernetes/internal/jobs"
)

// asker recommends the lowest or highest number of nodes of a question.
type asker struct {
	most  bool
	upper float64 // bound of the time, in seconds
	asked ask.Question
}

func (a *asker) Ask(_ context.Context, question ask.Question) (*ask.Curve, error) {
	a.asked = question
	counts := question.Counts()
	curve := &ask.Curve{Points: map[string][]ask.Point{}, Recommended: counts[0], Why: "because", Basis: "a test"}
	if a.most {
		curve.Recommended = counts[len(counts)-1]
	}
	for _, nodes := range counts {
		curve.Points[question.Devices] = append(curve.Points[question.Devices], ask.Point{Nodes: nodes, Rate: 1, UpperFinishSeconds: a.upper})
	}
	return curve, nil
}

func (a *asker) Cached(ask.Question) (*ask.Curve, error) { return nil, errors.New("not asked for") }

func read(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

const asks = `{nodewise.dev/profile: team/a, nodewise.dev/nodes: 1-8}`

func trainJob(trainer string) string {
	return `{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: t, namespace: team, annotations: ` + asks + `}, spec: {runtimeRef: {name: torch}, trainer: ` + trainer + `}}`
}

// runtimes returns a cluster with a runtime of 4 nodes with 8 devices.
func runtimes() client.Reader {
	runtimeKind := schema.GroupVersionKind{Group: "trainer.kubeflow.org", Version: "v1alpha1", Kind: "ClusterTrainingRuntime"}
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(runtimeKind, &unstructured.Unstructured{})
	stored := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"mlPolicy": map[string]any{"numNodes": int64(4)},
		"template": map[string]any{"spec": map[string]any{"replicatedJobs": []any{map[string]any{"name": "node", "template": map[string]any{"spec": map[string]any{"template": map[string]any{
			"spec": map[string]any{"containers": []any{map[string]any{"name": "node", "resources": map[string]any{"limits": map[string]any{"nvidia.com/gpu": "8"}}}}},
		}}}}}}},
	}}}
	stored.SetGroupVersionKind(runtimeKind)
	stored.SetName("torch")
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(stored).Build()
}

func TestARuntimeStatesWhatATrainJobDoesNot(t *testing.T) {
	for name, test := range map[string]struct {
		trainer   string
		runtimes  client.Reader
		chosen    any
		requested string
		devices   int32
		reason    string
	}{
		"the runtime's count":           {"{numProcPerNode: auto}", runtimes(), int64(8), "4", 8, "chose 8 nodes instead of 4"},
		"the TrainJob's devices":        {"{numProcPerNode: auto, resourcesPerNode: {limits: {nvidia.com/gpu: 2}}}", runtimes(), int64(8), "4", 2, "chose 8 nodes instead of 4"},
		"the TrainJob's count":          {"{numNodes: 2}", runtimes(), int64(8), "2", 8, "chose 8 nodes instead of 2"},
		"the count without its runtime": {"{numNodes: 2}", nil, int64(8), "2", 0, "chose 8 nodes instead of 2"},
		"no count to be had":            {"{numProcPerNode: auto}", nil, nil, "", 0, "spec.trainer.numNodes is absent, and the ClusterTrainingRuntime torch, which may state the number of nodes, cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			object, asker := read(t, trainJob(test.trainer)), &asker{most: true}
			told, _ := Choose(t.Context(), asker, test.runtimes, object)
			chosen, _, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "trainer", "numNodes")
			if chosen != test.chosen || object.GetAnnotations()[jobs.Requested] != test.requested || asker.asked.WorkersPerNode != test.devices || !strings.Contains(told, test.reason) {
				t.Error(chosen, object.GetAnnotations(), asker.asked.WorkersPerNode, told)
			}
		})
	}
}

// Questions hold only numbers of nodes that the job allows, so that a recommendation is always allowed.
func TestOnlyWhatTheJobAllowsIsAskedAbout(t *testing.T) {
	for text, expected := range map[string][]int32{
		`{apiVersion: ray.io/v1, kind: RayJob, metadata: {annotations: ` + asks + `}, spec: {rayClusterSpec: {workerGroupSpecs: [{groupName: g, replicas: 2, numOfHosts: 3}]}}}`:                            {3, 6},
		`{apiVersion: batch/v1, kind: Job, metadata: {annotations: {nodewise.dev/profile: a, nodewise.dev/nodes: 1-8, kueue.x-k8s.io/job-min-parallelism: "5"}}, spec: {parallelism: 20, completions: 20}}`: {6, 7, 8},
		`{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {annotations: ` + asks + `}, spec: {replicatedJobs: [{name: slice, replicas: 4, template: {spec: {parallelism: 2}}}]}}`:             {2, 4, 6, 8},
	} {
		for _, most := range []bool{false, true} {
			asker := &asker{most: most}
			told, _ := Choose(t.Context(), asker, nil, read(t, text))
			if !slices.Equal(asker.asked.Counts(), expected) || !strings.HasPrefix(told, "chose") {
				t.Error(text, asker.asked.Counts(), told)
			}
		}
	}
}

// A job whose nodes do not change is admitted with the reason as its only change, which kubectl prints as a warning.
func TestAJobThatIsLeftAloneHasTheReason(t *testing.T) {
	for text, reason := range map[string]string{
		`{"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"annotations": {"nodewise.dev/profile": "a", "nodewise.dev/nodes": "1-8"}}, "spec": {"slotsPerWorker": 8}}`:                          "mpirun",
		`{"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"annotations": {"nodewise.dev/profile": "a", "nodewise.dev/nodes": "1-8"}}, "spec": {"minAvailable": 3}}`:                          "spec.minAvailable",
		`{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"annotations": {"nodewise.dev/profile": "a", "nodewise.dev/nodes": "1-4", "kueue.x-k8s.io/job-min-parallelism": "4"}}, "spec": {"parallelism": 8}}`: "kept 8 nodes as written: the job itself allows none of the numbers in annotation nodewise.dev/nodes: annotation kueue.x-k8s.io/job-min-parallelism is 4",
	} {
		request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Object: runtime.RawExtension{Raw: []byte(text)}}}
		response := Handler(&asker{}, nil).Handle(t.Context(), request)
		if !response.Allowed || len(response.Warnings) != 1 || !strings.Contains(response.Warnings[0], reason) {
			t.Errorf("%v", response)
		}
		for _, patch := range response.Patches {
			if !strings.HasPrefix(patch.Path, "/metadata/annotations/") {
				t.Error("it also changes", patch.Path)
			}
		}
	}
}

// The API server refuses an object with too large annotations, and the webhook must never cause a refusal.
func TestAReasonIsShortWhateverItQuotes(t *testing.T) {
	for _, annotation := range []string{jobs.Nodes, "nodewise.dev/share", "nodewise.dev/objective", "nodewise.dev/device"} {
		object := read(t, `{apiVersion: batch/v1, kind: Job, metadata: {annotations: `+asks+`}, spec: {parallelism: 2}}`)
		annotations := object.GetAnnotations()
		annotations[annotation] = strings.Repeat("é,", 50_000)
		object.SetAnnotations(annotations)
		told, _ := Choose(t.Context(), &asker{}, nil, object)
		if reason := object.GetAnnotations()[jobs.Reason]; reason != told || len(told) > 2100 || !strings.HasSuffix(told, "...") || !strings.Contains(told, annotation) {
			t.Error(annotation, len(told), told[:100])
		}
	}
}

// The cases of public bug reports, if they are available: the object is consistent after any recommendation.
func TestCases(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(os.Getenv("NODEWISE_DATA"), "cases/kubernetes/*.yaml"))
	if os.Getenv("NODEWISE_DATA") == "" || len(files) == 0 {
		t.Skip("the cases are not here")
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, most := range []bool{false, true} {
			object := read(t, string(text))
			told, _ := Choose(t.Context(), &asker{most: most}, nil, object)
			spec, _ := json.Marshal(object.Object["spec"])
			expected := map[string][2]string{
				"job_success_policy.yaml":          {`"succeededIndexes":"0"`, `"succeededIndexes":"0-7"`},
				"jobset_slices.yaml":               {`"replicas":1`, `"replicas":4`},
				"kueue_partial_admission_job.yaml": {`"parallelism":6`, `"parallelism":8`},
			}[filepath.Base(file)]
			if expected[0] == "" { // left alone
				if written, _ := json.Marshal(read(t, string(text)).Object["spec"]); string(written) != string(spec) || strings.HasPrefix(told, "chose") || told == "" {
					t.Error(file, told, string(spec))
				}
			} else if part := expected[map[bool]int{true: 1}[most]]; !strings.Contains(string(spec), part) || !strings.HasPrefix(told, "chose") {
				t.Error(file, told, "no", part, "in", string(spec))
			}
		}
	}
}

// Kueue's limit of the time is a multiple of the upper bound, and only set if the owner asks for it and has not set it.
func TestTheExecutionLimit(t *testing.T) {
	for name, test := range map[string]struct {
		annotations, labels string
		upper               float64
		label, reason       string
	}{
		"not asked for":   {"", "", 100, "", ""},
		"once the bound":  {`, nodewise.dev/execution-limit: "1"`, "", 100.2, "101", "The execution limit is 101 s, 1 times the upper bound of the time."},
		"more":            {`, nodewise.dev/execution-limit: "2.5"`, "", 100, "250", "The execution limit is 250 s"},
		"less":            {`, nodewise.dev/execution-limit: "0.5"`, "", 100, "", "annotation nodewise.dev/execution-limit is 0.5; give a number of at least 1"},
		"not known":       {`, nodewise.dev/execution-limit: "2"`, "", 0, "", "There is no execution limit: the upper bound of the time is not known, or too long."},
		"too long":        {`, nodewise.dev/execution-limit: "2"`, "", 3e9, "", "There is no execution limit"},
		"the owner's own": {`, nodewise.dev/execution-limit: "2"`, `kueue.x-k8s.io/max-exec-time-seconds: "7"`, 100, "7", "The execution limit of 7 s is the owner's."},
		"of a copied job": {`, nodewise.dev/execution-limit: "2", nodewise.dev/execution-seconds: "7"`, `kueue.x-k8s.io/max-exec-time-seconds: "7"`, 100, "200", "The execution limit is 200 s"},
		"copied, no more": {`, nodewise.dev/execution-seconds: "7"`, `kueue.x-k8s.io/max-exec-time-seconds: "7"`, 100, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			object := read(t, `{apiVersion: batch/v1, kind: Job, metadata: {labels: {`+test.labels+`}, annotations: {nodewise.dev/profile: team/a, nodewise.dev/nodes: 1-8`+test.annotations+`}}, spec: {parallelism: 2}}`)
			told, _ := Choose(t.Context(), &asker{upper: test.upper}, nil, object)
			if found := object.GetLabels()[jobs.ExecutionLabel]; found != test.label || !strings.Contains(told, test.reason) || test.reason == "" && strings.Contains(told, "limit") {
				t.Error(found, told)
			}
			if own := object.GetAnnotations()[jobs.ExecutionSeconds]; name != "the owner's own" && own != test.label {
				t.Error("the annotation says", own)
			}
		})
	}
}
