package e2e

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nodewisev1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/testcluster"
)

// controlled is a job of a kind that its own controller turns into pods after Kueue admits it.
type controlled struct {
	name, version, kind, spec string
	label                     string // of its pods; its value is the name of the job
	nodes                     int    // that the owner writes
}

var controlledKinds = []controlled{
	{
		"job", "batch/v1", "Job", `{parallelism: 1, completions: 1, completionMode: Indexed, template: {spec: {restartPolicy: Never, containers: [` + trainer + `]}}}`,
		"batch.kubernetes.io/job-name", 1,
	},
	{
		"jobset", "jobset.x-k8s.io/v1alpha2", "JobSet",
		`{replicatedJobs: [{name: workers, replicas: 1, template: {spec: {parallelism: 1, completions: 1, completionMode: Indexed, template: {spec: {restartPolicy: Never, containers: [` + trainer + `]}}}}}]}`,
		"jobset.sigs.k8s.io/jobset-name", 1,
	},
	{
		"trainjob", "trainer.kubeflow.org/v1alpha1", "TrainJob",
		`{runtimeRef: {name: torch-tried}, trainer: {numNodes: 1, resourcesPerNode: {limits: {nvidia.com/gpu: 8}, requests: {nvidia.com/gpu: 8}}}}`,
		"jobset.sigs.k8s.io/jobset-name", 1,
	},
	{
		"pytorchjob", "kubeflow.org/v1", "PyTorchJob",
		`{pytorchReplicaSpecs: {Master: {replicas: 1, template: {spec: {containers: [` + trainer + `]}}}, Worker: {replicas: 1, template: {spec: {containers: [` + trainer + `]}}}}}`,
		"training.kubeflow.org/job-name", 2,
	},
	{
		"rayjob", "ray.io/v1", "RayJob", `{entrypoint: python train.py, shutdownAfterJobFinishes: true, rayClusterSpec: {` + rayGroups + `}}`,
		"ray.io/originated-from-cr-name", 1,
	},
	{"raycluster", "ray.io/v1", "RayCluster", `{` + rayGroups + `}`, "ray.io/cluster", 1},
}

const (
	trainer   = `{name: pytorch, image: training, resources: {limits: {nvidia.com/gpu: 8}}}`
	rayGroups = `headGroupSpec: {rayStartParams: {}, template: {spec: {containers: [{name: head, image: ray, resources: {requests: {cpu: 1}}}]}}},
		workerGroupSpecs: [{groupName: gpus, replicas: 1, minReplicas: 1, maxReplicas: 1, rayStartParams: {}, template: {spec: {containers: [` + trainer + `]}}}]`
)

// queue makes a queue of Kueue whose flavor is a test's pool of nodes.
func queue(t *testing.T, pool, checks string) {
	t.Helper()
	queueOf(t, pool, "V100", 1000, checks)
}

// queueOf makes such a queue with a quota of devices of one type; more are further fields of its ClusterQueue.
func queueOf(t *testing.T, pool, device string, devices int, more string) {
	t.Helper()
	for _, text := range []string{
		`{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: POOL}, spec: {nodeLabels: {pool: POOL, nvidia.com/gpu.product: ` + device + `}}}`,
		`{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: POOL}, spec: {namespaceSelector: {}, ` + more + `
			resourceGroups: [{coveredResources: [nvidia.com/gpu, cpu, memory], flavors: [{name: POOL, resources: [
				{name: nvidia.com/gpu, nominalQuota: ` + strconv.Itoa(devices) + `}, {name: cpu, nominalQuota: 1000}, {name: memory, nominalQuota: 1000Gi}]}]}]}}`,
		`{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: POOL, namespace: default}, spec: {clusterQueue: POOL}}`,
	} {
		create(t, read(t, strings.ReplaceAll(text, "POOL", pool)))
	}
}

// create creates an object until the test ends.
func create(t *testing.T, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	if err := rig.kubernetes.Create(t.Context(), object); err != nil {
		t.Fatal(object.GetKind(), " ", object.GetName(), ": ", err)
	}
	t.Cleanup(func() {
		background := metav1.DeletePropagationBackground
		_ = rig.kubernetes.Delete(context.WithoutCancel(t.Context()), object, &client.DeleteOptions{PropagationPolicy: &background})
	})
	return object
}

// in returns the job with a name and annotations, in a queue.
func (c controlled) in(t *testing.T, queue, name string, annotations map[string]string) *unstructured.Unstructured {
	t.Helper()
	object := read(t, `{apiVersion: `+c.version+`, kind: `+c.kind+`, spec: `+c.spec+`}`)
	object.SetName(name)
	object.SetNamespace("default")
	object.SetLabels(map[string]string{"kueue.x-k8s.io/queue-name": queue})
	object.SetAnnotations(annotations)
	return object
}

// running waits until so many pods of a job run, each with devices on a node of its own.
func (c controlled) running(t *testing.T, job *unstructured.Unstructured, count int) {
	t.Helper()
	found, workload := 0, &unstructured.Unstructured{}
	err := testcluster.Until(t.Context(), func(ctx context.Context) (bool, error) {
		pods := &corev1.PodList{}
		if c.kind == "RayJob" { // its cluster has a name of its own
			if err := rig.kubernetes.List(ctx, pods, client.MatchingLabels{"ray.io/node-type": "worker"}, client.HasLabels{"ray.io/cluster"}); err != nil {
				return false, err
			}
		} else if err := rig.kubernetes.List(ctx, pods, client.MatchingLabels{c.label: job.GetName()}); err != nil {
			return false, err
		}
		found = 0
		for _, pod := range pods.Items {
			if c.kind == "RayJob" && !strings.HasPrefix(pod.Labels["ray.io/cluster"], job.GetName()+"-") {
				continue
			}
			if pod.Status.Phase == corev1.PodRunning && pod.Spec.NodeName != "" && len(pod.Spec.Containers[0].Resources.Limits) > 0 {
				found++
			}
		}
		return found == count, nil
	})
	if workload = workloadOf(t.Context(), t, job); err != nil {
		t.Errorf("%d of %d pods of %s run: %v\n%v\n%s", found, count, job.GetName(), err, workload.Object["status"], lastLines(rig.Log("kube-scheduler"), 5))
	}
	if !conditionIs(workload, "Admitted", "True") {
		t.Error(job.GetName(), " runs, and Kueue did not admit it: ", workload.Object["status"])
	}
}

var workloads = schema.GroupVersionKind{Group: "kueue.x-k8s.io", Version: "v1beta2", Kind: "Workload"}

// workloadOf returns Kueue's workload of a job; an empty one if there is none.
func workloadOf(ctx context.Context, t *testing.T, job *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	all := &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(workloads)
	if err := rig.kubernetes.List(ctx, all, client.InNamespace("default")); err != nil {
		t.Error(err)
	}
	for _, each := range all.Items {
		for _, owner := range each.GetOwnerReferences() {
			if owner.UID == job.GetUID() {
				return &each
			}
		}
	}
	return &unstructured.Unstructured{Object: map[string]any{}}
}

func conditionIs(object *unstructured.Unstructured, kind, status string) bool {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, each := range conditions {
		if condition := each.(map[string]any); condition["type"] == kind && condition["status"] == status {
			return true
		}
	}
	return false
}

// Every kind goes through Kueue and its own controller to running pods: with Nodewise on the chosen number of nodes; without it, and however it
// fails, on the number that the owner wrote.
func TestControllers(t *testing.T) {
	addNodes(t, "controlled", "V100", 60, "")
	startControllers(t)
	torchRuntime(t, "torch-tried", `{name: node, image: pytorch}`)
	queue(t, "controlled", "")
	store(t, "team/controlled", measured(t, "V100"))
	type mode struct {
		webhook []string // options of the process
		stopped bool
		chosen  bool
	}
	modes := map[string]mode{"with": {chosen: true}, "no-webhook": {stopped: true}}
	for name, server := range wrongServers(t) {
		modes[name] = mode{webhook: []string{"-server", server}}
	}
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			if mode.stopped || mode.webhook != nil {
				end(rig.processes["webhook"])
				if !mode.stopped {
					if err := startProcess(t.Context(), "webhook", mode.webhook...); err != nil {
						t.Fatal(err)
					}
				}
				t.Cleanup(func() {
					end(rig.processes["webhook"])
					if err := startProcess(context.WithoutCancel(t.Context()), "webhook"); err != nil {
						t.Error(err)
					}
				})
			}
			var all sync.WaitGroup
			for _, kind := range controlledKinds {
				job := create(t, kind.in(t, "controlled", kind.name+"-"+name, map[string]string{
					"nodewise.dev/profile": "team/controlled", "nodewise.dev/nodes": "2-4", "nodewise.dev/settings": `{"global_batch_samples": 512}`,
					"nodewise.dev/objective": "highest-throughput", "nodewise.dev/samples": "1e9", "nodewise.dev/execution-limit": "2",
				}))
				count, chosen := kind.nodes, job.GetAnnotations()["nodewise.dev/chosen-nodes"]
				if mode.chosen {
					count = 4
				}
				if mode.chosen != (chosen != "") || mode.chosen && chosen != "4" {
					t.Error(job.GetName(), " has annotations ", job.GetAnnotations())
				}
				all.Go(func() {
					kind.running(t, job, count)
					limited(t, job, mode.chosen)
				})
			}
			all.Wait()
		})
	}
	t.Run("execution limit", func(t *testing.T) { // of a job that does not end in time
		job := create(t, controlledKinds[0].in(t, "controlled", "limited", map[string]string{
			"nodewise.dev/profile": "team/controlled", "nodewise.dev/nodes": "2-4", "nodewise.dev/settings": `{"global_batch_samples": 512}`,
			"nodewise.dev/samples": "1e4", "nodewise.dev/execution-limit": "1",
		}))
		t.Log(job.GetAnnotations()["nodewise.dev/reason"])
		err := testcluster.Until(t.Context(), func(ctx context.Context) (bool, error) {
			workload := workloadOf(ctx, t, job)
			active, stated, _ := unstructured.NestedBool(workload.Object, "spec", "active")
			return stated && !active && strings.Contains(fmt.Sprint(workload.Object["status"]), "exceeding the maximum execution time"), nil
		})
		if err != nil {
			t.Error(err, workloadOf(t.Context(), t, job).Object)
		}
	})
}

// KubeRay's own webhook checks clusters after Nodewise's webhook has chosen their nodes, and refuses an invalid one.
func TestWebhookOfKubeRay(t *testing.T) {
	if !unused("9443") {
		t.Skip("KubeRay's webhook listens on port 9443 alone, which is in use")
	}
	startControllers(t, "ray-operator")
	store(t, "team/validated", measured(t, "V100"))
	asks := map[string]string{
		"nodewise.dev/profile": "team/validated", "nodewise.dev/nodes": "2-4", "nodewise.dev/objective": "highest-throughput", "nodewise.dev/settings": `{"global_batch_samples": 512}`,
	}
	kind := controlledKinds[len(controlledKinds)-1]
	valid := create(t, kind.in(t, "", "validated", asks))
	if nodes := at(valid.Object, "spec.workerGroupSpecs.0.replicas"); nodes != int64(4) {
		t.Error(nodes, valid.GetAnnotations())
	}
	if log := rig.Log("ray-operator"); !strings.Contains(log, `"validate create","name":"validated"`) {
		t.Error(lastLines(log, 20))
	}
	invalid := kind.in(t, "", "invalid", asks)
	groups := at(invalid.Object, "spec.workerGroupSpecs").([]any)
	invalid.Object["spec"].(map[string]any)["workerGroupSpecs"] = append(groups, groups[0])
	err := rig.kubernetes.Create(t.Context(), invalid)
	if err == nil || !strings.Contains(err.Error(), "vraycluster.kb.io") || !strings.Contains(err.Error(), "worker group names must be unique") {
		t.Error("an invalid cluster was not refused: ", err)
	}
}

// limited checks that Kueue has the execution limit that the webhook wrote: at least twice the predicted time; none without the webhook.
func limited(t *testing.T, job *unstructured.Unstructured, expected bool) {
	t.Helper()
	limit, stated, _ := unstructured.NestedInt64(workloadOf(t.Context(), t, job).Object, "spec", "maximumExecutionTimeSeconds")
	label := job.GetLabels()["kueue.x-k8s.io/max-exec-time-seconds"]
	predicted, _ := strconv.ParseFloat(job.GetAnnotations()["nodewise.dev/finish-seconds"], 64)
	if stated != expected || expected && (fmt.Sprint(limit) != label || float64(limit) < 2*predicted || predicted == 0) {
		t.Error(job.GetName(), " has the limit ", limit, ", label ", label, ", predicted ", predicted)
	}
}

// wrongServers returns addresses at which Nodewise fails, by the way in which it does.
func wrongServers(t *testing.T) map[string]string {
	t.Helper()
	return map[string]string{
		"no-server": free(t),
		"hanging": wrongServer(t, func(_ any, stream grpc.ServerStream) error {
			<-stream.Context().Done()
			return stream.Context().Err()
		}),
		"unauthenticated": wrongServer(t, refusing(t, codes.Unauthenticated, "UNAUTHENTICATED")),
		"exhausted":       wrongServer(t, refusing(t, codes.ResourceExhausted, "OVERLOADED")),
		"invalid":         wrongServer(t, refusing(t, codes.InvalidArgument, "INVALID_FIELD")),
		"empty-answers":   wrongServer(t, func(_ any, stream grpc.ServerStream) error { return stream.SendMsg(&nodewisev1.PredictResponse{}) }),
		"absurd-answers": wrongServer(t, func(_ any, stream grpc.ServerStream) error {
			if method, _ := grpc.MethodFromServerStream(stream); strings.HasSuffix(method, "/Schedule") {
				grows := &nodewisev1.JobAllocation{Action: nodewisev1.ScheduleAction_SCHEDULE_ACTION_CHANGE, DevicesCount: 16}
				return stream.SendMsg(&nodewisev1.ScheduleResponse{Allocations: []*nodewisev1.JobAllocation{grows, grows, grows}})
			}
			return stream.SendMsg(&nodewisev1.PredictResponse{Recommendation: &nodewisev1.Recommendation{Row: 1 << 30, DeviceName: "none"}})
		}),
		"no-protocol": otherProtocol(t),
	}
}

// refusing refuses every call, as Nodewise does.
func refusing(t *testing.T, code codes.Code, reason string) grpc.StreamHandler {
	t.Helper()
	found, err := status.New(code, "no").WithDetails(&errdetails.ErrorInfo{Reason: reason, Domain: "nodewise"})
	if err != nil {
		t.Fatal(err)
	}
	return func(any, grpc.ServerStream) error { return found.Err() }
}

// wrongServer serves gRPC at an address and answers every call with a handler.
func wrongServer(t *testing.T, handler grpc.StreamHandler) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnknownServiceHandler(handler))
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { go server.Stop() })
	return listener.Addr().String()
}

// otherProtocol answers every connection with a line of another protocol.
func otherProtocol(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = fmt.Fprint(connection, "220 mail is served here\r\n")
			_ = connection.Close()
		}
	}()
	return listener.Addr().String()
}
