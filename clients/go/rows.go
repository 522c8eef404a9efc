package nodewise

import (
	"iter"

	nodewisev1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1"
)

// Rows are predictions row by row. They are a view: nothing is copied, and predictions must not be changed while it is used.
type Rows struct {
	view       *view
	begin, end int
}

// view holds the columns that the rows have; those that a job of a batch did not ask for are empty, though others' rows may fill them.
type view struct {
	statuses                        []nodewisev1.RowStatus
	refusals                        map[int32]*nodewisev1.Problem
	step, steps, samples            []float64
	lower, upper                    []float64
	coverage                        *float64
	basis                           nodewisev1.IntervalBasis
	breakdown, utilization, extra   []*nodewisev1.NamedColumn
	bottleneckNames                 []string
	bottlenecks                     []int32
	staleness, staleness95          []float64
	extrapolation, memory, excess   []float64
	finish, once, cost              []float64
	finishQuantiles, costQuantiles  []*nodewisev1.QuantileColumn
	revocations                     []float64
	nodes, workers, accumulation    []int32
	globalBatch, workerBatch, goods []float64
}

// RowsOf gives the rows of predictions, such as those of a PredictResponse; without predictions there are none.
func RowsOf(predictions *nodewisev1.Predictions) Rows {
	return Rows{viewOf(predictions), 0, int(predictions.GetRowsCount())}
}

func viewOf(p *nodewisev1.Predictions) *view {
	found := &view{
		statuses: p.GetStatuses(), step: p.GetStepSeconds(), steps: p.GetStepsPerSecond(), samples: p.GetSamplesPerSecond(),
		lower: p.GetLowerStepsPerSecond(), upper: p.GetUpperStepsPerSecond(), basis: p.GetIntervalBasis(),
		breakdown: p.GetBreakdownSeconds(), utilization: p.GetUtilization(), extra: p.GetExtra(),
		bottleneckNames: p.GetBottleneckNames(), bottlenecks: p.GetBottleneckIndexes(),
		staleness: p.GetStalenessMeanSteps(), staleness95: p.GetStalenessP95Steps(),
		extrapolation: p.GetExtrapolationRatios(), memory: p.GetMemoryBytes(), excess: p.GetExcessMemoryBytes(),
		finish: p.GetFinishSeconds(), once: p.GetOnceSeconds(), cost: p.GetCosts(),
		finishQuantiles: p.GetFinishSecondsQuantiles(), costQuantiles: p.GetCostQuantiles(), revocations: p.GetRevocationsMeans(),
		nodes: p.GetNodes(), workers: p.GetWorkers(), accumulation: p.GetAccumulationSteps(),
		globalBatch: p.GetGlobalBatchSamples(), workerBatch: p.GetBatchPerWorkerSamples(), goods: p.GetGoodputSamplesPerSecond(),
	}
	if p != nil {
		found.coverage = p.IntervalCoverage
	}
	for _, refusal := range p.GetRefusals() {
		if found.refusals == nil {
			found.refusals = map[int32]*nodewisev1.Problem{}
		}
		for _, row := range refusal.GetRows() {
			found.refusals[row] = refusal.GetProblem()
		}
	}
	return found
}

// Len is the number of rows.
func (r Rows) Len() int { return r.end - r.begin }

// At is a row, counted from 0. It panics where there is none.
func (r Rows) At(index int) Row {
	if index < 0 || index >= r.Len() {
		panic("nodewise: row out of range")
	}
	return r.view.row(r.begin + index)
}

// All gives the rows with their numbers, counted from 0.
func (r Rows) All() iter.Seq2[int, Row] {
	return func(yield func(int, Row) bool) {
		for index := r.begin; index < r.end; index++ {
			if !yield(index-r.begin, r.view.row(index)) {
				return
			}
		}
	}
}

func (v *view) row(index int) Row {
	answered := index >= len(v.statuses) || v.statuses[index] == nodewisev1.RowStatus_ROW_STATUS_ANSWERED
	return Row{v, index, answered}
}

// Row is one row of predictions. Figures come with whether there is one: false = not asked for, not known, or not predicted.
type Row struct {
	view     *view
	index    int
	answered bool
}

// positive reads a column in which 0 is no value; anything, one in which it may be.
func (r Row) positive(column []float64) (float64, bool) {
	if !r.answered || r.index >= len(column) {
		return 0, false
	}
	return column[r.index], column[r.index] != 0
}

func (r Row) anything(column []float64) (float64, bool) {
	if !r.answered || r.index >= len(column) {
		return 0, false
	}
	return column[r.index], true
}

func (r Row) ofEvery(column []int32) int32 {
	if r.index >= len(column) {
		return 0
	}
	return column[r.index]
}

// Status is what became of the row.
func (r Row) Status() nodewisev1.RowStatus {
	if r.index >= len(r.view.statuses) {
		return nodewisev1.RowStatus_ROW_STATUS_ANSWERED
	}
	return r.view.statuses[r.index]
}

// Answered tells whether the row was predicted.
func (r Row) Answered() bool { return r.answered }

// Refusal is why the row was refused; nil where it was not.
func (r Row) Refusal() *nodewisev1.Problem {
	if r.answered {
		return nil
	}
	return r.view.refusals[int32(r.index)]
}

// Nodes are the machines that run workers, as resolved; 0 = not known.
func (r Row) Nodes() int32 { return r.ofEvery(r.view.nodes) }

// Workers are the training processes in total, as resolved; 0 = not known.
func (r Row) Workers() int32 { return r.ofEvery(r.view.workers) }

// StepSeconds is the time of a step in seconds: asynchronous and hybrid, the cycle of one worker; otherwise one global batch.
func (r Row) StepSeconds() (float64, bool) { return r.positive(r.view.step) }

// StepsPerSecond is the throughput of the whole job in steps per second.
func (r Row) StepsPerSecond() (float64, bool) { return r.positive(r.view.steps) }

// SamplesPerSecond is the throughput of the whole job in samples per second; absent also where the batch is not known.
func (r Row) SamplesPerSecond() (float64, bool) { return r.positive(r.view.samples) }

// LowerStepsPerSecond is the lower bound of StepsPerSecond; it may be 0.
func (r Row) LowerStepsPerSecond() (float64, bool) {
	if _, known := r.positive(r.view.upper); !known {
		return 0, false
	}
	return r.anything(r.view.lower)
}

// UpperStepsPerSecond is the upper bound of StepsPerSecond.
func (r Row) UpperStepsPerSecond() (float64, bool) { return r.positive(r.view.upper) }

// LowerSamplesPerSecond is the lower bound of SamplesPerSecond.
func (r Row) LowerSamplesPerSecond() (float64, bool) { return r.inSamples(r.LowerStepsPerSecond()) }

// UpperSamplesPerSecond is the upper bound of SamplesPerSecond.
func (r Row) UpperSamplesPerSecond() (float64, bool) { return r.inSamples(r.UpperStepsPerSecond()) }

func (r Row) inSamples(rate float64, known bool) (float64, bool) {
	steps, hasSteps := r.StepsPerSecond()
	samples, hasSamples := r.SamplesPerSecond()
	if !known || !hasSteps || !hasSamples {
		return 0, false
	}
	return rate * (samples / steps), true
}

// IntervalCoverage is the probability that the measured throughput lies within the bounds, 0 to 1.
func (r Row) IntervalCoverage() (float64, bool) {
	if _, known := r.UpperStepsPerSecond(); !known || r.view.coverage == nil {
		return 0, false
	}
	return *r.view.coverage, true
}

// IntervalBasis is where the bounds come from; unspecified where there are none.
func (r Row) IntervalBasis() nodewisev1.IntervalBasis {
	if _, known := r.UpperStepsPerSecond(); !known {
		return nodewisev1.IntervalBasis_INTERVAL_BASIS_UNSPECIFIED
	}
	return r.view.basis
}

// Bottleneck is what the step waits for most, e.g. "upload".
func (r Row) Bottleneck() (string, bool) {
	if !r.answered || r.index >= len(r.view.bottlenecks) {
		return "", false
	}
	entry := int(r.view.bottlenecks[r.index])
	if entry < 0 || entry >= len(r.view.bottleneckNames) {
		return "", false
	}
	return r.view.bottleneckNames[entry], r.view.bottleneckNames[entry] != ""
}

// BreakdownSeconds are the parts of StepSeconds by name, as exposed time in seconds; they add up to it.
func (r Row) BreakdownSeconds() iter.Seq2[string, float64] { return r.named(r.view.breakdown) }

// Utilization is the share of time that each station is busy, 0 to 1, by its name.
func (r Row) Utilization() iter.Seq2[string, float64] { return r.named(r.view.utilization) }

// Extra is what else the estimator has to say, by names that carry units.
func (r Row) Extra() iter.Seq2[string, float64] { return r.named(r.view.extra) }

func (r Row) named(columns []*nodewisev1.NamedColumn) iter.Seq2[string, float64] {
	return func(yield func(string, float64) bool) {
		for _, column := range columns {
			if value, known := r.anything(column.GetValues()); known && !yield(column.GetName(), value) {
				return
			}
		}
	}
}

// StalenessMeanSteps is the mean number of updates by others between a worker's download and its upload.
func (r Row) StalenessMeanSteps() (float64, bool) { return r.anything(r.view.staleness) }

// StalenessP95Steps is the 95th percentile of the same.
func (r Row) StalenessP95Steps() (float64, bool) { return r.anything(r.view.staleness95) }

// ExtrapolationRatio is how far the row lies outside the evidence: 1 = within, 2 = twice the largest scale that was measured.
func (r Row) ExtrapolationRatio() (float64, bool) { return r.positive(r.view.extrapolation) }

// MemoryBytes is the memory per device in bytes, also of rows that do not fit.
func (r Row) MemoryBytes() (float64, bool) {
	return Row{r.view, r.index, true}.positive(r.view.memory)
}

// ExcessMemoryBytes is the memory missing per device in bytes, of rows that do not fit.
func (r Row) ExcessMemoryBytes() (float64, bool) {
	return Row{r.view, r.index, true}.positive(r.view.excess)
}

// FinishSeconds is the time in seconds to do the work asked about, else all of the workload's epochs where they are known.
func (r Row) FinishSeconds() (float64, bool) { return r.positive(r.view.finish) }

// OnceSeconds is the part of FinishSeconds that is spent once besides the steps.
func (r Row) OnceSeconds() (float64, bool) { return r.positive(r.view.once) }

// Cost is what that work costs, in the currency of the offers.
func (r Row) Cost() (float64, bool) {
	if _, known := r.FinishSeconds(); !known {
		return 0, false
	}
	return r.anything(r.view.cost)
}

// FinishSecondsQuantiles are quantiles of FinishSeconds, by probability.
func (r Row) FinishSecondsQuantiles() iter.Seq2[float64, float64] {
	return r.quantiles(r.view.finishQuantiles)
}

// CostQuantiles are quantiles of Cost, by probability.
func (r Row) CostQuantiles() iter.Seq2[float64, float64] { return r.quantiles(r.view.costQuantiles) }

func (r Row) quantiles(columns []*nodewisev1.QuantileColumn) iter.Seq2[float64, float64] {
	return func(yield func(float64, float64) bool) {
		if _, known := r.FinishSeconds(); !known {
			return
		}
		for _, column := range columns {
			if value, known := r.anything(column.GetValues()); known && !yield(column.GetProbability(), value) {
				return
			}
		}
	}
}

// RevocationsMean is the mean number of revocations of nodes until the work is done.
func (r Row) RevocationsMean() (float64, bool) { return r.anything(r.view.revocations) }

// GlobalBatchSamples is the global batch as resolved or chosen, in samples.
func (r Row) GlobalBatchSamples() (float64, bool) { return r.positive(r.view.globalBatch) }

// BatchPerWorkerSamples are the samples per worker and micro-step as resolved or chosen.
func (r Row) BatchPerWorkerSamples() (float64, bool) { return r.positive(r.view.workerBatch) }

// AccumulationSteps are the micro-steps between two exchanges as resolved or chosen.
func (r Row) AccumulationSteps() (int32, bool) {
	if !r.answered {
		return 0, false
	}
	steps := r.ofEvery(r.view.accumulation)
	return steps, steps != 0
}

// GoodputSamplesPerSecond is samples per second times statistical efficiency.
func (r Row) GoodputSamplesPerSecond() (float64, bool) { return r.positive(r.view.goods) }
