import { fromProblem, type NodewiseError } from "./errors.js";
import type { Recommendation } from "./gen/nodewise/v1/objective_pb.js";
import { PredictionColumn } from "./gen/nodewise/v1/options_pb.js";
import {
  type Basis,
  IntervalBasis,
  type NamedColumn,
  type Predictions,
  type QuantileColumn,
  type RowRefusal,
  RowStatus,
} from "./gen/nodewise/v1/prediction_pb.js";
import type { BatchPredictResponse } from "./gen/nodewise/v1/prediction_service_pb.js";
import type { Problem } from "./gen/nodewise/v1/problem_pb.js";

/** Columns with one number in each row. */
type NumberColumn = NonNullable<
  { [K in keyof Predictions]: Predictions[K] extends number[] ? K : never }[keyof Predictions]
>;

/** One row of an answer. undefined = not asked for, not known, or not predicted; never 0 and never NaN in their place. */
export class PredictionRow {
  readonly #columns: Predictions;
  /** Its place in the columns. */
  readonly index: number;

  constructor(columns: Predictions, index: number) {
    this.#columns = columns;
    this.index = index;
  }

  /** What became of the row. */
  get status(): RowStatus {
    return this.#columns.statuses[this.index] || RowStatus.ANSWERED;
  }
  /** Whether the row was predicted. */
  get answered(): boolean {
    return this.status === RowStatus.ANSWERED;
  }
  /** Why it was not predicted. */
  get refusal(): Problem | undefined {
    return this.answered ? undefined : refusalsOf(this.#columns).get(this.index)?.problem;
  }
  /** Machines that run workers, as resolved. */
  get nodes(): number | undefined {
    return this.#columns.nodes[this.index];
  }
  /** Workers, as resolved. */
  get workers(): number | undefined {
    return this.#columns.workers[this.index];
  }
  /** Seconds of a step: asynchronous and hybrid, the cycle of one worker; otherwise one global batch. */
  get stepSeconds(): number | undefined {
    return this.#above0("stepSeconds");
  }
  /** Steps per second of the whole job. */
  get stepsPerSecond(): number | undefined {
    return this.#above0("stepsPerSecond");
  }
  /** Samples per second of the whole job; undefined also where the batch is not known. */
  get samplesPerSecond(): number | undefined {
    return this.#above0("samplesPerSecond");
  }
  /** Lower bound of `stepsPerSecond`. */
  get lowerStepsPerSecond(): number | undefined {
    return this.upperStepsPerSecond === undefined ? undefined : this.#answered("lowerStepsPerSecond");
  }
  /** Upper bound of `stepsPerSecond`. */
  get upperStepsPerSecond(): number | undefined {
    return this.#above0("upperStepsPerSecond");
  }
  /** Lower bound of `samplesPerSecond`. */
  get lowerSamplesPerSecond(): number | undefined {
    return this.#inSamples(this.lowerStepsPerSecond);
  }
  /** Upper bound of `samplesPerSecond`. */
  get upperSamplesPerSecond(): number | undefined {
    return this.#inSamples(this.upperStepsPerSecond);
  }
  /** Probability that the measured throughput lies within the bounds. */
  get intervalCoverage(): number | undefined {
    return this.upperStepsPerSecond === undefined ? undefined : this.#columns.intervalCoverage;
  }
  /** Where the interval comes from. */
  get intervalBasis(): IntervalBasis {
    return this.upperStepsPerSecond === undefined ? IntervalBasis.UNSPECIFIED : this.#columns.intervalBasis;
  }
  /** Parts of `stepSeconds` as exposed time, seconds; they add up to it. */
  get breakdownSeconds(): ReadonlyMap<string, number> {
    return this.#named("breakdownSeconds");
  }
  /** What the step waits for most, e.g. "upload". */
  get bottleneck(): string | undefined {
    const entry = this.#answered("bottleneckIndexes");
    return entry === undefined ? undefined : this.#columns.bottleneckNames[entry] || undefined;
  }
  /** Share of time that each station is busy, 0 to 1. */
  get utilization(): ReadonlyMap<string, number> {
    return this.#named("utilization");
  }
  /** Mean updates by others between a worker's download and its upload. */
  get stalenessMeanSteps(): number | undefined {
    return this.#answered("stalenessMeanSteps");
  }
  /** 95th percentile of the same. */
  get stalenessP95Steps(): number | undefined {
    return this.#answered("stalenessP95Steps");
  }
  /** How far outside the evidence: 1 = within, 2 = twice the largest scale that it identifies. */
  get extrapolationRatio(): number | undefined {
    return this.#above0("extrapolationRatios");
  }
  /** Memory per device, bytes; known of rows that do not fit as well. */
  get memoryBytes(): number | undefined {
    return this.#columns.memoryBytes[this.index] || undefined;
  }
  /** Memory missing per device, bytes. */
  get excessMemoryBytes(): number | undefined {
    return this.#columns.excessMemoryBytes[this.index] || undefined;
  }
  /** Seconds to do the work asked about. */
  get finishSeconds(): number | undefined {
    return this.#above0("finishSeconds");
  }
  /** Seconds spent once besides the steps; part of `finishSeconds`. */
  get onceSeconds(): number | undefined {
    return this.#above0("onceSeconds");
  }
  /** Cost of that work, in the currency of the offers. */
  get cost(): number | undefined {
    return this.finishSeconds === undefined ? undefined : this.#answered("costs");
  }
  /** Quantiles of `finishSeconds`, by probability. */
  get finishSecondsQuantiles(): ReadonlyMap<number, number> {
    return this.#quantiles("finishSecondsQuantiles");
  }
  /** Quantiles of `cost`, by probability. */
  get costQuantiles(): ReadonlyMap<number, number> {
    return this.#quantiles("costQuantiles");
  }
  /** Mean revocations of nodes until the work is done; undefined = none are expected. */
  get revocationsMean(): number | undefined {
    return this.#answered("revocationsMeans");
  }
  /** Global batch as resolved or chosen, samples. */
  get globalBatchSamples(): number | undefined {
    return this.#above0("globalBatchSamples");
  }
  /** Samples per worker and micro-step, as resolved or chosen. */
  get batchPerWorkerSamples(): number | undefined {
    return this.#above0("batchPerWorkerSamples");
  }
  /** Micro-steps between two exchanges, as resolved or chosen. */
  get accumulationSteps(): number | undefined {
    return this.#above0("accumulationSteps");
  }
  /** Samples per second times statistical efficiency. */
  get goodputSamplesPerSecond(): number | undefined {
    return this.#above0("goodputSamplesPerSecond");
  }
  /** What else the estimator has to say, by names that carry units. */
  get extra(): ReadonlyMap<string, number> {
    return this.#named("extra");
  }

  #answered(column: NumberColumn): number | undefined {
    return this.answered ? this.#columns[column][this.index] : undefined;
  }
  /** Of columns in which 0 is no value. */
  #above0(column: NumberColumn): number | undefined {
    return this.#answered(column) || undefined;
  }
  #inSamples(stepsPerSecond: number | undefined): number | undefined {
    const steps = this.stepsPerSecond;
    const samples = this.samplesPerSecond;
    if (stepsPerSecond === undefined || steps === undefined || samples === undefined) return undefined;
    return stepsPerSecond * (samples / steps);
  }
  #named(column: "breakdownSeconds" | "utilization" | "extra"): Map<string, number> {
    const held: NamedColumn[] = this.answered ? this.#columns[column] : [];
    return new Map(held.map(({ name, values }) => [name, values[this.index] ?? 0]));
  }
  #quantiles(column: "finishSecondsQuantiles" | "costQuantiles"): Map<number, number> {
    const held: QuantileColumn[] = this.finishSeconds === undefined ? [] : this.#columns[column];
    return new Map(held.map(({ probability, values }) => [probability, values[this.index] ?? 0]));
  }
}

/** The rows of an answer, made as they are read. */
export class Rows implements Iterable<PredictionRow> {
  readonly #columns: Predictions | undefined;
  readonly #begin: number;
  /** How many there are. */
  readonly length: number;

  constructor(columns: Predictions | undefined, begin = 0, end = columns?.rowsCount ?? 0) {
    this.#columns = columns;
    this.#begin = begin;
    this.length = end - begin;
  }

  /** The row at a place, counted from the first; undefined = there is none. */
  at(row: number): PredictionRow | undefined {
    const inside = this.#columns && row >= 0 && row < this.length;
    return inside ? new PredictionRow(this.#columns as Predictions, this.#begin + row) : undefined;
  }

  *[Symbol.iterator](): Generator<PredictionRow> {
    if (!this.#columns) return;
    for (let row = 0; row < this.length; row++) yield new PredictionRow(this.#columns, this.#begin + row);
  }
}

/** The rows of an answer: of `predict`, of a plan, of architectures, or of columns alone. */
export function rows(answer: Predictions | { predictions?: Predictions | undefined }): Rows {
  return new Rows(
    "$typeName" in answer && "rowsCount" in answer ? answer : (answer as { predictions?: Predictions }).predictions,
  );
}

/** What became of one job of a batch. */
export interface JobOutcome {
  /** Its place in the question. */
  job: number;
  /** Its rows; none where it has an error or is unchanged. */
  rows: Rows;
  /** Why it could not be answered. */
  error: NodewiseError | undefined;
  /** The recommended row, counted from the job's first. */
  recommendation: Recommendation | undefined;
  /** What the answer rests on. */
  basis: Basis | undefined;
  /** The digest that was asked about still holds. */
  unchanged: boolean;
}

/** The jobs of a batch, in the order asked. */
export function* jobs(answer: BatchPredictResponse): Generator<JobOutcome> {
  for (const [job, outcome] of answer.outcomes.entries()) {
    const [begin = 0, end = begin] = answer.rowOffsets.slice(job, job + 2);
    // On the wire all jobs share columns: what only others asked for is 0 here, and means nothing.
    const own: Predictions | undefined = answer.predictions && {
      ...answer.predictions,
      intervalBasis: outcome.intervalBasis,
    };
    if (own) {
      for (const [column, names] of COLUMNS_OF)
        if (!outcome.columns.includes(column)) for (const name of names) own[name] = [];
    }
    yield {
      job,
      rows: new Rows(own, begin, end),
      error: outcome.problem && fromProblem(outcome.problem),
      recommendation: outcome.recommendation,
      basis: outcome.basisIndex === undefined ? undefined : answer.bases[outcome.basisIndex],
      unchanged: outcome.unchanged,
    };
  }
}

type ListColumn = NonNullable<{ [K in keyof Predictions]: Predictions[K] extends unknown[] ? K : never }[keyof Predictions]>;

const COLUMNS_OF: readonly (readonly [PredictionColumn, readonly ListColumn[]])[] = [
  [PredictionColumn.INTERVAL, ["lowerStepsPerSecond", "upperStepsPerSecond"]],
  [PredictionColumn.BREAKDOWN, ["breakdownSeconds", "bottleneckNames", "bottleneckIndexes"]],
  [PredictionColumn.UTILIZATION, ["utilization"]],
  [PredictionColumn.STALENESS, ["stalenessMeanSteps", "stalenessP95Steps"]],
  [PredictionColumn.MEMORY, ["memoryBytes", "excessMemoryBytes"]],
  [PredictionColumn.WORK, ["finishSeconds", "costs"]],
  [PredictionColumn.EXTRA, ["extra"]],
  [
    PredictionColumn.GOODPUT,
    ["globalBatchSamples", "batchPerWorkerSamples", "accumulationSteps", "goodputSamplesPerSecond"],
  ],
  [PredictionColumn.RISK, ["finishSecondsQuantiles", "costQuantiles", "revocationsMeans"]],
];

const refusals = new WeakMap<Predictions, ReadonlyMap<number, RowRefusal>>();

function refusalsOf(columns: Predictions): ReadonlyMap<number, RowRefusal> {
  let found = refusals.get(columns);
  if (!found) {
    found = new Map(columns.refusals.flatMap((refusal) => refusal.rows.map((row) => [row, refusal] as const)));
    refusals.set(columns, found);
  }
  return found;
}
