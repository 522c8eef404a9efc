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
	reply, err := client.Predict(context.Background(), &nodewisev1.PredictRequest{
		Profile: nodewise.InlineProfile(profile), Ranges: []*nodewisev1.ConfigurationRange{nodewise.NodeRange(1, 16)},
	})
	if err != nil {
		log.Fatal(err) // errors.As to *nodewise.Error tells code, reason, violations and retry delay
	}
	for _, row := range nodewise.RowsOf(reply.GetPredictions()).All() {
		if rate, known := row.SamplesPerSecond(); known {
			fmt.Printf("%d nodes: %.0f samples/s\n", row.Nodes(), rate)
		}
	}
	fmt.Println("recommended:", reply.GetRecommendation().GetNodes(), "nodes;", reply.GetRecommendation().GetWhy())
}
