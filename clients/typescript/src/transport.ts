import type {
  DescMessage,
  DescMethod,
  DescMethodBiDiStreaming,
  DescMethodServerStreaming,
  DescMethodUnary,
  MessageShape,
} from "@bufbuild/protobuf";
import { NodewiseError } from "./errors.js";

/** How one call is made. */
export interface CallOptions {
  /** Milliseconds for the whole call, retries and restarts included. Absent = the client's, else the service config's. */
  timeoutMs?: number | undefined;
  /** Ends the call from here; it then fails with the code CANCELLED, and the server stops its work. */
  signal?: AbortSignal | undefined;
}

/** How messages reach the server: gRPC on Node, Connect in browsers. Errors are NodewiseError. */
export interface Transport {
  /** Where the server is. */
  readonly target: string;
  /** One request, one reply; retried as the service config says. */
  unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageShape<I>,
    options: CallOptions,
  ): Promise<MessageShape<O>>;
  /** One request, many replies; retried as the service config says until the first reply. */
  serverStream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    request: MessageShape<I>,
    options: CallOptions,
  ): AsyncIterable<MessageShape<O>>;
  /** Many requests, many replies; browsers cannot. */
  duplexStream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodBiDiStreaming<I, O>,
    requests: AsyncIterable<MessageShape<I>>,
    options: CallOptions,
  ): AsyncIterable<MessageShape<O>>;
  /** Ends the connection. */
  close(): void;
}

/** The path of a method, the same in gRPC and in Connect. */
export function pathOf(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}

/** The error of a call that its caller ended. */
export function cancelled(signal: AbortSignal | undefined): NodewiseError {
  return new NodewiseError("CANCELLED", "the caller ended the call", { cause: signal?.reason });
}
