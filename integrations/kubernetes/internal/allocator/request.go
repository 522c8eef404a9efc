package allocator

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/timestamppb"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	nodewise "github.com/nodewise/nodewise/clients/go"
	nodewisev1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/jobs"
)

// unknownWork is the work of jobs that state none; all of them then count as equally long.
const unknownWork = 1e6

// pool is a group of nodes with one device type that the same jobs may use.
type pool struct {
	message   *nodewisev1.NodePool
	selectors []bool // for each node selector of the jobs, whether its nodes match
}

func nameOfPool(device string, number int) string { return fmt.Sprintf("%s/%d", device, number) }

func deviceOfPool(name string) (string, bool) {
	end := strings.LastIndex(name, "/")
	return name[:max(end, 0)], end >= 0
}

// pools returns the nodes by device type and by the jobs that may use them, without the devices that other pods use.
func (a *Allocator) pools(ctx context.Context, all []*elastic) ([]*pool, error) {
	nodes, pods := &corev1.NodeList{}, &corev1.PodList{}
	if err := a.Cluster.List(ctx, nodes); err != nil {
		return nil, err
	}
	if err := a.Cluster.List(ctx, pods); err != nil {
		return nil, err
	}
	ours := map[string]bool{}
	for _, each := range all {
		for _, pod := range each.pods {
			ours[string(pod.UID)] = true
		}
	}
	others := map[string]int32{}
	for index := range pods.Items {
		if pod := &pods.Items[index]; !ours[string(pod.UID)] && !done(pod) {
			others[pod.Spec.NodeName] += jobs.Devices(&pod.Spec)
		}
	}
	selectors := selectorsOf(all)
	byKey := map[string]*pool{}
	slices.SortFunc(nodes.Items, func(a, b corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	for index := range nodes.Items {
		node := &nodes.Items[index]
		device, devices := jobs.DeviceOf(node.Labels), jobs.DevicesOf(node.Status.Allocatable)
		if device == "" || devices == 0 || !usable(node) {
			continue
		}
		matched, key := make([]bool, len(selectors)), device
		for number, selector := range selectors {
			matched[number] = selector.Matches(labels.Set(node.Labels))
			key += fmt.Sprint(matched[number])
		}
		if !slices.Contains(matched, true) {
			continue
		}
		found := byKey[key]
		if found == nil {
			found = &pool{message: &nodewisev1.NodePool{Name: nameOfPool(device, len(byKey)), DeviceName: device}, selectors: matched}
			byKey[key] = found
		}
		found.message.AvailableDevices = append(found.message.AvailableDevices, max(devices-others[node.Name], 0))
		found.message.NodeNames = append(found.message.NodeNames, node.Name)
	}
	return slices.SortedFunc(maps.Values(byKey), func(a, b *pool) int { return cmp.Compare(a.message.Name, b.message.Name) }), nil
}

// usable reports whether pods may be placed on a node.
func usable(node *corev1.Node) bool {
	if node.Spec.Unschedulable {
		return false
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// selectorsOf returns the distinct node selectors of jobs, and records for each job which one it has.
func selectorsOf(all []*elastic) []labels.Selector {
	var found []labels.Selector
	numbers := map[string]int{}
	for _, each := range all {
		selector := labels.SelectorFromSet(each.job.Spec.Template.Spec.NodeSelector)
		number, known := numbers[selector.String()]
		if !known {
			number = len(found)
			numbers[selector.String()] = number
			found = append(found, selector)
		}
		each.selector = number
	}
	return found
}

// message returns the part of the request about a job.
func (a *Allocator) message(of *elastic, pools []*pool) *nodewisev1.ScheduleJob {
	job := &nodewisev1.ScheduleJob{
		JobId: of.job.Namespace + "/" + of.job.Name, Profile: nodewise.StoredProfile(of.wish.Profile), SubmitTime: timestamppb.New(of.job.CreationTimestamp.Time), Queue: of.queue,
		RemainingSamples: cmp.Or(of.wish.Objective.Samples, unknownWork), RestartCostSeconds: a.Settings.RestartCost.Seconds(), MinimumRunSeconds: a.Settings.MinimumRun.Seconds(),
	}
	question := of.wish.Question("", of.devices)
	for _, nodes := range question.Counts() {
		job.AllowedDevices = append(job.AllowedDevices, nodes*of.devices)
	}
	if of.wish.Settings != "" {
		settings := &nodewisev1.ConfigurationSettings{}
		if protojson.Unmarshal([]byte(of.wish.Settings), settings) == nil {
			job.Settings = settings
		}
	}
	holds := map[string]int32{}
	for _, pod := range of.pods {
		holds[pod.Spec.NodeName] += of.devices
	}
	for _, pool := range pools {
		if !pool.selectors[of.selector] {
			continue
		}
		job.AllowedPools = append(job.AllowedPools, pool.message.Name)
		current := &nodewisev1.CurrentAllocation{Pool: pool.message.Name, AgeSeconds: time.Since(of.since()).Seconds()}
		for _, name := range pool.message.NodeNames {
			if holds[name] > 0 {
				current.Placement = append(current.Placement, &nodewisev1.NodeDevices{NodeName: name, DevicesCount: holds[name]})
			}
		}
		// A job that is spread over pools counts in the pool where it has most devices.
		if len(current.Placement) > len(job.GetCurrentAllocation().GetPlacement()) {
			job.CurrentAllocation = current
		}
	}
	return job
}
