package recommender

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/ask"
	"github.com/nodewise/nodewise/integrations/kubernetes/internal/jobs"
)

// asker recommends the highest number of nodes, or has no answer.
type asker struct {
	err   error
	asked int
}

func (a *asker) Ask(_ context.Context, question ask.Question) (*ask.Curve, error) {
	a.asked++
	counts := question.Counts()
	most := counts[len(counts)-1]
	return &ask.Curve{Recommended: most, Why: "because", Basis: "a test", Points: map[string][]ask.Point{question.Devices: {{Nodes: most, Rate: 1}}}}, a.err
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

const (
	opted   = `nodewise.dev/profile: p, nodewise.dev/nodes: 2-4`
	plugged = opted + `, trainer.kubeflow.org/autoconf-plugin: nodewise`
	set     = `{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: t, namespace: team, uid: s, ownerReferences: [{apiVersion: v1, kind: TrainJob, name: t, uid: u, controller: true}]},
		spec: {suspend: true, replicatedJobs: [{name: node, template: {spec: {parallelism: 1}}}]}}`
)

func trainJob(t *testing.T, annotations, suspend string) *unstructured.Unstructured {
	t.Helper()
	job := read(t, `{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: t, namespace: team, uid: u, annotations: {`+annotations+`}}, spec: {suspend: `+suspend+`, trainer: {numNodes: 1}}}`)
	job.SetCreationTimestamp(metav1.NewTime(time.Now().Add(-10 * time.Second)))
	return job
}

// rounds lets a recommender act so often, and returns the job, the last result, and the events.
func rounds(t *testing.T, asker *asker, refusal error, count int, patience time.Duration, objects ...client.Object) (*unstructured.Unstructured, ctrl.Result, []corev1.Event, client.Client) {
	t.Helper()
	cluster := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, to client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if nodes, _, _ := unstructured.NestedInt64(object.(*unstructured.Unstructured).Object, "spec", "trainer", "numNodes"); refusal != nil && nodes != 1 {
				return refusal
			}
			return to.Patch(ctx, object, patch, options...)
		},
	}).Build()
	r := &Recommender{Cluster: cluster, Asker: asker, Settings: Settings{Plugin: "nodewise", Patience: patience, Retry: time.Second}}
	var result ctrl.Result
	for range count {
		var err error
		if result, err = r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "team", Name: "t"}}); err != nil {
			t.Fatal(err)
		}
	}
	job := trainJob(t, "", "true")
	if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(job), job); err != nil {
		t.Fatal(err)
	}
	events := &corev1.EventList{}
	if err := cluster.List(t.Context(), events); err != nil {
		t.Fatal(err)
	}
	return job, result, events.Items, cluster
}

func nodesOf(job *unstructured.Unstructured) int64 {
	found, _, _ := unstructured.NestedInt64(job.Object, "spec", "trainer", "numNodes")
	return found
}

func TestASuspendedTrainJobGetsItsNumberOnce(t *testing.T) {
	asker := &asker{}
	job, _, events, _ := rounds(t, asker, nil, 3, time.Hour, trainJob(t, plugged, "true"))
	annotations := job.GetAnnotations()
	if nodesOf(job) != 4 || asker.asked != 1 || annotations[jobs.Chosen] != "4" || annotations[jobs.Requested] != "1" || annotations[Done] != "yes" || !isSuspended(job) {
		t.Error(nodesOf(job), asker.asked, annotations)
	}
	if len(events) != 1 || events[0].Reason != "NodesRecommended" || events[0].Message != annotations[jobs.Reason] {
		t.Error(events)
	}
}

// The owner's own number stays; another question of the owner is answered.
func TestTheOwnersChangesCount(t *testing.T) {
	job, _, _, _ := rounds(t, &asker{}, nil, 1, time.Hour, trainJob(t, opted, "true"))
	if err := unstructured.SetNestedField(job.Object, int64(3), "spec", "trainer", "numNodes"); err != nil {
		t.Fatal(err)
	}
	job.SetResourceVersion("")
	again, _, _, _ := rounds(t, &asker{}, nil, 2, time.Hour, job)
	if nodesOf(again) != 3 {
		t.Error("the owner's 3 nodes became", nodesOf(again))
	}
	annotations := again.GetAnnotations()
	annotations[jobs.Nodes] = "2-8"
	again.SetAnnotations(annotations)
	again.SetResourceVersion("")
	if last, _, _, _ := rounds(t, &asker{}, nil, 2, time.Hour, again); nodesOf(last) != 8 {
		t.Error("the new question was answered with", nodesOf(last))
	}
}

func TestOtherTrainJobsStay(t *testing.T) {
	preempted, reported := trainJob(t, opted, "true"), time.Now().UTC().Format(time.RFC3339)
	preempted.SetCreationTimestamp(metav1.NewTime(time.Now().Add(-time.Hour)))
	preempted.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Suspended", "status": "True", "lastTransitionTime": reported}}}
	for name, job := range map[string]*unstructured.Unstructured{
		"running":             trainJob(t, opted, "false"),
		"preempted":           preempted,
		"no nodes to choose":  trainJob(t, `nodewise.dev/profile: p`, "true"),
		"another recommender": trainJob(t, opted+`, trainer.kubeflow.org/autoconf-plugin: another`, "true"),
		"done":                trainJob(t, plugged+`, trainer.kubeflow.org/autoconf-plugin-done: "yes"`, "true"),
	} {
		asker := &asker{}
		if found, result, events, _ := rounds(t, asker, nil, 2, 0, job); nodesOf(found) != 1 || asker.asked != 0 || len(events) > 0 || result != (ctrl.Result{}) {
			t.Error(name, nodesOf(found), asker.asked, events, result)
		}
	}
}

// The webhook chose the number at creation, so that only the release is left.
func TestAJobOfTheWebhookIsReleased(t *testing.T) {
	job := trainJob(t, plugged, "true")
	asker := &asker{}
	found, _, events, _ := rounds(t, asker, nil, 2, time.Hour, annotate(job, jobs.Question, jobs.QuestionKey(job.GetAnnotations())))
	if nodesOf(found) != 1 || asker.asked != 0 || found.GetAnnotations()[Done] != "yes" || len(events) > 0 {
		t.Error(nodesOf(found), asker.asked, found.GetAnnotations(), events)
	}
}

// Without an answer the job keeps its number and is tried again; a job that waits for the recommender is released after its patience.
func TestWithoutAnAnswerTheJobStays(t *testing.T) {
	for patience, done := range map[time.Duration]string{time.Hour: "", time.Second: "yes"} {
		job, result, events, _ := rounds(t, &asker{err: errors.New("down")}, nil, 1, patience, trainJob(t, plugged, "true"))
		annotations := job.GetAnnotations()
		if nodesOf(job) != 1 || annotations[jobs.Reason] != "kept 1 node as written: down" || annotations[Done] != done || annotations[jobs.Chosen] != "" || len(events) > 0 || result.RequeueAfter != time.Second {
			t.Error(patience, nodesOf(job), annotations, events, result)
		}
	}
}

func TestARefusedChangeIsNotTriedAgain(t *testing.T) {
	refusal := apierrors.NewInvalid(trainJobs.GroupKind(), "t", nil)
	asker := &asker{}
	job, _, events, _ := rounds(t, asker, refusal, 3, time.Hour, trainJob(t, opted, "true"))
	annotations := job.GetAnnotations()
	if nodesOf(job) != 1 || asker.asked != 1 || annotations[jobs.Chosen] != "" || !strings.HasPrefix(annotations[jobs.Reason], "the cluster refused the change (chose 4 nodes instead of 1") {
		t.Error(nodesOf(job), asker.asked, annotations)
	}
	if len(events) != 1 || events[0].Reason != "NodesNotChosen" {
		t.Error(events)
	}
}

// The job's suspended JobSet of another number is deleted; others are not.
func TestTheJobSetFollows(t *testing.T) {
	for name, test := range map[string]struct {
		set    string
		exists bool
	}{
		"another number": {set, false},
		"running":        {strings.Replace(set, "suspend: true", "suspend: false", 1), true},
		"same number":    {strings.Replace(set, "parallelism: 1", "parallelism: 4", 1), true},
		"of another job": {strings.Replace(set, "uid: u", "uid: x", 1), true},
	} {
		_, _, _, cluster := rounds(t, &asker{}, nil, 2, time.Hour, trainJob(t, opted, "true"), read(t, test.set))
		found := read(t, set)
		if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(found), found); (err == nil) != test.exists {
			t.Error(name, err)
		}
	}
}
