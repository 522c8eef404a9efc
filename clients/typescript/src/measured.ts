import type { MessageInitShape } from "@bufbuild/protobuf";
import { type ConfigurationRow, configurations } from "./configurations.js";
import type { ObservationsSchema, PhaseTimingsSchema } from "./gen/nodewise/v1/profile_pb.js";

/** A run that was measured. What is absent is not known. */
export interface ObservationRow {
  /** What ran. */
  configuration: ConfigurationRow;
  /**
   * Measured throughput, steps per second. Asynchronous and hybrid: mini-batches applied per second by all workers
   * together; otherwise global steps per second.
   */
  stepsPerSecond: number;
  /** When, seconds since 1970 (UTC). */
  measuredAtUnixSeconds?: number | undefined;
  /** Steps that were counted. */
  stepsCount?: number | undefined;
  /** Coefficient of variation of the step time, dimensionless. */
  stepVariation?: number | undefined;
  /** Synchronization not hidden by compute, seconds per step. */
  exposedSyncSeconds?: number | undefined;
  /** Memory that the fullest device held at most, bytes. */
  measuredMemoryBytes?: number | undefined;
}

/** Timed phases of one worker's step in one run. What is absent is not known. */
export interface PhaseTimingRow {
  /** The configuration of the run. */
  configuration: ConfigurationRow;
  /** Mean seconds to receive the parameters. */
  downloadSeconds: number;
  /** Mean seconds of forward and backward pass. */
  computeSeconds: number;
  /** Mean seconds to send the gradient, the update not included. */
  uploadSeconds: number;
  /** Mean seconds to apply the gradient at the server. */
  updateSeconds: number;
  /** Coefficient of variation of the compute time, dimensionless. */
  computeVariation?: number | undefined;
  /** Coefficient of variation of the transfer times, dimensionless. */
  transferVariation?: number | undefined;
  /** Seconds of transfer that ran while the worker computed. */
  hiddenSeconds?: number | undefined;
  /** Steps the means were taken over. */
  stepsCount?: number | undefined;
}

type Init<T> = Exclude<T, { $typeName: string }>;
type ColumnsOf<Row, Columns> = readonly {
  row: Exclude<keyof Row, "configuration">;
  column: keyof Columns;
  /** Column that says which rows are known, where 0 is a value. */
  known?: keyof Columns;
}[];

const OBSERVATION_COLUMNS: ColumnsOf<ObservationRow, Init<MessageInitShape<typeof ObservationsSchema>>> = [
  { row: "stepsPerSecond", column: "stepsPerSecond" },
  { row: "measuredAtUnixSeconds", column: "measuredAtUnixSeconds" },
  { row: "stepsCount", column: "stepsCounts" },
  { row: "stepVariation", column: "stepVariation", known: "stepVariationKnown" },
  { row: "exposedSyncSeconds", column: "exposedSyncSeconds", known: "exposedSyncKnown" },
  { row: "measuredMemoryBytes", column: "measuredMemoryBytes" },
];
const PHASE_COLUMNS: ColumnsOf<PhaseTimingRow, Init<MessageInitShape<typeof PhaseTimingsSchema>>> = [
  { row: "downloadSeconds", column: "downloadSeconds" },
  { row: "computeSeconds", column: "computeSeconds" },
  { row: "uploadSeconds", column: "uploadSeconds" },
  { row: "updateSeconds", column: "updateSeconds" },
  { row: "computeVariation", column: "computeVariation", known: "computeVariationKnown" },
  { row: "transferVariation", column: "transferVariation", known: "transferVariationKnown" },
  { row: "hiddenSeconds", column: "hiddenSeconds" },
  { row: "stepsCount", column: "stepsCounts" },
];

/** Measured runs by rows, as the columns that travel. */
export function observations(rows: Iterable<ObservationRow>): Init<MessageInitShape<typeof ObservationsSchema>> {
  return written([...rows], OBSERVATION_COLUMNS);
}

/** Timed phases by rows, as the columns that travel. */
export function phaseTimings(rows: Iterable<PhaseTimingRow>): Init<MessageInitShape<typeof PhaseTimingsSchema>> {
  return written([...rows], PHASE_COLUMNS);
}

function written<Row extends { configuration: ConfigurationRow }, Columns>(
  rows: readonly Row[],
  columns: ColumnsOf<Row, Columns>,
): Columns {
  const found: Partial<Record<keyof Columns, unknown>> = {};
  for (const { row, column, known } of columns) {
    const held = rows.map((each) => each[row] as number | undefined);
    if (held.every((value) => value === undefined)) continue;
    found[column] = held.map((value) => value ?? 0);
    if (known && held.includes(undefined)) found[known] = held.map((value) => value !== undefined);
  }
  return { configurations: configurations(rows.map((row) => row.configuration)), ...found } as Columns;
}
