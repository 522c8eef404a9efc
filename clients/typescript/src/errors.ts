import { fromBinary } from "@bufbuild/protobuf";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "./gen/google/rpc/error_details_pb.js";
import type { FieldViolation, Problem } from "./gen/nodewise/v1/problem_pb.js";
import { CODE_OF_REASON, type Reason } from "./reasons.js";

/** Status codes of gRPC, by their numbers. */
export const CODES = [
  "OK",
  "CANCELLED",
  "UNKNOWN",
  "INVALID_ARGUMENT",
  "DEADLINE_EXCEEDED",
  "NOT_FOUND",
  "ALREADY_EXISTS",
  "PERMISSION_DENIED",
  "RESOURCE_EXHAUSTED",
  "FAILED_PRECONDITION",
  "ABORTED",
  "OUT_OF_RANGE",
  "UNIMPLEMENTED",
  "INTERNAL",
  "UNAVAILABLE",
  "DATA_LOSS",
  "UNAUTHENTICATED",
] as const;
/** A status code of gRPC, by name. */
export type Code = (typeof CODES)[number];

/** A field of a request that holds what it must not, and what would be right. */
export type Violation = Pick<FieldViolation, "field" | "description">;

/** What is known of a failure besides its message. */
export interface ErrorFacts {
  reason?: string;
  metadata?: Readonly<Record<string, string>>;
  violations?: readonly Violation[];
  retryDelayMs?: number | undefined;
  cause?: unknown;
}

/** A call that failed. `reason` is stable and meant to be switched on; `message` is for people. */
export class NodewiseError extends Error {
  override readonly name = "NodewiseError";
  /** Status code. */
  readonly code: Code;
  /** Reason of the server's catalogue, e.g. "PROFILE_NOT_FOUND"; empty where the server gave none. */
  readonly reason: Reason | (string & {});
  /** The dynamic parts of the message, by name. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Fields that hold what they must not. */
  readonly violations: readonly Violation[];
  /** Milliseconds after which the server asks to be tried again; undefined where it did not say. */
  readonly retryDelayMs: number | undefined;

  constructor(code: Code, message: string, facts: ErrorFacts = {}) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.code = code;
    this.reason = facts.reason ?? "";
    this.metadata = facts.metadata ?? {};
    this.violations = facts.violations ?? [];
    this.retryDelayMs = facts.retryDelayMs;
  }

  /** Fields of the profile that would make an answer possible, where Nodewise refused to guess. */
  get missingFields(): readonly string[] {
    return this.metadata.missingFields?.split(",") ?? [];
  }
}

const DOMAIN = "nodewise";

/** The details of a status, as `google.protobuf.Any` and the Connect protocol both have them. */
export interface Detail {
  /** Full name of the message, or a URL that ends with it. */
  type: string;
  value: Uint8Array;
}

/** The error that a status and its details describe. A detail that cannot be read is left out. */
export function fromStatus(code: Code, message: string, details: readonly Detail[], retryDelayMs?: number): NodewiseError {
  const found: ErrorFacts & { violations: Violation[] } = { retryDelayMs, violations: [] };
  for (const { type, value } of details) {
    try {
      switch (type.slice(type.lastIndexOf("/") + 1)) {
        case ErrorInfoSchema.typeName: {
          const info = fromBinary(ErrorInfoSchema, value);
          if (info.domain === DOMAIN) Object.assign(found, { reason: info.reason, metadata: info.metadata });
          break;
        }
        case BadRequestSchema.typeName:
          for (const { field, description } of fromBinary(BadRequestSchema, value).fieldViolations)
            found.violations.push({ field, description });
          break;
        case RetryInfoSchema.typeName: {
          const delay = fromBinary(RetryInfoSchema, value).retryDelay;
          if (delay) found.retryDelayMs = Number(delay.seconds) * 1e3 + delay.nanos / 1e6;
        }
      }
    } catch {
      // As if the server had not sent it: the status itself is still told.
    }
  }
  return new NodewiseError(code, message, found);
}

/** The error of a call that ended without details: the message says what to check. */
export function explained(code: Code, text: string, target: string, method: string, facts: ErrorFacts = {}): NodewiseError {
  const told: Partial<Record<Code, string>> = {
    UNAVAILABLE:
      `no answer from a Nodewise server at ${target} (${text}). Check that it runs (\`nodewise serve\` prints where it ` +
      "listens), that host and port are right and reachable from here, and that both sides agree on TLS",
    DEADLINE_EXCEEDED: `${method} at ${target} was not answered in time (${text}); allow more with timeoutMs`,
    UNIMPLEMENTED: `the server at ${target} does not offer ${method} (${text})`,
  };
  if (code === "RESOURCE_EXHAUSTED" && /larger than max/.test(text))
    told[code] = `${text}; ask for fewer rows, use streamPredict, or allow more with maxReceiveBytes`;
  return new NodewiseError(code, told[code] ?? text, facts);
}

/** The error of one job of a batch, or of one question of a stream. */
export function fromProblem(problem: Problem): NodewiseError {
  const missing = problem.missingFields.length ? { missingFields: problem.missingFields.join(",") } : {};
  const delay = problem.retryDelaySeconds;
  return new NodewiseError(
    (CODE_OF_REASON as Readonly<Record<string, Code>>)[problem.reason] ?? "UNKNOWN",
    problem.message,
    {
      reason: problem.reason,
      metadata: { ...missing, ...problem.metadata },
      violations: problem.violations,
      retryDelayMs: delay === undefined ? undefined : delay * 1e3,
    },
  );
}

/** Whatever was thrown while a call ran, as the error that callers are promised. */
export function asNodewiseError(thrown: unknown): NodewiseError {
  if (thrown instanceof NodewiseError) return thrown;
  return new NodewiseError("UNKNOWN", thrown instanceof Error ? thrown.message : String(thrown), { cause: thrown });
}
