import { type DescField, getOption, type MessageInitShape } from "@bufbuild/protobuf";
import {
  type ConfigurationSettings,
  ConfigurationSettingsSchema,
  ConfigurationsSchema,
} from "./gen/nodewise/v1/configuration_pb.js";
import { facts } from "./gen/nodewise/v1/facts_pb.js";

/** Workers of a configuration that are alike: `{ workers: 2, computeFactor: 1.5 }` are two stragglers. */
export interface WorkerGroup {
  workers: number;
  /** Their accelerator. Either every group of some configurations names one, or none does, and then it is the row's. */
  deviceName?: string | undefined;
  /** Their compute time relative to what the evidence says of their device; above 1 = slower. Default 1. */
  computeFactor?: number | undefined;
}

type Settings = { [K in keyof Omit<ConfigurationSettings, `$${string}`>]?: ConfigurationSettings[K] | undefined };

/** One configuration. What is absent is as the job's evidence has it, or the contract's default. */
export interface ConfigurationRow extends Settings {
  /** Machines that run workers. */
  nodes?: number | undefined;
  /** Training processes in total, one per device. */
  workers?: number | undefined;
  /** Workers on each node, e.g. [4, 4]. Absent = packed. */
  placement?: readonly number[] | undefined;
  /** Workers that are not alike. Absent = all are alike. */
  groups?: readonly WorkerGroup[] | undefined;
}

type Columns = Exclude<MessageInitShape<typeof ConfigurationsSchema>, { $typeName: string }>;

/**
 * Configurations by rows, as the columns that travel: `configurations([{ nodes: 1 }, { nodes: 2 }])`.
 * Throws a TypeError for a row that leaves out what others state, where nothing stands for "as in the evidence".
 */
export function configurations(given: Iterable<ConfigurationRow>): Columns {
  const rows = [...given];
  const found: Record<string, unknown> = {};
  for (const { row, column, absent } of plainColumns()) {
    const stated = rows.map((each) => each[row]);
    if (stated.every((value) => value === undefined)) continue;
    const missing = stated.indexOf(undefined);
    if (missing >= 0 && absent === undefined)
      throw new TypeError(`row ${missing} has no ${row}, but other rows do: give it in every row, or in none`);
    found[column] = stated.map((value) => value ?? absent);
  }
  Object.assign(
    found,
    named(
      "offer",
      rows.map((row) => row.offerName ?? ""),
    ),
  );
  Object.assign(found, devicesAndGroups(rows));
  if (rows.some((row) => row.placement?.length)) {
    const placements = rows.map((row) => row.placement ?? []);
    Object.assign(found, { placementOffsets: offsets(placements), placementWorkers: placements.flat() });
  }
  return found;
}

/** A column with an entry per row. */
export interface PlainColumn<Row> {
  row: keyof Row;
  column: string;
  /** What stands for a row that states nothing; undefined = nothing can. */
  absent: unknown;
}

let plain: PlainColumn<ConfigurationRow>[] | undefined;

/** The columns that hold what rows are called by; the contract says which column each setting is a value of. */
function plainColumns(): PlainColumn<ConfigurationRow>[] {
  const { field } = ConfigurationsSchema;
  const counts = [field.nodes, field.workers].map((column) => ({ row: column.localName, column }));
  const settings = ConfigurationSettingsSchema.fields.map((setting) => {
    const name = getOption(setting, facts).sameAs.split(".")[1];
    return { row: setting.localName, column: ConfigurationsSchema.fields.find((each) => each.name === name) as DescField };
  });
  plain ??= [...counts, ...settings]
    .filter(({ column }) => !/_names$/.test(column.name))
    .map(({ row, column }) => ({ row: row as keyof ConfigurationRow, column: column.localName, absent: absentOf(column) }));
  return plain;
}

/** What a row that states nothing holds in a column. */
export function absentOf(column: DescField): unknown {
  if (column.fieldKind !== "list") return undefined;
  if (column.listKind === "enum") return 0;
  if (column.listKind === "scalar" && column.scalar === 9) return "";
  const absent = getOption(column, facts).defaultValue;
  return column.listKind === "scalar" && column.scalar === 8 ? Boolean(absent) : absent;
}

/** Names of rows, as a dictionary and indexes into it; one name for all rows needs no index. */
function named(kind: "offer", names: readonly string[]): Record<string, unknown> {
  const known = [...new Set(names)];
  if (!known.some(Boolean)) return {};
  return {
    [`${kind}Names`]: known,
    ...(known.length > 1 ? { [`${kind}Indexes`]: names.map((name) => known.indexOf(name)) } : {}),
  };
}

function devicesAndGroups(rows: readonly ConfigurationRow[]): Columns {
  const groups = rows.map((row) => row.groups ?? []);
  const all = groups.flat();
  const ofGroups = all.map((group) => group.deviceName).filter((name) => name !== undefined);
  if (ofGroups.length > 0 && ofGroups.length < all.length)
    throw new TypeError("some groups name their device and others do not: either every group names one, or none does");
  const ofRows = rows.some((row) => row.deviceName) ? rows.map((row) => row.deviceName ?? "") : [];
  const names = [...new Set([...ofRows, ...ofGroups])];
  const found: Columns = names.length ? { deviceNames: names } : {};
  // One name and no indexes holds for all rows.
  if (ofRows.length && names.length > 1) found.deviceIndexes = ofRows.map((name) => names.indexOf(name));
  if (!all.length) return found;
  Object.assign(found, { groupOffsets: offsets(groups), groupWorkers: all.map((group) => group.workers) });
  if (ofGroups.length) found.groupDeviceIndexes = ofGroups.map((name) => names.indexOf(name));
  if (all.some((group) => (group.computeFactor ?? 1) !== 1))
    found.groupComputeFactors = all.map((group) => group.computeFactor ?? 1);
  return found;
}

/** Where each row's entries begin, and where the last row's end. */
function offsets(rows: readonly (readonly unknown[])[]): number[] {
  const found = [0];
  for (const row of rows) found.push((found.at(-1) as number) + row.length);
  return found;
}
