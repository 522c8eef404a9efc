import {
  type DescMessage,
  type DescMethod,
  type DescMethodBiDiStreaming,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  fromBinary,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { base64Decode } from "@bufbuild/protobuf/wire";
import { CODES, type Code, type Detail, explained, fromStatus, NodewiseError } from "./errors.js";
import { type ClientOptions, type Settings, settled, timeoutOf } from "./options.js";
import { pauseBeforeRetry, policyOf, RetryThrottle } from "./retry.js";
import { sleep } from "./sleep.js";
import { type CallOptions, cancelled, pathOf, type Transport } from "./transport.js";

/** An error as the Connect protocol has it in JSON. */
interface WireError {
  code?: string;
  message?: string;
  details?: { type: string; value: string }[];
}

const PUSHBACK = "grpc-retry-pushback-ms";
const COMPRESSED = 1;
const END = 2;

/** The Connect protocol over fetch, for browsers; it runs wherever fetch does. Streams of requests are not possible. */
export class ConnectTransport implements Transport {
  readonly target: string;
  readonly #settings: Settings;
  readonly #throttle = new RetryThrottle();
  readonly #closing = new AbortController();

  /** @param target base URL, e.g. "https://nodewise.example" */
  constructor(target: string, options: ClientOptions = {}) {
    const http = /^https?:/i.test(target) && URL.canParse(target) ? new URL(target) : undefined;
    if (typeof options.tls === "object") throw new TypeError("tls: certificates are the browser's own here; leave it out");
    this.#settings = settled(target, http?.hostname ?? "", http?.protocol === "https:", options);
    this.target = target.replace(/\/$/, "");
  }

  async unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageShape<I>,
    options: CallOptions,
  ): Promise<MessageShape<O>> {
    const body = toBinary(method.input, request);
    const replies = this.#attempts(method, options, async function* (attempt) {
      const response = await attempt.post("application/proto", body);
      if (!response.ok) throw await attempt.failed(response);
      const bytes = new Uint8Array(await response.arrayBuffer());
      attempt.limit(bytes.length);
      yield fromBinary(method.output, bytes);
    });
    for await (const reply of replies) return reply;
    throw new NodewiseError("INTERNAL", `${method.name} was answered without a message`);
  }

  serverStream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    request: MessageShape<I>,
    options: CallOptions,
  ): AsyncGenerator<MessageShape<O>> {
    const message = toBinary(method.input, request);
    const body = new Uint8Array(5 + message.length);
    new DataView(body.buffer).setUint32(1, message.length);
    body.set(message, 5);
    return this.#attempts(method, options, async function* (attempt) {
      const response = await attempt.post("application/connect+proto", body);
      if (!response.ok || !response.body) throw await attempt.failed(response);
      for await (const { flags, bytes } of envelopes(response.body, attempt.limit)) {
        if (flags & COMPRESSED)
          throw new NodewiseError("INTERNAL", "the server sent a compressed message, which is not accepted");
        if (flags & END) {
          const end = JSON.parse(new TextDecoder().decode(bytes)) as {
            error?: WireError;
            metadata?: Record<string, string[]>;
          };
          if (end.error) throw attempt.told(end.error, end.metadata?.[PUSHBACK]?.[0]);
          return;
        }
        yield fromBinary(method.output, bytes);
      }
      throw new NodewiseError("UNAVAILABLE", "the stream was cut");
    });
  }

  // biome-ignore lint/correctness/useYield: it has nothing to yield.
  async *duplexStream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodBiDiStreaming<I, O>,
  ): AsyncGenerator<MessageShape<O>> {
    throw new NodewiseError(
      "UNIMPLEMENTED",
      `${method.name} needs a stream of requests, which browsers do not offer over HTTP; ask by unary calls`,
    );
  }

  close(): void {
    this.#closing.abort(new Error("the client was closed"));
  }

  /** Runs a call, and runs it again as the service config says, until its first reply. */
  async *#attempts<T>(
    method: DescMethod,
    options: CallOptions,
    run: (attempt: Attempt) => AsyncGenerator<T>,
  ): AsyncGenerator<T> {
    const timeoutMs = timeoutOf(method, this.#settings, options.timeoutMs);
    const end = timeoutMs === undefined ? undefined : performance.now() + timeoutMs;
    const policy = this.#settings.retry ? policyOf(method)?.retry : undefined;
    const call = new AbortController();
    const abort = () => call.abort();
    const timer = timeoutMs === undefined ? undefined : setTimeout(abort, Math.min(timeoutMs, 2 ** 31 - 1));
    const signals = [options.signal, this.#closing.signal].filter((signal) => signal !== undefined);
    for (const signal of signals) signal.addEventListener("abort", abort);
    try {
      for (let attempts = 1; ; attempts++) {
        let heard = false;
        const attempt = new Attempt(method, this.#settings, this.target, call.signal, end);
        try {
          const ended = signals.find((signal) => signal.aborted);
          if (ended) throw cancelled(ended);
          for await (const reply of run(attempt)) {
            heard = true;
            yield reply;
          }
          this.#throttle.succeeded();
          return;
        } catch (thrown) {
          const ended = signals.find((signal) => signal.aborted);
          if (ended) throw cancelled(ended);
          const error = attempt.explained(thrown);
          const pause = heard ? undefined : pauseBeforeRetry(policy, attempts, error, attempt.pushbackMs, this.#throttle);
          if (pause === undefined || (end !== undefined && performance.now() + pause >= end)) throw error;
          await sleep(pause, call.signal);
        }
      }
    } finally {
      clearTimeout(timer);
      for (const signal of signals) signal.removeEventListener("abort", abort);
      call.abort();
    }
  }
}

/** One attempt of a call. */
class Attempt {
  pushbackMs: number | undefined;

  constructor(
    readonly method: DescMethod,
    readonly settings: Settings,
    readonly target: string,
    readonly signal: AbortSignal,
    readonly end: number | undefined,
  ) {}

  async post(contentType: string, body: Uint8Array<ArrayBuffer>): Promise<Response> {
    const headers: Record<string, string> = { "content-type": contentType, "connect-protocol-version": "1" };
    if (this.end !== undefined) headers["connect-timeout-ms"] = String(Math.max(1, Math.ceil(this.end - performance.now())));
    const { token, userAgent } = this.settings;
    if (token !== undefined) headers.authorization = `Bearer ${typeof token === "string" ? token : await token()}`;
    // Browsers keep the header for themselves.
    if (typeof document === "undefined") headers["user-agent"] = userAgent;
    return fetch(this.target + pathOf(this.method), {
      method: "POST",
      headers,
      body,
      signal: this.signal,
      redirect: "error",
    });
  }

  /** Refuses a message that is larger than the client accepts. */
  readonly limit = (bytes: number): void => {
    if (bytes > this.settings.maxReceiveBytes)
      throw this.#explainedBy(
        "RESOURCE_EXHAUSTED",
        `a message of ${bytes} bytes is larger than max (${this.settings.maxReceiveBytes})`,
      );
  };

  /** The error of a reply that has an HTTP status. */
  async failed(response: Response): Promise<NodewiseError> {
    const text = await response.text();
    const pushback = response.headers.get(`trailer-${PUSHBACK}`) ?? response.headers.get(PUSHBACK);
    try {
      if (/^application\/json/.test(response.headers.get("content-type") ?? ""))
        return this.told(JSON.parse(text) as WireError, pushback);
    } catch {
      // Some other JSON, of whatever stands between.
    }
    return this.#explainedBy(CODE_OF_HTTP[response.status] ?? "UNKNOWN", `HTTP status ${response.status}`);
  }

  /** The error that the server told. */
  told(error: WireError, pushback: string | null | undefined): NodewiseError {
    if (pushback != null) this.pushbackMs = Number(pushback);
    const name = error.code === "canceled" ? "CANCELLED" : error.code?.toUpperCase();
    const code = CODES.find((known) => known === name) ?? "UNKNOWN";
    const details: Detail[] = (error.details ?? []).map(({ type, value }) => ({ type, value: base64Decode(value) }));
    const retryDelayMs = this.pushbackMs !== undefined && this.pushbackMs >= 0 ? this.pushbackMs : undefined;
    if (details.length) return fromStatus(code, error.message ?? "", details, retryDelayMs);
    return this.#explainedBy(code, error.message || "no details were given");
  }

  /** Whatever ended the attempt, as the error that callers are promised. */
  explained(thrown: unknown): NodewiseError {
    if (this.signal.aborted) return this.#explainedBy("DEADLINE_EXCEEDED", "the deadline has passed", thrown);
    if (thrown instanceof NodewiseError) return thrown;
    // fetch says no more than that it failed: the network, or a page whose origin the server does not allow.
    if (thrown instanceof TypeError || thrown instanceof DOMException)
      return this.#explainedBy("UNAVAILABLE", thrown.message, thrown);
    return this.#explainedBy("INTERNAL", thrown instanceof Error ? thrown.message : String(thrown), thrown);
  }

  #explainedBy(code: Code, text: string, cause?: unknown): NodewiseError {
    return explained(code, text, this.target, this.method.name, { cause });
  }
}

// As the Connect protocol says, but that a server with too much to do is not asked again.
const CODE_OF_HTTP: Readonly<Record<number, Code>> = {
  400: "INTERNAL",
  401: "UNAUTHENTICATED",
  403: "PERMISSION_DENIED",
  404: "UNIMPLEMENTED",
  413: "RESOURCE_EXHAUSTED",
  429: "RESOURCE_EXHAUSTED",
  502: "UNAVAILABLE",
  503: "UNAVAILABLE",
  504: "UNAVAILABLE",
};

/** The messages of a stream: a byte of flags, four of length, the message. */
async function* envelopes(
  body: ReadableStream<Uint8Array>,
  limit: (bytes: number) => void,
): AsyncGenerator<{ flags: number; bytes: Uint8Array }> {
  const reader = body.getReader();
  let held = new Uint8Array();
  try {
    for (;;) {
      while (held.length >= 5) {
        const length = new DataView(held.buffer, held.byteOffset).getUint32(1);
        limit(length);
        if (held.length < 5 + length) break;
        yield { flags: held[0] as number, bytes: held.subarray(5, 5 + length) };
        held = held.subarray(5 + length);
      }
      const { done, value } = await reader.read();
      if (done) return;
      const joined = new Uint8Array(held.length + value.length);
      joined.set(held);
      joined.set(value, held.length);
      held = joined;
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
