package e2e

import (
	"context"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// resting kubelets leave the machine to what is measured.
var resting atomic.Bool

// kubelets do what no machine is here to do: pods on nodes run at once, and are gone when they are to go.
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
