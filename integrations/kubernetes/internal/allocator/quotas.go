package allocator

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	nodewisev1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/jobs"
)

// queueName is the label by which a job belongs to a queue of Kueue.
const queueName = "kueue.x-k8s.io/queue-name"

var kueue = schema.GroupVersion{Group: "kueue.x-k8s.io", Version: "v1beta2"}

// workload is what is read of a workload of Kueue.
type workload struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		PodSets []podSet `json:"podSets"`
	} `json:"spec"`
	Status struct {
		Admission *struct {
			ClusterQueue string       `json:"clusterQueue"`
			Assignments  []assignment `json:"podSetAssignments"`
		} `json:"admission"`
		Reclaimable []podSet           `json:"reclaimablePods"`
		Conditions  []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

type podSet struct {
	Name  string `json:"name"`
	Count int64  `json:"count"`
}

type assignment struct {
	Name    string              `json:"name"`
	Count   int64               `json:"count"`
	Flavors map[string]string   `json:"flavors"`
	Usage   corev1.ResourceList `json:"resourceUsage"`
}

// clusterQueue is what is read of a ClusterQueue.
type clusterQueue struct {
	Spec struct {
		Groups []struct {
			Flavors []struct {
				Name      string `json:"name"`
				Resources []struct {
					Name    string            `json:"name"`
					Nominal resource.Quantity `json:"nominalQuota"`
				} `json:"resources"`
			} `json:"flavors"`
		} `json:"resourceGroups"`
	} `json:"spec"`
}

// quota is what Kueue limits: a resource of a flavor in a ClusterQueue.
type quota struct{ queue, flavor, resource string }

func (q quota) name() string { return q.queue + "/" + q.flavor + "/" + q.resource }

// quotas says of each job that Kueue admitted which quota it counts against, and returns how many devices such jobs may hold: the nominal quota
// without what other workloads hold. Devices that they have borrowed from a cohort stay theirs, and no more are borrowed. Without Kueue, or the
// rights to read its objects, there are no quotas.
func (a *Allocator) quotas(ctx context.Context, all []*elastic) ([]*nodewisev1.QueueQuota, error) {
	byJob := map[types.UID]*elastic{}
	for _, each := range all {
		if each.job.Labels[queueName] != "" {
			byJob[each.job.UID] = each
		}
	}
	if len(byJob) == 0 {
		return nil, nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kueue.WithKind("WorkloadList"))
	if err := a.Cluster.List(ctx, list); err != nil {
		return nil, unreadable(ctx, err)
	}
	against, own, others := map[*elastic]quota{}, map[*elastic]int64{}, map[quota]int64{}
	for index := range list.Items {
		found := &workload{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[index].Object, found); err != nil {
			return nil, err
		}
		job, finished := byJob[ownerOf(found)], meta.IsStatusConditionTrue(found.Status.Conditions, "Finished")
		for of, devices := range found.devices() {
			switch {
			case job == nil && !finished:
				others[of] += devices
			case job != nil && !finished: // of two slices the greater counts: Kueue makes another one only for a job that grows
				against[job], own[job] = of, max(own[job], devices)
			case job != nil && own[job] == 0: // Kueue ends a slice before it admits the next one
				against[job] = of
			}
		}
	}
	held := map[quota]int64{}
	for job, of := range against {
		job.queue = of.name()
		held[of] += cmp.Or(own[job], int64(job.devices)*int64(len(job.pods)))
	}
	var limits []*nodewisev1.QueueQuota
	for of, devices := range held {
		nominal, err := a.nominal(ctx, of)
		if apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return nil, unreadable(ctx, err)
		}
		most := min(max(nominal-others[of], devices), math.MaxInt32)
		limits = append(limits, &nodewisev1.QueueQuota{Queue: of.name(), MaxDevices: int32(most)})
	}
	slices.SortFunc(limits, func(a, b *nodewisev1.QueueQuota) int { return strings.Compare(a.Queue, b.Queue) })
	return limits, nil
}

// unreadable returns nil for an error by which Kueue is absent or may not be read.
func unreadable(ctx context.Context, err error) error {
	switch {
	case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
		return nil
	case apierrors.IsForbidden(err):
		log.FromContext(ctx).Error(err, "the quotas of Kueue are not considered")
		return nil
	}
	return err
}

// devices returns what a workload holds until it finishes, as Kueue counts it: what it was admitted with, without pods that it has given back since.
func (w *workload) devices() map[quota]int64 {
	if w.Status.Admission == nil {
		return nil
	}
	found := map[quota]int64{}
	for _, given := range w.Status.Admission.Assignments {
		pods := given.Count
		for _, set := range w.Spec.PodSets {
			if set.Name != given.Name {
				continue
			}
			pods = set.Count
			for _, back := range w.Status.Reclaimable {
				if back.Name == set.Name {
					pods -= back.Count
				}
			}
		}
		for name, usage := range given.Usage {
			if jobs.IsDevice(string(name)) && given.Count > 0 {
				of := quota{w.Status.Admission.ClusterQueue, given.Flavors[string(name)], string(name)}
				found[of] += usage.Value() / given.Count * min(pods, given.Count)
			}
		}
	}
	return found
}

// nominal returns the nominal quota in devices.
func (a *Allocator) nominal(ctx context.Context, of quota) (int64, error) {
	object, found := &unstructured.Unstructured{}, &clusterQueue{}
	object.SetGroupVersionKind(kueue.WithKind("ClusterQueue"))
	if err := a.Cluster.Get(ctx, client.ObjectKey{Name: of.queue}, object); err != nil {
		return 0, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, found); err != nil {
		return 0, err
	}
	for _, group := range found.Spec.Groups {
		for _, flavor := range group.Flavors {
			for _, each := range flavor.Resources {
				if flavor.Name == of.flavor && each.Name == of.resource {
					return each.Nominal.Value(), nil
				}
			}
		}
	}
	return 0, nil
}
