// Package collector appends the speed of jobs to their profiles, from their logs or metrics. Training code does not change, and pods need no
// sidecar.
package collector

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	nodewise "github.com/nodewise/nodewise/clients/go"
	nodewisev1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/jobs"
)

const (
	mostLogBytes = int64(8 << 20) // per window
	mostPending  = 1000           // observations kept while Nodewise does not answer; the oldest are dropped first
	readTimeout  = 10 * time.Second
)

// Collector reads logs or metrics once in each window.
type Collector struct {
	// Cluster reads pods and nodes; Logs reads logs.
	Cluster client.Client
	Logs    kubernetes.Interface
	// Append appends to a profile of Nodewise, within a time-out.
	Append func(context.Context, *nodewisev1.AppendProfileRequest) error
	// Window is the time that one observation covers.
	Window time.Duration

	ran     map[types.UID][]types.UID // the pods of each job at the end of the previous window
	scraped map[types.UID][]point     // numbers from metrics, of the previous and the present window
	pending []*nodewisev1.AppendProfileRequest
}

// Start collects at the end of each window until the context ends. Windows begin at multiples of their length, so that a restarted collector
// uses the same windows as before.
func (c *Collector) Start(ctx context.Context) error {
	for {
		end := time.Now().Truncate(c.Window).Add(c.Window)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Until(end)):
		}
		if err := c.Collect(ctx, end); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "the window cannot be read")
		}
	}
}

// running is a job whose pods are all running.
type running struct {
	uid     types.UID
	profile string
	pods    []*corev1.Pod // by name; the first one is read for all
	device  string
	devices int32 // per pod
}

// Collect reads the window that has just ended, and sends its observations and the pending ones.
func (c *Collector) Collect(ctx context.Context, end time.Time) error {
	if c.ran == nil {
		c.ran, c.scraped = map[types.UID][]types.UID{}, map[types.UID][]point{}
	}
	all, err := c.running(ctx)
	if err != nil {
		return err
	}
	ran := map[types.UID][]types.UID{}
	for _, each := range all {
		for _, pod := range each.pods {
			ran[each.uid] = append(ran[each.uid], pod.UID)
		}
		request, err := c.observe(ctx, each, end, slices.Equal(ran[each.uid], c.ran[each.uid]))
		if err != nil {
			log.FromContext(ctx).Error(err, "a job's speed cannot be read", "pod", client.ObjectKeyFromObject(each.pods[0]))
		} else if request != nil {
			c.pending = append(c.pending, request)
		}
	}
	c.ran = ran
	for uid := range c.scraped {
		if ran[uid] == nil {
			delete(c.scraped, uid)
		}
	}
	if extra := len(c.pending) - mostPending; extra > 0 {
		c.pending = c.pending[extra:]
	}
	return c.send(ctx)
}

// send appends pending observations, the oldest first, until Nodewise does not answer.
func (c *Collector) send(ctx context.Context) error {
	for len(c.pending) > 0 {
		err := c.Append(ctx, c.pending[0])
		switch reason := nodewise.ReasonOf(err); {
		case err == nil || reason == "REQUEST_ID_REUSED": // another collector sent a slightly different observation first
		case reason == "":
			return err
		default: // Nodewise would refuse it again
			log.FromContext(ctx).Error(err, "Nodewise refused an observation", "profile", c.pending[0].GetProfileId())
		}
		c.pending = c.pending[1:]
	}
	return nil
}

// running returns the jobs that state how to read their speed and whose pods all run, on nodes of one device type.
func (c *Collector) running(ctx context.Context) ([]*running, error) {
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
	byJob, unlike := map[types.UID]*running{}, map[types.UID]bool{}
	for index := range pods.Items {
		pod := &pods.Items[index]
		profile := pod.Annotations[jobs.Profile]
		if profile == "" || pod.Annotations[jobs.Steps] == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		uid := pod.UID
		if owner := metav1.GetControllerOf(pod); owner != nil {
			uid = owner.UID
		}
		device, count := devices[pod.Spec.NodeName], jobs.Devices(&pod.Spec)
		found := byJob[uid]
		if found == nil {
			found = &running{uid: uid, profile: profile, device: device, devices: count}
			byJob[uid] = found
		}
		unlike[uid] = unlike[uid] || pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil || device == "" || device != found.device || count != found.devices
		found.pods = append(found.pods, pod)
	}
	var all []*running
	for uid, each := range byJob {
		if !unlike[uid] && each.devices > 0 {
			slices.SortFunc(each.pods, byIndex)
			all = append(all, each)
		}
	}
	slices.SortFunc(all, func(a, b *running) int { return cmp.Compare(a.uid, b.uid) })
	return all, nil
}

// byIndex orders pods of indexed jobs by their index, others by name.
func byIndex(a, b *corev1.Pod) int {
	index := func(pod *corev1.Pod) int {
		found, _ := strconv.Atoi(pod.Annotations["batch.kubernetes.io/job-completion-index"])
		return found
	}
	return cmp.Or(cmp.Compare(index(a), index(b)), cmp.Compare(a.Name, b.Name))
}

// observe returns the observation of a job in a window; nil = there is none. A window in which pods were added or removed belongs to no
// configuration.
func (c *Collector) observe(ctx context.Context, of *running, end time.Time, same bool) (*nodewisev1.AppendProfileRequest, error) {
	pattern, err := ParsePattern(of.pods[0].Annotations[jobs.Steps])
	if err != nil {
		return nil, err
	}
	points, err := c.points(ctx, of, pattern, end)
	if err != nil || !same {
		return nil, err
	}
	sample, enough := pattern.sample(points, end.Add(-c.Window), end)
	if !enough {
		return nil, nil
	}
	ran, err := configuration(of)
	if err != nil {
		return nil, err
	}
	seen := &nodewisev1.Observations{Configurations: ran, StepsPerSecond: []float64{sample.StepsPerSecond}, MeasuredAtUnixSeconds: []float64{float64(end.Unix())}}
	if sample.Steps > 0 {
		seen.StepsCounts = []int32{sample.Steps}
	}
	if sample.VariationKnown {
		seen.StepVariation = []float64{sample.Variation}
	}
	return &nodewisev1.AppendProfileRequest{
		ProfileId: of.profile, RequestId: fmt.Sprintf("kubernetes-%s-%d", of.pods[0].UID, end.Unix()), Content: &nodewisev1.ProfileContent{Observations: seen},
	}, nil
}

// points returns the numbers in the log of the window, or in the metrics read so far.
func (c *Collector) points(ctx context.Context, of *running, pattern Pattern, end time.Time) ([]point, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	pod := of.pods[0]
	if metrics := pod.Annotations[jobs.Metrics]; metrics != "" {
		// A number that is read at the end of the window belongs to the window.
		found, err := scrape(ctx, "http://"+pod.Status.PodIP+metrics, pattern, end.Add(-time.Millisecond))
		if err != nil {
			return nil, err
		}
		all := append(c.scraped[of.uid], found...)
		c.scraped[of.uid] = all[max(len(all)-2, 0):]
		if pattern.name == stepNumber && len(c.scraped[of.uid]) == 2 && c.scraped[of.uid][0].at.Before(end.Add(-c.Window)) {
			c.scraped[of.uid][0].at = end.Add(-c.Window) // it was read at the begin of the window
		}
		return c.scraped[of.uid], nil
	}
	since, most := metav1.NewTime(end.Add(-c.Window)), mostLogBytes
	options := &corev1.PodLogOptions{Container: pod.Annotations[jobs.Container], SinceTime: &since, Timestamps: true, LimitBytes: &most}
	stream, err := c.Logs.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	return pattern.read(stream, true, end)
}

func scrape(ctx context.Context, url string, pattern Pattern, at time.Time) ([]point, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, reply.Status)
	}
	return pattern.read(io.LimitReader(reply.Body, mostLogBytes), false, at)
}

// configuration returns the configuration that a job runs on, including its owner's settings.
func configuration(of *running) (*nodewisev1.Configurations, error) {
	said := &nodewisev1.ConfigurationSettings{}
	if text := of.pods[0].Annotations[jobs.Settings]; text != "" {
		if err := protojson.Unmarshal([]byte(text), said); err != nil {
			return nil, fmt.Errorf("annotation %s: %w", jobs.Settings, err)
		}
	}
	nodes := int32(len(of.pods))
	return nodewise.Configurations(nodewise.Configuration{
		Nodes: nodes, Workers: nodes * of.devices, Device: of.device, SyncMode: said.GetSyncMode(), ParameterServers: said.ParameterServers,
		BatchPerWorkerSamples: said.GetBatchPerWorkerSamples(), GlobalBatchSamples: said.GetGlobalBatchSamples(), AccumulationSteps: said.GetAccumulationSteps(),
		LinkBytesPerSecond: said.GetLinkBytesPerSecond(), TensorParallel: said.GetTensorParallelDegree(), PipelineParallel: said.GetPipelineParallelDegree(),
		DataParallel: said.GetDataParallelDegree(), ExpertParallel: said.GetExpertParallelDegree(), ContextParallel: said.GetContextParallelDegree(),
		Interleave: said.GetInterleaveDegree(), SequenceParallel: said.GetSequenceParallel(), ZeroStage: said.GetZeroStage(), Recomputation: said.GetRecomputation(),
		Precision: said.GetPrecision(), BackupWorkers: said.GetBackupWorkers(), HybridSyncFraction: said.GetHybridSyncFraction(), HybridSwitchSeconds: said.GetHybridSwitchSeconds(),
	})
}
