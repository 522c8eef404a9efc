package extender

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/jobs"
)

// node is the part of a node that decisions need.
type node struct {
	device           string
	devices          int32 // allocatable
	used             int32 // by pods on the node
	pricePerNodeHour float64
}

// pod is the part of a pod that decisions need.
type pod struct {
	name    string
	job     types.UID // UID of its controller, else its own
	node    string    // empty = the pod is pending
	wish    jobs.Wish
	chosen  int32 // annotated number of nodes of its job; 0 = none
	devices int32
}

// Cluster is the state of nodes and pods, from watching them. It is safe for concurrent use.
type Cluster struct {
	mutex   sync.RWMutex
	nodes   map[string]node
	pods    map[types.UID]pod
	jobs    map[types.UID]map[types.UID]struct{} // the pods of each job
	devices string                               // all device types, in order, joined by commas
}

// NewCluster returns an empty state.
func NewCluster() *Cluster {
	return &Cluster{nodes: map[string]node{}, pods: map[types.UID]pod{}, jobs: map[types.UID]map[types.UID]struct{}{}}
}

// Watch updates the state from a cache's informers.
func (c *Cluster) Watch(ctx context.Context, watched cache.Cache) error {
	nodes, err := watched.GetInformer(ctx, &corev1.Node{})
	if err != nil {
		return fmt.Errorf("nodes cannot be watched: %w", err)
	}
	pods, err := watched.GetInformer(ctx, &corev1.Pod{})
	if err != nil {
		return fmt.Errorf("pods cannot be watched: %w", err)
	}
	if _, err := nodes.AddEventHandler(handler(c.SetNode, c.forgetNode)); err != nil {
		return err
	}
	_, err = pods.AddEventHandler(handler(c.SetPod, c.forgetPod))
	return err
}

func handler[T any](set, forget func(T)) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { set(object.(T)) },
		UpdateFunc: func(_, object any) { set(object.(T)) },
		DeleteFunc: func(object any) {
			if gone, isGone := object.(toolscache.DeletedFinalStateUnknown); isGone {
				object = gone.Obj
			}
			if object, is := object.(T); is {
				forget(object)
			}
		},
	}
}

// Trim removes unneeded parts of pods and nodes, so that a large cluster takes little memory.
func Trim(object any) (any, error) {
	switch object := object.(type) {
	case *corev1.Pod:
		object.ManagedFields = nil
		kept := corev1.PodSpec{NodeName: object.Spec.NodeName}
		for _, container := range object.Spec.Containers {
			kept.Containers = append(kept.Containers, corev1.Container{Name: container.Name, Resources: container.Resources})
		}
		object.Spec, object.Status = kept, corev1.PodStatus{Phase: object.Status.Phase}
	case *corev1.Node:
		object.ManagedFields, object.Annotations = nil, nil
		object.Status = corev1.NodeStatus{Allocatable: object.Status.Allocatable}
	}
	return object, nil
}

// SetNode adds or updates a node.
func (c *Cluster) SetNode(given *corev1.Node) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	price, _ := strconv.ParseFloat(given.Labels[jobs.PriceLabel], 64)
	c.nodes[given.Name] = node{
		device: strings.ReplaceAll(jobs.DeviceOf(given.Labels), ",", " "), devices: jobs.DevicesOf(given.Status.Allocatable), used: c.nodes[given.Name].used,
		pricePerNodeHour: max(price, 0),
	}
	c.nameDevices()
}

func (c *Cluster) forgetNode(given *corev1.Node) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if used := c.nodes[given.Name].used; used != 0 {
		c.nodes[given.Name] = node{used: used}
	} else {
		delete(c.nodes, given.Name)
	}
	c.nameDevices()
}

func (c *Cluster) nameDevices() {
	var found []string
	for _, each := range c.nodes {
		if each.device != "" && each.devices > 0 && !slices.Contains(found, each.device) {
			found = append(found, each.device)
		}
	}
	slices.Sort(found)
	c.devices = strings.Join(found, ",")
}

// SetPod adds or updates a pod. It removes a pod that has ended.
func (c *Cluster) SetPod(given *corev1.Pod) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.remove(given.UID)
	if given.Status.Phase == corev1.PodSucceeded || given.Status.Phase == corev1.PodFailed {
		return
	}
	found := podOf(given)
	c.pods[given.UID] = found
	if c.jobs[found.job] == nil {
		c.jobs[found.job] = map[types.UID]struct{}{}
	}
	c.jobs[found.job][given.UID] = struct{}{}
	c.use(found, found.devices)
}

func (c *Cluster) forgetPod(given *corev1.Pod) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.remove(given.UID)
}

func (c *Cluster) remove(uid types.UID) {
	known, found := c.pods[uid]
	if !found {
		return
	}
	c.use(known, -known.devices)
	delete(c.pods, uid)
	delete(c.jobs[known.job], uid)
	if len(c.jobs[known.job]) == 0 {
		delete(c.jobs, known.job)
	}
}

func (c *Cluster) use(on pod, devices int32) {
	if on.node == "" || devices == 0 {
		return
	}
	// The devices in use on an unknown node are counted until the node is known.
	found := c.nodes[on.node]
	if found.used += devices; found == (node{}) {
		delete(c.nodes, on.node)
		return
	}
	c.nodes[on.node] = found
}

func podOf(given *corev1.Pod) pod {
	found := pod{name: given.Name, job: given.UID, node: given.Spec.NodeName, devices: jobs.Devices(&given.Spec)}
	if owner := metav1.GetControllerOf(given); owner != nil {
		found.job = owner.UID
	}
	if given.Annotations[jobs.Profile] != "" {
		// The webhook has already reported invalid annotations; only the profile matters here.
		found.wish, _ = jobs.WishOf(given.Annotations)
		chosen, _ := strconv.ParseInt(given.Annotations[jobs.Chosen], 10, 32)
		found.chosen = int32(chosen)
	}
	return found
}
