package nodewise_test

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	nodewise "github.com/nodewise/nodewise/clients/go"
	nodewisev1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1"
)

// predictions are as a server gives them by default: bounds, breakdown, utilization, bottlenecks, work.
func predictions(rows int) *nodewisev1.Predictions {
	column := func(first float64) []float64 {
		values := make([]float64, rows)
		for i := range values {
			values[i] = first + float64(i)/7
		}
		return values
	}
	named := func(names ...string) (columns []*nodewisev1.NamedColumn) {
		for i, name := range names {
			columns = append(columns, &nodewisev1.NamedColumn{Name: name, Values: column(float64(i))})
		}
		return columns
	}
	found := &nodewisev1.Predictions{
		RowsCount: int32(rows), StepSeconds: column(1), StepsPerSecond: column(2), SamplesPerSecond: column(3), LowerStepsPerSecond: column(1),
		UpperStepsPerSecond: column(3), IntervalCoverage: ptr(0.9), BreakdownSeconds: named("compute", "download", "upload", "update"),
		BottleneckNames: []string{"compute", "upload"}, Utilization: named("worker", "server"), ExtrapolationRatios: column(1), FinishSeconds: column(9),
		MemoryBytes: column(1e9), ExcessMemoryBytes: make([]float64, rows),
	}
	for i := range rows {
		found.Nodes, found.Workers = append(found.Nodes, int32(i+1)), append(found.Workers, int32(i+1))
		found.BottleneckIndexes = append(found.BottleneckIndexes, int32(i%2))
	}
	return found
}

// total reads what a scheduler reads of a row, through the row view.
func total(rows nodewise.Rows) (sum float64, words int) {
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
		sum += step + samples + lower + upper + memory + float64(row.Nodes()) + float64(row.Workers())
		words += len(bottleneck)
	}
	return sum, words
}

// BenchmarkUnary is one Predict of 16 configurations over loopback: the generated stub alone, and this client with its row view. What it
// costs may be at most 1.3 times the stub.
func BenchmarkUnary(b *testing.B) {
	reply := &nodewisev1.PredictResponse{Predictions: predictions(16), Basis: &nodewisev1.Basis{Estimator: "queueing"}}
	server := (&fake{predict: func(context.Context, *nodewisev1.PredictRequest) (*nodewisev1.PredictResponse, error) {
		return reply, nil
	}}).serve(b)
	request := &nodewisev1.PredictRequest{Profile: nodewise.StoredProfile("a/b"), Ranges: []*nodewisev1.ConfigurationRange{nodewise.NodeRange(1, 16)}}
	conn, err := grpc.NewClient(server.target, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	stub, client := nodewisev1.NewPredictionServiceClient(conn), server.client(b)
	b.Run("stub", func(b *testing.B) {
		for b.Loop() {
			if _, err := stub.Predict(b.Context(), request); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("client", func(b *testing.B) {
		for b.Loop() {
			reply, err := client.Predict(b.Context(), request)
			if err != nil {
				b.Fatal(err)
			}
			if sum, _ := total(nodewise.RowsOf(reply.GetPredictions())); sum == 0 {
				b.Fatal("nothing was read")
			}
		}
	})
}

// BenchmarkRows is a BatchPredict reply of 64 jobs with 160 rows each: decoded alone, and decoded and read row by row. Reading may cost at
// most half as much as decoding.
func BenchmarkRows(b *testing.B) {
	reply := &nodewisev1.BatchPredictResponse{Predictions: predictions(10240), RowOffsets: []int32{0}}
	columns := []nodewisev1.PredictionColumn{3, 4, 5, 7, 8}
	for job := range int32(64) {
		reply.Outcomes = append(reply.Outcomes, &nodewisev1.BatchJobOutcome{Columns: columns})
		reply.RowOffsets = append(reply.RowOffsets, (job+1)*160)
	}
	bytes, err := proto.Marshal(reply)
	if err != nil {
		b.Fatal(err)
	}
	decode := func(b *testing.B) *nodewisev1.BatchPredictResponse {
		decoded := &nodewisev1.BatchPredictResponse{}
		if err := proto.Unmarshal(bytes, decoded); err != nil {
			b.Fatal(err)
		}
		return decoded
	}
	b.Run("decode", func(b *testing.B) {
		for b.Loop() {
			decode(b)
		}
	})
	b.Run("decode_and_read", func(b *testing.B) {
		for b.Loop() {
			sum, read := 0.0, 0
			for _, job := range nodewise.JobsOf(decode(b)) {
				of, _ := total(job.Rows)
				sum, read = sum+of, read+job.Rows.Len()
			}
			if sum == 0 || read != 10240 {
				b.Fatal(sum, read)
			}
		}
	})
}
