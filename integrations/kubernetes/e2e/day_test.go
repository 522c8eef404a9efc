package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	informers "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/jobs"
	"github.com/nodewise/nodewise/integrations/kubernetes/internal/testcluster"
)

// day is the file that research/cluster_day_kubernetes.py writes: queues of jobs that run side by side.
type day struct {
	Target         string    `json:"target"` // Nodewise, with the profiles
	Nodes          int       `json:"nodes"`
	DevicesPerNode int       `json:"devices_per_node"`
	Compression    float64   `json:"compression"` // seconds of the day in one of the clock
	Kueue          bool      `json:"kueue"`       // admits the jobs, by a quota of all devices; else this test does
	Plays          []dayJobs `json:"plays"`
}

type dayJobs struct {
	Share *float64 `json:"share"` // of the knee; null = the owners' own numbers
	Jobs  []dayJob `json:"jobs"`  // by arrival
}

type dayJob struct {
	Name               string  `json:"name"`
	Kind               string  `json:"kind"`    // of controlledKinds
	Profile            string  `json:"profile"` // empty = its number of nodes is nobody's to choose
	GlobalBatchSamples float64 `json:"global_batch_samples"`
	ArrivalSeconds     float64 `json:"arrival_s"`
	RequestedPods      int32   `json:"requested_pods"`
	DevicesPerPod      int     `json:"devices_per_pod"`
	// Seconds are the run times by number of devices.
	Seconds map[string]float64 `json:"seconds"`
}

// dayResult is the result of a job.
type dayResult struct {
	Play              int     `json:"play"`
	Name              string  `json:"name"`
	Devices           int     `json:"devices"`
	WaitedSeconds     float64 `json:"waited_s"`  // until it was admitted
	StartedSeconds    float64 `json:"started_s"` // from then until all pods were on nodes
	FreedSeconds      float64 `json:"freed_s"`   // from the pods' end until Kueue gives the quota to others
	CompletionSeconds float64 `json:"completion_s"`
}

// play is one first-come-first-served queue with its own nodes. Jobs are created suspended and admitted in order, as soon as the first one has
// room, by Kueue or by this type. It does the work of the kubelets; Kubernetes and the jobs' controllers create and place the pods.
type play struct {
	day
	dayJobs
	number  int
	pool    string
	begun   time.Time
	arrived chan *playing
	mutex   sync.Mutex
	used    map[string]int // devices, by node
	jobs    map[string]*playing
	changed chan struct{} // a job has ended
	results []dayResult
}

type playing struct {
	dayJob
	object                          *unstructured.Unstructured
	pods                            int
	devices                         int               // of a pod
	on                              map[string]string // nodes, by pod
	admitted, started, ended, freed time.Time
}

// With NODEWISE_DAY=FILE the jobs of a day run in compressed time; the results go to NODEWISE_DAY_RESULTS.
func TestClusterDay(t *testing.T) {
	path := os.Getenv("NODEWISE_DAY")
	if path == "" {
		t.Skip("NODEWISE_DAY does not say which; make cluster-day CALLER=kubernetes does")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var told day
	if err := json.Unmarshal(text, &told); err != nil {
		t.Fatal(err)
	}
	if told.Kueue {
		startControllers(t)
		torchRuntime(t, "torch-tried", `{name: node, image: pytorch}`)
	}
	resting.Store(true)
	t.Cleanup(func() { resting.Store(false) })
	for _, name := range []string{"webhook", "extender"} {
		end(rig.processes[name])
		if err := startProcess(t.Context(), name, "-server", told.Target); err != nil {
			t.Fatal(err)
		}
	}
	plays := []*play{}
	first := math.Inf(1)
	for number, its := range told.Plays {
		first = min(first, its.Jobs[0].ArrivalSeconds)
		each := &play{
			day: told, dayJobs: its, number: number, pool: "day" + strconv.Itoa(number), arrived: make(chan *playing, len(its.Jobs)),
			used: map[string]int{}, jobs: map[string]*playing{}, changed: make(chan struct{}, 1),
		}
		addNodesOf(t, each.pool, "T4", told.Nodes, told.DevicesPerNode, "")
		if told.Kueue {
			queueOf(t, each.pool, "T4", told.Nodes*told.DevicesPerNode, "queueingStrategy: StrictFIFO,")
		}
		for index := range told.Nodes {
			each.used[fmt.Sprintf("%s-t4-%d", each.pool, index)] = 0
		}
		plays = append(plays, each)
	}
	watchPods(t, plays)
	if told.Kueue {
		watchQuota(t, plays)
	}
	begun := time.Now().Add(3*time.Second - told.wall(first))
	var all sync.WaitGroup
	for _, each := range plays {
		each.begun = begun
		all.Go(func() { each.submit(t) })
		if !told.Kueue {
			all.Go(func() { each.admit(t) })
		}
	}
	all.Wait()
	results := []dayResult{}
	for _, each := range plays {
		each.waitUntil(t, func() bool { return len(each.results) == len(each.Jobs) })
		results = append(results, each.results...)
	}
	if text, err = json.Marshal(results); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(os.Getenv("NODEWISE_DAY_RESULTS"), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (d *day) wall(seconds float64) time.Duration {
	return time.Duration(seconds / d.Compression * float64(time.Second))
}

// submit creates the jobs as they arrive.
func (p *play) submit(t *testing.T) {
	defer close(p.arrived)
	for _, job := range p.Jobs {
		time.Sleep(time.Until(p.begun.Add(p.wall(job.ArrivalSeconds))))
		made, devices := p.object(t, job)
		p.mutex.Lock() // its pods may come before it is noted
		if err := rig.kubernetes.Create(t.Context(), made); err != nil {
			p.mutex.Unlock()
			t.Error(err)
			return
		}
		if share := p.Share; share != nil && job.Profile != "" && made.GetAnnotations()["nodewise.dev/chosen-nodes"] == "" {
			t.Error(job.Name, made.GetAnnotations())
		}
		found := &playing{dayJob: job, object: made, devices: devices, on: map[string]string{}}
		if read, err := jobs.Of(made); err != nil {
			t.Error(job.Name, err)
		} else {
			found.pods = int(read.Nodes())
		}
		p.jobs[made.GetName()] = found
		p.mutex.Unlock()
		p.arrived <- found
	}
}

// object returns the job as its owner creates it, possibly with annotations, and the devices of its pods.
func (p *play) object(t *testing.T, job dayJob) (made *unstructured.Unstructured, devices int) {
	devices, annotations := job.DevicesPerPod, map[string]string{}
	if share := p.Share; share != nil && job.Profile != "" {
		devices = p.DevicesPerNode
		annotations = map[string]string{
			"nodewise.dev/profile": job.Profile, "nodewise.dev/nodes": fmt.Sprintf("1-%d", p.Nodes), "nodewise.dev/share": fmt.Sprint(*share),
			"nodewise.dev/settings": fmt.Sprintf(`{"global_batch_samples": %v}`, job.GlobalBatchSamples),
		}
	}
	index := slices.IndexFunc(controlledKinds, func(each controlled) bool { return each.kind == job.Kind })
	kind := controlledKinds[index]
	kind.spec = strings.ReplaceAll(kind.spec, "nvidia.com/gpu: 8", fmt.Sprint("nvidia.com/gpu: ", devices))
	made = kind.in(t, p.pool, p.pool+"-"+job.Name, annotations)
	if read, err := jobs.Of(made); err != nil {
		t.Error(job.Name, err)
	} else if err := read.SetNodes(int64(job.RequestedPods)); err != nil {
		t.Error(job.Name, err)
	}
	if !p.Kueue {
		made.SetLabels(nil)
		_ = unstructured.SetNestedField(made.Object, true, "spec", "suspend")
		_ = unstructured.SetNestedField(made.Object, p.pool, "spec", "template", "spec", "nodeSelector", "pool")
	}
	return made, devices
}

// admit admits jobs in order, each as soon as it has room.
func (p *play) admit(t *testing.T) {
	for job := range p.arrived {
		p.waitUntil(t, func() bool { return p.room(job.devices) >= job.pods })
		p.mutex.Lock()
		job.admitted = time.Now()
		p.mutex.Unlock()
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec": {"suspend": false}}`))
		if err := rig.kubernetes.Patch(t.Context(), job.object.DeepCopy(), patch); err != nil {
			t.Error(err)
			return
		}
	}
}

// room is the number of pods with so many devices that the nodes have room for, after all admitted jobs are placed.
func (p *play) room(devices int) int {
	free := map[string]int{}
	for node, used := range p.used {
		free[node] = p.DevicesPerNode - used
	}
	for _, job := range p.jobs {
		if job.admitted.IsZero() {
			continue
		}
		for range job.pods - len(job.on) { // where the scheduler will place them: the fullest that has room
			best := ""
			for node, left := range free {
				if left >= job.devices && (best == "" || left < free[best]) {
					best = node
				}
			}
			free[best] -= job.devices
		}
	}
	count := 0
	for _, left := range free {
		count += max(left, 0) / devices
	}
	return count
}

// waitUntil waits for a condition that the ends of jobs change.
func (p *play) waitUntil(t *testing.T, is func() bool) {
	for {
		p.mutex.Lock()
		found := is()
		p.mutex.Unlock()
		if found {
			return
		}
		select {
		case <-p.changed:
		case <-t.Context().Done():
			return
		case <-time.After(10 * time.Minute):
			t.Error(p.pool, ": nothing happens any more\n", rig.Log("kube-scheduler"))
			return
		}
	}
}

// run lets a job compute for its time once all its pods are on nodes; then the pods end and free their nodes.
func (p *play) run(t *testing.T, job *playing) {
	started := time.Now()
	p.mutex.Lock()
	pods := []string{}
	for pod := range job.on {
		pods = append(pods, pod)
	}
	p.mutex.Unlock()
	slices.Sort(pods)
	devices := job.pods * job.devices
	seconds, known := job.Seconds[strconv.Itoa(devices)]
	if !known {
		t.Error(job.Name, "was not measured on", devices)
	}
	running := make(chan struct{})
	go func() {
		setPhase(t, pods, corev1.PodRunning)
		close(running)
	}()
	time.AfterFunc(p.wall(seconds), func() {
		p.mutex.Lock()
		job.started, job.ended = started, time.Now()
		for _, node := range job.on {
			p.used[node] -= job.devices
		}
		p.mutex.Unlock()
		if job.Kind == "RayJob" { // its end is read from Ray, which is not there
			if err := rig.kubernetes.Delete(t.Context(), job.object.DeepCopy()); err != nil {
				t.Error(err)
			}
		} else {
			<-running
			setPhase(t, pods, corev1.PodSucceeded)
		}
		if !p.Kueue {
			p.free(job)
		}
	})
}

// free records that other jobs can have the devices of a job.
func (p *play) free(job *playing) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if job.ended.IsZero() || !job.freed.IsZero() {
		return
	}
	job.freed = time.Now()
	day := func(wall time.Duration) float64 { return wall.Seconds() * p.Compression }
	p.results = append(p.results, dayResult{
		Play: p.number, Name: job.Name, Devices: job.pods * job.devices,
		WaitedSeconds: day(job.admitted.Sub(p.begun)) - job.ArrivalSeconds, StartedSeconds: day(job.started.Sub(job.admitted)),
		FreedSeconds: day(job.freed.Sub(job.ended)), CompletionSeconds: day(job.ended.Sub(p.begun)) - job.ArrivalSeconds,
	})
	select {
	case p.changed <- struct{}{}:
	default: // it is told already
	}
}

// setPhase sets the phase of pods as their kubelets would.
func setPhase(t *testing.T, pods []string, phase corev1.PodPhase) {
	for _, name := range pods {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status": {"phase": %q}}`, phase))
		if err := rig.kubernetes.Status().Patch(t.Context(), pod, patch); err != nil {
			t.Error(err)
		}
	}
}

// watch calls for every object of a kind that is created, changes or ends.
func watch(t *testing.T, kind client.Object, changed, deleted func(object any)) {
	t.Helper()
	watched, err := informers.New(rig.Config, informers.Options{DefaultNamespaces: map[string]informers.Config{"default": {}}})
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = watched.Start(t.Context()) }()
	informer, err := watched.GetInformer(t.Context(), kind)
	if err != nil {
		t.Fatal(err)
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: changed, UpdateFunc: func(_, object any) { changed(object) }, DeleteFunc: deleted,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := testcluster.Until(t.Context(), func(context.Context) (bool, error) { return informer.HasSynced(), nil }); err != nil {
		t.Fatal(err)
	}
}

// watchQuota records when Kueue admits a job, and when its quota is free again.
func watchQuota(t *testing.T, plays []*play) {
	t.Helper()
	workload := &unstructured.Unstructured{}
	workload.SetGroupVersionKind(schema.GroupVersionKind{Group: "kueue.x-k8s.io", Version: "v1beta2", Kind: "Workload"})
	jobOf := func(object any) (*play, *playing, *unstructured.Unstructured) {
		if last, unknown := object.(cache.DeletedFinalStateUnknown); unknown {
			object = last.Obj
		}
		found, _ := object.(*unstructured.Unstructured)
		if found == nil || len(found.GetOwnerReferences()) == 0 {
			return nil, nil, found
		}
		for _, each := range plays {
			each.mutex.Lock()
			job := each.jobs[found.GetOwnerReferences()[0].Name]
			each.mutex.Unlock()
			if job != nil {
				return each, job, found
			}
		}
		return nil, nil, found
	}
	watch(t, workload, func(object any) {
		play, job, found := jobOf(object)
		if job == nil {
			return
		}
		if conditionIs(found, "Finished", "True") {
			play.free(job)
		} else if conditionIs(found, "Admitted", "True") {
			play.mutex.Lock()
			job.admit()
			play.mutex.Unlock()
		}
	}, func(object any) {
		if play, job, _ := jobOf(object); job != nil {
			play.free(job)
		}
	})
}

// admit records when the job was admitted.
func (j *playing) admit() {
	if j.admitted.IsZero() {
		j.admitted = time.Now()
	}
}

// watchPods records which pods are on which nodes.
func watchPods(t *testing.T, plays []*play) {
	t.Helper()
	placed := func(object any) {
		pod, _ := object.(*corev1.Pod)
		if pod == nil {
			return
		}
		if pod.DeletionTimestamp != nil && pod.Spec.NodeName != "" {
			_ = rig.kubernetes.Delete(t.Context(), pod.DeepCopy(), client.GracePeriodSeconds(0))
			return
		}
		for _, each := range plays {
			each.mutex.Lock()
			if job := each.jobs[jobOf(pod)]; job != nil && len(pod.Spec.Containers[0].Resources.Limits) > 0 {
				job.admit()
				if pod.Spec.NodeName != "" && job.on[pod.Name] == "" {
					job.on[pod.Name] = pod.Spec.NodeName
					each.used[pod.Spec.NodeName] += job.devices
					if len(job.on) == job.pods {
						go each.run(t, job)
					}
				}
			}
			each.mutex.Unlock()
		}
	}
	watch(t, &corev1.Pod{}, placed, nil)
}

// jobOf returns the name of the job of a pod.
func jobOf(pod *corev1.Pod) string {
	if cluster := pod.Labels["ray.io/cluster"]; cluster != "" {
		return cluster[:max(strings.LastIndex(cluster, "-"), 0)] // KubeRay appends a suffix to the name of the RayJob
	}
	for _, kind := range controlledKinds {
		if name := pod.Labels[kind.label]; name != "" && kind.kind != "Job" {
			return name
		}
	}
	return pod.Labels["batch.kubernetes.io/job-name"]
}
