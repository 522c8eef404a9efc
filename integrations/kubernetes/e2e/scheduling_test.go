package e2e

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/testcluster"
)

// A job is placed where it is fastest for its cost, and entirely on one device type, although each type would have some room.
func TestAJobStaysOnOneDeviceType(t *testing.T) {
	addNodes(t, "kinds", "A100-SXM4-80GB", 4, "20")
	addNodes(t, "kinds", "H100-SXM5-80GB", 3, "40") // twice the price, more than twice as fast, but no room for four
	addNodes(t, "kinds", "V100-SXM2-32GB", 4, "20")
	store(t, "team/gpt", transformer(24, 2048))
	asks := func(nodes string) map[string]string {
		return map[string]string{
			"nodewise.dev/profile": "team/gpt", "nodewise.dev/nodes": nodes, "nodewise.dev/device": "A100-SXM4-80GB", "nodewise.dev/objective": "highest-throughput",
			"nodewise.dev/settings": `{"batch_per_worker_samples": 4}`,
		}
	}
	four := job(t, "four", "kinds", asks("4"))
	if *four.Spec.Parallelism != 4 {
		t.Fatal(four.Annotations["nodewise.dev/reason"])
	}
	if found := placed(t, "four", 4); found["A100-SXM4-80GB"] != 4 {
		t.Error("four nodes are on ", found)
	}
	job(t, "three", "kinds", asks("3"))
	if found := placed(t, "three", 3); found["H100-SXM5-80GB"] != 3 {
		t.Error("three nodes are on ", found)
	}
}

// Pods are not placed on devices that the job does not fit on, even if all others are in use. If the job fits on no device type, no node is
// excluded.
func TestAJobWaitsForADeviceThatHoldsIt(t *testing.T) {
	addNodes(t, "memory", "T4", 2, "")
	addNodes(t, "memory", "A100-SXM4-80GB", 1, "")
	store(t, "team/22b", transformer(48, 6144))
	asks := map[string]string{"nodewise.dev/profile": "team/22b", "nodewise.dev/settings": `{"batch_per_worker_samples": 1, "tensor_parallel_degree": 8, "data_parallel_degree": 1}`}
	job(t, "fits", "memory", asks)
	if found := placed(t, "fits", 1); found["A100-SXM4-80GB"] != 1 {
		t.Error("it is on ", found)
	}
	job(t, "waits", "memory", asks)
	err := testcluster.Until(t.Context(), func(ctx context.Context) (bool, error) {
		pods := &corev1.PodList{}
		if err := rig.kubernetes.List(ctx, pods, client.MatchingLabels{"job-name": "waits"}); err != nil || len(pods.Items) == 0 {
			return false, err
		}
		for _, condition := range pods.Items[0].Status.Conditions {
			if condition.Type == corev1.PodScheduled && strings.Contains(condition.Message, "each T4 lacks") {
				return true, nil
			}
		}
		return pods.Items[0].Spec.NodeName != "", nil
	})
	if err != nil {
		t.Fatal(err)
	}
	pods := &corev1.PodList{}
	if err := rig.kubernetes.List(t.Context(), pods, client.MatchingLabels{"job-name": "waits"}); err != nil || pods.Items[0].Spec.NodeName != "" {
		t.Error("it is on ", pods.Items[0].Spec.NodeName, err)
	}
}

// Of two jobs that could make room, the one that loses less is preempted. A job that would lose more than is gained is not.
func TestPreemptionSparesWhoLosesMore(t *testing.T) {
	high := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 1000}
	if err := rig.kubernetes.Create(t.Context(), high); err != nil {
		t.Fatal(err)
	}
	addNodes(t, "preempt", "A100-SXM4-80GB", 4, "")
	store(t, "team/scales", transformer(24, 2048))
	settings := `{"batch_per_worker_samples": 4}`
	asks := func(nodes string) map[string]string {
		return map[string]string{"nodewise.dev/profile": "team/scales", "nodewise.dev/nodes": nodes, "nodewise.dev/device": "A100-SXM4-80GB", "nodewise.dev/settings": settings, "nodewise.dev/objective": "highest-throughput"}
	}
	job(t, "single", "preempt", asks("1"))
	placed(t, "single", 1)
	job(t, "gang", "preempt", asks("3")) // all three stop if one does; as the younger ones they would have to go
	placed(t, "gang", 3)
	urgent := template("preempt")
	urgent.Spec.PriorityClassName = "high"
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "urgent", Namespace: "default", Labels: map[string]string{"job-name": "urgent"}, Annotations: asks("1")}, Spec: urgent.Spec}
	if err := rig.kubernetes.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = rig.kubernetes.Delete(context.WithoutCancel(t.Context()), pod, client.GracePeriodSeconds(0))
	})
	err := testcluster.Until(t.Context(), func(ctx context.Context) (bool, error) {
		err := rig.kubernetes.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return pod.Spec.NodeName != "", err
	})
	if err != nil {
		t.Fatal(err, rig.Log("kube-scheduler"))
	}
	gang := &corev1.PodList{}
	if err := rig.kubernetes.List(t.Context(), gang, client.MatchingLabels{"job-name": "gang"}); err != nil {
		t.Fatal(err)
	}
	for _, each := range gang.Items {
		if each.DeletionTimestamp != nil || each.Spec.NodeName == "" {
			t.Error("the gang lost a pod, and this one waits: ", each.Name)
		}
	}
}
