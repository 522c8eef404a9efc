import { type PredictionRow, rows } from "@nodewise/client";
import type { PredictResponse, ProfileContent } from "@nodewise/client/v1";

/** Most nodes that are shown of a job without a measured run; its evidence sets no range. */
export const UNMEASURED_NODES = 16;

/** A measured run of a job. */
export interface Run {
  nodes: number;
  workers: number | undefined;
  stepsPerSecond: number;
  /** Absent = the batch of the run is not known. */
  samplesPerSecond: number | undefined;
  device: string;
  measuredAt: number | undefined;
}

/** The entry of a column in a row: a column with one entry holds for all rows. 0 = not known. */
function entry(column: readonly number[], row: number): number | undefined {
  return (column.length === 1 ? column[0] : column[row]) || undefined;
}

/** The measured runs of a profile, in the order in which they were stored. */
export function runsOf(content: ProfileContent | undefined): Run[] {
  const observations = content?.observations;
  const columns = observations?.configurations;
  if (!observations || !columns) return [];
  const length = Math.max(observations.stepsPerSecond.length, columns.nodes.length, columns.workers.length);
  return Array.from({ length }, (_, row) => {
    const workers = entry(columns.workers, row);
    const nodes = entry(columns.nodes, row) ?? workers ?? 1;
    const stepsPerSecond = entry(observations.stepsPerSecond, row) ?? 0;
    const perWorker = entry(columns.batchPerWorkerSamples, row);
    const replicas = entry(columns.dataParallelDegrees, row) ?? workers ?? nodes;
    const global =
      entry(columns.globalBatchSamples, row) ??
      (perWorker && perWorker * replicas * (entry(columns.accumulationSteps, row) ?? 1));
    const device = columns.deviceIndexes.length ? columns.deviceIndexes[row] : 0;
    return {
      nodes,
      workers,
      stepsPerSecond,
      samplesPerSecond: global && stepsPerSecond * global,
      device: columns.deviceNames[device ?? 0] ?? "",
      measuredAt: entry(observations.measuredAtUnixSeconds, row),
    };
  });
}

/** The run that was measured last; where times are not known, the one that was stored last. */
export function latestRun(content: ProfileContent | undefined): Run | undefined {
  const runs = runsOf(content);
  return runs.reduce<Run | undefined>(
    (latest, run) => (latest === undefined || (run.measuredAt ?? 0) >= (latest.measuredAt ?? 0) ? run : latest),
    undefined,
  );
}

/** Answered rows, with the quantity that they are compared by: samples/s, or steps/s where no batch is known. */
export interface Comparable {
  rows: readonly PredictionRow[];
  unit: "samples/s" | "steps/s";
  value: (row: PredictionRow) => number;
  lower: (row: PredictionRow) => number | undefined;
  upper: (row: PredictionRow) => number | undefined;
}

/** The rows of an answer that can be drawn. */
export function comparable(answer: Pick<PredictResponse, "predictions"> | Iterable<PredictionRow>): Comparable {
  const all = Symbol.iterator in answer ? [...answer] : [...rows(answer)];
  const answered = all.filter((row) => row.answered && row.nodes !== undefined);
  const bySamples = answered.every((row) => row.samplesPerSecond !== undefined);
  return {
    rows: answered,
    unit: bySamples ? "samples/s" : "steps/s",
    value: (row) => (bySamples ? row.samplesPerSecond : row.stepsPerSecond) ?? 0,
    lower: (row) => (bySamples ? row.lowerSamplesPerSecond : row.lowerStepsPerSecond),
    upper: (row) => (bySamples ? row.upperSamplesPerSecond : row.upperStepsPerSecond),
  };
}
