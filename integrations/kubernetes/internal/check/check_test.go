package check

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/ask"
	"github.com/nodewise/nodewise/integrations/kubernetes/internal/jobs"
)

// asker answers with a test's point for every number of nodes.
type asker struct {
	ask.Curve
	point ask.Point
	err   error
	asked []ask.Question
}

func (a *asker) Ask(_ context.Context, question ask.Question) (*ask.Curve, error) {
	a.asked = append(a.asked, question)
	curve := a.Curve
	curve.Points = map[string][]ask.Point{}
	for _, nodes := range question.Counts() {
		point := a.point
		point.Nodes = nodes
		curve.Points[question.Devices] = append(curve.Points[question.Devices], point)
	}
	return &curve, a.err
}

func read(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	asJSON, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = json.Unmarshal(asJSON, &object.Object) // whole numbers as the API server's
	}
	if err != nil {
		t.Fatal(err)
	}
	return object
}

const workload = `{apiVersion: kueue.x-k8s.io/v1beta2, kind: Workload, metadata: {name: w, namespace: team, ownerReferences: [{apiVersion: batch/v1, kind: Job, name: j, uid: u, controller: true}]},
	spec: {podSets: [{name: main, count: 4}]}, status: {admission: {podSetAssignments: [{name: main, count: COUNT, flavors: {nvidia.com/gpu: f}}]}}}`

// judged returns the verdict on a Job of 4 nodes, of which Kueue reserves a number, with annotations.
func judged(t *testing.T, asker *asker, count, annotations string) verdict {
	t.Helper()
	job := read(t, `{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: team, annotations: {`+annotations+`}}, spec: {parallelism: 4, template: {spec: {containers: [{name: c, resources: {limits: {nvidia.com/gpu: 8}}}]}}}}`)
	job.SetCreationTimestamp(metav1.NewTime(time.Now().Add(-100 * time.Second)))
	flavor := read(t, `{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: f}, spec: {nodeLabels: {nvidia.com/gpu.product: V100}}}`)
	cluster := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(job, flavor).Build()
	_, found := (&Checker{Cluster: cluster, Asker: asker}).answer(t.Context(), read(t, strings.ReplaceAll(workload, "COUNT", count)))
	return found
}

func TestVerdicts(t *testing.T) {
	const profile, reject = `nodewise.dev/profile: p`, `, nodewise.dev/check: reject`
	fits := ask.Point{Rate: 1, MemoryBytes: 60e9, FinishSeconds: 500, UpperFinishSeconds: 700}
	lacks := ask.Point{MemoryBytes: 90e9, ExcessMemoryBytes: 10e9}
	for name, test := range map[string]struct {
		asker       asker
		annotations string
		state, says string
	}{
		"fits":                   {asker{point: fits}, profile + reject, ready, "4 nodes: fits into memory (60.0 GB on each device)."},
		"memory not known":       {asker{point: ask.Point{Rate: 1}}, profile + reject, ready, "its memory is not known"},
		"does not fit":           {asker{point: lacks}, profile + reject, rejected, "4 nodes: does not fit into memory: 10.0 GB are missing on each device."},
		"does not fit, advised":  {asker{point: lacks}, profile, ready, "annotation nodewise.dev/check: retry or reject would stop it"},
		"does not fit, to retry": {asker{point: lacks}, profile + `, nodewise.dev/check: retry`, retry, "does not fit into memory"},
		"worth":                  {asker{point: fits, Curve: ask.Curve{Recommended: 4, Why: "because"}}, profile + `, nodewise.dev/nodes: 1-8` + reject, ready, "is worth its nodes; the recommendation is 4 nodes: because"},
		"not worth":              {asker{point: fits, Curve: ask.Curve{Recommended: 2, Why: "because"}}, profile + `, nodewise.dev/nodes: 1-8` + reject, rejected, "is not worth its nodes; the recommendation is 2 nodes: because"},
		"more not compared":      {asker{point: fits, Curve: ask.Curve{Recommended: 2, Bounded: true}}, profile + `, nodewise.dev/nodes: 1-2` + reject, ready, "no more than 2 nodes were compared"},
		"none meets":             {asker{point: fits, Curve: ask.Curve{Why: "none"}}, profile + `, nodewise.dev/nodes: 1-8` + reject, ready, "whether it is worth its nodes is not known: none"},
		"in time":                {asker{point: fits}, profile + `, nodewise.dev/deadline-seconds: "700"` + reject, ready, "is done by its deadline (it takes 500 s, and"},
		"late by the queue":      {asker{point: fits}, profile + `, nodewise.dev/deadline-seconds: "590"` + reject, rejected, "is not done by its deadline: it takes 500 s, and 4"},
		"late by confidence":     {asker{point: fits}, profile + `, nodewise.dev/confidence: "0.95", nodewise.dev/deadline-seconds: "700"` + reject, rejected, "it takes 700 s"},
		"deadline has passed":    {asker{point: fits}, profile + `, nodewise.dev/deadline-seconds: "50"` + reject, rejected, "and 0 s are left"},
		"time not known":         {asker{point: ask.Point{Rate: 1}}, profile + `, nodewise.dev/deadline-seconds: "50"` + reject, ready, "its time is not known"},
		"no answer":              {asker{err: errors.New("down")}, profile + reject, ready, "not checked: down"},
		"refused row":            {asker{point: ask.Point{Refusal: "EVIDENCE_MISSING"}}, profile + reject, ready, "not checked: there is no prediction for 4 nodes: EVIDENCE_MISSING"},
		"no profile":             {asker{point: lacks}, `nodewise.dev/check: reject`, ready, "not checked: the job has no annotation nodewise.dev/profile"},
		"wrong annotation":       {asker{point: lacks}, profile + `, nodewise.dev/check: stop`, ready, `not checked: annotation nodewise.dev/check is "stop"; give advise, retry or reject`},
	} {
		t.Run(name, func(t *testing.T) {
			if found := judged(t, &test.asker, "4", test.annotations); found.state != test.state || !strings.Contains(found.message, test.says) {
				t.Errorf("%+v", found)
			}
		})
	}
}

// The question is about the nodes and the device that Kueue reserves.
func TestTheReservationIsChecked(t *testing.T) {
	asker := &asker{point: ask.Point{Rate: 1}}
	if found := judged(t, asker, "3", `nodewise.dev/profile: p`); !strings.HasPrefix(found.message, "3 nodes: ") {
		t.Error(found)
	}
	if asked := asker.asked[0]; !slices.Equal(asked.Counts(), []int32{3}) || asked.Devices != "V100" || asked.WorkersPerNode != 8 {
		t.Errorf("%+v", asked)
	}
	asker.asked = nil
	judged(t, asker, "4", `nodewise.dev/profile: p, nodewise.dev/device: A100`)
	if asked := asker.asked[0]; asked.Devices != "A100" {
		t.Errorf("%+v", asked)
	}
}

func TestOtherOwnersAreAdmitted(t *testing.T) {
	checker := &Checker{Cluster: fake.NewClientBuilder().WithScheme(runtime.NewScheme()).Build(), Asker: &asker{}}
	for change, says := range map[string]string{
		"kind: Job": "not checked: jobs.batch \"j\" not found", "kind: Pod": "not checked: Pod is not a kind", "controller: true": "not checked: the workload belongs to no job",
	} {
		text := workload
		switch change {
		case "kind: Pod":
			text = strings.Replace(text, "apiVersion: batch/v1, kind: Job", "apiVersion: v1, kind: Pod", 1)
		case "controller: true":
			text = strings.Replace(text, change, "controller: false", 1)
		}
		if _, found := checker.answer(t.Context(), read(t, strings.ReplaceAll(text, "COUNT", "4"))); found.state != ready || !strings.HasPrefix(found.message, says) {
			t.Error(change, found)
		}
	}
}

func TestOnlyWaitingWorkloadsAreChecked(t *testing.T) {
	const reserved = `{type: QuotaReserved, status: "True"}`
	for status, expected := range map[string]bool{
		`{conditions: [` + reserved + `], admissionChecks: [{name: a, state: Pending}]}`:                                   true,
		`{conditions: [` + reserved + `], admissionChecks: [{name: a, state: Ready}]}`:                                     false,
		`{conditions: [` + reserved + `]}`:                                                                                 false,
		`{conditions: [], admissionChecks: [{name: a, state: Pending}]}`:                                                   false,
		`{conditions: [` + reserved + `, {type: Evicted, status: "True"}], admissionChecks: [{name: a, state: Pending}]}`:  false,
		`{conditions: [` + reserved + `, {type: Evicted, status: "False"}], admissionChecks: [{name: a, state: Pending}]}`: true,
		`{conditions: [` + reserved + `, {type: Finished, status: "True"}], admissionChecks: [{name: a, state: Pending}]}`: false,
		`{conditions: [` + reserved + `], admissionChecks: [{name: b, state: Ready}, {name: a, state: Pending}]}`:          true,
	} {
		if found := waits(read(t, `{status: `+status+`}`)); found != expected {
			t.Error(status, found)
		}
	}
}

// A message quotes texts of others, and must not be too long for the status.
func TestAMessageIsShort(t *testing.T) {
	found := judged(t, &asker{err: errors.New(strings.Repeat("é", 50_000))}, "4", `nodewise.dev/profile: p`)
	if found.state != ready || len(found.message) > len(jobs.Shorten(strings.Repeat("x", 50_000))) {
		t.Error(found.state, len(found.message))
	}
}
