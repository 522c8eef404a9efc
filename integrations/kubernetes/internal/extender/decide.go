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

// mostRows bounds a curve: of more nodes only powers of two are asked about, and the number itself.
const mostRows = 64

// question is what decisions about a pod ask: its job's throughput on every device type, from one node to the nodes of its job. The caller
// holds the lock.
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

// size is the number of nodes of a pod's job.
func (c *Cluster) size(of pod) int32 {
	return max(of.chosen, int32(len(c.jobs[of.job])), 1)
}

// Curves gives what is known, at once or after a little patience for the first answer about a job: without it the first pod would be placed as if
// nothing were known, and the others follow it.
type Curves interface {
	Cached(ask.Question) (*ask.Curve, error)
	Soon(ask.Question) (*ask.Curve, error)
}

// Filter sorts out nodes whose device the job does not fit into. Where it fits none of the cluster's devices nothing is sorted out: the owner may
// know better.
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
			failed[name] = fmt.Sprintf("by Nodewise's prediction the job does not fit: on %d nodes each %s lacks %.1f GB", nodes, device, point.ExcessMemoryBytes/1e9)
			continue
		}
		kept = append(kept, name)
	}
	return kept, failed
}

// Prioritize scores nodes from 0 to 10 by the throughput that the job would have on their device type, per cost where all have a price. A
// type that already runs pods of the job stands above all others, and one that has no room for the whole job below those that have. Where
// nothing is known all scores are 0, which changes nothing.
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
		case values[index] == 0: // nothing is known of it
		case room:
			scores[index].Score = scattered + 1 + int64(math.Round(float64(extenderv1.MaxExtenderPriority-scattered-1)*values[index]/best[room]))
		default:
			scores[index].Score = int64(math.Round(scattered * values[index] / best[room]))
		}
	}
	return scores
}

// scattered is the highest score of a device type on which the job would not be as a whole.
const scattered = 4

// holds is the device type that most pods of the same job are on; empty = none is on any.
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

// hasRoom tells whether the free devices of a type take all pods of a job that is on none yet.
func (c *Cluster) hasRoom(of pod, device string, nodes int32) bool {
	for _, each := range c.nodes {
		if each.device == device {
			nodes -= max(each.devices-each.used, 0) / of.devices
		}
	}
	return nodes <= 0
}

// Preempt keeps the nodes on which what the pod brings is at least what its victims lose, both in devices' worth of work: a job's speed-up on its
// nodes times the devices of each. Without one of its pods a job stops, but for an elastic one, which goes on one smaller. Victims of which
// nothing is known do not speak against a node.
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

// loss is what the victims on a node lose, in devices' worth of work.
func (c *Cluster) loss(curves Curves, device string, victims *extenderv1.MetaVictims) float64 {
	total := 0.0
	stopped := map[types.UID]bool{} // a job that stops loses once
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

// speedUp is the throughput on so many nodes in units of that on one; where fewer than some do not fit, these count as linear.
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

// curve is what is known of a pod's job, and its number of nodes; nil = nothing.
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
