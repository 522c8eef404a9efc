import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { NodewiseError } from "./errors.js";
import { type IngestState, type ProfileBatch, ProfileBatchSchema } from "./gen/nodewise/v1/profile_service_pb.js";
import { type ObservationRow, observations, type PhaseTimingRow, phaseTimings } from "./measured.js";
import { Patience, type ResumePolicy } from "./resume.js";
import { sleep } from "./sleep.js";

/** How an ingest writer batches and resumes. */
export interface IngestOptions {
  /** Of a session of an earlier process, to go on with it; one writer at a time may use a session. Absent = a new one. */
  sessionId?: string | undefined;
  /** Rows after which a batch is sent. Default 1,000. */
  batchRows?: number | undefined;
  /** Milliseconds after which a batch is sent in any case. Default 100. */
  lingerMs?: number | undefined;
  /** Batches kept until they are acknowledged; when there are so many, calls wait. Default 64. */
  maxUnacknowledged?: number | undefined;
  /** How long a server that is away is waited for. */
  resume?: Partial<ResumePolicy> | undefined;
}

/** A profile after a commit. */
export interface CommitResult {
  /** Revision of the profile. */
  revision: bigint;
  /** Observations that count in it. */
  observationsCount: number;
  /** Number of the last batch that is part of it. */
  sequenceNumber: bigint;
}

/** A trace and what is known of it. */
export interface TraceOptions {
  /** A name within the session, one per trace. */
  traceId: string;
  /** Default "kineto", PyTorch's Chrome JSON. */
  format?: string;
  /** The process that recorded it. Absent = as the trace says. */
  rank?: number;
  /** Processes of the job. Absent = as the trace says. */
  worldSize?: number;
}

type BatchInit = Exclude<MessageInitShape<typeof ProfileBatchSchema>, { $typeName: string }>;
type Many<T> = T | Iterable<T> | AsyncIterable<T>;

// A piece of a trace is a batch of its own: well below what a message may have, and a full buffer is bearable.
const CHUNK_BYTES = 512 * 1024;

/**
 * Writes one session into a profile; made by `client.ingest`. Rows are sent in batches under numbers, one batch in flight;
 * what is not acknowledged is kept, and sent again under the same number when the server comes back: nothing is lost,
 * nothing counts twice. Nothing counts before `commit`. A writer that failed says so in every call.
 */
export class IngestWriter implements AsyncDisposable {
  readonly sessionId: string;
  readonly #send: (batch: ProfileBatch | undefined, signal: AbortSignal) => Promise<IngestState>;
  readonly #options: IngestOptions;
  readonly #patience: Patience;
  readonly #ending = new AbortController();
  /** Numbered and not acknowledged; the first one is in flight. */
  readonly #queue: ProfileBatch[] = [];
  #observations: ObservationRow[] = [];
  #phases: PhaseTimingRow[] = [];
  #facts: Pick<BatchInit, "workload" | "network"> = {};
  #linger: ReturnType<typeof setTimeout> | undefined;
  #state: IngestState | undefined;
  #last = 0n;
  #running = false;
  #failure: NodewiseError | undefined;
  #waiting: (() => void)[] = [];

  /** Made by `client.ingest`. @param send one IngestBatch call */
  constructor(
    sessionId: string,
    send: (batch: ProfileBatch | undefined, signal: AbortSignal) => Promise<IngestState>,
    options: IngestOptions,
  ) {
    this.sessionId = sessionId;
    this.#send = send;
    this.#options = options;
    this.#patience = new Patience(options.resume);
  }

  /** Asks how far the session is. `client.ingest` has done so. */
  async open(): Promise<this> {
    const state = await this.#delivered(undefined);
    this.#state ??= state;
    this.#last = state.durableSequenceNumber;
    return this;
  }

  /** Number of the last batch that the server holds durably together with all before it. */
  get durableSequenceNumber(): bigint {
    return this.#state?.durableSequenceNumber ?? 0n;
  }

  /** Adds measured runs. */
  observe(rows: Many<ObservationRow>): Promise<void> {
    return this.#add(rows, (row) => this.#observations.push(row));
  }

  /** Adds timed phases. */
  phases(rows: Many<PhaseTimingRow>): Promise<void> {
    return this.#add(rows, (row) => this.#phases.push(row));
  }

  /** Adds facts of the workload or of the network. Facts already known must agree. */
  async facts(facts: Pick<BatchInit, "workload" | "network">): Promise<void> {
    await this.#room();
    if ((facts.workload && this.#facts.workload) || (facts.network && this.#facts.network)) this.#seal();
    Object.assign(this.#facts, facts);
    this.#later();
  }

  /** Adds a batch as it is, under a number of its own; for what rows and facts do not say. */
  async write(batch: MessageInitShape<typeof ProfileBatchSchema>): Promise<void> {
    await this.#room();
    this.#seal();
    this.#enqueue(batch);
  }

  /** Adds a trace, best compressed with gzip. What names people and paths in it is the caller's to take out. */
  async trace(source: Uint8Array | AsyncIterable<Uint8Array>, options: TraceOptions): Promise<void> {
    const { traceId, format = "kineto", rank, worldSize } = options;
    let offset = 0;
    for await (const { data, last } of pieces(source)) {
      const about = offset
        ? {}
        : { format, ...(rank === undefined ? {} : { rank }), ...(worldSize === undefined ? {} : { worldSize }) };
      await this.write({ traceChunks: [{ ...about, traceId, offsetBytes: BigInt(offset), data, last }] });
      offset += data.length;
    }
    if (!offset) throw new TypeError(`trace ${JSON.stringify(traceId)} has no bytes`);
  }

  /** Sends what waits, and waits until it is durable; returns the durable number. It counts after a commit only. */
  async flush(): Promise<bigint> {
    this.#check();
    this.#seal();
    const number = this.#last;
    await this.#until(() => this.durableSequenceNumber >= number);
    return this.durableSequenceNumber;
  }

  /** Ends the unit: waits until everything added so far is durable and counts. With nothing to commit it tells what is known. */
  async commit(): Promise<CommitResult> {
    this.#check();
    if (this.#uncommitted) this.#enqueue({ ...this.#taken(), commit: true });
    const number = this.#last;
    await this.#until(() => (this.#state?.committedSequenceNumber ?? 0n) >= number);
    const { revision = 0n, observationsCount = 0, committedSequenceNumber = 0n } = this.#state ?? {};
    return { revision, observationsCount, sequenceNumber: committedSequenceNumber };
  }

  /** Commits what is not committed, and ends the writer. */
  async close(): Promise<void> {
    if (this.#ending.signal.aborted) return;
    try {
      await this.commit();
    } finally {
      this.#abandon();
    }
  }

  /** Ends the writer without a commit: nothing since the last one counts. `await using` does this. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#abandon();
  }

  #abandon(): void {
    clearTimeout(this.#linger);
    this.#failure ??= new NodewiseError("CANCELLED", "the writer was closed");
    this.#ending.abort(this.#failure);
    this.#changed();
  }

  get #uncommitted(): boolean {
    const queued = this.#queue.findLast((batch) => batch.commit)?.sequenceNumber;
    return this.#pending || this.#last > (queued ?? this.#state?.committedSequenceNumber ?? 0n);
  }

  get #pending(): boolean {
    return Boolean(this.#observations.length || this.#phases.length || this.#facts.workload || this.#facts.network);
  }

  async #add<Row extends ObservationRow | PhaseTimingRow>(given: Many<Row>, put: (row: Row) => void): Promise<void> {
    for await (const row of Symbol.iterator in given || Symbol.asyncIterator in given ? given : [given]) {
      await this.#room();
      // Rows that state servers and rows that do not cannot share columns: there, absence means what the evidence says.
      const before = this.#observations.at(-1) ?? this.#phases.at(-1);
      const states = (each: ObservationRow | PhaseTimingRow) => each.configuration.parameterServers !== undefined;
      if (before && states(before) !== states(row)) this.#seal();
      put(row);
      if (this.#observations.length + this.#phases.length >= (this.#options.batchRows ?? 1000)) this.#seal();
      else this.#later();
    }
  }

  #later(): void {
    this.#linger ??= setTimeout(() => this.#seal(), this.#options.lingerMs ?? 100);
  }

  /** Numbers what is pending, and queues it. */
  #seal(): void {
    if (this.#pending) this.#enqueue(this.#taken());
  }

  #taken(): BatchInit {
    clearTimeout(this.#linger);
    this.#linger = undefined;
    const batch: BatchInit = { ...this.#facts };
    if (this.#observations.length) batch.observations = observations(this.#observations);
    if (this.#phases.length) batch.phaseTimings = phaseTimings(this.#phases);
    [this.#observations, this.#phases, this.#facts] = [[], [], {}];
    return batch;
  }

  #enqueue(batch: MessageInitShape<typeof ProfileBatchSchema>): void {
    this.#last += 1n;
    this.#queue.push(create(ProfileBatchSchema, { ...batch, sequenceNumber: this.#last } as BatchInit));
    if (!this.#running) void this.#run();
  }

  /** Sends what is queued, one batch at a time, until there is nothing or the server was away for too long. */
  async #run(): Promise<void> {
    this.#running = true;
    try {
      for (let batch = this.#queue[0]; batch; batch = this.#queue[0]) {
        const state = await this.#delivered(batch);
        if (state.durableSequenceNumber < batch.sequenceNumber)
          throw new NodewiseError(
            "DATA_LOSS",
            `batch ${batch.sequenceNumber} was acknowledged, and only ${state.durableSequenceNumber} is durable`,
          );
        this.#state = state;
        this.#queue.shift();
        this.#changed();
      }
    } catch (failure) {
      this.#failure ??= failure as NodewiseError;
      this.#changed();
    } finally {
      this.#running = false;
    }
  }

  /** Sends one batch until it is acknowledged: its number makes that harmless. */
  async #delivered(batch: ProfileBatch | undefined): Promise<IngestState> {
    const { signal } = this.#ending;
    for (;;) {
      try {
        const state = await this.#send(batch, signal);
        this.#patience.progress();
        return state;
      } catch (failure) {
        const error = failure as NodewiseError;
        const pause = signal.aborted ? undefined : this.#patience.pauseAfter(error, { awaitOverload: true });
        if (pause === undefined) throw error;
        await sleep(pause, signal);
      }
    }
  }

  #check(): void {
    if (this.#failure) throw this.#failure;
  }

  /** Waits until there is room for another batch. */
  async #room(): Promise<void> {
    this.#check();
    await this.#until(() => this.#queue.length < (this.#options.maxUnacknowledged ?? 64));
  }

  async #until(done: () => boolean): Promise<void> {
    while (!done()) {
      this.#check();
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  #changed(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}

/** A trace in pieces of bounded size, of which the last one says so. */
async function* pieces(source: Uint8Array | AsyncIterable<Uint8Array>): AsyncGenerator<{ data: Uint8Array; last: boolean }> {
  let held = new Uint8Array();
  for await (const part of source instanceof Uint8Array ? [source] : source) {
    const joined = new Uint8Array(held.length + part.length);
    joined.set(held);
    joined.set(part, held.length);
    held = joined;
    // The last piece is kept back until the end is known.
    for (; held.length > CHUNK_BYTES; held = held.subarray(CHUNK_BYTES))
      yield { data: held.subarray(0, CHUNK_BYTES), last: false };
  }
  if (held.length) yield { data: held, last: true };
}
