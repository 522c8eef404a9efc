/** What is the same on Node and in browsers. */
export * from "./builders.js";
export type { LongAnswer, LongCallOptions } from "./calls.js";
export { Client } from "./client.js";
export { type ConfigurationRow, configurations, type WorkerGroup } from "./configurations.js";
export { type Code, NodewiseError, type Violation } from "./errors.js";
export { type CommitResult, type IngestOptions, IngestWriter, type TraceOptions } from "./ingest.js";
export { type ObservationRow, observations, type PhaseTimingRow, phaseTimings } from "./measured.js";
export type { ClientOptions, TlsOptions } from "./options.js";
export { Pager } from "./pages.js";
export type { Reason } from "./reasons.js";
export type { ResumePolicy } from "./resume.js";
export { type JobOutcome, jobs, PredictionRow, Rows, rows } from "./rows.js";
export type { CallOptions, Transport } from "./transport.js";
export { VERSION } from "./version.js";
