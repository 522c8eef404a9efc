package nodewise

import (
	"iter"
	"slices"

	nodewisev1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1"
)

// JobAnswer is what became of one job of a batch.
type JobAnswer struct {
	// Rows of the job; none where it has an error, or is unchanged.
	Rows Rows
	// Recommendation has a row that is counted from the job's first; nil where no row meets the objective.
	Recommendation *nodewisev1.Recommendation
	// Basis is what the answer rests on; nil where there is none.
	Basis *nodewisev1.Basis
	// Warnings concern this job; their rows are counted from the job's first.
	Warnings []*nodewisev1.Notice
	// Err is why the job could not be answered, an *Error; nil = answered.
	Err error
	// Unchanged says that the digest asked about still holds.
	Unchanged bool
}

// Recommended is the recommended row, if there is one.
func (j JobAnswer) Recommended() (row Row, exists bool) {
	if j.Recommendation == nil {
		return Row{}, false
	}
	return j.Rows.At(int(j.Recommendation.GetRow())), true
}

// JobsOf gives the jobs of a batch with their numbers, in the order asked. About architectures there are no jobs: read the rows of
// predictions by [RowsOf].
func JobsOf(reply *nodewisev1.BatchPredictResponse) iter.Seq2[int, JobAnswer] {
	return func(yield func(int, JobAnswer) bool) {
		whole := viewOf(reply.GetPredictions())
		for index, outcome := range reply.GetOutcomes() {
			if !yield(index, jobAnswer(reply, whole, index, outcome)) {
				return
			}
		}
	}
}

func jobAnswer(reply *nodewisev1.BatchPredictResponse, whole *view, index int, outcome *nodewisev1.BatchJobOutcome) JobAnswer {
	found := JobAnswer{Recommendation: outcome.GetRecommendation(), Err: ProblemError(outcome.GetProblem()), Unchanged: outcome.GetUnchanged()}
	begin, end := 0, 0
	if offsets := reply.GetRowOffsets(); index+1 < len(offsets) {
		begin, end = int(offsets[index]), int(offsets[index+1])
	}
	found.Rows = Rows{whole.asked(outcome), begin, end}
	if entry := outcome.BasisIndex; entry != nil && int(*entry) < len(reply.GetBases()) {
		found.Basis = reply.GetBases()[*entry]
	}
	if found.Err == nil {
		found.Warnings = warningsBetween(reply.GetPredictions().GetWarnings(), int32(begin), int32(end))
	}
	return found
}

// asked is the view with what the job has; the others' columns are empty.
func (v *view) asked(outcome *nodewisev1.BatchJobOutcome) *view {
	own := *v
	own.basis = outcome.GetIntervalBasis()
	lacks := func(column nodewisev1.PredictionColumn) bool { return !slices.Contains(outcome.GetColumns(), column) }
	if lacks(nodewisev1.PredictionColumn_PREDICTION_COLUMN_INTERVAL) {
		own.lower, own.upper = nil, nil
	}
	if lacks(nodewisev1.PredictionColumn_PREDICTION_COLUMN_BREAKDOWN) {
		own.breakdown, own.bottlenecks = nil, nil
	}
	if lacks(nodewisev1.PredictionColumn_PREDICTION_COLUMN_UTILIZATION) {
		own.utilization = nil
	}
	if lacks(nodewisev1.PredictionColumn_PREDICTION_COLUMN_STALENESS) {
		own.staleness, own.staleness95 = nil, nil
	}
	if lacks(nodewisev1.PredictionColumn_PREDICTION_COLUMN_MEMORY) {
		own.memory, own.excess = nil, nil
	}
	if lacks(nodewisev1.PredictionColumn_PREDICTION_COLUMN_WORK) {
		own.finish, own.cost = nil, nil
	}
	if lacks(nodewisev1.PredictionColumn_PREDICTION_COLUMN_EXTRA) {
		own.extra = nil
	}
	if lacks(nodewisev1.PredictionColumn_PREDICTION_COLUMN_GOODPUT) {
		own.globalBatch, own.workerBatch, own.accumulation, own.goods = nil, nil, nil, nil
	}
	if lacks(nodewisev1.PredictionColumn_PREDICTION_COLUMN_RISK) {
		own.finishQuantiles, own.costQuantiles, own.revocations = nil, nil, nil
	}
	return &own
}

func warningsBetween(warnings []*nodewisev1.Notice, begin, end int32) []*nodewisev1.Notice {
	var kept []*nodewisev1.Notice
	for _, notice := range warnings {
		if len(notice.GetRows()) == 0 {
			kept = append(kept, notice)
			continue
		}
		var rows []int32
		for _, row := range notice.GetRows() {
			if begin <= row && row < end {
				rows = append(rows, row-begin)
			}
		}
		if rows != nil {
			kept = append(kept, &nodewisev1.Notice{Reason: notice.GetReason(), Message: notice.GetMessage(), Rows: rows})
		}
	}
	return kept
}
