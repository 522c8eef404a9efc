// Scheduler is a small cluster scheduler on Nodewise: it watches profiles, asks about all its jobs in one call, schedules them, applies what
// was decided, and reports what was measured. clients/examples.md says what it does, step by step, in every language.
//
//	go run ./examples/scheduler [TARGET [DEVICES [ROUNDS]]]
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	nodewise "github.com/nodewise/nodewise/clients/go"
	nodewisev1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1"
)

const (
	prefix         = "examples/scheduler-go/"
	devicesPerNode = 4
	batchSamples   = 32
	roundSeconds   = 600
)

// job is a job of the cluster, and what it holds.
type job struct {
	name                            string
	parameterBytes                  float64
	computeSeconds, transferSeconds float64
	samplesLeft                     float64
	holds                           *nodewisev1.CurrentAllocation // nil = it does not run
	runs                            *nodewisev1.JobAllocation     // what it was given last
}

type scheduler struct {
	client                  *nodewise.Client
	out                     io.Writer
	jobs                    []*job
	profiles                *profiles
	devices                 int
	begin                   time.Time
	policyState             []byte
	decisions, observations int
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := start(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func start(ctx context.Context, arguments []string) error {
	target, devices, rounds := os.Getenv("NODEWISE_SERVER"), 8, 4
	if len(arguments) > 0 {
		target = arguments[0]
	}
	for i, number := range []*int{&devices, &rounds} {
		if len(arguments) > i+1 {
			given, err := strconv.Atoi(arguments[i+1])
			if err != nil {
				return err
			}
			*number = given
		}
	}
	if devices < devicesPerNode || devices%devicesPerNode != 0 {
		return fmt.Errorf("DEVICES is %d; nodes have %d devices each, so give a multiple of that", devices, devicesPerNode)
	}
	return run(ctx, os.Stdout, target, devices, rounds)
}

func run(ctx context.Context, out io.Writer, target string, devices, rounds int) error {
	client, err := nodewise.NewClient(target, nodewise.FromEnvironment())
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &scheduler{
		client: client, out: out, devices: devices, begin: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		jobs: []*job{
			{name: "small", parameterBytes: 25_000_000, computeSeconds: 0.060, transferSeconds: 0.020, samplesLeft: 2e6},
			{name: "medium", parameterBytes: 102_000_000, computeSeconds: 0.210, transferSeconds: 0.082, samplesLeft: 4e6},
			{name: "large", parameterBytes: 550_000_000, computeSeconds: 0.480, transferSeconds: 0.440, samplesLeft: 3e6},
		},
	}
	if err := s.appendProfiles(ctx); err != nil {
		return err
	}
	s.profiles = watch(ctx, client)
	count, err := s.profiles.caughtUp(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "watching %d profiles\n", count)
	done := 0
	for done < rounds && len(s.unfinished()) > 0 {
		done++
		fmt.Fprintf(out, "round %d\n", done)
		if err := s.round(ctx, s.begin.Add(time.Duration(done-1)*roundSeconds*time.Second)); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "done: %d rounds, %d decisions, %d observations\n", done, s.decisions, s.observations)
	return nil
}

// appendProfiles tells what a short run on one node has shown of each job. The same request_id again changes nothing.
func (s *scheduler) appendProfiles(ctx context.Context) error {
	ran, err := nodewise.Configurations(nodewise.Configuration{
		Device: "V100", Nodes: 1, Workers: 1, SyncMode: nodewisev1.SyncMode_SYNC_MODE_ASYNC, BatchPerWorkerSamples: batchSamples,
	})
	if err != nil {
		return err
	}
	linkBytesPerSecond := 1.25e9
	for _, job := range s.jobs {
		_, err := s.client.AppendProfile(ctx, &nodewisev1.AppendProfileRequest{
			ProfileId: prefix + job.name,
			RequestId: "seed",
			Content: &nodewisev1.ProfileContent{
				Workload: &nodewisev1.Workload{ModelName: job.name, ParameterBytes: &job.parameterBytes},
				Network:  &nodewisev1.Network{LinkBytesPerSecond: &linkBytesPerSecond},
				PhaseTimings: &nodewisev1.PhaseTimings{
					Configurations:   ran,
					DownloadSeconds:  []float64{job.transferSeconds},
					ComputeSeconds:   []float64{job.computeSeconds},
					UploadSeconds:    []float64{job.transferSeconds},
					UpdateSeconds:    []float64{0.004},
					ComputeVariation: []float64{0.06},
				},
			},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *scheduler) unfinished() []*job {
	var found []*job
	for _, job := range s.jobs {
		if job.samplesLeft > 0 {
			found = append(found, job)
		}
	}
	return found
}

// round predicts, schedules, applies, lets the jobs run, and reports.
func (s *scheduler) round(ctx context.Context, now time.Time) error {
	jobs := s.unfinished()
	if err := s.predict(ctx, jobs); err != nil {
		return err
	}
	if err := s.schedule(ctx, jobs, now); err != nil {
		return err
	}
	end := now.Add(roundSeconds * time.Second)
	for _, job := range jobs {
		if job.holds == nil {
			continue
		}
		job.holds.AgeSeconds += roundSeconds
		job.samplesLeft = max(0, job.samplesLeft-roundSeconds*job.runs.GetSamplesPerSecond())
		revision, err := s.report(ctx, job, end)
		if err != nil {
			return err
		}
		if err := s.profiles.reached(ctx, prefix+job.name, revision); err != nil {
			return err
		}
		if job.samplesLeft == 0 {
			job.holds = nil
			fmt.Fprintf(s.out, "  %s: finished\n", job.name)
		}
	}
	return nil
}

// predict asks about all jobs in one call, on every number of workers.
func (s *scheduler) predict(ctx context.Context, jobs []*job) error {
	workers := nodewise.WorkerRange(1, int32(s.devices))
	perNode := int32(devicesPerNode)
	workers.WorkersPerNode = &perNode
	request := &nodewisev1.BatchPredictRequest{Ranges: []*nodewisev1.ConfigurationRange{workers}}
	for _, job := range jobs {
		request.Jobs = append(request.Jobs, &nodewisev1.BatchJob{Profile: s.source(job)})
	}
	reply, err := s.client.BatchPredict(ctx, request)
	if err != nil {
		return err
	}
	for i, answer := range nodewise.JobsOf(reply) {
		if best, exists := answer.Recommended(); exists {
			rate, _ := best.SamplesPerSecond()
			fmt.Fprintf(s.out, "  %s: best %d workers, %s samples/s\n", jobs[i].name, best.Workers(), whole(rate))
		} else {
			fmt.Fprintf(s.out, "  %s: no prediction, %s\n", jobs[i].name, nodewise.ReasonOf(answer.Err))
		}
	}
	return nil
}

// source names a job's profile, at least as new as the watch has told.
func (s *scheduler) source(job *job) *nodewisev1.ProfileSource {
	source, revision := nodewise.StoredProfile(prefix+job.name), s.profiles.revision(prefix+job.name)
	source.MinimumRevision = &revision
	return source
}

// schedule shares the cluster and applies what was decided.
func (s *scheduler) schedule(ctx context.Context, jobs []*job, now time.Time) error {
	pool := nodewise.NodePool("v100", "V100", int32(s.devices/devicesPerNode), devicesPerNode)
	request := &nodewisev1.ScheduleRequest{
		Now: timestamppb.New(now), Cluster: &nodewisev1.Cluster{Pools: []*nodewisev1.NodePool{pool}}, PolicyState: s.policyState,
	}
	for _, job := range jobs {
		request.Jobs = append(request.Jobs, &nodewisev1.ScheduleJob{
			JobId: job.name, Profile: s.source(job), RemainingSamples: job.samplesLeft, SubmitTime: timestamppb.New(s.begin),
			CurrentAllocation: job.holds,
		})
	}
	reply, err := s.client.Schedule(ctx, request)
	if err != nil {
		return err
	}
	s.policyState = reply.GetPolicyState()
	for i, given := range reply.GetAllocations() {
		s.decisions++
		job, action := jobs[i], strings.TrimPrefix(given.GetAction().String(), "SCHEDULE_ACTION_")
		switch given.GetAction() {
		case nodewisev1.ScheduleAction_SCHEDULE_ACTION_START, nodewisev1.ScheduleAction_SCHEDULE_ACTION_CHANGE:
			job.holds = &nodewisev1.CurrentAllocation{Pool: given.GetPool(), Placement: given.GetPlacement()}
			job.runs = given
		case nodewisev1.ScheduleAction_SCHEDULE_ACTION_KEEP:
			job.runs = given
		case nodewisev1.ScheduleAction_SCHEDULE_ACTION_WAIT:
			job.holds = nil
		}
		if job.holds == nil {
			fmt.Fprintf(s.out, "  %s: %s\n", job.name, action)
			continue
		}
		fmt.Fprintf(s.out, "  %s: %s %d devices, %s samples/s, %s samples left\n",
			job.name, action, job.runs.GetDevicesCount(), whole(job.runs.GetSamplesPerSecond()), whole(job.samplesLeft))
	}
	return nil
}

// report tells what the job was measured to do (a little less than predicted), and gives the profile's revision.
func (s *scheduler) report(ctx context.Context, job *job, end time.Time) (int64, error) {
	ran, err := nodewise.Configurations(nodewise.Configuration{
		Device: "V100", Nodes: job.runs.GetNodesCount(), Workers: job.runs.GetDevicesCount(),
		SyncMode: nodewisev1.SyncMode_SYNC_MODE_ASYNC, BatchPerWorkerSamples: batchSamples,
	})
	if err != nil {
		return 0, err
	}
	writer, err := s.client.Ingest(ctx, prefix+job.name)
	if err != nil {
		return 0, err
	}
	defer writer.Close()
	measured := 0.95 * job.runs.GetSamplesPerSecond()
	err = writer.Observe(ctx, &nodewisev1.Observations{
		Configurations: ran, StepsPerSecond: []float64{measured / batchSamples}, MeasuredAtUnixSeconds: []float64{float64(end.Unix())},
	})
	if err != nil {
		return 0, err
	}
	committed, err := writer.Commit(ctx)
	if err != nil {
		return 0, err
	}
	s.observations++
	fmt.Fprintf(s.out, "  %s: reported %s samples/s, revision %d\n", job.name, whole(measured), committed.Revision)
	return committed.Revision, nil
}

func whole(value float64) string { return strconv.FormatInt(int64(value+0.5), 10) }
