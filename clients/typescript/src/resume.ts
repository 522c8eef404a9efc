import type { Code, NodewiseError } from "./errors.js";

/** Pauses and limits of resuming an ingest session or a watch. Progress starts the count and the clock afresh. */
export interface ResumePolicy {
  /** Attempts in a row without progress, the first included. */
  maxAttempts: number;
  /** Milliseconds before the second attempt; each further pause is `multiplier` times as long, up to `maxPauseMs`. */
  initialPauseMs: number;
  multiplier: number;
  maxPauseMs: number;
  /** Each pause is longer or shorter by up to this share. */
  jitter: number;
  /** Milliseconds without progress after which it gives up. */
  deadlineMs: number;
  /** The same before the server was ever heard: one that restarts is awaited, one that is not there is told. */
  openingDeadlineMs: number;
}

export const DEFAULT_RESUME: ResumePolicy = {
  maxAttempts: 40,
  initialPauseMs: 50,
  multiplier: 2,
  maxPauseMs: 1000,
  jitter: 0.2,
  deadlineMs: 30_000,
  openingDeadlineMs: 10_000,
};

// The ends that another attempt can be better than: a server that goes away, that cancels what it had not begun with, or
// whose own limit on the length of a call is over.
const RESUMABLE: readonly Code[] = ["UNAVAILABLE", "CANCELLED", "DEADLINE_EXCEEDED"];

/** Whether the server's store is full, which lasts until somebody frees space. */
function isFull(error: NodewiseError): boolean {
  return error.reason === "STORE_UNAVAILABLE" && error.metadata.cause === "full";
}

function pauseMs(policy: ResumePolicy, attempts: number, error: NodewiseError | undefined): number {
  const pause = Math.min(policy.maxPauseMs, policy.initialPauseMs * policy.multiplier ** Math.min(attempts - 1, 60));
  return Math.max(pause * (1 + policy.jitter * (2 * Math.random() - 1)), error?.retryDelayMs ?? 0);
}

/** Counts attempts without progress, and says when to make the next one. */
export class Patience {
  readonly #policy: ResumePolicy;
  #heard = false;
  #attempts = 0;
  #goneAt = 0;

  constructor(policy: Partial<ResumePolicy> = {}) {
    this.#policy = { ...DEFAULT_RESUME, ...policy };
  }

  /** The server made progress. */
  progress(): void {
    this.#heard = true;
    this.#attempts = 0;
  }

  /**
   * Milliseconds before the next attempt after one that ended so; undefined = it is over.
   *
   * @param awaitOverload whether a server that says when to come back is waited for from here
   */
  pauseAfter(error: NodewiseError | undefined, { awaitOverload = false } = {}): number | undefined {
    const now = performance.now();
    if (!this.#attempts) this.#goneAt = now;
    this.#attempts++;
    const overloaded = awaitOverload && error?.code === "RESOURCE_EXHAUSTED" && error.retryDelayMs !== undefined;
    const again = !error || overloaded || (RESUMABLE.includes(error.code) && !isFull(error));
    const pause = pauseMs(this.#policy, this.#attempts, error);
    const { deadlineMs, openingDeadlineMs, maxAttempts } = this.#policy;
    const limit = this.#heard ? deadlineMs : Math.min(deadlineMs, openingDeadlineMs);
    return again && this.#attempts < maxAttempts && now - this.#goneAt + pause <= limit ? pause : undefined;
  }
}

// As often as a call is tried again before its first message, and after the same pauses.
const MAX_RESTARTED = 4;

/** Milliseconds before a stream that changes nothing is begun again after so many attempts; undefined = it is not. */
export function pauseBeforeRestart(error: NodewiseError, attempts: number, leftMs: number): number | undefined {
  if (error.code !== "UNAVAILABLE" || attempts >= MAX_RESTARTED) return undefined;
  const pause = pauseMs(DEFAULT_RESUME, attempts, error);
  return pause < leftMs ? pause : undefined;
}
