// Package recommender sets the number of nodes of suspended TrainJobs after their creation, by the protocol of Kubeflow's KEP-3328: for jobs
// that Nodewise did not answer about when they were created, or that no webhook saw.
package recommender

import (
	"context"
	"fmt"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/announce"
	"github.com/nodewise/nodewise/integrations/kubernetes/internal/jobs"
	"github.com/nodewise/nodewise/integrations/kubernetes/internal/known"
	"github.com/nodewise/nodewise/integrations/kubernetes/internal/webhook"
)

// Annotations of KEP-3328: the owner names a recommender, and the recommender states that it has done its work.
const (
	Plugin = "trainer.kubeflow.org/autoconf-plugin"
	Done   = "trainer.kubeflow.org/autoconf-plugin-done"
	yes    = "yes"
)

// longestReport is the longest time that Trainer may take to report that a new job is suspended.
const longestReport = time.Minute

var (
	trainJobs = schema.GroupVersionKind{Group: "trainer.kubeflow.org", Version: "v1alpha1", Kind: "TrainJob"}
	jobSets   = schema.GroupVersionKind{Group: "jobset.x-k8s.io", Version: "v1alpha2", Kind: "JobSet"}
)

// Settings of a recommender.
type Settings struct {
	// Plugin is its name in the annotation [Plugin]; jobs that name another one are left alone.
	Plugin string
	// Patience is the time after which a job that names this recommender is released without an answer.
	Patience time.Duration
	// Retry is the time between two attempts to get an answer about a job.
	Retry time.Duration
}

// Recommender sets numbers of nodes.
type Recommender struct {
	Cluster  client.Client
	Asker    webhook.Asker
	Settings Settings
}

// Watch acts on suspended TrainJobs once Kubeflow Trainer is installed.
func (r *Recommender) Watch(all manager.Manager) error {
	return known.Watch(all, "recommend", []schema.GroupVersionKind{trainJobs}, r.concerns, func(schema.GroupVersionKind) reconcile.Reconciler { return r })
}

// concerns reports whether an owner wants the number of nodes chosen, by this recommender.
func (r *Recommender) concerns(job client.Object) bool {
	annotations := job.GetAnnotations()
	plugin := annotations[Plugin]
	return annotations[jobs.Profile] != "" && annotations[jobs.Nodes] != "" && (plugin == "" || plugin == r.Settings.Plugin) &&
		metav1.GetControllerOf(job) == nil && job.GetDeletionTimestamp() == nil
}

// Reconcile chooses the number of nodes of a suspended TrainJob, once for each question of its owner.
func (r *Recommender) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	job := &unstructured.Unstructured{}
	job.SetGroupVersionKind(trainJobs)
	if err := r.Cluster.Get(ctx, request.NamespacedName, job); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !r.concerns(job) {
		return ctrl.Result{}, nil
	}
	if again, err := r.renewJobSet(ctx, job); err != nil || again {
		return ctrl.Result{RequeueAfter: time.Second}, err
	}
	annotations := job.GetAnnotations()
	chosen := annotations[jobs.Question] == jobs.QuestionKey(annotations)
	if !isSuspended(job) || ran(job) || annotations[Done] != "" || chosen && annotations[Plugin] == "" {
		return ctrl.Result{}, nil
	}
	result, err := r.recommend(ctx, job, chosen)
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: time.Second}, nil // the job changed meanwhile, and may no longer be suspended
	}
	return result, client.IgnoreNotFound(err)
}

// recommend chooses the number of nodes, unless the webhook did so at creation, and states that it has done its work.
func (r *Recommender) recommend(ctx context.Context, job *unstructured.Unstructured, chosen bool) (ctrl.Result, error) {
	if chosen {
		return ctrl.Result{}, r.patch(ctx, job, done(job.DeepCopy()))
	}
	changed := job.DeepCopy()
	reason, _ := webhook.Choose(ctx, r.Asker, r.Cluster, changed)
	key := changed.GetAnnotations()[jobs.Question]
	if key == "" { // there is no answer
		late := job.GetAnnotations()[Plugin] != "" && time.Since(job.GetCreationTimestamp().Time) > r.Settings.Patience
		if !late && job.GetAnnotations()[jobs.Reason] == reason {
			return ctrl.Result{RequeueAfter: r.Settings.Retry}, nil
		}
		changed = annotate(job.DeepCopy(), jobs.Reason, reason)
		if late {
			done(changed)
		}
		return ctrl.Result{RequeueAfter: r.Settings.Retry}, r.patch(ctx, job, changed)
	}
	event := "NodesRecommended"
	err := r.patch(ctx, job, done(changed))
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) { // Trainer's rules, or another webhook's, do not allow the change
		event, reason = "NodesNotChosen", jobs.Shorten("the cluster refused the change ("+reason+"): "+err.Error())
		err = r.patch(ctx, job, done(annotate(annotate(job.DeepCopy(), jobs.Reason, reason), jobs.Question, key)))
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, announce.Event(ctx, r.Cluster, job, event, key, reason)
}

// done states that the work is done, if the owner named a recommender.
func done(job *unstructured.Unstructured) *unstructured.Unstructured {
	if job.GetAnnotations()[Plugin] == "" {
		return job
	}
	return annotate(job, Done, yes)
}

func annotate(job *unstructured.Unstructured, name, value string) *unstructured.Unstructured {
	all := job.GetAnnotations()
	all[name] = value
	job.SetAnnotations(all)
	return job
}

// patch writes the changes of a job, unless another client changed it meanwhile.
func (r *Recommender) patch(ctx context.Context, job, changed *unstructured.Unstructured) error {
	return r.Cluster.Patch(ctx, changed, client.MergeFromWithOptions(job, client.MergeFromWithOptimisticLock{}))
}

func isSuspended(object *unstructured.Unstructured) bool {
	suspended, _, _ := unstructured.NestedBool(object.Object, "spec", "suspend")
	return suspended
}

// ran reports whether a suspended TrainJob ran before, such as a preempted one: Trainer then reports its suspension long after its creation.
func ran(job *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(job.Object, "status", "conditions")
	for _, each := range conditions {
		condition, _ := each.(map[string]any)
		text, _ := condition["lastTransitionTime"].(string)
		since, err := time.Parse(time.RFC3339, text)
		if condition["type"] == "Suspended" && err == nil && since.Sub(job.GetCreationTimestamp().Time) > longestReport {
			return true
		}
	}
	return false
}

// renewJobSet deletes the suspended JobSet of a TrainJob if it has the number of nodes before the choice, and Trainer creates it anew: JobSets
// do not allow the change. It reports whether it did.
func (r *Recommender) renewJobSet(ctx context.Context, job *unstructured.Unstructured) (bool, error) {
	before, err := strconv.ParseInt(job.GetAnnotations()[jobs.Requested], 10, 64)
	if err != nil {
		return false, nil // nothing was chosen
	}
	set := &unstructured.Unstructured{}
	set.SetGroupVersionKind(jobSets)
	if err := r.Cluster.Get(ctx, client.ObjectKeyFromObject(job), set); apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	read, err := jobs.Of(job)
	if err != nil || !metav1.IsControlledBy(set, job) || !isSuspended(set) {
		return false, nil
	}
	if err := webhook.UseRuntime(ctx, r.Cluster, read, job.GetNamespace()); err != nil {
		return false, err
	}
	if pods, stated := nodePods(set); !stated || pods != read.Pods(before) || pods == read.Pods(read.Nodes()) {
		return false, nil
	}
	uid, version := set.GetUID(), set.GetResourceVersion()
	err = r.Cluster.Delete(ctx, set, client.Preconditions{UID: &uid, ResourceVersion: &version}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err != nil && !apierrors.IsConflict(err) {
		return false, client.IgnoreNotFound(fmt.Errorf("the JobSet of the previous number of nodes cannot be deleted: %w", err))
	}
	return true, nil
}

// nodePods returns the number of pods of the job in a JobSet that trains.
func nodePods(set *unstructured.Unstructured) (count int64, stated bool) {
	list, _, _ := unstructured.NestedSlice(set.Object, "spec", "replicatedJobs")
	for _, each := range list {
		entry, _ := each.(map[string]any)
		ancestor, _, _ := unstructured.NestedString(entry, "template", "metadata", "labels", "trainer.kubeflow.org/trainjob-ancestor-step")
		if entry["name"] == "node" || ancestor == "trainer" && !stated {
			count, stated, _ = unstructured.NestedInt64(entry, "template", "spec", "parallelism")
		}
	}
	return count, stated
}
