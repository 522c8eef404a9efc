// Predict asks how fast a job would be on 1 to 16 nodes; the README shows it.
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"os"

	nodewise "github.com/nodewise/nodewise/clients/go"
	nodewisev1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1"
)

func main() {
	client, err := nodewise.NewClient(cmp.Or(os.Getenv("NODEWISE_SERVER"), "127.0.0.1:50551"))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	ran, _ := nodewise.Configurations(nodewise.Configuration{Nodes: 1, Workers: 1, Device: "V100", SyncMode: nodewisev1.SyncMode_SYNC_MODE_ASYNC, BatchPerWorkerSamples: 32})
	profile := &nodewisev1.ProfileContent{PhaseTimings: &nodewisev1.PhaseTimings{ // from a short run on one node, seconds
		Configurations: ran, DownloadSeconds: []float64{0.08}, ComputeSeconds: []float64{0.21}, UploadSeconds: []float64{0.08}, UpdateSeconds: []float64{0.004},
	}}
	source, ctx := nodewise.InlineProfile(profile), context.Background() // or nodewise.StoredProfile("team-a/a1")
	ranges := []*nodewisev1.ConfigurationRange{nodewise.NodeRange(1, 16)}

	// Predict: one job.
	reply, err := client.Predict(ctx, &nodewisev1.PredictRequest{Profile: source, Ranges: ranges})
	if err != nil {
		log.Fatal(err) // errors.As to *nodewise.Error has code, reason, violations and retry delay
	}
	for _, row := range nodewise.RowsOf(reply.GetPredictions()).All() {
		if rate, known := row.SamplesPerSecond(); known {
			fmt.Printf("%d nodes: %.0f samples/s\n", row.Nodes(), rate)
		}
	}
	fmt.Println("recommended:", reply.GetRecommendation().GetNodes(), "nodes;", reply.GetRecommendation().GetWhy())

	// BatchPredict: many jobs, each with an answer or an error of its own.
	batch, err := client.BatchPredict(ctx, &nodewisev1.BatchPredictRequest{
		Jobs: []*nodewisev1.BatchJob{{Profile: source}, {Profile: nodewise.StoredProfile("nobody")}}, Ranges: ranges,
	})
	if err != nil {
		log.Fatal(err)
	}
	for i, job := range nodewise.JobsOf(batch) {
		if best, exists := job.Recommended(); exists {
			fmt.Println("job", i, "is best on", best.Nodes(), "nodes")
		} else {
			fmt.Println("job", i, "has no answer:", nodewise.ReasonOf(job.Err))
		}
	}

	// Schedule: all jobs of a cluster. Send the reply's policy_state with the next request.
	pool := nodewise.NodePool("rack", "V100", 4, 4)
	shares, err := client.Schedule(ctx, &nodewisev1.ScheduleRequest{
		Cluster: &nodewisev1.Cluster{Pools: []*nodewisev1.NodePool{pool}},
		Jobs:    []*nodewisev1.ScheduleJob{{JobId: "first", Profile: source, RemainingSamples: 1e6}},
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, job := range shares.GetAllocations() {
		fmt.Println(job.GetJobId(), job.GetAction(), job.GetDevicesCount(), "devices:", job.GetWhy())
	}
}
