import type { TimelinePiece } from "@nodewise/client/v1beta1";

/** Events that do not overlap, by their begin: one nesting depth of one lane of one rank. Times are milliseconds. */
export interface Track {
  readonly rank: number;
  readonly lane: string;
  readonly depth: number;
  readonly count: number;
  readonly begins: Float64Array;
  readonly ends: Float64Array;
  /** Index into the timeline's names. */
  readonly names: Int32Array;
  /** Index into the timeline's parts; -1 = none. */
  readonly parts: Int32Array;
}

/** What was executed, ready to draw. */
export interface Timeline {
  readonly tracks: readonly Track[];
  readonly names: readonly string[];
  readonly parts: readonly string[];
  readonly begin: number;
  readonly end: number;
  readonly count: number;
}

const MOST_DEPTHS = 4;

/** The timeline that a call sent in pieces. Events deeper than four levels are left out, as they are too small to see. */
export function timelineOf(pieces: readonly TimelinePiece[]): Timeline {
  const names: string[] = [];
  const lanes: string[] = [];
  const parts: string[] = [];
  const size = pieces.reduce((sum, piece) => sum + piece.beginNanoseconds.length, 0);
  const begins = new Float64Array(size);
  const ends = new Float64Array(size);
  const nameOf = new Int32Array(size);
  const partOf = new Int32Array(size).fill(-1);
  const laneOf = new Int32Array(size);
  const rankOf = new Int32Array(size);
  let at = 0;
  for (const piece of pieces) {
    names.push(...piece.names);
    lanes.push(...piece.lanes);
    parts.push(...piece.parts);
    for (let event = 0; event < piece.beginNanoseconds.length; event++, at++) {
      const begin = Number(piece.beginNanoseconds[event]) / 1e6;
      begins[at] = begin;
      ends[at] = begin + Number(piece.durationNanoseconds[event]) / 1e6;
      nameOf[at] = piece.nameIndexes[event] ?? 0;
      partOf[at] = piece.partIndexes[event] ?? -1;
      laneOf[at] = piece.laneIndexes[event] ?? 0;
      rankOf[at] = piece.rankNumbers[event] ?? 0;
    }
  }
  const byLane = new Map<string, number[]>();
  for (let event = 0; event < size; event++) {
    const key = `${rankOf[event]} ${laneOf[event]}`;
    const events = byLane.get(key);
    if (events) events.push(event);
    else byLane.set(key, [event]);
  }
  const tracks: Track[] = [];
  const value = (array: Float64Array | Int32Array, index: number) => array[index] as number;
  for (const events of byLane.values()) {
    events.sort((a, b) => value(begins, a) - value(begins, b) || value(ends, b) - value(ends, a));
    const depths: number[][] = [];
    const open: number[] = [];
    for (const event of events) {
      while (open.length && (open.at(-1) as number) <= value(begins, event)) open.pop();
      const depth = open.length;
      open.push(value(ends, event));
      if (depth >= MOST_DEPTHS) continue;
      const level = depths[depth];
      if (level) level.push(event);
      else depths[depth] = [event];
    }
    depths.forEach((level, depth) => {
      const first = level[0] as number;
      tracks.push({
        rank: value(rankOf, first),
        lane: lanes[value(laneOf, first)] ?? "",
        depth,
        count: level.length,
        begins: Float64Array.from(level, (event) => value(begins, event)),
        ends: Float64Array.from(level, (event) => value(ends, event)),
        names: Int32Array.from(level, (event) => value(nameOf, event)),
        parts: Int32Array.from(level, (event) => value(partOf, event)),
      });
    });
  }
  tracks.sort((a, b) => a.rank - b.rank || a.lane.localeCompare(b.lane) || a.depth - b.depth);
  let begin = Number.POSITIVE_INFINITY;
  let end = Number.NEGATIVE_INFINITY;
  for (let event = 0; event < size; event++) {
    begin = Math.min(begin, value(begins, event));
    end = Math.max(end, value(ends, event));
  }
  return { tracks, names, parts, begin: size ? begin : 0, end: size ? end : 1, count: size };
}

/** The first event of a track that ends after a time. Events of a track do not overlap, so their ends ascend as well. */
export function firstAfter(track: Track, time: number, from = 0): number {
  let low = from;
  let high = track.count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((track.ends[middle] as number) > time) high = middle;
    else low = middle + 1;
  }
  return low;
}
