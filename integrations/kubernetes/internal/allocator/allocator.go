// Package allocator divides a cluster's devices among elastic jobs in rounds. In each round it calls Nodewise's Schedule, and patches the
// parallelism of jobs whose owners allow it.
package allocator

import (
	"context"
	"fmt"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	nodewisev1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/announce"
	"github.com/nodewise/nodewise/integrations/kubernetes/internal/ask"
	"github.com/nodewise/nodewise/integrations/kubernetes/internal/jobs"
)

// Settings say how often and for which gain jobs are changed.
type Settings struct {
	// Round is the time between two decisions.
	Round time.Duration
	// DryRun writes events without changing anything.
	DryRun bool
	// Policy is the name of Nodewise's policy; empty = the server's default.
	Policy string
	// RestartCost is the time that a job loses by a change. MinimumRun is the least time between changes of a job.
	RestartCost, MinimumRun time.Duration
	// LeastGain is the least gain, as a share of the job's throughput, for which a job grows.
	LeastGain float64
}

// Scheduler calls Nodewise's Schedule within a time-out.
type Scheduler func(context.Context, *nodewisev1.ScheduleRequest) (*nodewisev1.ScheduleResponse, error)

// Allocator makes a decision in each round.
type Allocator struct {
	Cluster  client.Client
	Schedule Scheduler
	Curves   interface {
		Cached(ask.Question) (*ask.Curve, error)
	}
	Settings    Settings
	policyState []byte
}

// Start makes decisions until the context ends. A round that fails changes nothing.
func (a *Allocator) Start(ctx context.Context) error {
	ticks := time.NewTicker(a.Settings.Round)
	defer ticks.Stop()
	for {
		if err := a.Decide(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "the round failed and changes nothing")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
	}
}

// elastic is a job whose number of nodes may change.
type elastic struct {
	job      *batchv1.Job
	read     *jobs.Job
	object   *unstructured.Unstructured // that read refers to
	wish     jobs.Wish                  // limited to what the job allows
	devices  int32                      // per node
	pods     []*corev1.Pod
	selector int    // index of its node selector
	queue    string // the quota of Kueue that it counts against; empty = none
}

// Decide runs one round.
func (a *Allocator) Decide(ctx context.Context) error {
	all, err := a.elastic(ctx)
	if err != nil || len(all) == 0 {
		return err
	}
	pools, err := a.pools(ctx, all)
	if err != nil {
		return err
	}
	quotas, err := a.quotas(ctx, all)
	if err != nil {
		return err
	}
	request := &nodewisev1.ScheduleRequest{Policy: a.Settings.Policy, PolicyState: a.policyState, Cluster: &nodewisev1.Cluster{}, Quotas: quotas}
	for _, pool := range pools {
		request.Cluster.Pools = append(request.Cluster.Pools, pool.message)
	}
	for _, each := range all {
		request.Jobs = append(request.Jobs, a.message(each, pools))
	}
	reply, err := a.Schedule(ctx, request)
	if err != nil {
		return err
	}
	a.policyState = reply.GetPolicyState()
	for index, given := range reply.GetAllocations() {
		if err := a.apply(ctx, all[index], given); err != nil {
			log.FromContext(ctx).Error(err, "a job cannot be changed", "job", client.ObjectKeyFromObject(all[index].job))
		}
	}
	return nil
}

// elastic returns the jobs whose owners allow changes of their nodes, that have not ended, and that are not suspended.
func (a *Allocator) elastic(ctx context.Context) ([]*elastic, error) {
	list, pods := &batchv1.JobList{}, &corev1.PodList{}
	if err := a.Cluster.List(ctx, list); err != nil {
		return nil, err
	}
	if err := a.Cluster.List(ctx, pods); err != nil {
		return nil, err
	}
	var found []*elastic
	byJob := map[types.UID]*elastic{}
	for index := range list.Items {
		job := &list.Items[index]
		if job.DeletionTimestamp != nil || job.Status.CompletionTime != nil || failed(job) || job.Spec.Suspend != nil && *job.Spec.Suspend {
			continue
		}
		wish, err := jobs.WishOf(job.Annotations)
		each := &elastic{job: job, wish: wish, devices: jobs.Devices(&job.Spec.Template.Spec)}
		if err != nil || !wish.Elastic || !wish.Chooses() || each.devices == 0 {
			continue // the webhook has reported why
		}
		if err := each.within(); err != nil {
			if err := announce.Event(ctx, a.Cluster, job, "NodesNotChanged", "elastic", "kept "+jobs.CountOf(int64(before(job)))+": "+err.Error()); err != nil {
				log.FromContext(ctx).Error(err, "an event cannot be written", "job", client.ObjectKeyFromObject(job))
			}
			continue
		}
		found = append(found, each)
		byJob[job.UID] = each
	}
	for index := range pods.Items {
		pod := &pods.Items[index]
		if each := byJob[ownerOf(pod)]; each != nil && pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil && !done(pod) {
			each.pods = append(each.pods, pod)
		}
	}
	return found, nil
}

// within reads the job's own limits while it runs. The error says why its nodes cannot change.
func (e *elastic) within() error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(e.job)
	if err != nil {
		return err
	}
	e.object = &unstructured.Unstructured{Object: content}
	e.object.SetGroupVersionKind(batchv1.SchemeGroupVersion.WithKind("Job")) // lists do not set it
	if e.read, err = jobs.Of(e.object); err != nil {
		return err
	}
	if err := e.read.Started(); err != nil {
		return err
	}
	e.wish, err = e.read.Within(e.wish)
	return err
}

// before returns the present number of nodes of a job.
func before(job *batchv1.Job) int32 {
	if job.Spec.Parallelism == nil {
		return 1
	}
	return *job.Spec.Parallelism
}

func failed(job *batchv1.Job) bool {
	for _, condition := range job.Status.Conditions {
		if condition.Type == batchv1.JobFailed && condition.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}

func done(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func ownerOf(object metav1.Object) types.UID {
	for _, owner := range object.GetOwnerReferences() {
		if owner.Controller != nil && *owner.Controller {
			return owner.UID
		}
	}
	return ""
}

// apply changes a job according to the decision, or only writes an event in a dry run.
func (a *Allocator) apply(ctx context.Context, of *elastic, given *nodewisev1.JobAllocation) error {
	before := before(of.job)
	nodes := given.GetDevicesCount() / of.devices
	switch given.GetAction() {
	case nodewisev1.ScheduleAction_SCHEDULE_ACTION_START, nodewisev1.ScheduleAction_SCHEDULE_ACTION_CHANGE:
	default: // a job that should wait stays in the scheduler's queue; running jobs are never stopped here
		return nil
	}
	if nodes == before || nodes < of.wish.First || nodes > of.wish.Last || a.Settings.MinimumRun > 0 && time.Since(of.since()) < a.Settings.MinimumRun {
		return nil
	}
	if nodes > before && !a.worthIt(of, before, nodes, given.GetPool()) {
		return nil
	}
	why := fmt.Sprintf("%s instead of %d: %s", jobs.CountOf(int64(nodes)), before, given.GetWhy())
	if a.Settings.DryRun {
		return announce.Event(ctx, a.Cluster, of.job, "NodesSuggested", fmt.Sprint(before, nodes), "would give "+why)
	}
	if err := of.read.SetNodes(int64(nodes)); err != nil {
		return err
	}
	changed := &batchv1.Job{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(of.object.Object, changed); err != nil {
		return err
	}
	changed.Annotations[jobs.Chosen] = strconv.Itoa(int(nodes))
	changed.Annotations[jobs.Reason] = "gave " + why
	changed.Annotations[jobs.ResizedAt] = time.Now().UTC().Format(time.RFC3339)
	// If another client changed the job meanwhile, its change stays; the next round sees it.
	patch := client.MergeFromWithOptions(of.job, client.MergeFromWithOptimisticLock{})
	if err := a.Cluster.Patch(ctx, changed, patch); err != nil {
		return client.IgnoreNotFound(err)
	}
	return announce.Event(ctx, a.Cluster, of.job, "NodesChanged", changed.Annotations[jobs.ResizedAt], "gave "+why)
}

// worthIt reports whether a job gains enough by growing. If the gain is not known, the decision stands.
func (a *Allocator) worthIt(of *elastic, before, after int32, pool string) bool {
	device, _ := deviceOfPool(pool)
	curve, err := a.Curves.Cached(of.wish.Question(device, of.devices))
	if err != nil {
		return true
	}
	now, known := curve.Point(device, before)
	then, alsoKnown := curve.Point(device, after)
	return !known || !alsoKnown || now.Rate == 0 || then.Rate >= now.Rate*(1+a.Settings.LeastGain)
}

// since returns when the job's number of nodes last changed, else when it began.
func (e *elastic) since() time.Time {
	if at, err := time.Parse(time.RFC3339, e.job.Annotations[jobs.ResizedAt]); err == nil {
		return at
	}
	if e.job.Status.StartTime != nil {
		return e.job.Status.StartTime.Time
	}
	return e.job.CreationTimestamp.Time
}
