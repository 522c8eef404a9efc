package extender

import (
	"fmt"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/ask"
)

// mostRows limits a curve: for more nodes only their number itself is predicted.
const mostRows = 64

// question returns the question that decisions about a pod need: its job's throughput on every device type, from one node to the nodes of its
// job. The caller holds the lock.
func (c *Cluster) question(of pod) (ask.Question, bool) {
	if of.wish.Profile == "" || of.devices == 0 || c.devices == "" {
		return ask.Question{}, false
	}
	asked := of.wish
	asked.Objective = ask.Objective{}
	asked.First, asked.Last, asked.PowersOfTwo = 1, c.size(of), false
	if asked.Last > mostRows {
		asked.First = asked.Last
	}
	return asked.Question(c.devices, of.devices), true
}

// size returns the number of nodes of a pod's job.
func (c *Cluster) size(of pod) int32 {
	return max(of.chosen, int32(len(c.jobs[of.job])), 1)
}

// Curves returns cached curves, at once or after a short wait for the first answer about a job. Without that answer the first pod would be
// placed without a prediction, and the other pods would follow it.
type Curves interface {
	Cached(ask.Question) (*ask.Curve, error)
	Soon(ask.Question) (*ask.Curve, error)
}

// Filter removes nodes whose device does not have enough memory for the job. If the job fits on none of the cluster's device types, no node is
// removed, because the owner may know better.
func (c *Cluster) Filter(curves Curves, given *corev1.Pod, names []string) (kept []string, failed extenderv1.FailedNodesMap) {
	curve, nodes := c.curve(curves, given)
	if curve == nil {
		return names, nil
	}
	c.mutex.RLock()
	defer c.mutex.RUnlock()
	somewhere := false
	for device := range strings.SplitSeq(c.devices, ",") {
		point, known := curve.Point(device, nodes)
		somewhere = somewhere || known && point.Rate > 0 && point.Fits()
	}
	if !somewhere {
		return names, nil
	}
	kept, failed = make([]string, 0, len(names)), extenderv1.FailedNodesMap{}
	for _, name := range names {
		device := c.nodes[name].device
		if point, known := curve.Point(device, nodes); known && !point.Fits() {
			failed[name] = fmt.Sprintf("Nodewise predicts that the job does not fit into memory: on %d nodes each %s lacks %.1f GB", nodes, device, point.ExcessMemoryBytes/1e9)
			continue
		}
		kept = append(kept, name)
	}
	return kept, failed
}

// Prioritize scores nodes from 0 to 10 by the predicted throughput of the job on their device type, divided by the price if all nodes have one.
// A type that already runs pods of the job gets the highest score. A type without room for the whole job scores below all types with room.
// Without a prediction all scores are 0, which changes nothing.
func (c *Cluster) Prioritize(curves Curves, given *corev1.Pod, names []string) extenderv1.HostPriorityList {
	scores := make(extenderv1.HostPriorityList, len(names))
	for index, name := range names {
		scores[index].Host = name
	}
	curve, nodes := c.curve(curves, given)
	if curve == nil {
		return scores
	}
	c.mutex.RLock()
	defer c.mutex.RUnlock()
	priced := true
	for _, name := range names {
		priced = priced && c.nodes[name].pricePerNodeHour > 0
	}
	of := podOf(given)
	holds := c.holds(of)
	rooms := map[string]bool{}
	values, best := make([]float64, len(names)), map[bool]float64{}
	for index, name := range names {
		on := c.nodes[name]
		point, known := curve.Point(on.device, nodes)
		if !known || !point.Fits() {
			continue
		}
		values[index] = point.Rate
		if priced {
			values[index] /= on.pricePerNodeHour
		}
		if _, counted := rooms[on.device]; !counted {
			rooms[on.device] = holds == "" && c.hasRoom(of, on.device, nodes)
		}
		best[rooms[on.device]] = max(best[rooms[on.device]], values[index])
	}
	for index, name := range names {
		device := c.nodes[name].device
		switch room := rooms[device]; {
		case holds != "" && device == holds:
			scores[index].Score = extenderv1.MaxExtenderPriority
		case values[index] == 0: // no prediction
		case room:
			scores[index].Score = scattered + 1 + int64(math.Round(float64(extenderv1.MaxExtenderPriority-scattered-1)*values[index]/best[room]))
		default:
			scores[index].Score = int64(math.Round(scattered * values[index] / best[room]))
		}
	}
	return scores
}

// scattered is the highest score of a device type that does not have room for the whole job.
const scattered = 4

// holds returns the device type that most pods of the same job run on; empty = none runs yet.
func (c *Cluster) holds(of pod) string {
	counts, most := map[string]int{}, ""
	for uid := range c.jobs[of.job] {
		if on := c.pods[uid].node; on != "" {
			device := c.nodes[on].device
			if counts[device]++; most == "" || counts[device] > counts[most] || counts[device] == counts[most] && device < most {
				most = device
			}
		}
	}
	return most
}

// hasRoom reports whether the free devices of a type are enough for all pods of a job that does not run yet.
func (c *Cluster) hasRoom(of pod, device string, nodes int32) bool {
	for _, each := range c.nodes {
		if each.device == device {
			nodes -= max(each.devices-each.used, 0) / of.devices
		}
	}
	return nodes <= 0
}

// Preempt keeps the nodes on which the pod's gain is at least the loss of its victims. Both are measured in devices' worth of work: the speed-up
// of a job on its nodes, times the devices of each. A job that loses a pod stops, except for an elastic job, which continues with one node less.
// Victims without a prediction do not count.
func (c *Cluster) Preempt(curves Curves, given *corev1.Pod, candidates map[string]*extenderv1.MetaVictims) map[string]*extenderv1.MetaVictims {
	curve, nodes := c.curve(curves, given)
	if curve == nil {
		return candidates
	}
	kept := map[string]*extenderv1.MetaVictims{}
	preemptor := podOf(given)
	for name, victims := range candidates {
		c.mutex.RLock()
		device := c.nodes[name].device
		c.mutex.RUnlock()
		gain, known := speedUp(curve, device, nodes)
		gain = gain / float64(nodes) * float64(preemptor.devices)
		if !known || c.loss(curves, device, victims) <= gain {
			kept[name] = victims
		}
	}
	return kept
}

// loss returns the loss of the victims on a node, in devices' worth of work.
func (c *Cluster) loss(curves Curves, device string, victims *extenderv1.MetaVictims) float64 {
	total := 0.0
	stopped := map[types.UID]bool{} // the loss of a stopped job counts once
	for _, victim := range victims.Pods {
		c.mutex.RLock()
		of, found := c.pods[types.UID(victim.UID)]
		question, asks := c.question(of)
		size := c.size(of)
		c.mutex.RUnlock()
		if !found || !asks || stopped[of.job] {
			continue
		}
		curve, err := curves.Cached(question)
		if err != nil {
			continue
		}
		before, known := speedUp(curve, device, size)
		if !known {
			continue
		}
		after := 0.0
		if of.wish.Elastic && size > max(of.wish.First, 1) {
			after, _ = speedUp(curve, device, size-1)
		} else {
			stopped[of.job] = true
		}
		total += max(before-after, 0) * float64(of.devices)
	}
	return total
}

// speedUp returns the throughput on a number of nodes, relative to one node. If the job does not fit on one node, scaling is taken as linear up
// to the least number of nodes that it fits on.
func speedUp(curve *ask.Curve, device string, nodes int32) (float64, bool) {
	at, known := curve.Point(device, nodes)
	if !known || at.Rate == 0 {
		return 0, false
	}
	for _, point := range curve.Points[device] {
		if point.Rate > 0 {
			return float64(point.Nodes) * at.Rate / point.Rate, true
		}
	}
	return 0, false
}

// curve returns the curve of a pod's job and its number of nodes; nil = there is none.
func (c *Cluster) curve(curves Curves, given *corev1.Pod) (*ask.Curve, int32) {
	of := podOf(given)
	c.mutex.RLock()
	question, asks := c.question(of)
	c.mutex.RUnlock()
	if !asks {
		return nil, 0
	}
	curve, err := curves.Soon(question)
	if err != nil {
		return nil, 0
	}
	return curve, question.Last
}
