package e2e

import (
	"context"
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nodewise "github.com/nodewise/nodewise/clients/go"
	nodewisev1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/testcluster"
)

// addNodes creates nodes with 8 devices each for one test; pods of other tests are not placed on them.
func addNodes(t *testing.T, pool, device string, count int, price string) {
	t.Helper()
	addNodesOf(t, pool, device, count, 8, price)
}

func addNodesOf(t *testing.T, pool, device string, count, devices int, price string) {
	t.Helper()
	for index := range count {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name:   fmt.Sprintf("%s-%s-%d", pool, map[string]string{"": "cpu"}[device]+lower(device), index),
			Labels: map[string]string{"pool": pool, "nvidia.com/gpu.product": device},
		}}
		if price != "" {
			node.Labels["nodewise.dev/price-per-node-hour"] = price
		}
		if err := rig.kubernetes.Create(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		node.Spec.Taints = nil // that it is not ready: no kubelet will say that it is
		if err := rig.kubernetes.Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		has := corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(int64(devices), resource.DecimalSI), "cpu": resource.MustParse("96"), "memory": resource.MustParse("1Ti"), "pods": resource.MustParse("110")}
		node.Status.Capacity, node.Status.Allocatable = has, has
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		if err := rig.kubernetes.Status().Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = rig.kubernetes.Delete(context.WithoutCancel(t.Context()), node) })
	}
}

func lower(text string) string {
	out := []rune{}
	for _, letter := range text {
		if letter >= 'A' && letter <= 'Z' {
			letter += 'a' - 'A'
		}
		out = append(out, letter)
	}
	return string(out)
}

// template returns a pod template with 8 devices in a test's pool.
func template(pool string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, NodeSelector: map[string]string{"pool": pool},
		Containers: []corev1.Container{{Name: "trainer", Image: "training", Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")},
		}}},
	}}
}

// job creates an indexed job with one node and the given annotations.
func job(t *testing.T, name, pool string, annotations map[string]string) *batchv1.Job {
	t.Helper()
	one, indexed := int32(1), batchv1.IndexedCompletion
	found := &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Annotations: annotations},
		Spec:       batchv1.JobSpec{Parallelism: &one, Completions: &one, CompletionMode: &indexed, Template: template(pool)},
	}
	if err := rig.kubernetes.Create(t.Context(), found); err != nil {
		t.Fatal(err)
	}
	background := metav1.DeletePropagationBackground
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_ = rig.kubernetes.Delete(ctx, found, &client.DeleteOptions{PropagationPolicy: &background})
		_ = rig.kubernetes.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace("default"), client.MatchingLabels{"job-name": name}, client.GracePeriodSeconds(0))
	})
	return found
}

// placed waits until all pods of a job are on nodes, and returns the number of pods by device type.
func placed(t *testing.T, name string, count int) map[string]int {
	t.Helper()
	found := map[string]int{}
	err := testcluster.Until(t.Context(), func(ctx context.Context) (bool, error) {
		clear(found)
		pods, on := &corev1.PodList{}, 0
		if err := rig.kubernetes.List(ctx, pods, client.MatchingLabels{"job-name": name}); err != nil {
			return false, err
		}
		for _, pod := range pods.Items {
			if pod.Spec.NodeName == "" {
				continue
			}
			node := &corev1.Node{}
			if err := rig.kubernetes.Get(ctx, client.ObjectKey{Name: pod.Spec.NodeName}, node); err != nil {
				return false, err
			}
			found[node.Labels["nvidia.com/gpu.product"]]++
			on++
		}
		return on == count, fmt.Errorf("%d of %d pods are on nodes: %v", on, count, found)
	})
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, rig.Log("kube-scheduler"))
	}
	return found
}

// store stores a profile.
func store(t *testing.T, name string, content *nodewisev1.ProfileContent) {
	t.Helper()
	if _, err := rig.nodewise.AppendProfile(t.Context(), &nodewisev1.AppendProfileRequest{ProfileId: name, Content: content}); err != nil {
		t.Fatal(err)
	}
}

// measured returns runs on 1, 2 and 4 nodes of a device, for a job that gains up to about 4 nodes.
func measured(t *testing.T, device string) *nodewisev1.ProfileContent {
	t.Helper()
	var rows []nodewise.Configuration
	for _, nodes := range []int32{1, 2, 4} {
		rows = append(rows, nodewise.Configuration{
			Nodes: nodes, Workers: 8 * nodes, Device: device, SyncMode: nodewisev1.SyncMode_SYNC_MODE_ALLREDUCE, GlobalBatchSamples: 512,
		})
	}
	ran, err := nodewise.Configurations(rows...)
	if err != nil {
		t.Fatal(err)
	}
	return &nodewisev1.ProfileContent{Observations: &nodewisev1.Observations{Configurations: ran, StepsPerSecond: []float64{2, 3.5, 5.5}}}
}

// transformer returns a model that never ran.
func transformer(layers, width int32) *nodewisev1.ProfileContent {
	return &nodewisev1.ProfileContent{Workload: &nodewisev1.Workload{
		Precision: "fp16", Optimizer: "adam", Transformer: &nodewisev1.Transformer{
			LayersCount: layers, HiddenSize: width, AttentionHeadsCount: width / 128, SequenceLengthTokens: 2048, VocabularySize: 51200,
		},
	}}
}
