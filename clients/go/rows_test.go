package nodewise_test

import (
	"errors"
	"maps"
	"testing"

	"google.golang.org/grpc/codes"

	nodewise "github.com/nodewise/nodewise/clients/go"
	nodewisev1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1"
)

func missing[T any](t *testing.T, what string, value T, known bool) {
	t.Helper()
	if known {
		t.Errorf("%s is %v, where there is none", what, value)
	}
}

func is[T comparable](t *testing.T, what string, value T, known bool, want T) {
	t.Helper()
	if !known || value != want {
		t.Errorf("%s is %v (%v), want %v", what, value, known, want)
	}
}

func TestRowsSayWhatThereIsNot(t *testing.T) {
	rows := nodewise.RowsOf(&nodewisev1.Predictions{
		RowsCount: 4,
		Statuses: []nodewisev1.RowStatus{
			nodewisev1.RowStatus_ROW_STATUS_ANSWERED, nodewisev1.RowStatus_ROW_STATUS_ANSWERED, nodewisev1.RowStatus_ROW_STATUS_REFUSED,
			nodewisev1.RowStatus_ROW_STATUS_INFEASIBLE_MEMORY,
		},
		Refusals:            []*nodewisev1.RowRefusal{{Rows: []int32{2}, Problem: &nodewisev1.Problem{Reason: "EVIDENCE_MISSING"}}},
		Nodes:               []int32{1, 2, 3, 4},
		Workers:             []int32{1, 2, 3, 4},
		StepSeconds:         []float64{0.5, 0.5, 0, 0},
		StepsPerSecond:      []float64{2, 4, 0, 0},
		SamplesPerSecond:    []float64{64, 0, 0, 0},
		LowerStepsPerSecond: []float64{0, 0, 0, 0},
		UpperStepsPerSecond: []float64{3, 0, 0, 0},
		IntervalCoverage:    ptr(0.9),
		IntervalBasis:       nodewisev1.IntervalBasis_INTERVAL_BASIS_CONFORMAL,
		BreakdownSeconds:    []*nodewisev1.NamedColumn{{Name: "compute", Values: []float64{0.4, 0.5, 0, 0}}, {Name: "upload", Values: []float64{0.1, 0, 0, 0}}},
		BottleneckNames:     []string{"upload", ""},
		BottleneckIndexes:   []int32{0, 1, 0, 0},
		StalenessMeanSteps:  []float64{0, 1, 0, 0},
		MemoryBytes:         []float64{1e9, 0, 0, 9e10},
		ExcessMemoryBytes:   []float64{0, 0, 0, 1e10},
		FinishSeconds:       []float64{100, 0, 0, 0},
		Costs:               []float64{0, 0, 0, 0},
		CostQuantiles:       []*nodewisev1.QuantileColumn{{Probability: 0.9, Values: []float64{7, 0, 0, 0}}},
		AccumulationSteps:   []int32{2, 0, 0, 0},
	})
	if rows.Len() != 4 {
		t.Fatal(rows.Len())
	}
	first, second, refused, large := rows.At(0), rows.At(1), rows.At(2), rows.At(3)
	value, known := first.SamplesPerSecond()
	is(t, "samples/s", value, known, 64)
	value, known = first.LowerSamplesPerSecond() // a bound may be 0
	is(t, "lower samples/s", value, known, 0)
	value, known = first.UpperSamplesPerSecond()
	is(t, "upper samples/s", value, known, 96)
	value, known = first.IntervalCoverage()
	is(t, "coverage", value, known, 0.9)
	name, known := first.Bottleneck()
	is(t, "bottleneck", name, known, "upload")
	value, known = first.StalenessMeanSteps() // 0 may be meant
	is(t, "staleness", value, known, 0)
	value, known = first.Cost() // so may it here
	is(t, "cost", value, known, 0)
	steps, known := first.AccumulationSteps()
	is(t, "accumulation", steps, known, 2)
	if parts := maps.Collect(first.BreakdownSeconds()); len(parts) != 2 || parts["upload"] != 0.1 {
		t.Error(parts)
	}
	if quantiles := maps.Collect(first.CostQuantiles()); quantiles[0.9] != 7 {
		t.Error(quantiles)
	}
	value, known = first.StalenessP95Steps()
	missing(t, "a column that was not sent", value, known)

	value, known = second.SamplesPerSecond()
	missing(t, "samples/s of an unknown batch", value, known)
	value, known = second.LowerStepsPerSecond()
	missing(t, "a bound without the other", value, known)
	if second.IntervalBasis() != nodewisev1.IntervalBasis_INTERVAL_BASIS_UNSPECIFIED {
		t.Error(second.IntervalBasis())
	}
	name, known = second.Bottleneck()
	missing(t, "a bottleneck without a name", name, known)
	value, known = second.Cost()
	missing(t, "a cost of no work", value, known)

	if refused.Answered() || refused.Refusal().GetReason() != "EVIDENCE_MISSING" || refused.Nodes() != 3 {
		t.Error(refused.Status(), refused.Refusal(), refused.Nodes())
	}
	value, known = refused.StepSeconds()
	missing(t, "step seconds of a refused row", value, known)
	if parts := maps.Collect(refused.BreakdownSeconds()); len(parts) != 0 {
		t.Error(parts)
	}
	value, known = large.ExcessMemoryBytes()
	is(t, "excess memory", value, known, 1e10)
	if large.Status() != nodewisev1.RowStatus_ROW_STATUS_INFEASIBLE_MEMORY || large.Refusal() != nil {
		t.Error(large.Status(), large.Refusal())
	}
	if nodewise.RowsOf(nil).Len() != 0 {
		t.Error("rows of nothing")
	}
}

func TestColumnsThatAreTooShortAreAbsent(t *testing.T) {
	row := nodewise.RowsOf(&nodewisev1.Predictions{RowsCount: 2, StepSeconds: []float64{1}, BottleneckIndexes: []int32{0, 7}}).At(1)
	value, known := row.StepSeconds()
	missing(t, "step seconds", value, known)
	name, known := row.Bottleneck()
	missing(t, "bottleneck", name, known)
	if row.Nodes() != 0 || !row.Answered() {
		t.Error(row)
	}
}

func TestJobsHaveTheirOwnRowsAndColumns(t *testing.T) {
	reply := &nodewisev1.BatchPredictResponse{
		Outcomes: []*nodewisev1.BatchJobOutcome{
			{BasisIndex: ptr(int32(0)), Columns: []nodewisev1.PredictionColumn{nodewisev1.PredictionColumn_PREDICTION_COLUMN_INTERVAL},
				IntervalBasis: nodewisev1.IntervalBasis_INTERVAL_BASIS_SIMULATION, Recommendation: &nodewisev1.Recommendation{Row: 1}},
			{Problem: &nodewisev1.Problem{Reason: "PROFILE_NOT_FOUND", Message: "none", RetryDelaySeconds: ptr(0.5),
				Violations: []*nodewisev1.FieldViolation{{Field: "profile", Description: "x"}}}},
			{Columns: []nodewisev1.PredictionColumn{nodewisev1.PredictionColumn_PREDICTION_COLUMN_MEMORY}, Unchanged: false},
		},
		RowOffsets: []int32{0, 2, 2, 3},
		Bases:      []*nodewisev1.Basis{{Estimator: "queueing"}},
		Predictions: &nodewisev1.Predictions{
			RowsCount: 3, Nodes: []int32{1, 2, 9}, StepSeconds: []float64{1, 2, 3}, StepsPerSecond: []float64{1, 2, 3}, SamplesPerSecond: []float64{10, 20, 30},
			LowerStepsPerSecond: []float64{0.5, 1, 0}, UpperStepsPerSecond: []float64{2, 3, 0}, MemoryBytes: []float64{0, 0, 5},
			Warnings: []*nodewisev1.Notice{{Reason: "EXTRAPOLATES", Rows: []int32{1, 2}}, {Reason: "ALL"}},
		},
	}
	var jobs []nodewise.JobAnswer
	for index, job := range nodewise.JobsOf(reply) {
		if index != len(jobs) {
			t.Error(index)
		}
		jobs = append(jobs, job)
	}
	best, exists := jobs[0].Recommended()
	if !exists || best.Nodes() != 2 || jobs[0].Basis.GetEstimator() != "queueing" || best.IntervalBasis() != nodewisev1.IntervalBasis_INTERVAL_BASIS_SIMULATION {
		t.Error(best.Nodes(), jobs[0].Basis, best.IntervalBasis())
	}
	if len(jobs[0].Warnings) != 2 || jobs[0].Warnings[0].GetRows()[0] != 1 || jobs[2].Warnings[0].GetRows()[0] != 0 {
		t.Error(jobs[0].Warnings, jobs[2].Warnings)
	}
	value, known := best.MemoryBytes()
	missing(t, "a column of another job", value, known)
	var failure *nodewise.Error
	if !errors.As(jobs[1].Err, &failure) || failure.Code != codes.NotFound || failure.Reason != "PROFILE_NOT_FOUND" || len(failure.Violations) != 1 || jobs[1].Rows.Len() != 0 {
		t.Error(jobs[1].Err)
	}
	if delay, said := failure.RetryDelay(); !said || delay.Seconds() != 0.5 {
		t.Error(delay, said)
	}
	count := 0
	for index, row := range jobs[2].Rows.All() {
		value, known = row.MemoryBytes()
		is(t, "memory", value, known, 5)
		value, known = row.UpperStepsPerSecond()
		missing(t, "bounds that were not asked for", value, known)
		if count++; index != 0 || row.Nodes() != 9 {
			t.Error(index, row.Nodes())
		}
	}
	if _, exists := jobs[2].Recommended(); exists || count != 1 || jobs[2].Err != nil {
		t.Error(exists, count, jobs[2].Err)
	}
}
