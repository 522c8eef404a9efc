// Command overhead measures the overhead of the client: it repeats one action, while the benchmark measures the processor time.
//
//	overhead KIND COUNT
//
// KIND: unary_stub and unary_client ask $NODEWISE_SERVER one Predict, by the generated stub alone and by the client, whose rows are read;
// rows_decode and rows_read decode the BatchPredict reply in the file $NODEWISE_REPLY, and read its rows as well.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	nodewise "github.com/nodewise/nodewise/clients/go"
	nodewisev1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1"
)

func main() {
	found, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(found)
}

func run(words []string) (float64, error) {
	if len(words) != 2 {
		return 0, fmt.Errorf("overhead KIND COUNT")
	}
	count, err := strconv.Atoi(words[1])
	if err != nil {
		return 0, err
	}
	switch words[0] {
	case "unary_stub":
		return byStub(count)
	case "unary_client":
		return byClient(count)
	case "rows_decode":
		return decoded(count, func(reply *nodewisev1.BatchPredictResponse) float64 { return float64(len(reply.GetOutcomes())) })
	case "rows_read":
		return decoded(count, func(reply *nodewisev1.BatchPredictResponse) (sum float64) {
			for _, job := range nodewise.JobsOf(reply) {
				sum += total(job.Rows)
			}
			return sum
		})
	}
	return 0, fmt.Errorf("KIND is %s", words[0])
}

func request() *nodewisev1.PredictRequest {
	ranges := []*nodewisev1.ConfigurationRange{nodewise.NodeRange(1, 16)}
	return &nodewisev1.PredictRequest{Profile: nodewise.StoredProfile("a/b"), Ranges: ranges}
}

func byStub(count int) (sum float64, err error) {
	conn, err := grpc.NewClient(os.Getenv("NODEWISE_SERVER"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	stub, request := nodewisev1.NewPredictionServiceClient(conn), request()
	for range count {
		reply, err := stub.Predict(context.Background(), request)
		if err != nil {
			return 0, err
		}
		for _, seconds := range reply.GetPredictions().GetStepSeconds() {
			sum += seconds
		}
	}
	return sum, nil
}

func byClient(count int) (sum float64, err error) {
	client, err := nodewise.NewClient(os.Getenv("NODEWISE_SERVER"))
	if err != nil {
		return 0, err
	}
	defer client.Close()
	request := request()
	for range count {
		reply, err := client.Predict(context.Background(), request)
		if err != nil {
			return 0, err
		}
		sum += total(nodewise.RowsOf(reply.GetPredictions()))
	}
	return sum, nil
}

func decoded(count int, read func(*nodewisev1.BatchPredictResponse) float64) (sum float64, err error) {
	bytes, err := os.ReadFile(os.Getenv("NODEWISE_REPLY"))
	if err != nil {
		return 0, err
	}
	for range count {
		reply := &nodewisev1.BatchPredictResponse{}
		if err := proto.Unmarshal(bytes, reply); err != nil {
			return 0, err
		}
		sum += read(reply)
	}
	return sum, nil
}

// total reads what a scheduler reads of rows, through the row view.
func total(rows nodewise.Rows) (sum float64) {
	for _, row := range rows.All() {
		if !row.Answered() {
			continue
		}
		step, _ := row.StepSeconds()
		samples, _ := row.SamplesPerSecond()
		lower, _ := row.LowerSamplesPerSecond()
		upper, _ := row.UpperSamplesPerSecond()
		memory, _ := row.MemoryBytes()
		bottleneck, _ := row.Bottleneck()
		sum += step + samples + lower + upper + memory + float64(row.Nodes()) + float64(row.Workers()) + float64(len(bottleneck))
	}
	return sum
}
