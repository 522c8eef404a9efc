import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { ticks } from "d3-array";

const NO_VALUE = "–";

/** A number as people write it: three significant digits below a thousand, thousands separators above. */
export function number(value: number | undefined): string {
  if (value === undefined) return NO_VALUE;
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e15 || size < 1e-4) return value.toExponential(2);
  return value.toLocaleString("en", size >= 1000 ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: 3 });
}

/** A number in few characters, for axes: 12k, 3.4M. */
export function short(value: number): string {
  return value.toLocaleString("en", { notation: "compact", maximumSignificantDigits: 3 });
}

const UNITS: readonly (readonly [seconds: number, name: string])[] = [
  [86400, "d"],
  [3600, "h"],
  [60, "min"],
  [1, "s"],
  [1e-3, "ms"],
  [1e-6, "µs"],
  [1e-9, "ns"],
];

/** The unit in which people would write a time, with its seconds: days from two on. */
function unitOf(value: number): readonly [seconds: number, name: string] {
  const size = Math.abs(value);
  return UNITS.find(([unit]) => size >= (unit === 86400 ? 2 * unit : unit)) ?? [1e-9, "ns"];
}

/** Seconds in the unit that people would use. */
export function seconds(value: number | undefined): string {
  if (value === undefined) return NO_VALUE;
  if (value === 0) return "0 s";
  const [size, name] = unitOf(value);
  return `${number(value / size)} ${name}`;
}

/** Ticks of an axis of seconds, at round numbers of one unit, with their texts. */
export function timeTicks(from: number, to: number, most: number): { at: number; text: string }[] {
  const [size, name] = unitOf(Math.max(Math.abs(from), Math.abs(to)));
  return ticks(from / size, to / size, most).map((value) => ({ at: value * size, text: `${number(value)} ${name}` }));
}

/** Bytes in GiB or MiB. */
export function bytes(value: number | undefined): string {
  if (value === undefined) return NO_VALUE;
  return value >= 2 ** 29 ? `${number(value / 2 ** 30)} GiB` : `${number(value / 2 ** 20)} MiB`;
}

/** A share as a percentage. */
export function percent(share: number | undefined): string {
  return share === undefined ? NO_VALUE : `${number(share * 100)} %`;
}

/** A count with its noun. */
export function count(value: number, noun: string): string {
  return `${number(value)} ${noun}${value === 1 ? "" : "s"}`;
}

/** How long ago something was. */
export function ago(time: Timestamp | undefined): string {
  return time ? `${seconds(Math.max(0, (Date.now() - timestampDate(time).getTime()) / 1000))} ago` : NO_VALUE;
}

/** Text of a machine as words: "exposed_sync" becomes "exposed sync". */
export function words(name: string): string {
  return name.replaceAll("_", " ");
}
