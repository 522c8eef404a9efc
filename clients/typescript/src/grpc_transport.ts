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
import {
  type ChannelCredentials,
  Client,
  type ClientDuplexStream,
  type ClientReadableStream,
  credentials,
  Metadata,
  type ServiceError,
  type CallOptions as WireOptions,
} from "@grpc/grpc-js";
import { CODES, explained, fromStatus, type NodewiseError } from "./errors.js";
import { StatusSchema } from "./gen/google/rpc/status_pb.js";
import { type ClientOptions, type Settings, settled, timeoutOf } from "./options.js";
import { retriesForGrpc } from "./retry.js";
import { type CallOptions, cancelled, pathOf, type Transport } from "./transport.js";

/** A method as grpc-js calls it. */
interface Codec<I, O> {
  path: string;
  encode(message: I): Buffer;
  decode(bytes: Buffer): O;
}

/** gRPC over grpc-js's generic client: retries, throttling and flow control are gRPC's own. */
export class GrpcTransport implements Transport {
  readonly target: string;
  readonly #settings: Settings;
  readonly #client: Client;
  readonly #codecs = new Map<DescMethod, Codec<never, unknown>>();
  readonly #metadata = new Metadata();

  /** @param target `host:port`, or any name that gRPC resolves */
  constructor(target: string, options: ClientOptions = {}) {
    if (/^https?:/i.test(target))
      throw new TypeError(
        `target is ${JSON.stringify(target)}; gRPC takes "host:port", @nodewise/client/browser takes URLs`,
      );
    const host = target.startsWith("unix:") ? "localhost" : target.replace(/^dns:(\/\/\/?)?/, "").replace(/:\d+$/, "");
    const settings = settled(target, host, Boolean(options.tls), options);
    this.target = target;
    this.#settings = settings;
    this.#client = new Client(target, credentialsOf(settings.tls), {
      "grpc.primary_user_agent": settings.userAgent,
      "grpc.max_receive_message_length": settings.maxReceiveBytes,
      // A server that comes back is found at once: the default waits a second before it knocks again.
      "grpc.initial_reconnect_backoff_ms": 100,
      "grpc.max_reconnect_backoff_ms": 1000,
      "grpc.enable_retries": settings.retry ? 1 : 0,
      // What is larger than this is sent once only; the default is below the largest message that the server takes.
      "grpc.per_rpc_retry_buffer_size": 8 * 1024 * 1024,
      "grpc.service_config_disable_resolution": 1,
      ...(settings.retry ? { "grpc.service_config": retriesForGrpc() } : {}),
    });
    if (typeof settings.token === "string") this.#metadata.set("authorization", `Bearer ${settings.token}`);
  }

  async unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageShape<I>,
    options: CallOptions,
  ): Promise<MessageShape<O>> {
    const { path, encode, decode } = this.#codec(method);
    const metadata = await this.#accompanying();
    const signal = options.signal;
    if (signal?.aborted) throw cancelled(signal);
    return new Promise((resolve, reject) => {
      const deadline = this.#deadline(method, options);
      const call = this.#client.makeUnaryRequest(path, encode, decode, request, metadata, deadline, (failure, reply) => {
        signal?.removeEventListener("abort", abort);
        if (failure) reject(signal?.aborted ? cancelled(signal) : this.#explained(failure, method));
        else resolve(reply as MessageShape<O>);
      });
      const abort = () => call.cancel();
      signal?.addEventListener("abort", abort);
    });
  }

  async *serverStream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    request: MessageShape<I>,
    options: CallOptions,
  ): AsyncGenerator<MessageShape<O>> {
    const { path, encode, decode } = this.#codec(method);
    const metadata = await this.#accompanying();
    const wire = this.#deadline(method, options);
    if (options.signal?.aborted) throw cancelled(options.signal);
    yield* this.#replies(
      method,
      this.#client.makeServerStreamRequest(path, encode, decode, request, metadata, wire),
      options,
    );
  }

  async *duplexStream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodBiDiStreaming<I, O>,
    requests: AsyncIterable<MessageShape<I>>,
    options: CallOptions,
  ): AsyncGenerator<MessageShape<O>> {
    const { path, encode, decode } = this.#codec(method);
    const metadata = await this.#accompanying();
    if (options.signal?.aborted) throw cancelled(options.signal);
    const call = this.#client.makeBidiStreamRequest(path, encode, decode, metadata, this.#deadline(method, options));
    const feed: { thrown?: unknown } = {};
    void send(call, requests, feed);
    try {
      yield* this.#replies(method, call, options);
    } catch (error) {
      // What the caller's own iterable threw stands above the end of the call that it caused.
      throw "thrown" in feed ? feed.thrown : error;
    }
  }

  close(): void {
    this.#client.close();
  }

  async *#replies<O>(
    method: DescMethod,
    call: ClientReadableStream<O> | ClientDuplexStream<never, O>,
    { signal }: CallOptions,
  ): AsyncGenerator<O> {
    const abort = () => call.cancel();
    signal?.addEventListener("abort", abort);
    try {
      for await (const reply of call) yield reply as O;
    } catch (failure) {
      throw signal?.aborted ? cancelled(signal) : this.#explained(failure as ServiceError, method);
    } finally {
      signal?.removeEventListener("abort", abort);
      // A status that arrives after its reader has ended is not an error.
      call.on("error", () => {});
      call.cancel();
    }
  }

  /** The generic client's functions for a method, made once. */
  #codec<I extends DescMessage, O extends DescMessage>(method: DescMethod & { input: I; output: O }) {
    let codec = this.#codecs.get(method) as Codec<MessageShape<I>, MessageShape<O>> | undefined;
    if (!codec) {
      codec = {
        path: pathOf(method),
        encode(message) {
          const bytes = toBinary(method.input, message);
          return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
        },
        decode: (bytes) => fromBinary(method.output, bytes),
      };
      this.#codecs.set(method, codec as Codec<never, unknown>);
    }
    return codec;
  }

  #deadline(method: DescMethod, options: CallOptions): WireOptions {
    const timeoutMs = timeoutOf(method, this.#settings, options.timeoutMs);
    return timeoutMs === undefined ? {} : { deadline: Date.now() + timeoutMs };
  }

  /** What accompanies a call. */
  async #accompanying(): Promise<Metadata> {
    const { token } = this.#settings;
    if (typeof token !== "function") return this.#metadata;
    const metadata = new Metadata();
    metadata.set("authorization", `Bearer ${await token()}`);
    return metadata;
  }

  #explained(failure: ServiceError, method: DescMethod): NodewiseError {
    const code = CODES[failure.code] ?? "UNKNOWN";
    const pushbackMs = Number(failure.metadata?.get("grpc-retry-pushback-ms")[0] ?? -1);
    const facts = { retryDelayMs: pushbackMs >= 0 ? pushbackMs : undefined, cause: failure };
    const [packed] = failure.metadata?.get("grpc-status-details-bin") ?? [];
    if (packed instanceof Uint8Array) {
      try {
        const status = fromBinary(StatusSchema, packed);
        const details = status.details.map(({ typeUrl, value }) => ({ type: typeUrl, value }));
        if (details.length) return fromStatus(code, status.message, details, facts.retryDelayMs);
      } catch {
        // As if the server had sent none.
      }
    }
    return explained(code, failure.details || "no details were given", this.target, method.name, facts);
  }
}

/** Sends requests as the server takes them. What the iterable throws ends the call, and is left in `feed`. */
async function send<T>(
  call: ClientDuplexStream<T, unknown>,
  requests: AsyncIterable<T>,
  feed: { thrown?: unknown },
): Promise<void> {
  const over = new Promise<void>((resolve) => call.once("close", resolve));
  try {
    for await (const request of requests) {
      if (call.destroyed) return;
      if (!call.write(request)) await Promise.race([over, new Promise((resolve) => call.once("drain", resolve))]);
    }
    call.end();
  } catch (thrown) {
    feed.thrown = thrown;
    call.cancel();
  }
}

function credentialsOf(tls: ClientOptions["tls"]): ChannelCredentials {
  if (!tls) return credentials.createInsecure();
  if (tls === true) return credentials.createSsl();
  if ((tls.certificate === undefined) !== (tls.key === undefined))
    throw new TypeError("tls.certificate and tls.key belong together; give both, as PEM");
  const [ca, key, certificate] = [tls.ca, tls.key, tls.certificate].map((pem) =>
    pem === undefined ? null : Buffer.from(pem),
  );
  return credentials.createSsl(ca, key, certificate);
}
