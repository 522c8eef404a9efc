package nodewise_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	nodewise "github.com/nodewise/nodewise/clients/go"
	nodewisev1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1"
	nodewisev1beta1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1beta1"
	"github.com/nodewise/nodewise/clients/go/internal/realserver"
)

// timed is what a short run on one node has shown.
func timed(t testing.TB) *nodewisev1.ProfileContent {
	return &nodewisev1.ProfileContent{PhaseTimings: &nodewisev1.PhaseTimings{
		Configurations: ranOn(t, 1), DownloadSeconds: []float64{0.08}, ComputeSeconds: []float64{0.21}, UploadSeconds: []float64{0.08}, UpdateSeconds: []float64{0.004},
	}}
}

func ranOn(t testing.TB, nodes ...int32) *nodewisev1.Configurations {
	t.Helper()
	rows := []nodewise.Configuration{}
	for _, count := range nodes {
		rows = append(rows, nodewise.Configuration{
			Nodes: count, Workers: count, Device: "V100", SyncMode: nodewisev1.SyncMode_SYNC_MODE_ASYNC, BatchPerWorkerSamples: 32,
		})
	}
	found, err := nodewise.Configurations(rows...)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestARealServer(t *testing.T) {
	client := (&fake{target: realserver.Target(t)}).client(t)
	ctx, id := t.Context(), "go-test/"+strconv.FormatInt(time.Now().UnixNano(), 36)
	if told, err := client.Health(ctx, ""); err != nil || told != healthv1.HealthCheckResponse_SERVING {
		t.Fatal(told, err)
	}
	if _, err := client.AppendProfile(ctx, &nodewisev1.AppendProfileRequest{ProfileId: id, Content: timed(t)}); err != nil {
		t.Fatal(err)
	}
	question := &nodewisev1.PredictRequest{
		Profile: nodewise.StoredProfile(id), Ranges: []*nodewisev1.ConfigurationRange{nodewise.NodeRange(1, 4)}, Objective: nodewise.Objective(&nodewisev1.Knee{}),
	}
	answer, err := client.Predict(ctx, question)
	if err != nil {
		t.Fatal(err)
	}
	rows := nodewise.RowsOf(answer.GetPredictions())
	rate, known := rows.At(1).SamplesPerSecond()
	if rows.Len() != 4 || rows.At(1).Nodes() != 2 || !known || rate <= 0 || answer.GetRecommendation() == nil {
		t.Error(answer)
	}
	batch, err := client.BatchPredict(ctx, &nodewisev1.BatchPredictRequest{
		Jobs:   []*nodewisev1.BatchJob{{Profile: nodewise.StoredProfile(id)}, {Profile: nodewise.StoredProfile("go-test/none")}},
		Ranges: []*nodewisev1.ConfigurationRange{nodewise.NodeRange(2, 3)},
	})
	if err != nil {
		t.Fatal(err)
	}
	for index, job := range nodewise.JobsOf(batch) {
		if index == 0 {
			same, _ := job.Rows.At(0).SamplesPerSecond()
			is(t, "samples/s of the batch", same, job.Err == nil, rate)
		} else if nodewise.ReasonOf(job.Err) != "PROFILE_NOT_FOUND" {
			t.Error(job.Err)
		}
	}
	question.Ranges[0] = nodewise.NodeRange(4, 1)
	var failure *nodewise.Error
	if _, err := client.Predict(ctx, question); !errors.As(err, &failure) || failure.Reason != "INVALID_FIELD" || len(failure.Violations) == 0 {
		t.Error(err)
	}
	names := []string{}
	for device, err := range nodewise.Items(ctx, client.ListDevices, &nodewisev1.ListDevicesRequest{PageSize: ptr(int32(3))}, (*nodewisev1.ListDevicesResponse).GetDevices) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, device.GetName())
	}
	if len(names) <= 3 || !slices.IsSorted(names) {
		t.Error(names)
	}
	heard := 0
	simulation, err := client.Simulate(ctx, &nodewisev1beta1.SimulateRequest{
		Cluster: &nodewisev1.Cluster{Pools: []*nodewisev1.NodePool{nodewise.NodePool("v100", "V100", 2, 4)}},
		Jobs:    &nodewisev1beta1.SimulationJobs{Count: 2, ArrivalSeconds: []float64{0, 60}, WorkSamples: []float64{5e5}, CurveIndexes: []int32{0}},
		Curves: []*nodewisev1beta1.SimulationCurve{{Source: &nodewisev1beta1.SimulationCurve_Rows{Rows: &nodewisev1beta1.SimulationCurveRows{
			DevicesCounts: []int32{1, 2, 4}, SamplesPerSecond: []float64{100, 190, 350},
		}}}},
		Policy: "equal-share",
	}, func(*nodewisev1beta1.SimulationProgress) { heard++ })
	if err != nil || len(simulation.Result.GetRuns()) == 0 {
		t.Error(simulation, err)
	}
	writer, err := client.Ingest(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	if err := writer.Observe(ctx, &nodewisev1.Observations{Configurations: ranOn(t, 1, 2), StepsPerSecond: []float64{2.6, 5.1}}); err != nil {
		t.Fatal(err)
	}
	committed, err := writer.Commit(ctx)
	if err != nil || committed.ObservationsCount != 2 || committed.Revision != 2 {
		t.Error(committed, err)
	}
	if err := writer.Close(); err != nil {
		t.Error(err)
	}
	for event, err := range client.WatchProfiles(ctx, &nodewisev1.WatchProfilesRequest{NamePrefix: id}) {
		if err != nil || event.GetProfiles()[0].GetRevision() != 2 {
			t.Error(event, err)
		}
		break
	}
	for reply, err := range client.StreamPredict(ctx, slices.Values([]*nodewisev1.StreamPredictRequest{{
		Question: &nodewisev1.StreamPredictRequest_Predict{Predict: &nodewisev1.PredictRequest{Profile: nodewise.StoredProfile("go-test/none"), Ranges: question.Ranges}},
	}})) {
		if err != nil || nodewise.ProblemError(reply.GetProblem()) == nil || reply.GetQuestionId() != "1" {
			t.Error(reply, err)
		}
	}
}

// With NODEWISE_RESTARTS=100 a server of its own is renewed so often under load, every tenth time killed: no caller sees an error of a pure
// read where it is renewed, and no batch is lost or doubled in any case.
func TestRestarts(t *testing.T) {
	restarts, err := strconv.Atoi(os.Getenv("NODEWISE_RESTARTS"))
	if err != nil {
		t.Skip("NODEWISE_RESTARTS does not say how often")
	}
	store := "sqlite:" + t.TempDir() + "/store.db"
	server := realserver.Start(t, store, "127.0.0.1:0")
	target := server.Target
	client := (&fake{target: target}).client(t)
	if _, err := client.AppendProfile(t.Context(), &nodewisev1.AppendProfileRequest{ProfileId: "a", Content: timed(t)}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var reads, failed, written atomic.Int64
	var killed atomic.Bool
	var running sync.WaitGroup
	for range 3 {
		running.Go(func() {
			for ctx.Err() == nil {
				wasKilled := killed.Load()
				_, err := client.Predict(ctx, &nodewisev1.PredictRequest{Profile: nodewise.StoredProfile("a"), Ranges: []*nodewisev1.ConfigurationRange{nodewise.NodeRange(1, 16)}})
				if err == nil {
					reads.Add(1)
				} else if ctx.Err() == nil && !wasKilled && !killed.Load() {
					failed.Add(1)
					t.Error(err)
				}
			}
		})
	}
	writer, err := client.Ingest(t.Context(), "b", nodewise.WithBatching(1, 0, 4))
	if err != nil {
		t.Fatal(err)
	}
	running.Go(func() {
		for ctx.Err() == nil {
			if err := writer.Observe(t.Context(), &nodewisev1.Observations{Configurations: ranOn(t, 1), StepsPerSecond: []float64{2.5}}); err != nil {
				t.Error(err)
				return
			}
			if written.Add(1)%100 == 0 {
				if _, err := writer.Commit(t.Context()); err != nil {
					t.Error(err)
				}
			}
		}
	})
	answered := func() {
		for number := reads.Load() + 20; reads.Load() < number; {
			time.Sleep(time.Millisecond)
		}
	}
	for number := range restarts {
		if number%10 == 9 {
			killed.Store(true)
			server.Kill()
			server = realserver.Start(t, store, target)
			answered()
			killed.Store(false)
			continue
		}
		if err := server.Renew(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		answered()
	}
	stop()
	running.Wait()
	committed, err := writer.Commit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Error(err)
	}
	t.Logf("%d restarts, %d reads, %d failed; %d observations written, %d stored", restarts, reads.Load(), failed.Load(), written.Load(), committed.ObservationsCount)
	if int64(committed.ObservationsCount) != written.Load() {
		t.Error("observations were lost or doubled")
	}
}
