package extender

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/ask"
	"github.com/nodewise/nodewise/integrations/kubernetes/internal/jobs"
)

// curves are curves by the profiles' names.
type curves map[string]*ask.Curve

func (c curves) Cached(question ask.Question) (*ask.Curve, error) {
	if found := c[question.Profile]; found != nil {
		return found, nil
	}
	return nil, ask.ErrNoAnswerYet
}

func (c curves) Soon(question ask.Question) (*ask.Curve, error) {
	return c.Cached(question)
}

func gpus(count string) corev1.ResourceList {
	return corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(count)}
}

func withNodes(kinds ...string) *Cluster {
	cluster := NewCluster()
	for index, kind := range kinds {
		device, price, _ := strings.Cut(kind, "@")
		cluster.SetNode(&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", index), Labels: map[string]string{"nvidia.com/gpu.product": device, jobs.PriceLabel: price}},
			Status:     corev1.NodeStatus{Allocatable: gpus("8")},
		})
	}
	return cluster
}

func podOn(job, name, node, profile string, nodes int) *corev1.Pod {
	yes := true
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID(name), Annotations: map[string]string{jobs.Profile: profile, jobs.Chosen: fmt.Sprint(nodes)},
			OwnerReferences: []metav1.OwnerReference{{UID: types.UID(job), Controller: &yes}},
		},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Limits: gpus("8")}}}},
	}
}

func points(rates ...float64) []ask.Point {
	var found []ask.Point
	for index, rate := range rates {
		found = append(found, ask.Point{Nodes: int32(index + 1), Rate: rate})
		if rate == 0 {
			found[index].ExcessMemoryBytes = 5e9
		}
	}
	return found
}

func scores(list extenderv1.HostPriorityList) string {
	var found []string
	for _, each := range list {
		found = append(found, fmt.Sprint(each.Score))
	}
	return strings.Join(found, " ")
}

func TestScores(t *testing.T) {
	known := curves{"a": {Points: map[string][]ask.Point{"H100": points(100, 180), "A100": points(60, 110), "T4": points(0, 0)}}}
	names := []string{"n0", "n1", "n2", "n3", "n4"}
	for what, each := range map[string]struct {
		cluster  *Cluster
		pods     []*corev1.Pod
		of       *corev1.Pod
		expected string
	}{
		"the faster type":                       {withNodes("H100", "A100", "A100", "H100", "T4"), nil, podOn("j", "p", "", "a", 2), "10 8 8 10 0"},
		"per cost, where all have prices":       {withNodes("H100@4", "A100@2", "A100@2", "H100@4", "T4@1"), nil, podOn("j", "p", "", "a", 2), "9 10 10 9 0"},
		"prices that some lack count for none":  {withNodes("H100@4", "A100@2", "A100", "H100@4", "T4@1"), nil, podOn("j", "p", "", "a", 2), "10 8 8 10 0"},
		"room for the whole job comes first":    {withNodes("H100", "A100", "A100", "A100", "T4"), nil, podOn("j", "p", "", "a", 2), "4 10 10 10 0"},
		"others' pods take room":                {withNodes("H100", "A100", "A100", "H100", "T4"), []*corev1.Pod{podOn("x", "x", "n3", "", 1)}, podOn("j", "p", "", "a", 2), "4 10 10 4 0"},
		"where the job is already comes first":  {withNodes("H100", "A100", "A100", "H100", "T4"), []*corev1.Pod{podOn("j", "q", "n1", "a", 2)}, podOn("j", "p", "", "a", 2), "4 10 10 4 0"},
		"of a job of which nothing is known":    {withNodes("H100", "A100", "A100", "H100", "T4"), nil, podOn("j", "p", "", "b", 2), "0 0 0 0 0"},
		"of a pod that says nothing":            {withNodes("H100", "A100", "A100", "H100", "T4"), nil, podOn("j", "p", "", "", 2), "0 0 0 0 0"},
		"of more nodes than were asked about":   {withNodes("H100", "A100", "A100", "H100", "T4"), nil, podOn("j", "p", "", "a", 9), "0 0 0 0 0"},
		"a device that is not known is no best": {withNodes("new", "A100", "A100", "new", "T4"), nil, podOn("j", "p", "", "a", 2), "0 10 10 0 0"},
	} {
		for _, pod := range each.pods {
			each.cluster.SetPod(pod)
		}
		if found := scores(each.cluster.Prioritize(known, each.of, names)); found != each.expected {
			t.Errorf("%s: %s, not %s", what, found, each.expected)
		}
	}
}

func TestWhatDoesNotFitIsSortedOut(t *testing.T) {
	known := curves{"a": {Points: map[string][]ask.Point{"A100": points(60, 110), "T4": points(0, 0)}}, "b": {Points: map[string][]ask.Point{"A100": points(0), "T4": points(0)}}}
	cluster := withNodes("A100", "T4", "")
	names := []string{"n0", "n1", "n2"}
	kept, failed := cluster.Filter(known, podOn("j", "p", "", "a", 2), names)
	if fmt.Sprint(kept) != "[n0 n2]" || !strings.Contains(failed["n1"], "on 2 nodes each T4 lacks 5.0 GB") {
		t.Error(kept, failed)
	}
	for _, profile := range []string{"b", "unknown", ""} { // it fits nowhere, or nothing is known: nothing is held against any
		if kept, failed := cluster.Filter(known, podOn("j", "p", "", profile, 1), names); len(kept) != 3 || len(failed) != 0 {
			t.Error(profile, kept, failed)
		}
	}
}

func TestVictims(t *testing.T) {
	known := curves{"scales": {Points: map[string][]ask.Point{"A100": points(60, 119, 177)}}, "flat": {Points: map[string][]ask.Point{"A100": points(60, 66, 68)}}}
	cluster := withNodes("A100", "A100", "A100", "A100", "A100", "A100")
	elastic := podOn("elastic", "e0", "n4", "flat", 3)
	elastic.Annotations[jobs.Nodes], elastic.Annotations[jobs.Elastic] = "1-3", "true"
	for _, pod := range []*corev1.Pod{
		podOn("single", "s0", "n0", "scales", 1), podOn("gang", "g0", "n1", "scales", 2), podOn("gang", "g1", "n2", "scales", 2), podOn("silent", "x0", "n3", "", 1), elastic,
		podOn("flat", "f0", "n5", "flat", 2),
	} {
		cluster.SetPod(pod)
	}
	candidates := map[string]*extenderv1.MetaVictims{}
	for node, victim := range map[string]string{"n0": "s0", "n1": "g0", "n3": "x0", "n4": "e0", "n5": "f0"} {
		candidates[node] = &extenderv1.MetaVictims{Pods: []*extenderv1.MetaPod{{UID: victim}}}
	}
	// A pod of a job that scales brings nearly 8 devices' worth of work. That is as much as a one-node job that scales loses. It is more than the
	// loss of a larger job that continues with one node less or gained little, and less than that of a gang of two.
	kept := cluster.Preempt(known, podOn("urgent", "u0", "", "scales", 1), candidates)
	for node, expected := range map[string]bool{"n0": true, "n1": false, "n3": true, "n4": true, "n5": false} {
		if kept[node] != nil != expected {
			t.Errorf("%s is kept: %v", node, kept[node] != nil)
		}
	}
	if kept := cluster.Preempt(known, podOn("urgent", "u0", "", "flat", 3), candidates); kept["n0"] != nil || kept["n4"] == nil {
		t.Error("a pod that brings little has victims that lose much: ", kept)
	}
	if kept := cluster.Preempt(known, podOn("urgent", "u0", "", "unknown", 1), candidates); len(kept) != len(candidates) {
		t.Error("nothing is known of the pod, but of", len(candidates), "candidates are left", len(kept))
	}
}

func TestPodsThatEndGiveTheirDevicesBack(t *testing.T) {
	cluster := withNodes("A100")
	pod := podOn("j", "p", "n0", "a", 1)
	for range 2 {
		cluster.SetPod(pod)
	}
	if cluster.nodes["n0"].used != 8 {
		t.Error(cluster.nodes["n0"])
	}
	pod.Status.Phase = corev1.PodSucceeded
	cluster.SetPod(pod)
	cluster.forgetPod(pod)
	if cluster.nodes["n0"].used != 0 || len(cluster.pods) != 0 || len(cluster.jobs) != 0 {
		t.Error(cluster.nodes, cluster.pods, cluster.jobs)
	}
}

func TestRequestsThatAreNone(t *testing.T) {
	handler := Handler(NewCluster(), curves{})
	for path, bodies := range map[string][]string{"/filter": {"", "{", "{}", `{"Pod": {}}`}, "/prioritize": {"[]", `{"NodeNames": []}`}, "/preempt": {"{}", "1"}} {
		for _, body := range bodies {
			reply := httptest.NewRecorder()
			handler.ServeHTTP(reply, httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)))
			if reply.Code != http.StatusBadRequest || reply.Body.Len() == 0 {
				t.Error(path, body, reply.Code, reply.Body)
			}
		}
	}
	reply := httptest.NewRecorder()
	handler.ServeHTTP(reply, httptest.NewRequest(http.MethodPost, "/filter", strings.NewReader(`{"Pod": {}, "Nodes": {"items": [{"metadata": {"name": "a"}}]}}`)))
	if reply.Code != http.StatusOK || !strings.Contains(reply.Body.String(), `"name":"a"`) {
		t.Error(reply.Code, reply.Body)
	}
}
