// What the conformance asks of a client, by its public face alone; the same on Node and in a page.
import {
  create,
  type DescMessage,
  type DescMethod,
  type DescService,
  fromJson,
  type JsonValue,
  type MessageShape,
  toJson,
} from "@bufbuild/protobuf";
import { type CallOptions, type Client, jobs, NodewiseError, type Pager, type PredictionRow, rows } from "@nodewise/client";
import * as v1 from "@nodewise/client/v1";
import * as v1beta1 from "@nodewise/client/v1beta1";

/** A line in. */
export interface Line {
  id: string;
  target: string;
  face: "call" | "stream" | "rows" | "pages" | "progress" | "watch" | "ingest";
  method?: string;
  requests?: JsonValue[];
  options?: {
    timeout_seconds?: number;
    retry?: boolean;
    token?: string;
    user_agent?: string;
    max_receive_bytes?: number;
    tls?: { ca?: string; certificate?: string; key?: string };
  };
  cancel_after_seconds?: number;
  cancel_after_replies?: number;
  ingest?: { profile_id: string; session_id?: string; batches: JsonValue[]; commit?: boolean };
}

/** A line out, but for its id. */
export interface Answer {
  code: string;
  reason: string;
  message: string;
  violations: readonly { field: string; description: string }[];
  metadata: Readonly<Record<string, string>>;
  retry_delay_seconds: number | null;
  replies: JsonValue[];
  rows: JsonValue[];
  elapsed_seconds: number;
}

const SERVICES = ([...Object.values(v1), ...Object.values(v1beta1)] as { kind?: string }[]).filter(
  (each) => each.kind === "service",
) as DescService[];

function methodNamed(name: string | undefined): DescMethod {
  const method = SERVICES.flatMap((service) => service.methods).find(
    (each) => `${each.parent.typeName}/${each.name}` === name,
  );
  if (!method) throw new TypeError(`the client has no method ${name}`);
  return method;
}

/** Does what a line asks, and tells what came of it. */
export async function perform(client: Client, line: Line): Promise<Answer> {
  const told: Answer = {
    code: "OK",
    reason: "",
    message: "",
    violations: [],
    metadata: {},
    retry_delay_seconds: null,
    replies: [],
    rows: [],
    elapsed_seconds: 0,
  };
  const caller = new AbortController();
  const options: CallOptions = { signal: caller.signal };
  if (line.options?.timeout_seconds !== undefined) options.timeoutMs = line.options.timeout_seconds * 1e3;
  const timer =
    line.cancel_after_seconds === undefined ? undefined : setTimeout(() => caller.abort(), line.cancel_after_seconds * 1e3);
  const begin = performance.now();
  try {
    await FACES[line.face](client, line, options, told);
  } catch (error) {
    if (!(error instanceof NodewiseError)) throw error;
    const { code, reason, message, violations, metadata, retryDelayMs } = error;
    Object.assign(told, { code, reason, message, violations, metadata });
    told.retry_delay_seconds = retryDelayMs === undefined ? null : retryDelayMs / 1e3;
  }
  clearTimeout(timer);
  told.elapsed_seconds = (performance.now() - begin) / 1e3;
  return told;
}

type Face = (client: Client, line: Line, options: CallOptions, told: Answer) => Promise<void>;
type Called = (request: unknown, options: CallOptions) => unknown;

/** The client's own method for a method of the contract. */
function called(client: Client, method: DescMethod): Called {
  return (client[method.localName as keyof Client] as Called).bind(client);
}

function requestsOf<I extends DescMessage>(schema: I, line: Line): MessageShape<I>[] {
  return (line.requests ?? []).map((request) => fromJson(schema, request, { ignoreUnknownFields: true }));
}

const FACES: Record<Line["face"], Face> = {
  async call(client, line, options, told) {
    const method = methodNamed(line.method);
    const result = called(client, method)(requestsOf(method.input, line)[0], options);
    const reply = await (result instanceof Promise ? result : (result as Pager<unknown, never>).page());
    told.replies.push(toJson(method.output, reply as MessageShape<DescMessage>));
  },

  async stream(client, line, options, told) {
    for await (const reply of client.streamPredict(requestsOf(v1.StreamPredictRequestSchema, line), options)) {
      told.replies.push(toJson(v1.StreamPredictResponseSchema, reply));
      if (told.replies.length === line.cancel_after_replies) return;
    }
  },

  async rows(client, line, options, told) {
    if (line.method?.endsWith("/Predict")) {
      const [request] = requestsOf(v1.PredictRequestSchema, line);
      for (const row of rows(await client.predict(request ?? {}, options))) told.rows.push(said(row));
      return;
    }
    const [request] = requestsOf(v1.BatchPredictRequestSchema, line);
    const reply = await client.batchPredict(request ?? {}, options);
    for (const { job, rows: own, error } of jobs(reply)) {
      if (error) told.rows.push({ job, error: { reason: error.reason, message: error.message } });
      for (const row of own) told.rows.push({ job, ...said(row) });
    }
    if (!reply.outcomes.length) for (const row of rows(reply)) told.rows.push(said(row));
  },

  async pages(client, line, options, told) {
    const method = methodNamed(line.method);
    const pager = called(client, method)(requestsOf(method.input, line)[0], options) as Pager<
      MessageShape<DescMessage>,
      never
    >;
    const items = method.output.fields.find((field) => field.fieldKind === "list" && field.listKind === "message");
    for await (const item of pager) told.replies.push(toJson(items?.message as DescMessage, item));
  },

  async progress(client, line, options, told) {
    const method = methodNamed(line.method);
    const answer = (await called(client, method)(requestsOf(method.input, line)[0], options)) as { result: unknown };
    const last = create(method.output, { event: { case: "result", value: answer.result } } as Record<string, unknown>);
    told.replies.push(toJson(method.output, last));
  },

  async watch(client, line, options, told) {
    const [request] = requestsOf(v1.WatchProfilesRequestSchema, line);
    for await (const event of client.watchProfiles(request, options)) {
      told.replies.push(toJson(v1.WatchProfilesResponseSchema, event));
      if (told.replies.length === line.cancel_after_replies) return;
    }
  },

  async ingest(client, line, _options, told) {
    const asked = line.ingest as NonNullable<Line["ingest"]>;
    const writer = await client.ingest(asked.profile_id, { sessionId: asked.session_id });
    for (const given of asked.batches) {
      const batch = fromJson(v1.ProfileBatchSchema, given, { ignoreUnknownFields: true });
      await writer.write(batch);
      await writer.flush();
    }
    const committed = asked.commit ? await writer.commit() : undefined;
    told.replies.push({ durable: String(writer.durableSequenceNumber), revision: String(committed?.revision ?? 0n) });
    if (asked.commit) await writer.close();
    else await writer[Symbol.asyncDispose]();
  },
};

/** A row as the conformance compares it. */
function said(row: PredictionRow): Record<string, JsonValue> {
  const status = v1.RowStatusSchema.values.find((value) => value.number === row.status);
  return {
    nodes: row.nodes ?? null,
    workers: row.workers ?? null,
    device: null,
    status: status?.name ?? row.status,
    step_seconds: row.stepSeconds ?? null,
    samples_per_second: row.samplesPerSecond ?? null,
    lower_samples_per_second: row.lowerSamplesPerSecond ?? null,
    upper_samples_per_second: row.upperSamplesPerSecond ?? null,
    memory_bytes: row.memoryBytes ?? null,
    bottleneck: row.bottleneck ?? null,
    reason: row.refusal?.reason ?? null,
  };
}
