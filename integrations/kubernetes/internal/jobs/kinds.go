package jobs

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds are the kinds whose number of nodes can be chosen. Objects are read by the paths of their published definitions, so that no module of an
// operator is needed, and no particular version.
var Kinds = []schema.GroupVersionKind{
	{Group: "batch", Version: "v1", Kind: "Job"},
	{Group: "jobset.x-k8s.io", Version: "v1alpha2", Kind: "JobSet"},
	{Group: "trainer.kubeflow.org", Version: "v1alpha1", Kind: "TrainJob"},
	{Group: "kubeflow.org", Version: "v1", Kind: "PyTorchJob"},
	{Group: "ray.io", Version: "v1", Kind: "RayJob"},
	{Group: "ray.io", Version: "v1", Kind: "RayCluster"},
}

// Job is an object of one of the kinds.
type Job struct {
	object *unstructured.Unstructured
	// count is the path of the field that is counted: pods, or groups of unit pods each. extra is the number of further nodes, such as a
	// PyTorchJob's master.
	count       []string
	unit, extra int64
	// aside is the number of nodes whose pods have another template.
	aside int64
	// holder is the map that contains the count, because a path cannot lead into a list. entry is the entry of that list.
	holder, entry map[string]any
	// template is the template of the nodes' pods; nil if the object has none.
	template map[string]any
	// runtime is the pods' template of a TrainJob's runtime; runtimeNodes is the number of nodes that the runtime states, 0 = not known.
	runtime      map[string]any
	runtimeNodes int64
	// autoscaled says that Ray's autoscaler changes the count.
	autoscaled bool
	// limits are the limits of the object itself; follows are the fields that change with the number of nodes.
	limits  []limit
	follows []follow
	// left says why the number of nodes must not be changed.
	left error
}

// limit is the limit of a field: least and most in nodes, step in pods of the template. 0 = no limit.
type limit struct {
	least, most, step int64
	because           string
}

type follow struct {
	at  place
	set func(nodes int64)
}

func (j *Job) limit(added limit) { j.limits = append(j.limits, added) }

func (j *Job) follow(at place, set func(nodes int64)) { j.follows = append(j.follows, follow{at, set}) }

// leave records why the nodes must not be changed. The first reason counts.
func (j *Job) leave(format string, values ...any) {
	if j.left == nil {
		j.left = fmt.Errorf(format, values...)
	}
}

// Of reads an object. The error says why its nodes cannot be chosen.
func Of(object *unstructured.Unstructured) (*Job, error) {
	job := &Job{object: object, holder: object.Object, unit: 1}
	kind := object.GroupVersionKind()
	applies := func(string) bool { return true }
	var err error
	switch kind.GroupKind().String() {
	case "Job.batch":
		job.batch("spec")
		if mode, _, _ := unstructured.NestedString(object.Object, "spec", "completionMode"); mode == "Indexed" {
			job.limitByName("-", "")
		}
	case "JobSet.jobset.x-k8s.io":
		applies, err = job.jobSet()
	case "TrainJob.trainer.kubeflow.org":
		job.count = []string{"spec", "trainer", "numNodes"}
		job.limitByName("-node-0-", "-abcde")
	case "PyTorchJob.kubeflow.org":
		err = job.pyTorch()
	case "RayJob.ray.io":
		err = job.ray("spec", "rayClusterSpec")
	case "RayCluster.ray.io":
		err = job.ray("spec")
	default:
		if why, known := LeftAlone[kind]; known {
			return job, fmt.Errorf("the number of nodes of this kind is never chosen: %s", why)
		}
		return job, fmt.Errorf("%s is not a kind whose number of nodes can be chosen", kind)
	}
	if err != nil {
		return job, err
	}
	for _, field := range Table[kind.GroupKind()] {
		if applies(field.Path) {
			job.relate(field)
		}
	}
	return job, nil
}

// batch reads a Job, or the template of one in a JobSet: each pod is a node.
func (j *Job) batch(spec ...string) {
	j.count = append(spec[:len(spec):len(spec)], "parallelism")
	j.template, _, _ = nestedMap(j.holder, append(spec[:len(spec):len(spec)], "template")...)
}

// podsOf returns the replicas and the pods of a job in a JobSet.
func podsOf(replicatedJob map[string]any) (replicas, pods int64) {
	pods = numberOr(1, replicatedJob, "template", "spec", "parallelism")
	return numberOr(1, replicatedJob, "replicas"), min(pods, numberOr(pods, replicatedJob, "template", "spec", "completions"))
}

// jobSet counts the pods of a job that has one replica, and otherwise its replicas with their fixed number of pods. It returns which fields of
// the table apply then.
func (j *Job) jobSet() (applies func(path string) bool, err error) {
	entry, err := j.choose("replicated job", replicatedJob, "name", "spec", "replicatedJobs")
	if err != nil {
		return nil, err
	}
	name, _ := entry["name"].(string)
	replicas, pods := podsOf(entry)
	if replicas < 1 || pods < 1 {
		return nil, fmt.Errorf("replicated job %s has %d replicas of %d pods", name, replicas, pods)
	}
	j.holder = entry
	j.batch("template", "spec")
	j.groupOfPodSets(name)
	coordinator, _, _ := unstructured.NestedString(j.object.Object, "spec", "coordinator", "replicatedJob")
	others := []string{"spec.coordinator."}
	if replicas == 1 {
		j.limitByName("-"+name+"-0-", "-abcde")
		if coordinator == name {
			others = []string{"spec.coordinator.jobIndex"}
		}
	} else {
		j.count, j.unit = []string{"replicas"}, pods
		j.limitByName("-"+name+"-", fmt.Sprintf("-%d-abcde", pods-1))
		if coordinator == name {
			others = []string{"spec.coordinator.podIndex"}
		}
		for _, field := range jobFields("spec.replicatedJobs[chosen].template.spec.") {
			others = append(others, field.Path)
		}
	}
	return func(path string) bool {
		return !slices.ContainsFunc(others, func(other string) bool { return strings.HasPrefix(path, other) })
	}, nil
}

// groupOfPodSets checks Kueue's rule that one of two jobs that are placed together must have a single pod.
func (j *Job) groupOfPodSets(name string) {
	const group = "kueue.x-k8s.io/podset-group-name"
	all, _, _ := unstructured.NestedFieldNoCopy(j.object.Object, "spec", "replicatedJobs")
	groupOf := func(entry map[string]any) string {
		found, _, _ := unstructured.NestedString(entry, "template", "spec", "template", "metadata", "annotations", group)
		return found
	}
	own, entries := groupOf(j.entry), []any{}
	if own != "" {
		entries, _ = all.([]any)
	}
	for _, each := range entries {
		other, _ := each.(map[string]any)
		replicas, pods := podsOf(other)
		if other["name"] != name && groupOf(other) == own && replicas*pods != 1 {
			j.leave("annotation %s groups it with replicated job %v of %d pods; one of the two must have a single pod", group, other["name"], replicas*pods)
		}
	}
}

// pyTorch counts the master, which trains as well.
func (j *Job) pyTorch() error {
	replicas := []string{"spec", "pytorchReplicaSpecs"}
	_, hasWorkers, _ := nestedMap(j.holder, append(replicas, "Worker")...)
	if !hasWorkers {
		return fmt.Errorf("spec.pytorchReplicaSpecs has no Worker, so there are no replicas to choose")
	}
	j.count = append(replicas, "Worker", "replicas")
	j.template, _, _ = nestedMap(j.holder, append(replicas, "Worker", "template")...)
	if _, hasMaster, _ := nestedMap(j.holder, append(replicas, "Master")...); hasMaster {
		j.extra, j.aside = 1, 1
	}
	j.limit(limit{least: j.nodesOf(1), because: "spec.pytorchReplicaSpecs[Worker].replicas must be at least 1"})
	j.limitByName("-worker-", "")
	return nil
}

// ray counts the workers of one group. A worker may consist of several hosts; the head does not train.
func (j *Job) ray(cluster ...string) error {
	entry, err := j.choose("worker group", workerGroup, "groupName", append(cluster[:len(cluster):len(cluster)], "workerGroupSpecs")...)
	if err != nil {
		return err
	}
	j.holder, j.count = entry, []string{"replicas"}
	j.unit = max(numberOr(1, entry, "numOfHosts"), 1)
	j.template, _, _ = nestedMap(entry, "template")
	j.autoscaled, _, _ = unstructured.NestedBool(j.object.Object, append(cluster[:len(cluster):len(cluster)], "enableInTreeAutoscaling")...)
	return nil
}

// choose returns the entry of a list that an annotation names, or the only entry.
func (j *Job) choose(what, annotation, nameField string, path ...string) (map[string]any, error) {
	found, _, _ := unstructured.NestedFieldNoCopy(j.object.Object, path...)
	list, _ := found.([]any)
	if len(list) == 0 {
		return nil, fmt.Errorf("%s has no %s, so there are no nodes to choose", strings.Join(path, "."), what)
	}
	name, names := j.object.GetAnnotations()[annotation], []string{}
	for _, each := range list {
		entry, isMap := each.(map[string]any)
		if !isMap {
			continue
		}
		its, _ := entry[nameField].(string)
		if its == name || name == "" && len(list) == 1 {
			j.entry = entry
			return entry, nil
		}
		names = append(names, its)
	}
	return nil, fmt.Errorf("annotation %s is %q; name the %s whose nodes to choose: one of %q", annotation, name, what, names)
}

// longestLabel is the longest name of a pod or host, in characters. generatedSuffix is the length that the API server adds to a generateName.
const longestLabel, generatedSuffix = 63, 5

// limitByName limits the count so that the names of pods, an index between two texts, do not become too long.
func (j *Job) limitByName(before, after string) {
	length := len(j.object.GetName())
	if length == 0 {
		length = len(j.object.GetGenerateName()) + generatedSuffix
	}
	digits, most := longestLabel-length-len(before)-len(after), int64(1)
	if digits < 1 || digits > 6 {
		return // the name is too long anyway, or there is room for any index
	}
	for range digits {
		most *= 10
	}
	j.limit(limit{most: j.nodesOf(most), because: fmt.Sprintf("the names of pods may have at most %d characters", longestLabel)})
}

// Runtime returns the runtime of a TrainJob, which states what the TrainJob does not; ok is false for other kinds.
func (j *Job) Runtime() (kind schema.GroupVersionKind, name string, ok bool) {
	reference, _, _ := nestedMap(j.object.Object, "spec", "runtimeRef")
	name, _ = reference["name"].(string)
	kind = j.object.GroupVersionKind()
	if kind.Kind != "TrainJob" || name == "" {
		return kind, "", false
	}
	if kind.Kind, _ = reference["kind"].(string); kind.Kind == "" {
		kind.Kind = "ClusterTrainingRuntime"
	}
	if group, _ := reference["apiGroup"].(string); group != "" {
		kind.Group = group
	}
	return kind, name, true
}

// RuntimeIsNeeded reports whether only the runtime states the number of nodes.
func (j *Job) RuntimeIsNeeded() bool {
	_, stated := integer(j.holder, j.count...)
	_, _, has := j.Runtime()
	return has && !stated
}

// UseRuntime takes the fields of a TrainJob's runtime into account.
func (j *Job) UseRuntime(runtime *unstructured.Unstructured) {
	policy, _, _ := nestedMap(runtime.Object, "spec", "mlPolicy")
	j.runtimeNodes = numberOr(1, policy, "numNodes")
	for field, relation := range map[string]Relation{"minNodes": Least, "maxNodes": Most} { // in the trainer's first versions
		elastic, _, _ := nestedMap(policy, "torch", "elasticPolicy")
		if value, stated := integer(elastic, field); stated {
			j.relateNumber(relation, place{"spec.mlPolicy.torch.elasticPolicy." + field + " of the runtime", elastic, field}, value, true)
		}
	}
	launcherTrains, _, _ := unstructured.NestedBool(policy, "mpi", "runLauncherAsNode")
	jobs, _, _ := unstructured.NestedFieldNoCopy(runtime.Object, "spec", "template", "spec", "replicatedJobs")
	list, _ := jobs.([]any)
	names := map[any]bool{}
	for _, each := range list {
		entry, _ := each.(map[string]any)
		names[entry["name"]] = true
		ancestor, _, _ := unstructured.NestedString(entry, "template", "metadata", "labels", "trainer.kubeflow.org/trainjob-ancestor-step")
		if entry["name"] == "node" || ancestor == "trainer" && j.runtime == nil {
			j.runtime, _, _ = nestedMap(entry, "template", "spec", "template")
		}
	}
	if launcherTrains {
		j.aside = 1
		if !names["launcher"] || !names["node"] {
			j.limit(limit{most: 1, because: "spec.mlPolicy.mpi.runLauncherAsNode of the runtime is true, but the runtime lacks a job named launcher or node"})
		}
	}
	pods := &Job{object: &unstructured.Unstructured{Object: map[string]any{"template": j.runtime}}, holder: map[string]any{}, count: []string{"none"}, unit: 1}
	for _, field := range podFields("template.") {
		if field.Relation == Multiple || field.Relation == Slices || field.Relation == Elsewhere {
			pods.relate(field)
		}
	}
	j.limits = append(j.limits, pods.limits...)
	if pods.left != nil {
		j.leave("in the runtime %w", pods.left)
	}
}

// Nodes returns the number of nodes that the object states, or 1 if neither it nor its runtime states one.
func (j *Job) Nodes() int64 {
	count, stated := integer(j.holder, j.count...)
	if !stated {
		return max(j.runtimeNodes, 1)*j.unit + j.extra
	}
	if j.count[len(j.count)-1] == "parallelism" { // pods beyond the completions are never started
		count = min(count, numberOr(count, j.holder, append(j.count[:len(j.count)-1:len(j.count)-1], "completions")...))
	}
	return j.nodesOf(count)
}

// nodesOf converts a count to nodes; countOf converts nodes to a count.
func (j *Job) nodesOf(count int64) int64 { return count*j.unit + j.extra }

func (j *Job) countOf(nodes int64) int64 { return max(nodes-j.extra, 0) / j.unit }

// Pods returns the number of pods with the template of a job with so many nodes.
func (j *Job) Pods(nodes int64) int64 { return max(nodes-j.aside, 0) }

// Within reduces the owner's numbers of nodes to those that the object allows. The error says why none is left.
func (j *Job) Within(wish Wish) (Wish, error) {
	if j.left != nil {
		return wish, j.left
	}
	step, because := j.step(), []string{}
	for _, limit := range j.limits {
		because = append(because, limit.because)
	}
	first, last := int64(wish.First), int64(wish.Last)
	for first <= last && j.allows(first) != nil {
		first++
	}
	for last >= first && j.allows(last) != nil {
		last--
	}
	found := wish
	found.First, found.Last, found.Step = int32(first), int32(last), int32(step)
	if len(found.Question("", 0).Counts()) > 0 {
		return found, nil
	}
	if step > 1 {
		because = append(because, fmt.Sprintf("the nodes change by %d at a time", step))
	}
	return wish, fmt.Errorf("the job itself allows none of the numbers in annotation %s: %s", Nodes, strings.Join(because, "; "))
}

// step returns the number of nodes by which the object changes.
func (j *Job) step() int64 {
	step := j.unit
	for _, limit := range j.limits {
		if limit.step > 0 {
			step *= limit.step / gcd(step, limit.step)
		}
	}
	return step
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// allows returns why a number of nodes is not allowed; nil if it is.
func (j *Job) allows(nodes int64) error {
	if j.left != nil {
		return j.left
	}
	if nodes < 1 || (nodes-j.extra)%j.unit != 0 || j.unit > 1 && nodes < j.nodesOf(1) {
		return fmt.Errorf("%s: the nodes change by %d at a time", CountOf(nodes), j.unit)
	}
	for _, limit := range j.limits {
		if nodes < limit.least || limit.most > 0 && nodes > limit.most || limit.step > 0 && (j.Pods(nodes) < limit.step || j.Pods(nodes)%limit.step != 0) {
			return fmt.Errorf("%s: %s", CountOf(nodes), limit.because)
		}
	}
	return nil
}

// SetNodes writes a number of nodes and all fields that depend on it. The error names the field that does not allow the number; the object is
// then unchanged.
func (j *Job) SetNodes(nodes int64) error {
	if err := j.allows(nodes); err != nil {
		return err
	}
	for _, each := range j.follows {
		each.set(nodes)
	}
	return unstructured.SetNestedField(j.holder, j.countOf(nodes), j.count...)
}

// Started takes into account which fields of an existing Job can no longer change. The error says why its nodes cannot.
func (j *Job) Started() error {
	indexed, _, _ := unstructured.NestedString(j.object.Object, "spec", "completionMode")
	for _, each := range j.follows {
		switch {
		case strings.HasPrefix(each.at.path, "spec.successPolicy"), strings.HasPrefix(each.at.path, "spec.template"):
			j.leave("%s would have to change with the nodes, which is not possible once the Job exists", each.at.name())
		case each.at.path == "spec.completions" && indexed != "Indexed":
			j.leave("spec.completions would have to change with the nodes, which is only possible in an Indexed Job")
		}
	}
	if j.object.GetAnnotations()[minParallelism] != "" {
		j.leave("Kueue controls spec.parallelism because of annotation %s, and allows no other changes once the Job runs", minParallelism)
	}
	return j.left
}

const minParallelism = "kueue.x-k8s.io/job-min-parallelism"

// CountOf returns a number of nodes in words.
func CountOf(nodes int64) string {
	if nodes == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", nodes)
}

// AnnotatePods writes annotations to the pods' template, if the object has one.
func (j *Job) AnnotatePods(annotations map[string]string) error {
	if j.template == nil {
		return nil
	}
	unstructured.RemoveNestedField(j.template, "metadata", "annotations", Chosen) // it may come from a copied job
	for name, value := range annotations {
		if err := unstructured.SetNestedField(j.template, value, "metadata", "annotations", name); err != nil {
			return err
		}
	}
	return nil
}

// podSpec returns the specification of a node's pod; nil if it cannot be read. It is read by paths, because a conversion to Kubernetes' own
// types would parse every quantity in it.
func (j *Job) podSpec() map[string]any {
	template := j.template
	if template == nil {
		template = j.runtime
	}
	found, _, _ := nestedMap(template, "spec")
	return found
}

// DevicesPerNode returns the number of accelerators of a node's pod, else the number of its processes; 0 = not known.
func (j *Job) DevicesPerNode() int32 {
	trainer, _, _ := nestedMap(j.object.Object, "spec", "trainer")
	var count int32
	if found, _, _ := nestedMap(trainer, "resourcesPerNode"); found != nil {
		count = devicesIn(found)
	} else {
		containers, _ := j.podSpec()["containers"].([]any)
		for _, each := range containers {
			container, _ := each.(map[string]any)
			resources, _, _ := nestedMap(container, "resources")
			count += devicesIn(resources)
		}
	}
	if count > 0 {
		return count
	}
	for _, processes := range []place{{"", trainer, "numProcPerNode"}, {"", j.spec(), "nprocPerNode"}} { // which may be "auto"
		if count, stated := processes.number(); stated {
			return int32(count)
		}
	}
	return 0
}

func (j *Job) spec() map[string]any {
	found, _, _ := nestedMap(j.object.Object, "spec")
	return found
}

// Device returns the device type in the pods' node selector; empty = none.
func (j *Job) Device() string {
	selector, _, _ := unstructured.NestedStringMap(j.podSpec(), "nodeSelector")
	return DeviceOf(selector)
}

// Devices returns the number of accelerators of a pod.
func Devices(pod *corev1.PodSpec) int32 {
	var found int32
	for index := range pod.Containers {
		found += devices(pod.Containers[index].Resources)
	}
	return found
}

// deviceResources are suffixes of the names of resources that are whole accelerators.
var deviceResources = []string{"/gpu", "/tpu", "/gaudi"}

// DevicesOf returns the number of accelerators in a list of resources.
func DevicesOf(list corev1.ResourceList) int32 {
	var found int32
	for name, quantity := range list {
		if IsDevice(string(name)) {
			found += int32(quantity.Value())
		}
	}
	return found
}

// IsDevice reports whether a resource is a whole accelerator.
func IsDevice(resource string) bool {
	return slices.ContainsFunc(deviceResources, func(end string) bool { return strings.HasSuffix(resource, end) })
}

func devices(resources corev1.ResourceRequirements) int32 {
	return max(DevicesOf(resources.Limits), DevicesOf(resources.Requests))
}

// deviceLabels are labels of nodes that name their accelerator, Nodewise's own first.
var deviceLabels = []string{
	deviceName, "nvidia.com/gpu.product", "cloud.google.com/gke-accelerator", "karpenter.k8s.aws/instance-gpu-name", "amd.com/gpu.product-name",
}

// DeviceOf returns the device type that labels name; empty = none.
func DeviceOf(labels map[string]string) string {
	for _, name := range deviceLabels {
		if device := labels[name]; device != "" {
			return device
		}
	}
	return ""
}

// PriceLabel is the label of a node, or annotation of a job, that states the price of a node for one hour.
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

func numberOr(otherwise int64, object map[string]any, path ...string) int64 {
	if found, stated := integer(object, path...); stated {
		return found
	}
	return otherwise
}

// nestedMap returns the map at a path itself, not a copy: writes to it change the object.
func nestedMap(object map[string]any, path ...string) (map[string]any, bool, error) {
	value, found, err := unstructured.NestedFieldNoCopy(object, path...)
	if !found || err != nil {
		return nil, false, err
	}
	is, isMap := value.(map[string]any)
	return is, isMap, nil
}
