package e2e

import (
	"context"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// resting stops the kubelets, so that they use no time of the machine while a test measures.
var resting atomic.Bool

// kubelets stand in for machines: pods on nodes run at once, and end when they are deleted.
func kubelets(ctx context.Context) {
	for ctx.Err() == nil {
		if resting.Load() {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		pods := &corev1.PodList{}
		_ = rig.kubernetes.List(ctx, pods)
		for index := range pods.Items {
			pod := &pods.Items[index]
			switch {
			case pod.DeletionTimestamp != nil:
				_ = rig.kubernetes.Delete(ctx, pod, client.GracePeriodSeconds(0))
			case pod.Spec.NodeName != "" && pod.Status.Phase == corev1.PodPending:
				now := metav1.Now()
				pod.Status.Phase, pod.Status.StartTime = corev1.PodRunning, &now
				pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
				_ = rig.kubernetes.Status().Update(ctx, pod)
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
}
