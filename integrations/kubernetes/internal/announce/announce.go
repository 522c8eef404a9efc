// Package announce tells owners what was decided when their jobs were submitted: by an event for each new job, and by an annotation with the
// expected end of each running job.
package announce

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/jobs"
	"github.com/nodewise/nodewise/integrations/kubernetes/internal/known"
)

const (
	// eventsLast is how long an API server keeps events by default. An older job already had its event.
	eventsLast = time.Hour
	refresh    = time.Minute
	owner      = "nodewise"
)

// Watch announces jobs of every kind that the cluster knows, including kinds whose nodes are never changed.
func Watch(all manager.Manager) error {
	kinds := slices.Concat(jobs.Kinds, slices.Collect(maps.Keys(jobs.LeftAlone)))
	hasReason := func(object client.Object) bool { return object.GetAnnotations()[jobs.Reason] != "" }
	return known.Watch(all, "announce", kinds, hasReason, func(kind schema.GroupVersionKind) reconcile.Reconciler {
		return &announcer{all.GetClient(), kind}
	})
}

type announcer struct {
	client client.Client
	kind   schema.GroupVersionKind
}

func (a *announcer) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	job := &unstructured.Unstructured{}
	job.SetGroupVersionKind(a.kind)
	if err := a.client.Get(ctx, request.NamespacedName, job); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	chosen := job.GetAnnotations()[jobs.Chosen] != ""
	reason := "NodesNotChosen"
	if chosen {
		reason = "NodesChosen"
	}
	if time.Since(job.GetCreationTimestamp().Time) < eventsLast {
		if err := Event(ctx, a.client, job, reason, "submitted", job.GetAnnotations()[jobs.Reason]); err != nil {
			return ctrl.Result{}, err
		}
	}
	return a.timeLeft(ctx, job)
}

// timeLeft annotates a running job with its expected end. A TrainJob also has a place for it in its status.
func (a *announcer) timeLeft(ctx context.Context, job *unstructured.Unstructured) (ctrl.Result, error) {
	seconds, err := strconv.ParseFloat(job.GetAnnotations()[jobs.FinishSeconds], 64)
	begun := begin(job)
	if err != nil || begun.IsZero() || ended(job) {
		return ctrl.Result{}, nil
	}
	finish := begun.Add(time.Duration(seconds * float64(time.Second)))
	if text := finish.UTC().Format(time.RFC3339); job.GetAnnotations()[jobs.ExpectedFinish] != text {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, jobs.ExpectedFinish, text)
		if err := a.client.Patch(ctx, job, client.RawPatch(types.MergePatchType, patch)); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
	}
	if a.kind.Kind != "TrainJob" {
		return ctrl.Result{}, nil
	}
	status := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"trainerStatus": map[string]any{
		"estimatedRemainingSeconds": int64(math.Max(0, time.Until(finish).Seconds())), "lastUpdatedTime": time.Now().UTC().Format(time.RFC3339),
	}}}}
	status.SetGroupVersionKind(a.kind)
	status.SetName(job.GetName())
	status.SetNamespace(job.GetNamespace())
	err = a.client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(status), client.FieldOwner(owner))
	if apierrors.IsConflict(err) {
		return ctrl.Result{}, nil // the training itself reports its progress
	}
	return ctrl.Result{RequeueAfter: refresh}, client.IgnoreNotFound(err)
}

// begin returns when a job began to run; zero = it does not run.
func begin(job *unstructured.Unstructured) time.Time {
	if suspended, _, _ := unstructured.NestedBool(job.Object, "spec", "suspend"); suspended {
		return time.Time{}
	}
	for _, name := range []string{"startTime", "jobStartTime"} { // of Job, PyTorchJob; RayJob
		if text, _, _ := unstructured.NestedString(job.Object, "status", name); text != "" {
			begun, _ := time.Parse(time.RFC3339, text)
			return begun
		}
	}
	if kind := job.GetKind(); kind == "TrainJob" || kind == "JobSet" { // neither kind states it
		return job.GetCreationTimestamp().Time
	}
	return time.Time{}
}

func ended(job *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(job.Object, "status", "conditions")
	for _, each := range conditions {
		condition, _ := each.(map[string]any)
		kind, _ := condition["type"].(string)
		if condition["status"] == "True" && (kind == "Complete" || kind == "Completed" || kind == "Succeeded" || kind == "Failed") {
			return true
		}
	}
	return false
}

// Event writes an event about a job, once for each reason and key.
func Event(ctx context.Context, to client.Client, job client.Object, reason, key, message string) error {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(string(job.GetUID()) + reason + key))
	kind := job.GetObjectKind().GroupVersionKind()
	now := metav1.Now()
	if len(message) > 1024 { // the API's limit
		message = message[:1021] + "..."
	}
	err := to.Create(ctx, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%.200s.%x", job.GetName(), hash.Sum64()), Namespace: job.GetNamespace()},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Namespace: job.GetNamespace(), Name: job.GetName(), UID: job.GetUID(), ResourceVersion: job.GetResourceVersion(),
		},
		Reason: reason, Message: message, Type: corev1.EventTypeNormal, Source: corev1.EventSource{Component: owner}, ReportingController: "nodewise.dev/kubernetes",
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
