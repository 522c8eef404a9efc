package collector

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/jobs"
)

// job is a training job with pods that have not ended.
type job struct {
	uid types.UID // of the outermost owner
	// owners are the objects that control the pods, the nearest first: e.g. a Job, its JobSet, its TrainJob.
	owners []*unstructured.Unstructured
	// annotations are those of the first pod and its owners; the pod's own count first, then the nearest owner's.
	annotations map[string]string
	pods        []*corev1.Pod // that have devices, by index; the first one is read for all
	device      string
	devices     int32 // per pod
	// driver is the pod, and driverContainer its container, that prints what a RayJob's driver and its workers print; nil = there is none, or the
	// log is not read.
	driver          *corev1.Pod
	driverContainer string
	// mixed says that a pod does not run, or differs in its devices. ending says that a pod, or a RayJob's training, has succeeded.
	mixed, ending bool
}

// jobs returns the jobs that name a profile and have pods with devices.
func (c *Collector) jobs(ctx context.Context) ([]*job, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout) // a cache that may not list a kind would wait for ever
	defer cancel()
	pods, nodes := &corev1.PodList{}, &corev1.NodeList{}
	if err := c.Cluster.List(ctx, pods); err != nil {
		return nil, err
	}
	if err := c.Cluster.List(ctx, nodes); err != nil {
		return nil, err
	}
	devices := map[string]string{}
	for _, node := range nodes.Items {
		devices[node.Name] = jobs.DeviceOf(node.Labels)
	}
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int { return byIndex(&a, &b) })
	byUID := map[types.UID]*job{}
	for index := range pods.Items {
		pod := &pods.Items[index]
		count := jobs.Devices(&pod.Spec)
		if count == 0 || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		owners, err := c.owners(ctx, pod)
		if err != nil {
			return nil, err
		}
		uid := pod.UID
		if controller := metav1.GetControllerOf(pod); controller != nil {
			uid = controller.UID
		}
		if len(owners) > 0 {
			uid = owners[len(owners)-1].GetUID()
		}
		device, of := devices[pod.Spec.NodeName], byUID[uid]
		if of == nil {
			of = &job{uid: uid, owners: owners, annotations: annotations(pod, owners)}
			ray := of.owner("RayJob")
			of.ending = ray != nil && textOf(ray, "status", "jobStatus") == "SUCCEEDED"
			byUID[uid] = of
		}
		if pod.Status.Phase == corev1.PodSucceeded {
			of.ending = true
			continue
		}
		if len(of.pods) == 0 {
			of.device, of.devices = device, count
		}
		of.mixed = of.mixed || pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil || device == "" || device != of.device || count != of.devices
		of.pods = append(of.pods, pod)
	}
	var all []*job
	for _, each := range byUID {
		if each.annotations[jobs.Profile] == "" || len(each.pods) == 0 {
			continue
		}
		if source, _ := each.source(); source == fromLog && each.owner("RayJob") != nil {
			if err := c.findDriver(ctx, each); err != nil {
				return nil, err
			}
		}
		all = append(all, each)
	}
	slices.SortFunc(all, func(a, b *job) int { return cmp.Compare(a.uid, b.uid) })
	return all, nil
}

// findDriver finds the running pod that prints what a RayJob's driver does: Ray forwards the output of its workers to the driver, and writes it to
// files in their own pods.
func (c *Collector) findDriver(ctx context.Context, of *job) error {
	ray, container := of.owner("RayJob"), ""
	var labels client.MatchingLabels
	switch textOf(ray, "spec", "submissionMode") {
	case "", "K8sJobMode": // the first container of KubeRay's submitter
		labels = client.MatchingLabels{batchv1.JobNameLabel: ray.GetName()}
	case "SidecarMode":
		labels, container = client.MatchingLabels{"ray.io/cluster": textOf(ray, "status", "rayClusterName"), "ray.io/node-type": "head"}, "ray-job-submitter"
	default: // no pod prints it
		return nil
	}
	pods := &corev1.PodList{}
	if err := c.Cluster.List(ctx, pods, client.InNamespace(ray.GetNamespace()), labels); err != nil {
		return err
	}
	for index := range pods.Items {
		pod := &pods.Items[index]
		if pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil {
			continue
		}
		owners, err := c.owners(ctx, pod)
		if err != nil {
			return err
		}
		if len(owners) > 0 && owners[len(owners)-1].GetUID() == ray.GetUID() {
			of.driver, of.driverContainer = pod, cmp.Or(container, pod.Spec.Containers[0].Name)
		}
	}
	return nil
}

// owners returns the objects of known kinds that control a pod, the nearest first.
func (c *Collector) owners(ctx context.Context, pod *corev1.Pod) (found []*unstructured.Unstructured, err error) {
	for next := metav1.GetControllerOf(pod); next != nil; {
		kind := schema.FromAPIVersionAndKind(next.APIVersion, next.Kind)
		if !slices.ContainsFunc(jobs.Kinds, func(known schema.GroupVersionKind) bool { return known.GroupKind() == kind.GroupKind() }) {
			break
		}
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(kind)
		err := c.Cluster.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: next.Name}, object)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) || err == nil && object.GetUID() != next.UID {
			break // it was deleted, so the pod will be
		}
		if err != nil {
			return nil, fmt.Errorf("%s %s/%s cannot be read: %w", next.Kind, pod.Namespace, next.Name, err)
		}
		found = append(found, object)
		next = metav1.GetControllerOf(object)
	}
	return found, nil
}

// annotations returns Nodewise's annotations of a pod and its owners.
func annotations(pod *corev1.Pod, owners []*unstructured.Unstructured) map[string]string {
	found := map[string]string{}
	add := func(all map[string]string) {
		for name, value := range all {
			if strings.HasPrefix(name, jobs.Prefix) && found[name] == "" {
				found[name] = value
			}
		}
	}
	add(pod.Annotations)
	for _, owner := range owners {
		add(owner.GetAnnotations())
	}
	return found
}

// sources are the annotations that say how a job's speed is read, and what it means.
var sources = []string{jobs.Profile, jobs.Query, jobs.Steps, jobs.Metrics, jobs.Container, jobs.Evaluation, jobs.TotalSteps, jobs.Settings}

// shape identifies the pods, their restarts and the source: no observation spans two of them. It is empty while the training does not run.
func (j *job) shape() string {
	if !j.trains() {
		return ""
	}
	found := []string{fmt.Sprint(j.restarts())}
	for _, pod := range j.observed() {
		found = append(found, string(pod.UID))
	}
	if ray := j.owner("RayJob"); ray != nil {
		found = append(found, textOf(ray, "status", "jobId"))
	}
	for _, name := range sources {
		found = append(found, j.annotations[name])
	}
	return strings.Join(found, "\n")
}

// observed returns the pods that an observation rests on. A driver's pod that starts again prints the log from its beginning.
func (j *job) observed() []*corev1.Pod {
	if j.driver == nil {
		return j.pods
	}
	return append(slices.Clip(j.pods), j.driver)
}

// trains reports whether the training runs on all pods. A RayJob's begins after its pods, and ends before them.
func (j *job) trains() bool {
	ray := j.owner("RayJob")
	return !j.mixed && (ray == nil || textOf(ray, "status", "jobStatus") == "RUNNING")
}

// restartFields are counts in a status, by kind, that grow when the training starts again, even in pods that stay.
var restartFields = map[string][]string{
	"Job": {"failed"}, "JobSet": {"restarts", "currentInPlaceRestartAttempt"}, "RayJob": {"failed"},
}

// restarts returns the number of restarts that the pods and their owners state.
func (j *job) restarts() (count int64) {
	for _, pod := range j.observed() {
		for _, container := range pod.Status.ContainerStatuses {
			count += int64(container.RestartCount)
		}
	}
	for _, owner := range j.owners {
		for _, field := range restartFields[owner.GetKind()] {
			value, _, _ := unstructured.NestedInt64(owner.Object, "status", field)
			count += value
		}
	}
	return count
}

// begun returns when the training began on its present pods: when the last of them did, a RayJob's training when Ray started it.
func (j *job) begun() time.Time {
	var last time.Time
	if ray := j.owner("RayJob"); ray != nil {
		last = timeOf(ray, "status", "rayJobInfo", "startTime")
	}
	for _, pod := range j.observed() {
		if started := pod.Status.StartTime; started != nil && started.After(last) {
			last = started.Time
		}
		for _, container := range pod.Status.ContainerStatuses {
			if running := container.State.Running; running != nil && running.StartedAt.After(last) {
				last = running.StartedAt.Time
			}
		}
	}
	return last
}

// owner returns the owner of a kind; nil = there is none.
func (j *job) owner(kind string) *unstructured.Unstructured {
	for _, owner := range j.owners {
		if owner.GetKind() == kind {
			return owner
		}
	}
	return nil
}

func textOf(object *unstructured.Unstructured, path ...string) string {
	found, _, _ := unstructured.NestedString(object.Object, path...)
	return found
}

// timeOf returns a time in an object; zero = it has none.
func timeOf(object *unstructured.Unstructured, path ...string) time.Time {
	found, _ := time.Parse(time.RFC3339, textOf(object, path...))
	return found
}

// byIndex orders pods of indexed jobs by their index, others by name.
func byIndex(a, b *corev1.Pod) int {
	index := func(pod *corev1.Pod) int {
		found, _ := strconv.Atoi(pod.Annotations["batch.kubernetes.io/job-completion-index"])
		return found
	}
	return cmp.Or(cmp.Compare(index(a), index(b)), cmp.Compare(a.Name, b.Name))
}
