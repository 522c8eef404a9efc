package jobs

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Relation is how a field depends on the number of nodes.
type Relation string

// Relations. The "count" is the kind's own number: of pods, or of groups of pods.
const (
	// Count is the count itself.
	Count Relation = "count"
	// GroupSize is the number of pods in each counted group.
	GroupSize Relation = "group size"
	// Completions change with the nodes if all pods train together. A number above that of the pods is an upper limit.
	Completions Relation = "completions"
	// Gang changes with the nodes if it equals their number. A smaller number is a lower limit.
	Gang Relation = "gang"
	// AtMost changes with the nodes if it equals their number, and decreases if the nodes become fewer.
	AtMost Relation = "at most"
	// Below is a lower limit that the nodes must exceed.
	Below Relation = "below"
	// Index is the index of a pod or group, which must exist.
	Index Relation = "index"
	// Successes is like Gang, for the pods of the Indexes beside it, if there are any.
	Successes Relation = "successes"
	// Indexes are indexes of pods as text, such as "0,2-7". An interval to the last pod is extended to the new last pod; all other indexes must
	// exist.
	Indexes Relation = "indexes"
	// Multiple is a number that the number of pods must be a multiple of.
	Multiple Relation = "multiple"
	// Slices is like Multiple, in a JSON list; the largest number counts.
	Slices Relation = "slices"
	// Least and Most are limits of the count.
	Least Relation = "least"
	Most  Relation = "most"
	// RoomLeast and RoomMost are limits of the count if Ray's autoscaler changes it. Otherwise they are changed to allow the count.
	RoomLeast Relation = "room, least"
	RoomMost  Relation = "room, most"
	// Total is a quantity of each resource for all nodes together.
	Total Relation = "total"
	// TaskGroups is a JSON list with a gang for each group of pods, as in YuniKorn.
	TaskGroups Relation = "task groups"
	// Exact changes with the nodes if it equals their number; otherwise the nodes are not changed.
	Exact Relation = "exact"
	// Elsewhere names another object that holds a count of the pods: the nodes are not changed.
	Elsewhere Relation = "elsewhere"
	// Paired groups the pods with those of another job, one of which must have a single pod.
	Paired Relation = "paired"
	// Stated is a container, or a list of containers, whose command, arguments or variables may state the number of nodes as text. If they do, the
	// nodes are not changed.
	Stated Relation = "stated"
	// Single says that there is one node.
	Single Relation = "single"
	// Independent fields, and the fields below them, do not depend on the number of nodes.
	Independent Relation = "independent"
)

// Field is a field of a kind. In a path, [] stands for each entry of a list, [chosen] for the entry whose nodes are chosen, and [NAME] for the
// entry of a map.
type Field struct {
	Path     string
	Relation Relation
}

// Table lists every field that holds a count, an index or a quantity, by kind. Tests compare it with the operators' own types: a field that an
// operator adds fails a test until it is listed here.
var Table = map[schema.GroupKind][]Field{
	{Group: "batch", Kind: "Job"}: together(jobFields("spec."), podFields("spec.template."), metadataFields, []Field{{"metadata.annotations[" + minParallelism + "]", Below}}),
	{Group: "jobset.x-k8s.io", Kind: "JobSet"}: together([]Field{
		{"spec.replicatedJobs[chosen].replicas", Count},
		{"spec.coordinator.jobIndex", Index},
		{"spec.coordinator.podIndex", Index},
		{"spec.coordinator.replicatedJob", Independent},
		{"spec.replicatedJobs[].template.spec.template.metadata.annotations[kueue.x-k8s.io/podset-group-name]", Paired},
		{"spec.failurePolicy", Independent},
		{"spec.successPolicy", Independent},
		{"spec.ttlSecondsAfterFinished", Independent},
	}, jobFields("spec.replicatedJobs[chosen].template.spec."), podFields("spec.replicatedJobs[chosen].template.spec.template."), metadataFields),
	{Group: "trainer.kubeflow.org", Kind: "TrainJob"}: together([]Field{
		{"spec.trainer.numNodes", Count},
		{"spec.trainer", Stated},
		{"spec.trainer.numProcPerNode", Independent},
		{"spec.trainer.resourcesPerNode", Independent},
		{"spec.activeDeadlineSeconds", Independent},
		{"spec.runtimePatches", Independent},
	}, metadataFields),
	{Group: "kubeflow.org", Kind: "PyTorchJob"}: together([]Field{
		{"spec.pytorchReplicaSpecs[Worker].replicas", Count},
		{"spec.elasticPolicy.minReplicas", Least},
		{"spec.elasticPolicy.maxReplicas", Most},
		{"spec.elasticPolicy.standalone", Single},
		{"spec.runPolicy.schedulingPolicy.minAvailable", Gang},
		{"spec.runPolicy.schedulingPolicy.minResources", Total},
		{"spec.runPolicy.schedulingPolicy.scheduleTimeoutSeconds", Independent},
		{"spec.runPolicy.activeDeadlineSeconds", Independent},
		{"spec.runPolicy.backoffLimit", Independent},
		{"spec.runPolicy.ttlSecondsAfterFinished", Independent},
		{"spec.elasticPolicy.maxRestarts", Independent},
		{"spec.elasticPolicy.metrics", Independent},
		{"spec.elasticPolicy.nProcPerNode", Independent},
		{"spec.elasticPolicy.rdzvPort", Independent},
		{"spec.nprocPerNode", Independent},
		{"spec.pytorchReplicaSpecs[Master].template.spec.containers", Stated},
	}, podFields("spec.pytorchReplicaSpecs[Worker].template."), metadataFields),
	{Group: "ray.io", Kind: "RayJob"}: together([]Field{
		{"spec.activeDeadlineSeconds", Independent},
		{"spec.backoffLimit", Independent},
		{"spec.deletionStrategy", Independent},
		{"spec.entrypointNumCpus", Independent},
		{"spec.entrypointNumGpus", Independent},
		{"spec.submitterConfig.backoffLimit", Independent},
		{"spec.ttlSecondsAfterFinished", Independent},
	}, rayFields("spec.rayClusterSpec."), metadataFields),
	{Group: "ray.io", Kind: "RayCluster"}: together(rayFields("spec."), metadataFields),
}

// LeftAlone are the kinds of training jobs whose nodes are never changed, and why.
var LeftAlone = map[schema.GroupVersionKind]string{
	{Group: "kubeflow.org", Version: "v2beta1", Kind: "MPIJob"}:                 mpi,
	{Group: "kubeflow.org", Version: "v1", Kind: "MPIJob"}:                      mpi,
	{Group: "kubeflow.org", Version: "v1", Kind: "TFJob"}:                       roles,
	{Group: "kubeflow.org", Version: "v1", Kind: "XGBoostJob"}:                  roles,
	{Group: "kubeflow.org", Version: "v1", Kind: "PaddleJob"}:                   roles,
	{Group: "kubeflow.org", Version: "v1", Kind: "JAXJob"}:                      roles,
	{Group: "batch.volcano.sh", Version: "v1alpha1", Kind: "Job"}:               "spec.minAvailable, the tasks' own minAvailable and the policies of a Volcano Job together determine which pods train",
	{Group: "leaderworkerset.x-k8s.io", Version: "v1", Kind: "LeaderWorkerSet"}: "spec.replicas of a LeaderWorkerSet are copies of a whole job, and spec.leaderWorkerTemplate.size is part of what its pods run",
}

const (
	mpi   = "the mpirun of an MPIJob's launcher sets the number of processes, in the text of its command or image"
	roles = "the replicas of its roles depend on each other in ways that the object does not state"
)

// jobFields are the fields of a batch/v1 Job.
func jobFields(spec string) []Field {
	return prefixed(spec, []Field{
		{"parallelism", Count},
		{"completions", Completions},
		{"maxFailedIndexes", AtMost},
		{"successPolicy.rules[].succeededIndexes", Indexes},
		{"successPolicy.rules[].succeededCount", Successes},
		{"scheduling.schedulingPolicy.gang.minCount", Gang},
		{"activeDeadlineSeconds", Independent},
		{"backoffLimit", Independent},
		{"backoffLimitPerIndex", Independent},
		{"podFailurePolicy", Independent},
		{"ttlSecondsAfterFinished", Independent},
	})
}

// rayFields are the fields of a cluster of Ray.
func rayFields(spec string) []Field {
	return append(prefixed(spec, []Field{
		{"workerGroupSpecs[chosen].replicas", Count},
		{"workerGroupSpecs[chosen].numOfHosts", GroupSize},
		{"workerGroupSpecs[chosen].minReplicas", RoomLeast},
		{"workerGroupSpecs[chosen].maxReplicas", RoomMost},
		{"workerGroupSpecs[chosen].idleTimeoutSeconds", Independent},
		{"autoscalerOptions.idleTimeoutSeconds", Independent},
	}), append(podFields(spec+"workerGroupSpecs[chosen].template."), Field{"metadata.annotations[kueue.x-k8s.io/raycluster-podset-replica-sizes]", Elsewhere})...)
}

// podFields are the fields of a node's pod template that concern all pods together.
func podFields(template string) []Field {
	return prefixed(template, []Field{
		{"metadata.annotations[kueue.x-k8s.io/podset-slice-size]", Multiple},
		{"metadata.annotations[kueue.x-k8s.io/podset-slice-required-topology-constraints]", Slices},
		{"metadata.annotations[kueue.x-k8s.io/pod-group-total-count]", Exact},
		{"metadata.annotations[scheduling.volcano.sh/group-min-member]", Gang},
		{"metadata.annotations[yunikorn.apache.org/task-groups]", TaskGroups},
		{"metadata.annotations[scheduling.k8s.io/group-name]", Elsewhere},
		{"metadata.labels[pod-group.scheduling.sigs.k8s.io/min-available]", Gang},
		{"metadata.labels[scheduling.x-k8s.io/pod-group]", Elsewhere},
		{"spec.schedulingGroup", Elsewhere},
		{"spec.containers", Stated},
	})
}

// metadataFields are the fields of an object's own metadata.
var metadataFields = []Field{
	{"metadata.annotations[scheduling.volcano.sh/group-min-member]", Gang},
	{"metadata.labels[kueue.x-k8s.io/prebuilt-workload-name]", Elsewhere},
}

func prefixed(prefix string, fields []Field) []Field {
	for index := range fields {
		fields[index].Path = prefix + fields[index].Path
	}
	return fields
}

func together(all ...[]Field) (found []Field) {
	for _, fields := range all {
		found = append(found, fields...)
	}
	return found
}

// place is the location of a field in an object.
type place struct {
	path   string
	holder map[string]any
	key    string
}

var steps = regexp.MustCompile(`[^.\[\]]+|\[[^\]]*\]`)

// places returns the locations of a field in the object; none if it does not have the field.
func (j *Job) places(path string) (found []place) {
	// A key in brackets may contain dots.
	all := steps.FindAllString(path, -1)
	holders := []any{j.object.Object}
	for _, step := range all[:len(all)-1] {
		var next []any
		for _, holder := range holders {
			switch {
			case step == "[]":
				entries, _ := holder.([]any)
				next = append(next, entries...)
			case step == "[chosen]":
				next = append(next, j.entry)
			default:
				holding, _ := holder.(map[string]any)
				next = append(next, holding[strings.Trim(step, "[]")])
			}
		}
		holders = next
	}
	key := strings.Trim(all[len(all)-1], "[]")
	for _, holder := range holders {
		if holding, _ := holder.(map[string]any); holding != nil && holding[key] != nil {
			found = append(found, place{path, holding, key})
		}
	}
	return found
}

// number returns a whole number, from JSON or from the text of an annotation.
func (p place) number() (int64, bool) {
	if text, isText := p.holder[p.key].(string); isText {
		found, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		return found, err == nil
	}
	return integer(p.holder, p.key)
}

func (p place) set(number int64) {
	if _, isText := p.holder[p.key].(string); isText {
		p.holder[p.key] = strconv.FormatInt(number, 10)
		return
	}
	p.holder[p.key] = number
}

// name returns the field's name for messages to the owner.
func (p place) name() string {
	for _, kind := range []string{"annotation", "label"} {
		if _, name, found := strings.Cut(p.path, "metadata."+kind+"s["); found {
			return kind + " " + strings.TrimSuffix(name, "]")
		}
	}
	return strings.ReplaceAll(p.path, "[chosen]", "")
}

// relate takes into account how a field of the object depends on the number of nodes.
func (j *Job) relate(field Field) {
	for _, at := range j.places(field.Path) {
		value, isNumber := at.number()
		j.relateNumber(field.Relation, at, value, isNumber)
	}
}

func (j *Job) relateNumber(relation Relation, at place, value int64, isNumber bool) {
	before := j.Nodes()
	switch relation {
	case Indexes:
		j.relateIndexes(at, before)
		return
	case Slices:
		j.relateSlices(at)
		return
	case Total:
		j.follow(at, func(nodes int64) { scale(at, nodes, before) })
		return
	case TaskGroups:
		j.relateTaskGroups(at)
		return
	case Elsewhere:
		j.leave("%s is %v: another object states the number of its pods", at.name(), at.holder[at.key])
		return
	case Stated:
		containers, isList := at.holder[at.key].([]any)
		if !isList {
			containers = []any{at.holder[at.key]}
		}
		for _, each := range containers {
			if text := statedNodes(each); text != "" {
				j.leave("%s states %s, which does not change with the nodes; use the operator's variable instead", at.name(), text)
			}
		}
		return
	case Single:
		if at.holder[at.key] == true {
			j.limit(limit{most: 1, because: at.name() + " is true"})
		}
		return
	case Count, GroupSize, Paired, Independent: // handled by the code of the kind
		return
	}
	if !isNumber {
		j.leave("%s is %v, which is not a whole number", at.name(), at.holder[at.key])
		return
	}
	because := fmt.Sprintf("%s is %d", at.name(), value)
	if relation == Successes && at.holder["succeededIndexes"] != nil {
		return // handled there
	}
	switch relation {
	case Completions:
		if value <= before {
			j.follow(at, at.set)
		} else {
			j.limit(limit{most: value, because: because})
		}
	case Gang, Exact, Successes:
		switch {
		case value >= before:
			j.follow(at, at.set)
		case relation == Exact:
			j.leave("%s, the job has %s", because, CountOf(before))
		default:
			j.limit(limit{least: value, because: because})
		}
	case AtMost:
		j.follow(at, func(nodes int64) {
			if value == before || value > nodes {
				at.set(nodes)
			}
		})
	case Below:
		j.limit(limit{least: value + 1, because: because + ", which must stay below the number of nodes"})
	case Index:
		j.limit(limit{least: j.nodesOf(value + 1), because: because})
	case Multiple:
		if value > 1 {
			j.limit(limit{step: value, because: because})
		}
	case Least:
		j.limit(limit{least: j.nodesOf(value), because: because})
	case Most:
		j.limit(limit{most: j.nodesOf(value), because: because})
	case RoomLeast, RoomMost:
		j.relateRoom(relation, at, value, because)
	}
}

// nodesArguments and nodesVariables match the arguments and variables that state the number of nodes to training launchers.
var (
	nodesArguments = regexp.MustCompile(`--(?:nnodes|num[-_]nodes|num[-_]machines)[= ]\s*["']?\d[\d:]*|--standalone\b`)
	nodesVariables = []string{"NNODES", "NUM_NODES", "PET_NNODES", "WORLD_SIZE"}
)

// statedNodes returns the text by which a container states the number of nodes; empty if it does not.
func statedNodes(container any) string {
	its, _ := container.(map[string]any)
	var words []string
	for _, field := range []string{"command", "args"} {
		part, _, _ := unstructured.NestedStringSlice(its, field)
		words = append(words, part...)
	}
	if found := nodesArguments.FindString(strings.Join(words, " ")); found != "" {
		return found
	}
	variables, _ := its["env"].([]any)
	for _, each := range variables {
		variable, _ := each.(map[string]any)
		name, _ := variable["name"].(string)
		value, _ := variable["value"].(string)
		if _, err := strconv.Atoi(value); err == nil && slices.Contains(nodesVariables, name) {
			return name + "=" + value
		}
	}
	return ""
}

// relateRoom reads a bound of Ray's. The autoscaler stays within it. Without an autoscaler the bound only has to include the count.
func (j *Job) relateRoom(relation Relation, at place, value int64, because string) {
	switch {
	case j.autoscaled && relation == RoomLeast:
		j.limit(limit{least: j.nodesOf(value), because: because})
	case j.autoscaled:
		j.limit(limit{most: j.nodesOf(value), because: because})
	default:
		was, _ := integer(j.holder, j.count...)
		j.follow(at, func(nodes int64) {
			counted := j.countOf(nodes)
			if relation == RoomLeast && value > counted || relation == RoomMost && value < counted || value == was && j.fixedRoom() {
				at.set(counted)
			}
		})
	}
}

// fixedRoom reports whether the object's bounds are equal: such a count is fixed.
func (j *Job) fixedRoom() bool {
	least, _ := integer(j.holder, "minReplicas")
	most, stated := integer(j.holder, "maxReplicas")
	return stated && least == most
}

// scale changes a quantity of each resource in proportion to the nodes.
func scale(at place, nodes, before int64) {
	resources, _ := at.holder[at.key].(map[string]any)
	scaled := maps.Clone(resources)
	for name, value := range resources {
		if amount, err := quantity(value); err == nil {
			amount.SetMilli(int64(math.Ceil(float64(amount.MilliValue()) * float64(nodes) / float64(max(before, 1)))))
			scaled[name] = amount.String()
		}
	}
	at.holder[at.key] = scaled
}

func (j *Job) relateSlices(at place) {
	var layers []struct{ Size int64 }
	text, _ := at.holder[at.key].(string)
	if err := json.Unmarshal([]byte(text), &layers); err != nil {
		j.leave("%s is not a JSON list", at.name())
		return
	}
	for _, layer := range layers {
		if layer.Size > 1 {
			j.limit(limit{step: layer.Size, because: fmt.Sprintf("%s has slices of %d", at.name(), layer.Size)})
		}
	}
}

func (j *Job) relateTaskGroups(at place) {
	var groups []map[string]any
	text, _ := at.holder[at.key].(string)
	if err := json.Unmarshal([]byte(text), &groups); err != nil {
		j.leave("%s is not a JSON list", at.name())
		return
	}
	own, _ := at.holder["yunikorn.apache.org/task-group-name"].(string)
	for _, group := range groups {
		if name, _ := group["name"].(string); name != own && len(groups) > 1 {
			continue
		}
		member := place{at.path, group, "minMember"}
		value, stated := member.number()
		if pods := j.Pods(j.Nodes()); stated && value < pods {
			j.limit(limit{least: value + j.aside, because: fmt.Sprintf("minMember in %s is %d", at.name(), value)})
		} else if stated {
			j.follow(at, func(nodes int64) {
				member.set(j.Pods(nodes))
				changed, _ := json.Marshal(groups)
				at.holder[at.key] = string(changed)
			})
		}
	}
}

// relateIndexes reads indexes of pods. An interval that ends at the last pod is changed to end at the new last pod; all other indexes must
// exist. If all of these pods must succeed, all must succeed afterwards.
func (j *Job) relateIndexes(at place, before int64) {
	text, _ := at.holder[at.key].(string)
	var total, first, end int64
	parts := strings.Split(text, ",")
	for _, part := range parts {
		from, to, isInterval := strings.Cut(part, "-")
		var wrong, alsoWrong error
		first, wrong = strconv.ParseInt(from, 10, 64)
		if end = first; isInterval {
			end, alsoWrong = strconv.ParseInt(to, 10, 64)
		}
		if wrong != nil || alsoWrong != nil {
			j.leave("%s is %q; give indexes such as \"0,2-7\"", at.name(), text)
			return
		}
		total += end - first + 1
	}
	because := fmt.Sprintf("%s is %q", at.name(), text)
	if end != before-1 || end == first {
		j.limit(limit{least: end + 1, because: because})
		return
	}
	j.limit(limit{least: first + 1, because: because})
	j.follow(at, func(nodes int64) {
		parts[len(parts)-1] = strconv.FormatInt(first, 10)
		if nodes-1 > first {
			parts[len(parts)-1] = fmt.Sprintf("%d-%d", first, nodes-1)
		}
		at.holder[at.key] = strings.Join(parts, ",")
	})
	count := place{strings.TrimSuffix(at.path, "succeededIndexes") + "succeededCount", at.holder, "succeededCount"}
	switch value, stated := count.number(); {
	case !stated:
	case value >= total:
		j.follow(count, func(nodes int64) { count.set(total + nodes - before) })
	default:
		j.limit(limit{least: before - (total - value), because: fmt.Sprintf("%s is %d of the %d in succeededIndexes", count.name(), value, total)})
	}
}
