import type { DescMethod } from "@bufbuild/protobuf";
import type { Code, NodewiseError } from "./errors.js";
import { serviceConfig } from "./gen/service_config.js";

/** How a call is tried again. */
export interface RetryPolicy {
  maxAttempts: number;
  initialBackoff: string;
  maxBackoff: string;
  backoffMultiplier: number;
  retryableStatusCodes: readonly string[];
}

/** What the service config says of a method. */
export interface MethodPolicy {
  /** Default deadline. */
  timeoutMs?: number;
  retry?: RetryPolicy;
}

/** Milliseconds of a duration as JSON has it, e.g. "0.05s". */
function milliseconds(duration: string): number {
  return Number.parseFloat(duration) * 1e3;
}

let policies: Map<string, MethodPolicy> | undefined;

/** What the service config says of a method, if it names it: the one file that the clients of all languages share. */
export function policyOf(method: DescMethod): MethodPolicy | undefined {
  if (!policies) {
    policies = new Map();
    for (const entry of serviceConfig.methodConfig) {
      const policy: MethodPolicy = {};
      if ("timeout" in entry) policy.timeoutMs = milliseconds(entry.timeout);
      if ("retryPolicy" in entry) policy.retry = entry.retryPolicy;
      for (const name of entry.name) policies.set(`${name.service}/${name.method}`, policy);
    }
  }
  return policies.get(`${method.parent.typeName}/${method.name}`);
}

/** The service config for gRPC, without timeouts: every call states its own, and gRPC would take the shorter one. */
export function retriesForGrpc(): string {
  return JSON.stringify(serviceConfig, (key, value) => (key === "timeout" ? undefined : value));
}

/** Ends retries when too many attempts fail, until enough succeed: gRPC's retry throttling, for one server. */
export class RetryThrottle {
  readonly #maximum = serviceConfig.retryThrottling.maxTokens;
  #tokens: number = this.#maximum;

  succeeded(): void {
    this.#tokens = Math.min(this.#maximum, this.#tokens + serviceConfig.retryThrottling.tokenRatio);
  }

  /** Counts a failure; tells whether retries are still allowed. */
  failed(): boolean {
    this.#tokens = Math.max(0, this.#tokens - 1);
    return this.#tokens > this.#maximum / 2;
  }
}

/**
 * Milliseconds before the next attempt after this many; undefined = there is none. A server that asks for a pause is
 * given it; one that is overloaded says so to the caller, and is not asked again from here.
 */
export function pauseBeforeRetry(
  policy: RetryPolicy | undefined,
  attempts: number,
  error: NodewiseError,
  pushbackMs: number | undefined,
  throttle: RetryThrottle,
): number | undefined {
  const retryable = (policy?.retryableStatusCodes as readonly Code[] | undefined)?.includes(error.code) ?? false;
  const allowed = !retryable || throttle.failed();
  if (!policy || !retryable || !allowed || attempts >= policy.maxAttempts) return undefined;
  if (pushbackMs !== undefined) return pushbackMs < 0 ? undefined : pushbackMs;
  const most = milliseconds(policy.initialBackoff) * policy.backoffMultiplier ** (attempts - 1);
  return Math.random() * Math.min(most, milliseconds(policy.maxBackoff));
}
