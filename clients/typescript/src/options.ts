import type { DescMethod } from "@bufbuild/protobuf";
import { policyOf } from "./retry.js";
import { VERSION } from "./version.js";

/** TLS with certificates of one's own, each as PEM. */
export interface TlsOptions {
  /** Root certificates. Absent = the system's. */
  ca?: string | Uint8Array | undefined;
  /** The client's own certificate with its chain, where the server asks for one (mutual TLS). Needs `key`. */
  certificate?: string | Uint8Array | undefined;
  /** Key of that certificate. */
  key?: string | Uint8Array | undefined;
}

/** Options of a client. */
export interface ClientOptions {
  /** Whether to speak TLS, and with which certificates. In browsers the target's scheme says it. Default: plain text. */
  tls?: boolean | TlsOptions | undefined;
  /**
   * Sent with every call as `authorization: Bearer ...`; a function is asked for it at every call. Without TLS it is
   * accepted for loopback alone.
   */
  token?: string | (() => string | Promise<string>) | undefined;
  /** Milliseconds of every unary call that states none. Absent = what the service config says of it: 10,000 or 60,000. */
  timeoutMs?: number | undefined;
  /** The caller's own name, before the client's, `nodewise-typescript/<version>`. Browsers send theirs instead. */
  userAgent?: string | undefined;
  /** Whether idempotent calls are tried again where the server is away, as the service config says. Default true. */
  retry?: boolean | undefined;
  /** Largest message accepted from the server, bytes. Default 4 MiB. */
  maxReceiveBytes?: number | undefined;
}

/** Options that were checked, with what holds where nothing is stated. */
export interface Settings extends ClientOptions {
  readonly target: string;
  readonly userAgent: string;
  readonly retry: boolean;
  readonly maxReceiveBytes: number;
}

// Of calls that the service config does not name.
const UNARY_TIMEOUT_MS = 10_000;
const STREAM_TIMEOUT_MS = 600_000;
const LOOPBACK = /^(localhost|127(\.\d+){3}|\[?::1\]?)$/;

/** Options of a client, checked. Throws a TypeError that names what is wrong. */
export function settled(target: string, host: string, secure: boolean, options: ClientOptions): Settings {
  if (!host) throw new TypeError(`target is ${JSON.stringify(target)}; give the server as "host:port" or as a URL`);
  if (options.timeoutMs !== undefined && !(options.timeoutMs > 0))
    throw new TypeError(`timeoutMs is ${options.timeoutMs}; every call has a deadline, so give a number above 0`);
  if (options.token !== undefined && !secure && !LOOPBACK.test(host))
    throw new TypeError(
      `a token would go to ${host} as plain text, which others on the network can read; use TLS, or leave out the token`,
    );
  return {
    ...options,
    target,
    userAgent: `${options.userAgent ? `${options.userAgent} ` : ""}nodewise-typescript/${VERSION}`,
    retry: options.retry ?? true,
    maxReceiveBytes: options.maxReceiveBytes ?? 4 * 1024 * 1024,
  };
}

/** Milliseconds of a call; undefined = it has no end of its own. */
export function timeoutOf(method: DescMethod, settings: Settings, asked: number | undefined): number | undefined {
  const policy = policyOf(method);
  if (method.methodKind === "unary") return asked ?? settings.timeoutMs ?? policy?.timeoutMs ?? UNARY_TIMEOUT_MS;
  // A watch, which the service config names without a timeout, ends when its reader does.
  return asked ?? (policy ? policy.timeoutMs : STREAM_TIMEOUT_MS);
}
