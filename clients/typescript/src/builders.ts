import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ConfigurationRangeSchema } from "./gen/nodewise/v1/configuration_pb.js";
import type { ObjectiveSchema } from "./gen/nodewise/v1/objective_pb.js";
import type { ProfileContentSchema, ProfileSourceSchema } from "./gen/nodewise/v1/profile_pb.js";
import type { NodePoolSchema } from "./gen/nodewise/v1/schedule_pb.js";

type Init<T> = T extends { $typeName: string } ? never : T;
type Range = Init<MessageInitShape<typeof ConfigurationRangeSchema>>;

/** What a range of configurations says besides what is counted. */
export interface RangeOptions extends Omit<Range, "axis" | "$typeName" | "$unknown"> {
  /** Increment. Default 1. Not with `powersOfTwo`. */
  step?: number;
  /** Only the powers of two between first and last. */
  powersOfTwo?: boolean;
}

/** One configuration per number of nodes: `nodeRange(1, 16)` is sixteen rows. */
export function nodeRange(first: number, last: number, options: RangeOptions = {}): Range {
  return range("nodes", first, last, options);
}

/** One configuration per number of workers; nodes follow from the placement rule. */
export function workerRange(first: number, last: number, options: RangeOptions = {}): Range {
  return range("workers", first, last, options);
}

function range(axis: "nodes" | "workers", first: number, last: number, options: RangeOptions): Range {
  const { step, powersOfTwo = false, ...rest } = options;
  return { ...rest, axis: { case: axis, value: { first, last, powersOfTwo, ...(step === undefined ? {} : { step }) } } };
}

type Objective = Init<MessageInitShape<typeof ObjectiveSchema>>;
type Rule = Extract<NonNullable<Objective["rule"]>, { case: string }>;

/**
 * What best means: `objective("leastCost", { deadlineSeconds: 3600 })`.
 *
 * @param confidence judge by the bound of the interval that holds with this probability, e.g. 0.9; absent = by the point
 * @param maxExtrapolationRatio recommend at most so many times the measured scale; absent = 4, 0 = no limit
 */
export function objective<Case extends Rule["case"]>(
  rule: Case,
  value: Init<Extract<Rule, { case: Case }>["value"]> = {} as never,
  { confidence, maxExtrapolationRatio }: { confidence?: number; maxExtrapolationRatio?: number } = {},
): Objective {
  return {
    rule: { case: rule, value } as Rule,
    ...(confidence === undefined ? {} : { confidence }),
    ...(maxExtrapolationRatio === undefined ? {} : { maxExtrapolationRatio }),
  };
}

type Source = Init<MessageInitShape<typeof ProfileSourceSchema>>;

/** A stored profile by its name, at least at or exactly at a revision; or the profile itself, and nothing is stored. */
export function profileSource(
  profile: string | MessageInitShape<typeof ProfileContentSchema>,
  revisions: { minimumRevision?: bigint; revision?: bigint } = {},
): Source {
  const source: Source["source"] =
    typeof profile === "string" ? { case: "profileId", value: profile } : { case: "content", value: profile };
  return { ...revisions, source };
}

type Pool = Init<MessageInitShape<typeof NodePoolSchema>>;

/** Alike nodes of a cluster with all their devices free; `rest` is what NodePool says besides. */
export function nodePool(
  name: string,
  deviceName: string,
  { nodes, devicesPerNode }: { nodes: number; devicesPerNode: number },
  rest: Omit<Pool, "name" | "deviceName" | "availableDevices" | "devicesPerNode"> = {},
): Pool {
  return { ...rest, name, deviceName, availableDevices: Array<number>(nodes).fill(devicesPerNode) };
}
