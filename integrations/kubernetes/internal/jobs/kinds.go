package jobs

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds are those whose number of nodes can be chosen. Objects are read by the paths of their published definitions, so that no operator's
// module, nor its version, is needed.
var Kinds = []schema.GroupVersionKind{
	{Group: "batch", Version: "v1", Kind: "Job"},
	{Group: "jobset.x-k8s.io", Version: "v1alpha2", Kind: "JobSet"},
	{Group: "trainer.kubeflow.org", Version: "v1alpha1", Kind: "TrainJob"},
	{Group: "kubeflow.org", Version: "v1", Kind: "PyTorchJob"},
	{Group: "ray.io", Version: "v1", Kind: "RayJob"},
}

// Job is an object of one of the kinds.
type Job struct {
	object *unstructured.Unstructured
	// count is the field of the number of nodes; extra are nodes besides, such as a PyTorchJob's master.
	count []string
	extra int64
	// holder is the map that the count is in: an entry of a list cannot be reached by a path.
	holder map[string]any
	// template is that of the pods of nodes; nil where the object has none.
	template map[string]any
	// set does what else follows from a number of nodes.
	set func(nodes, before int64)
	// most is what the object itself allows; 0 = no limit. least likewise.
	least, most int64
}

// Of reads an object. The error says why its nodes cannot be chosen.
func Of(object *unstructured.Unstructured) (*Job, error) {
	job := &Job{object: object, holder: object.Object}
	var err error
	switch object.GroupVersionKind().GroupKind().String() {
	case "Job.batch":
		job.batch([]string{"spec"})
	case "JobSet.jobset.x-k8s.io":
		err = job.jobSet()
	case "TrainJob.trainer.kubeflow.org":
		job.count = []string{"spec", "trainer", "numNodes"}
	case "PyTorchJob.kubeflow.org":
		err = job.pyTorch()
	case "RayJob.ray.io":
		err = job.ray()
	default:
		err = fmt.Errorf("%s is not a kind whose number of nodes can be chosen", object.GroupVersionKind())
	}
	return job, err
}

// batch is a Job, or the template of one in a JobSet: a pod is a node. Where completions equal parallelism all pods train together, and both
// change.
func (j *Job) batch(spec []string) {
	j.count = append(spec[:len(spec):len(spec)], "parallelism")
	completions := append(spec[:len(spec):len(spec)], "completions")
	j.template, _, _ = nestedMap(j.holder, append(spec[:len(spec):len(spec)], "template")...)
	holder := j.holder
	j.set = func(nodes, before int64) {
		if all, stated := integer(holder, completions...); stated && all == before {
			_ = unstructured.SetNestedField(holder, nodes, completions...)
		}
	}
}

func (j *Job) jobSet() error {
	entry, err := j.entry("replicated job", replicatedJob, "name", "spec", "replicatedJobs")
	if err != nil {
		return err
	}
	if replicas, stated := integer(entry, "replicas"); stated && replicas != 1 {
		return fmt.Errorf("replicated job %v has %d replicas; nodes are chosen for one replica", entry["name"], replicas)
	}
	j.holder = entry
	j.batch([]string{"template", "spec"})
	return nil
}

// pyTorch counts the master, which trains as well.
func (j *Job) pyTorch() error {
	replicas := []string{"spec", "pytorchReplicaSpecs"}
	_, hasWorkers, _ := nestedMap(j.holder, append(replicas, "Worker")...)
	if !hasWorkers {
		return fmt.Errorf("spec.pytorchReplicaSpecs has no Worker whose replicas could be chosen")
	}
	j.count = append(replicas, "Worker", "replicas")
	j.template, _, _ = nestedMap(j.holder, append(replicas, "Worker", "template")...)
	if _, hasMaster, _ := nestedMap(j.holder, append(replicas, "Master")...); hasMaster {
		j.extra = 1
	}
	j.least, _ = integer(j.holder, "spec", "elasticPolicy", "minReplicas")
	j.most, _ = integer(j.holder, "spec", "elasticPolicy", "maxReplicas")
	return nil
}

// ray chooses the workers of one group; the head does not train.
func (j *Job) ray() error {
	entry, err := j.entry("worker group", workerGroup, "groupName", "spec", "rayClusterSpec", "workerGroupSpecs")
	if err != nil {
		return err
	}
	j.holder, j.count = entry, []string{"replicas"}
	j.template, _, _ = nestedMap(entry, "template")
	j.set = func(nodes, _ int64) {
		if most, stated := integer(entry, "maxReplicas"); stated && most < nodes {
			entry["maxReplicas"] = nodes
		}
		if least, stated := integer(entry, "minReplicas"); stated && least > nodes {
			entry["minReplicas"] = nodes
		}
	}
	return nil
}

// entry is the one of a list that an annotation names, or the only one.
func (j *Job) entry(what, annotation, nameField string, path ...string) (map[string]any, error) {
	found, _, _ := unstructured.NestedFieldNoCopy(j.object.Object, path...)
	list, _ := found.([]any)
	name, names := j.object.GetAnnotations()[annotation], []string{}
	for _, each := range list {
		entry, isMap := each.(map[string]any)
		if !isMap {
			continue
		}
		its, _ := entry[nameField].(string)
		if its == name || name == "" && len(list) == 1 {
			return entry, nil
		}
		names = append(names, its)
	}
	return nil, fmt.Errorf("annotation %s is %q; name the %s whose nodes are to be chosen: one of %q", annotation, name, what, names)
}

// Nodes is the number of nodes that the object states; 1 where it states none.
func (j *Job) Nodes() int64 {
	count, stated := integer(j.holder, j.count...)
	if !stated {
		return 1
	}
	return count + j.extra
}

// Bounds are the numbers of nodes that the object itself allows; 0 = no bound.
func (j *Job) Bounds() (least, most int64) {
	if j.least > 0 {
		least = j.least + j.extra
	}
	if j.most > 0 {
		most = j.most + j.extra
	}
	return least, most
}

// SetNodes writes a number of nodes.
func (j *Job) SetNodes(nodes int64) error {
	before := j.Nodes()
	if err := unstructured.SetNestedField(j.holder, max(nodes-j.extra, 0), j.count...); err != nil {
		return err
	}
	if j.set != nil {
		j.set(nodes, before)
	}
	return nil
}

// AnnotatePods writes annotations on the pods' template, where the object has one.
func (j *Job) AnnotatePods(annotations map[string]string) error {
	if j.template == nil {
		return nil
	}
	unstructured.RemoveNestedField(j.template, "metadata", "annotations", Chosen) // of the job that this one was copied from
	for name, value := range annotations {
		if err := unstructured.SetNestedField(j.template, value, "metadata", "annotations", name); err != nil {
			return err
		}
	}
	return nil
}

// Pod is the template of a node's pod; nil where the object has none that can be read.
func (j *Job) Pod() *corev1.PodTemplateSpec {
	if j.template == nil {
		return nil
	}
	found := &corev1.PodTemplateSpec{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(j.template, found) != nil {
		return nil
	}
	return found
}

// DevicesPerNode are the accelerators that a node's pod takes; 0 = not known.
func (j *Job) DevicesPerNode() int32 {
	if pod := j.Pod(); pod != nil {
		return Devices(&pod.Spec)
	}
	if count, stated := integer(j.object.Object, "spec", "trainer", "numProcPerNode"); stated {
		return int32(count)
	}
	found, _, _ := nestedMap(j.object.Object, "spec", "trainer", "resourcesPerNode")
	resources := corev1.ResourceRequirements{}
	if found == nil || runtime.DefaultUnstructuredConverter.FromUnstructured(found, &resources) != nil {
		return 0
	}
	return devices(resources)
}

// Device is the device type that the pods' node selector asks for; empty = none.
func (j *Job) Device() string {
	if pod := j.Pod(); pod != nil {
		return DeviceOf(pod.Spec.NodeSelector)
	}
	return ""
}

// Devices are the accelerators that a pod takes.
func Devices(pod *corev1.PodSpec) int32 {
	var found int32
	for index := range pod.Containers {
		found += devices(pod.Containers[index].Resources)
	}
	return found
}

// DevicesOf are the accelerators in a list of resources: those whose name ends in "/gpu".
func DevicesOf(list corev1.ResourceList) int32 {
	var found int32
	for name, quantity := range list {
		if strings.HasSuffix(string(name), "/gpu") {
			found += int32(quantity.Value())
		}
	}
	return found
}

func devices(resources corev1.ResourceRequirements) int32 {
	return max(DevicesOf(resources.Limits), DevicesOf(resources.Requests))
}

// deviceLabels are labels of nodes that name their accelerator, ours first.
var deviceLabels = []string{
	deviceName, "nvidia.com/gpu.product", "cloud.google.com/gke-accelerator", "karpenter.k8s.aws/instance-gpu-name", "amd.com/gpu.product-name",
}

// DeviceOf is the device type that labels name; empty = none.
func DeviceOf(labels map[string]string) string {
	for _, name := range deviceLabels {
		if device := labels[name]; device != "" {
			return device
		}
	}
	return ""
}

// PriceLabel of a node, or annotation of a job, is what a node costs for an hour.
const PriceLabel = pricePerNodeHour

// integer reads a whole number, as JSON or a test may hold it.
func integer(object map[string]any, path ...string) (int64, bool) {
	value, found, err := unstructured.NestedFieldNoCopy(object, path...)
	if !found || err != nil {
		return 0, false
	}
	switch value := value.(type) {
	case int64:
		return value, true
	case int32:
		return int64(value), true
	case int:
		return int64(value), true
	case float64:
		return int64(value), value == float64(int64(value))
	}
	return 0, false
}

// nestedMap is the map at a path itself, not a copy: what is written to it is written to the object.
func nestedMap(object map[string]any, path ...string) (map[string]any, bool, error) {
	value, found, err := unstructured.NestedFieldNoCopy(object, path...)
	if !found || err != nil {
		return nil, false, err
	}
	is, isMap := value.(map[string]any)
	return is, isMap, nil
}
