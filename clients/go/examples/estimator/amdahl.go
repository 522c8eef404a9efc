package main

import (
	"math"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	nodewisepluginv1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/plugin/v1"
	nodewisev1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1"
)

// kind is what the constants hold for.
type kind struct {
	device string
	mode   nodewisev1.SyncMode
}

// row is one configuration: samples that all workers handle in one step time, 0 where the batch is not known.
type row struct {
	kind    kind
	workers float64
	samples float64
}

// timed is a row that was measured.
type timed struct {
	row
	secondsPerSample float64
}

type runs []timed

// at is an entry of a column that is empty, has one entry for all rows, or one for each.
func at[T any](column []T, index int, otherwise T) T {
	switch {
	case len(column) == 0:
		return otherwise
	case len(column) == 1:
		return column[0]
	default:
		return column[index]
	}
}

func rowsOf(columns *nodewisev1.Configurations) []row {
	rows := make([]row, len(columns.GetWorkers()))
	for index := range rows {
		workers := float64(columns.GetWorkers()[index])
		mode := at(columns.GetSyncModes(), index, nodewisev1.SyncMode_SYNC_MODE_UNSPECIFIED)
		perWorker := at(columns.GetBatchPerWorkerSamples(), index, 0) *
			float64(at(columns.GetAccumulationSteps(), index, 1))
		samples := perWorker * workers
		stated := at(columns.GetGlobalBatchSamples(), index, 0)
		if stated > 0 && mode != nodewisev1.SyncMode_SYNC_MODE_ASYNC {
			samples = stated
		}
		device := at(columns.GetDeviceNames(), int(at(columns.GetDeviceIndexes(), index, 0)), "")
		rows[index] = row{kind{device, mode}, workers, samples}
	}
	return rows
}

func observed(profile *nodewisepluginv1.Profile) runs {
	columns := profile.GetProfile().GetContent().GetObservations()
	found := runs{}
	for index, each := range rowsOf(columns.GetConfigurations()) {
		// Steps are those of all workers together where they are asynchronous: a step is one worker's batch then.
		rate := at(columns.GetStepsPerSecond(), index, 0) * each.samples
		if each.kind.mode == nodewisev1.SyncMode_SYNC_MODE_ASYNC {
			rate /= each.workers
		}
		found = append(found, timed{each, 1 / rate})
	}
	return found
}

func (r runs) counts() int {
	counts := map[float64]bool{}
	for _, each := range r {
		counts[each.workers] = true
	}
	return len(counts)
}

// missing says what would make an answer possible; nil = nothing is missing.
func (r runs) missing() *nodewisev1.Problem {
	usable := r.counts() >= 2
	for _, each := range r {
		usable = usable && each.kind == r[0].kind && each.samples > 0
	}
	if usable {
		return nil
	}
	return &nodewisev1.Problem{
		Reason: "EVIDENCE_MISSING",
		Message: "Amdahl's law needs observations of one device in one sync mode, with two numbers of workers and a " +
			"known batch",
		MissingFields: []string{"observations", "observations.configurations.batch_per_worker_samples"},
	}
}

// refused is a call that is refused as a whole: the reason of an ErrorInfo tells it from a failure.
func refused(problem *nodewisev1.Problem) error {
	said := status.New(codes.FailedPrecondition, problem.GetMessage())
	detailed, err := said.WithDetails(&errdetails.ErrorInfo{Reason: problem.GetReason(), Domain: "nodewise"})
	if err != nil {
		return said.Err()
	}
	return detailed.Err()
}

type model struct {
	kind             kind
	serial, parallel float64 // seconds per sample
	residual         float64 // standard deviation of the relative error; 0 = two observations leave nothing over
	least, most      float64 // workers
}

// fit is the least squares on relative errors; neither constant may be negative.
func fit(r runs) model {
	var aa, ab, bb, a, b float64
	fitted := model{kind: r[0].kind, least: math.Inf(1)}
	for _, each := range r {
		x, y := 1/each.secondsPerSample, 1/each.secondsPerSample/each.workers
		aa, ab, bb, a, b = aa+x*x, ab+x*y, bb+y*y, a+x, b+y
		fitted.least, fitted.most = min(fitted.least, each.workers), max(fitted.most, each.workers)
	}
	determinant := aa*bb - ab*ab
	fitted.serial, fitted.parallel = (a*bb-b*ab)/determinant, (b*aa-a*ab)/determinant
	if fitted.serial < 0 {
		fitted.serial, fitted.parallel = 0, b/bb
	} else if fitted.parallel < 0 {
		fitted.serial, fitted.parallel = a/aa, 0
	}
	var squares float64
	for _, each := range r {
		wrong := (fitted.serial+fitted.parallel/each.workers)/each.secondsPerSample - 1
		squares += wrong * wrong
	}
	if len(r) > 2 {
		fitted.residual = math.Sqrt(squares / float64(len(r)-2))
	}
	return fitted
}

// predict answers every row; rows that the law does not hold for are refused, and hold 0.
func (m model) predict(columns *nodewisev1.Configurations) *nodewisepluginv1.Predictions {
	rows := rowsOf(columns)
	count := len(rows)
	serial, parallel := make([]float64, count), make([]float64, count)
	found := &nodewisepluginv1.Predictions{
		StepSeconds:         make([]float64, count),
		Statuses:            make([]nodewisev1.RowStatus, count),
		LogSpreads:          make([]float64, count),
		ExtrapolationRatios: make([]float64, count),
		BottleneckNames:     []string{"serial", "parallel"},
		BottleneckIndexes:   make([]int32, count),
		BreakdownSeconds:    []*nodewisev1.NamedColumn{{Name: "serial", Values: serial}, {Name: "parallel", Values: parallel}},
	}
	var outside []int32
	for index, each := range rows {
		if each.kind != m.kind || each.samples <= 0 {
			found.Statuses[index] = nodewisev1.RowStatus_ROW_STATUS_REFUSED
			found.BottleneckIndexes[index] = -1
			outside = append(outside, int32(index)) //nolint:gosec // a question has fewer rows
			continue
		}
		found.Statuses[index] = nodewisev1.RowStatus_ROW_STATUS_ANSWERED
		serial[index], parallel[index] = each.samples*m.serial, each.samples*m.parallel/each.workers
		found.StepSeconds[index] = serial[index] + parallel[index] // the parts add up to the step
		if parallel[index] > serial[index] {
			found.BottleneckIndexes[index] = 1
		}
		found.LogSpreads[index] = m.residual
		found.ExtrapolationRatios[index] = max(each.workers/m.most, m.least/each.workers, 1)
	}
	if outside != nil {
		found.Refusals = []*nodewisev1.RowRefusal{{Rows: outside, Problem: &nodewisev1.Problem{
			Reason:        "UNSUPPORTED_CONFIGURATION",
			Message:       "the law holds for rows of the device and sync mode that were observed, with a known batch",
			MissingFields: []string{"configurations.batch_per_worker_samples"},
		}}}
	}
	return found
}
