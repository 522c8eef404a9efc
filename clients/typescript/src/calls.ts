import {
  create,
  type DescMessage,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import { NodewiseError } from "./errors.js";
import { Pager } from "./pages.js";
import { pauseBeforeRestart } from "./resume.js";
import { sleep } from "./sleep.js";
import { type CallOptions, cancelled, type Transport } from "./transport.js";

type EventOf<Response> = Response extends { event: infer Event } ? Event : never;
type ValueOf<Response, Case> = Extract<EventOf<Response>, { case: Case }> extends { value: infer Value } ? Value : never;

/** How a call that may take minutes is made. */
export interface LongCallOptions<Response> extends CallOptions {
  /** Gets the progress; from the start again if the connection was lost and the call started again. */
  onProgress?: ((progress: ValueOf<Response, "progress">) => void) | undefined;
}

/** What a call that takes long ends with. */
export interface LongAnswer<Response> {
  /** The result. */
  result: ValueOf<Response, "result">;
  /** What came in pieces before it, in order: columns of jobs, timelines, collectives. */
  pieces: Exclude<EventOf<Response>, { case: "progress" | "result" | undefined }>[];
}

const LONG_TIMEOUT_MS = 600_000;

/** A unique id. Pages without TLS have no `crypto.randomUUID`. */
export function newId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** How calls are made, whatever the transport. */
export class Calls {
  readonly #transport: Transport;
  readonly #retry: boolean;
  #closed = false;

  constructor(transport: Transport, retry: boolean) {
    this.#transport = transport;
    this.#retry = retry;
  }

  /** Where the server is. */
  get target(): string {
    return this.#transport.target;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Whether what is cut is tried again. */
  get retry(): boolean {
    return this.#retry;
  }

  get transport(): Transport {
    if (this.#closed) throw new NodewiseError("CANCELLED", "the client is closed");
    return this.#transport;
  }

  close(): void {
    this.#closed = true;
    this.#transport.close();
  }

  async unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    options: CallOptions = {},
  ): Promise<MessageShape<O>> {
    return this.transport.unary(method, create(method.input, request), options);
  }

  listing<I extends DescMessage, O extends DescMessage, Item>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I> & { pageToken?: string },
    items: (page: MessageShape<O>) => readonly Item[],
    options: CallOptions = {},
  ): Pager<Item, MessageShape<O> & { nextPageToken: string }> {
    const ask = (pageToken: string) =>
      this.unary(method, { ...request, pageToken } as MessageInitShape<I>, options) as Promise<
        MessageShape<O> & { nextPageToken: string }
      >;
    return new Pager(ask, request.pageToken ?? "", items);
  }

  /** What a stream of progress ends with. It changes nothing: where it was cut, it is begun again, a few times. */
  async long<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    request: MessageInitShape<I>,
    options: LongCallOptions<MessageShape<O>> = {},
  ): Promise<LongAnswer<MessageShape<O>>> {
    type Response = MessageShape<O>;
    const message = create(method.input, request);
    const end = performance.now() + (options.timeoutMs ?? LONG_TIMEOUT_MS);
    for (let attempts = 1; ; attempts++) {
      const pieces: LongAnswer<Response>["pieces"] = [];
      let heard = false;
      try {
        const timeoutMs = Math.max(1, end - performance.now());
        for await (const reply of this.transport.serverStream(method, message, { ...options, timeoutMs })) {
          heard = true;
          const { event } = reply as unknown as { event: { case?: string; value?: unknown } };
          if (event.case === "progress") options.onProgress?.(event.value as ValueOf<Response, "progress">);
          else if (event.case === "result") return { result: event.value as LongAnswer<Response>["result"], pieces };
          else if (event.case) pieces.push(event as (typeof pieces)[number]);
        }
        throw new NodewiseError("INTERNAL", `the server ended ${method.name} without a result`);
      } catch (thrown) {
        if (!(thrown instanceof NodewiseError)) throw thrown;
        // The transport itself tries again what was cut before its first message.
        const pause = heard && this.#retry ? pauseBeforeRestart(thrown, attempts, end - performance.now()) : undefined;
        if (pause === undefined) throw thrown;
        await sleep(pause, options.signal);
        if (options.signal?.aborted) throw cancelled(options.signal);
      }
    }
  }
}
