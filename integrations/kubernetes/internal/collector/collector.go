// Package collector appends the speed of jobs to their profiles, from their logs, metrics or status. Training code does not change, and pods need
// no sidecar.
package collector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	nodewise "github.com/nodewise/nodewise/clients/go"
	nodewisev1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/jobs"
)

const (
	mostLogBytes = int64(8 << 20)   // per window
	mostReply    = int64(256 << 10) // bytes of a Prometheus' reply, which takes ten times as much memory; one series has a few thousand
	mostPending  = 1000             // observations kept while Nodewise does not answer; the oldest are dropped first
	readTimeout  = 10 * time.Second
	mostReads    = 32 // at a time
)

// Collector reads the speed of jobs once in each window.
type Collector struct {
	// Cluster reads nodes, pods and the jobs that own them, from a cache; Logs reads logs.
	Cluster client.Client
	Logs    kubernetes.Interface
	// Prometheus answers the queries of jobs; nil = there is none.
	Prometheus Querier
	// Append appends to a profile of Nodewise, within a time-out.
	Append func(context.Context, *nodewisev1.AppendProfileRequest) error
	// Window is the time that one observation covers. WarmUp is the time after a start, a restart or a resize that none covers.
	Window, WarmUp time.Duration

	histories map[types.UID]*history
	pending   []*nodewisev1.AppendProfileRequest
}

// history is what earlier windows showed of a job.
type history struct {
	job *job // as it was last read while it ran
	// shape is that of the job; it was first read at the end of the window since.
	shape string
	since time.Time
	// start and latest are readings of the present shape: the begin of the time that is measured, and the latest one.
	start, latest *reading
	// interrupted says that the shape changed, or that the collector has not read the job since its start.
	interrupted bool
	// observed says that there was an observation, whatever the shape.
	observed bool
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

// Collect reads the window that has just ended, and sends its observations and the pending ones.
func (c *Collector) Collect(ctx context.Context, end time.Time) error {
	all, err := c.jobs(ctx)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(each *job) bool { return each.ending })
	slices.SortStableFunc(all, func(a, b *job) int { return cmp.Compare(a.queries(), b.queries()) }) // a Prometheus that hangs delays queries alone
	histories := map[types.UID]*history{}
	for _, each := range all {
		histories[each.uid] = cmp.Or(c.histories[each.uid], &history{})
	}
	samples, errs := c.observeAll(ctx, all, histories, end)
	for index, each := range all {
		c.keep(ctx, histories[each.uid], samples[index], errs[index])
	}
	for uid, past := range c.histories {
		if histories[uid] != nil {
			continue
		}
		found, over, err := c.wholeRun(ctx, past)
		c.keep(ctx, past, found, err)
		if !over {
			histories[uid] = past
		}
	}
	c.histories = histories
	if extra := len(c.pending) - mostPending; extra > 0 {
		c.pending = c.pending[extra:]
	}
	return c.send(ctx)
}

// keep makes a job's observation pending, if there is one.
func (c *Collector) keep(ctx context.Context, past *history, found *Sample, err error) {
	of := past.job
	var request *nodewisev1.AppendProfileRequest
	if err == nil && found != nil {
		request, err = of.request(found)
	}
	switch logger := log.FromContext(ctx).WithValues("pod", client.ObjectKeyFromObject(of.pods[0])); {
	case err != nil:
		logger.Error(err, "a job's speed cannot be read")
	case request != nil:
		past.observed = true
		c.pending = append(c.pending, request)
		logger.Info("observation", "profile", request.ProfileId, "source", found.Source, "nodes", len(of.pods), "stepsPerSecond", found.StepsPerSecond)
	}
}

// send appends pending observations, the oldest first, until Nodewise does not take them now.
func (c *Collector) send(ctx context.Context) error {
	for len(c.pending) > 0 {
		err := c.Append(ctx, c.pending[0])
		switch {
		case err == nil || nodewise.ReasonOf(err) == "REQUEST_ID_REUSED": // another collector sent a slightly different observation first
		case later(err):
			return err
		default: // Nodewise would refuse it again
			log.FromContext(ctx).Error(err, "Nodewise refused an observation", "profile", c.pending[0].GetProfileId())
		}
		c.pending = c.pending[1:]
	}
	return nil
}

// later reports whether Nodewise may take the same observation later: it does not answer now, is busy, or does not accept the token.
func later(err error) bool {
	var failure *nodewise.Error
	if !errors.As(err, &failure) || failure.Reason == "" {
		return true
	}
	switch failure.Code {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Unauthenticated:
		return true
	case codes.ResourceExhausted: // without a delay it is the quota of a namespace that is full, which must not stop the observations of others
		_, temporary := failure.RetryDelay()
		return temporary || failure.Reason != "QUOTA_EXCEEDED"
	}
	return false
}

// queries returns the number of queries in PromQL that read a job.
func (j *job) queries() int { return min(len(j.annotations[jobs.Query]), 1) }

// observeAll observes jobs, several at a time: a source that hangs delays other jobs little, and the next window not at all.
func (c *Collector) observeAll(ctx context.Context, all []*job, histories map[types.UID]*history, end time.Time) ([]*Sample, []error) {
	ctx, cancel := context.WithTimeout(ctx, max(c.Window/2, readTimeout))
	defer cancel()
	samples, errs := make([]*Sample, len(all)), make([]error, len(all))
	slots := make(chan struct{}, mostReads)
	var reading sync.WaitGroup
	for index, each := range all {
		slots <- struct{}{}
		reading.Go(func() {
			samples[index], errs[index] = c.observe(ctx, each, histories[each.uid], end)
			<-slots
		})
	}
	reading.Wait()
	return samples, errs
}

// observe returns the speed of a job in the window that ends now; nil = there is none. A window with another number of pods, a restart or warm-up
// belongs to no configuration.
func (c *Collector) observe(ctx context.Context, of *job, past *history, end time.Time) (*Sample, error) {
	shape := of.shape()
	if shape != past.shape {
		late := shape != "" && of.begun().Before(end.Add(-c.Window))
		*past = history{shape: shape, since: end, interrupted: past.interrupted || past.shape != "" || late, observed: past.observed}
	}
	past.job = of
	if shape == "" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	from := past.since
	if begun := of.begun(); begun.After(from) {
		from = begun
	}
	return c.read(ctx, of, past, from.Add(c.WarmUp), end)
}

// request returns the observation of a job as Nodewise takes it. An id of the pod and the end of the window makes it count once.
func (j *job) request(found *Sample) (*nodewisev1.AppendProfileRequest, error) {
	ran, err := j.configuration()
	if err != nil {
		return nil, err
	}
	seen := &nodewisev1.Observations{
		Configurations: ran, StepsPerSecond: []float64{found.StepsPerSecond}, MeasuredAtUnixSeconds: []float64{float64(found.At.Unix())},
	}
	if found.Steps > 0 {
		seen.StepsCounts = []int32{found.Steps}
	}
	if found.VariationKnown {
		seen.StepVariation = []float64{found.Variation}
	}
	return &nodewisev1.AppendProfileRequest{
		ProfileId: j.annotations[jobs.Profile], RequestId: fmt.Sprintf("kubernetes-%s-%d", j.pods[0].UID, found.At.Unix()),
		Content: &nodewisev1.ProfileContent{Observations: seen},
	}, nil
}

// settings returns how a job runs independent of its scale, as its owner states it.
func (j *job) settings() (*nodewisev1.ConfigurationSettings, error) {
	said := &nodewisev1.ConfigurationSettings{}
	if text := j.annotations[jobs.Settings]; text != "" {
		if err := protojson.Unmarshal([]byte(text), said); err != nil {
			return nil, fmt.Errorf("annotation %s: %w", jobs.Settings, err)
		}
	}
	return said, nil
}

// configuration returns the configuration that a job runs on, including its owner's settings.
func (j *job) configuration() (*nodewisev1.Configurations, error) {
	said, err := j.settings()
	if err != nil {
		return nil, err
	}
	nodes := int32(len(j.pods))
	return nodewise.Configurations(nodewise.Configuration{
		Nodes: nodes, Workers: nodes * j.devices, Device: j.device, SyncMode: said.GetSyncMode(), ParameterServers: said.ParameterServers,
		BatchPerWorkerSamples: said.GetBatchPerWorkerSamples(), GlobalBatchSamples: said.GetGlobalBatchSamples(), AccumulationSteps: said.GetAccumulationSteps(),
		LinkBytesPerSecond: said.GetLinkBytesPerSecond(), TensorParallel: said.GetTensorParallelDegree(), PipelineParallel: said.GetPipelineParallelDegree(),
		DataParallel: said.GetDataParallelDegree(), ExpertParallel: said.GetExpertParallelDegree(), ContextParallel: said.GetContextParallelDegree(),
		Interleave: said.GetInterleaveDegree(), SequenceParallel: said.GetSequenceParallel(), ZeroStage: said.GetZeroStage(), Recomputation: said.GetRecomputation(),
		Precision: said.GetPrecision(), BackupWorkers: said.GetBackupWorkers(), HybridSyncFraction: said.GetHybridSyncFraction(), HybridSwitchSeconds: said.GetHybridSwitchSeconds(),
	})
}
