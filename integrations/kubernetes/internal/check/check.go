// Package check is a controller of Kueue's AdmissionChecks: it says whether a job fits into memory, is worth its nodes, and is done by its
// deadline. It admits every job unless the owner asks for more, and also without an answer from Nodewise.
package check

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/announce"
	"github.com/nodewise/nodewise/integrations/kubernetes/internal/ask"
	"github.com/nodewise/nodewise/integrations/kubernetes/internal/jobs"
	"github.com/nodewise/nodewise/integrations/kubernetes/internal/known"
	"github.com/nodewise/nodewise/integrations/kubernetes/internal/webhook"
)

// Controller is the controllerName of the AdmissionChecks that this package answers.
const Controller = "nodewise.dev/admission-check"

// Kueue's states of a check.
const (
	pending  = "Pending"
	ready    = "Ready"
	retry    = "Retry"
	rejected = "Rejected"
)

const (
	// readTimeout is the longest wait to read a workload's job, in addition to the time-outs of Nodewise.
	readTimeout = 5 * time.Second
	// retryAfter is the wait of a job before it is tried again. It is short, because Kueue 0.17 takes the job's quota away only at its end.
	retryAfter = 10 * time.Second
)

var kueue = schema.GroupVersion{Group: "kueue.x-k8s.io", Version: "v1beta2"}

func object(kind string) *unstructured.Unstructured {
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(kueue.WithKind(kind))
	return found
}

// Checker answers the checks of workloads.
type Checker struct {
	Cluster client.Client
	Asker   interface {
		Ask(context.Context, ask.Question) (*ask.Curve, error)
	}
}

// Watch answers the checks of workloads, and reports that AdmissionChecks of this controller are active, once Kueue is installed.
func (c *Checker) Watch(all manager.Manager) error {
	every := func(client.Object) bool { return true }
	err := known.Watch(all, "check", []schema.GroupVersionKind{kueue.WithKind("AdmissionCheck")}, every, func(schema.GroupVersionKind) reconcile.Reconciler {
		return reconcile.Func(c.Activate)
	})
	if err != nil {
		return err
	}
	waiting := func(object client.Object) bool {
		workload, is := object.(*unstructured.Unstructured)
		return is && waits(workload)
	}
	return known.Watch(all, "check", []schema.GroupVersionKind{kueue.WithKind("Workload")}, waiting, func(schema.GroupVersionKind) reconcile.Reconciler { return c })
}

// Activate sets the condition Active of an AdmissionCheck; before it is set, Kueue admits nothing to the queues with the check.
func (c *Checker) Activate(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	check := object("AdmissionCheck")
	if err := c.Cluster.Get(ctx, request.NamespacedName, check); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !isOurs(check) || isTrue(check, "Active") {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, c.apply(ctx, check, "conditions", []any{map[string]any{
		"type": "Active", "status": "True", "reason": "Active", "message": "Nodewise answers this check", "lastTransitionTime": now(), "observedGeneration": check.GetGeneration(),
	}})
}

// Reconcile answers the checks of a workload that has quota.
func (c *Checker) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	workload := object("Workload")
	if err := c.Cluster.Get(ctx, request.NamespacedName, workload); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !waits(workload) {
		return ctrl.Result{}, nil
	}
	var ours []any // an entry that is not applied again would be removed
	var waiting []map[string]any
	for _, state := range statesOf(workload) {
		check, name := object("AdmissionCheck"), fmt.Sprint(state["name"])
		if err := c.Cluster.Get(ctx, client.ObjectKey{Name: name}, check); apierrors.IsNotFound(err) || err == nil && !isOurs(check) {
			continue
		} else if err != nil {
			return ctrl.Result{}, err
		}
		mine := map[string]any{"name": name, "state": state["state"], "message": state["message"], "lastTransitionTime": state["lastTransitionTime"]}
		ours = append(ours, mine)
		if state["state"] == pending {
			waiting = append(waiting, mine)
		}
	}
	if len(waiting) == 0 {
		return ctrl.Result{}, nil
	}
	job, found := c.answer(ctx, workload)
	for _, mine := range waiting {
		mine["state"], mine["message"], mine["lastTransitionTime"] = found.state, found.message, now()
		if found.state == retry {
			mine["requeueAfterSeconds"] = int64(retryAfter.Seconds())
		}
	}
	if err := c.apply(ctx, workload, "admissionChecks", ours); apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: time.Second}, nil // the workload changed meanwhile
	} else if err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if found.failed {
		if err := announce.Event(ctx, c.Cluster, job, "CheckFailed", string(workload.GetUID())+found.message, found.message); err != nil {
			log.FromContext(ctx).Error(err, "an event cannot be written", "job", client.ObjectKeyFromObject(job))
		}
	}
	return ctrl.Result{}, nil
}

// apply writes a list of an object's status, unless the object changed since it was read.
func (c *Checker) apply(ctx context.Context, to *unstructured.Unstructured, field string, list []any) error {
	status := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{field: list}}}
	status.SetGroupVersionKind(to.GroupVersionKind())
	status.SetName(to.GetName())
	status.SetNamespace(to.GetNamespace())
	status.SetUID(to.GetUID())
	status.SetResourceVersion(to.GetResourceVersion())
	return c.Cluster.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(status), client.FieldOwner(Controller), client.ForceOwnership)
}

func isOurs(check *unstructured.Unstructured) bool {
	name, _, _ := unstructured.NestedString(check.Object, "spec", "controllerName")
	return name == Controller
}

// waits reports whether a workload has quota and a check that is not answered.
func waits(workload *unstructured.Unstructured) bool {
	if !isTrue(workload, "QuotaReserved") || isTrue(workload, "Finished") || isTrue(workload, "Evicted") {
		return false
	}
	return slices.ContainsFunc(statesOf(workload), func(state map[string]any) bool { return state["state"] == pending })
}

func statesOf(workload *unstructured.Unstructured) []map[string]any {
	return listOf(workload, "status", "admissionChecks")
}

func isTrue(object *unstructured.Unstructured, condition string) bool {
	return slices.ContainsFunc(listOf(object, "status", "conditions"), func(each map[string]any) bool {
		return each["type"] == condition && each["status"] == string(metav1.ConditionTrue)
	})
}

// listOf returns the maps of a list.
func listOf(object *unstructured.Unstructured, path ...string) (found []map[string]any) {
	list, _, _ := unstructured.NestedSlice(object.Object, path...)
	for _, each := range list {
		if entry, is := each.(map[string]any); is {
			found = append(found, entry)
		}
	}
	return found
}

func now() string { return time.Now().UTC().Format(time.RFC3339) }

// verdict is the answer of a check.
type verdict struct {
	state, message string
	failed         bool // also if the job is admitted
}

// answer reads the job of a workload and returns the verdict. Whatever goes wrong, the job is admitted and the message says why.
func (c *Checker) answer(ctx context.Context, workload *unstructured.Unstructured) (*unstructured.Unstructured, verdict) {
	job, found, err := c.judge(ctx, workload)
	if err != nil {
		found = verdict{state: ready, message: "not checked: " + err.Error()}
	}
	found.message = jobs.Shorten(found.message)
	return job, found
}

func (c *Checker) judge(ctx context.Context, workload *unstructured.Unstructured) (*unstructured.Unstructured, verdict, error) {
	reading, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	owner := metav1.GetControllerOf(workload)
	if owner == nil {
		return nil, verdict{}, fmt.Errorf("the workload belongs to no job")
	}
	kind := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)
	if !slices.Contains(jobs.Kinds, kind) {
		return nil, verdict{}, fmt.Errorf("%s is not a kind whose number of nodes is known", kind.Kind)
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	if err := c.Cluster.Get(reading, client.ObjectKey{Namespace: workload.GetNamespace(), Name: owner.Name}, object); err != nil {
		return nil, verdict{}, err
	}
	wish, err := jobs.WishOf(object.GetAnnotations())
	if err != nil {
		return object, verdict{}, err
	}
	if wish.Profile == "" {
		return object, verdict{}, fmt.Errorf("the job has no annotation %s", jobs.Profile)
	}
	job, err := jobs.Of(object)
	if err != nil {
		return object, verdict{}, err
	}
	if err := webhook.UseRuntime(reading, c.Cluster, job, object.GetNamespace()); err != nil {
		return object, verdict{}, err
	}
	on := &reservation{
		job: job, wish: wish, nodes: job.Nodes() - reduction(workload), device: cmp.Or(wish.Device, c.deviceOf(reading, workload), job.Device()),
		until: object.GetCreationTimestamp().Add(time.Duration(wish.Objective.DeadlineSeconds * float64(time.Second))),
	}
	found, err := c.check(ctx, on)
	return object, found, err
}

// reduction returns the number of pods by which Kueue admits less than the workload asks for.
func reduction(workload *unstructured.Unstructured) (found int64) {
	for _, set := range listOf(workload, "spec", "podSets") {
		for _, given := range listOf(workload, "status", "admission", "podSetAssignments") {
			count, stated := given["count"].(int64)
			if all, is := set["count"].(int64); is && stated && set["name"] == given["name"] {
				found += all - count
			}
		}
	}
	return found
}

// deviceOf returns the device type of the flavor that Kueue assigned for accelerators; empty = its nodes state none.
func (c *Checker) deviceOf(ctx context.Context, workload *unstructured.Unstructured) string {
	for _, set := range listOf(workload, "status", "admission", "podSetAssignments") {
		flavors, _, _ := unstructured.NestedStringMap(set, "flavors")
		for resource, name := range flavors {
			flavor := object("ResourceFlavor")
			if !jobs.IsDevice(resource) || c.Cluster.Get(ctx, client.ObjectKey{Name: name}, flavor) != nil {
				continue
			}
			labels, _, _ := unstructured.NestedStringMap(flavor.Object, "spec", "nodeLabels")
			if device := jobs.DeviceOf(labels); device != "" {
				return device
			}
		}
	}
	return ""
}

// reservation is a job on the nodes that it would get.
type reservation struct {
	job    *jobs.Job
	wish   jobs.Wish
	nodes  int64
	device string
	until  time.Time // the deadline, if there is one
}

// check asks Nodewise about the job on its nodes, and about the number of nodes that the owner's objective recommends.
func (c *Checker) check(ctx context.Context, on *reservation) (verdict, error) {
	left := max(time.Until(on.until).Seconds(), 0)
	wish := on.wish
	if wish.Objective.DeadlineSeconds > 0 {
		wish.Objective.DeadlineSeconds = max(float64(int64(left)), 1)
	}
	if on.nodes < 1 || on.nodes > math.MaxInt32 {
		return verdict{}, fmt.Errorf("the job has %s", jobs.CountOf(on.nodes))
	}
	these := wish
	these.First, these.Last, these.PowersOfTwo = int32(on.nodes), int32(on.nodes), false
	curve, err := c.Asker.Ask(ctx, these.Question(on.device, on.job.DevicesPerNode()))
	if err != nil {
		return verdict{}, err
	}
	point, known := curve.Point(on.device, these.First)
	if !known || point.Refusal != "" {
		return verdict{}, fmt.Errorf("there is no prediction for %s: %s", jobs.CountOf(on.nodes), cmp.Or(point.Refusal, curve.Why))
	}
	var passes, fails []string
	switch {
	case !point.Fits():
		fails = append(fails, fmt.Sprintf("does not fit into memory: %.1f GB are missing on each device", point.ExcessMemoryBytes/1e9))
	case point.MemoryBytes > 0:
		passes = append(passes, fmt.Sprintf("fits into memory (%.1f GB on each device)", point.MemoryBytes/1e9))
	default:
		passes = append(passes, "its memory is not known")
	}
	if wish.Chooses() {
		worth, is := c.worth(ctx, on, wish)
		if is {
			passes = append(passes, worth)
		} else {
			fails = append(fails, worth)
		}
	}
	if wish.Objective.DeadlineSeconds > 0 && point.Fits() {
		finish := point.FinishSeconds
		if wish.Objective.Confidence > 0 {
			finish = point.UpperFinishSeconds
		}
		switch {
		case finish == 0:
			passes = append(passes, "its time is not known")
		case finish > left:
			fails = append(fails, fmt.Sprintf("is not done by its deadline: it takes %.0f s, and %.0f s are left", finish, left))
		default:
			passes = append(passes, fmt.Sprintf("is done by its deadline (it takes %.0f s, and %.0f s are left)", finish, left))
		}
	}
	found := verdict{state: ready, failed: len(fails) > 0}
	found.message = fmt.Sprintf("%s: %s. By %s.", jobs.CountOf(on.nodes), strings.Join(append(fails, passes...), "; "), curve.Basis)
	switch {
	case !found.failed:
	case wish.Check == jobs.Retry:
		found.state = retry
	case wish.Check == jobs.Reject:
		found.state = rejected
	default:
		found.message += fmt.Sprintf(" The job is admitted; annotation %scheck: %s or %s would stop it.", jobs.Prefix, jobs.Retry, jobs.Reject)
	}
	return found, nil
}

// worth says whether the owner's objective recommends at least as many nodes as the job would get. Where larger numbers were not compared, a
// larger number may be worth it.
func (c *Checker) worth(ctx context.Context, on *reservation, wish jobs.Wish) (said string, is bool) {
	wish, err := on.job.Within(wish)
	if err != nil {
		return "whether it is worth its nodes is not known: " + err.Error(), true
	}
	curve, err := c.Asker.Ask(ctx, wish.Question(on.device, on.job.DevicesPerNode()))
	switch {
	case err != nil:
		return "whether it is worth its nodes is not known: " + err.Error(), true
	case curve.Recommended == 0:
		return "whether it is worth its nodes is not known: " + curve.Why, true
	case on.nodes <= int64(curve.Recommended):
		return fmt.Sprintf("is worth its nodes; the recommendation is %s: %s", jobs.CountOf(int64(curve.Recommended)), curve.Why), true
	case curve.Bounded:
		return fmt.Sprintf("whether it is worth its nodes is not known: no more than %s were compared", jobs.CountOf(int64(curve.Recommended))), true
	}
	return fmt.Sprintf("is not worth its nodes; the recommendation is %s: %s", jobs.CountOf(int64(curve.Recommended)), curve.Why), false
}
