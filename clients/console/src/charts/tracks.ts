/** Columns of events as a call sends them: `TimelinePiece` of the contract. */
interface Piece {
  names: readonly string[];
  lanes: readonly string[];
  parts: readonly string[];
  rankNumbers: readonly number[];
  laneIndexes: readonly number[];
  nameIndexes: readonly number[];
  partIndexes: readonly number[];
  beginNanoseconds: readonly bigint[];
  durationNanoseconds: readonly bigint[];
}

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
  /** The longest event of each complete block of events. */
  readonly longest: Int32Array;
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
/** Events of a block, whose longest is looked up where a column of pixels holds the whole block. */
const BLOCK = 16;

/** The timeline that a call sent in pieces. Events deeper than four levels are left out, as they are too small to see. */
export function timelineOf(pieces: readonly Piece[]): Timeline {
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
    const order = (a: number, b: number) => value(begins, a) - value(begins, b) || value(ends, b) - value(ends, a);
    // Servers send the events of a lane by their begin, and to sort a million takes a second.
    if (events.some((event, index) => index > 0 && order(events[index - 1] as number, event) > 0)) events.sort(order);
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
      tracks.push(
        trackOf({
          rank: value(rankOf, first),
          lane: lanes[value(laneOf, first)] ?? "",
          depth,
          begins: Float64Array.from(level, (event) => value(begins, event)),
          ends: Float64Array.from(level, (event) => value(ends, event)),
          names: Int32Array.from(level, (event) => value(nameOf, event)),
          parts: Int32Array.from(level, (event) => value(partOf, event)),
        }),
      );
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
  const { ends, count } = track;
  let low = from;
  // Steps that double find a near event in few comparisons of neighbours.
  let step = 1;
  while (low + step < count && (ends[low + step - 1] as number) <= time) {
    low += step;
    step *= 2;
  }
  let high = Math.min(count, low + step);
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((ends[middle] as number) > time) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** A track of columns, with what is needed to find the longest of many events. */
function trackOf(columns: Omit<Track, "count" | "longest">): Track {
  const count = columns.begins.length;
  const longest = new Int32Array(Math.floor(count / BLOCK));
  const track = { ...columns, count, longest };
  longest.forEach((_, block) => {
    longest[block] = longestEvent(track, block * BLOCK, (block + 1) * BLOCK, false);
  });
  return track;
}

/** The longest of the events [from, to), the first of them where several are as long. */
function longestEvent(track: Track, from: number, to: number, byBlocks = true): number {
  const length = (event: number) => (track.ends[event] as number) - (track.begins[event] as number);
  let best = from;
  for (let event = from; event < to; ) {
    const whole = byBlocks && event % BLOCK === 0 && event + BLOCK <= to;
    const candidate = whole ? (track.longest[event / BLOCK] as number) : event;
    if (length(candidate) > length(best)) best = candidate;
    event += whole ? BLOCK : 1;
  }
  return best;
}

/** The events of some parts alone, track by track. */
export function eventsOf(timeline: Timeline, isChosen: (part: string) => boolean): Track[] {
  const chosen = timeline.parts.map(isChosen);
  return timeline.tracks.map((track) => {
    const isKept = (_: number, event: number) => chosen[track.parts[event] as number] ?? false;
    return trackOf({
      ...track,
      begins: track.begins.filter(isKept),
      ends: track.ends.filter(isKept),
      names: track.names.filter(isKept),
      parts: track.parts.filter(isKept),
    });
  });
}

/**
 * Paints a track's events into columns of pixels. Column c holds the times from origin + c / scale to
 * origin + (c + 1) / scale, so that a column looks the same wherever the view begins. Of the events that end in the
 * column in which they begin, the longest gives the colour.
 *
 * @param target the columns from `first` on; columns without an event stay as they are
 * @param scale columns for each millisecond
 * @param colours by part; the last is that of events without one
 */
export function paintColumns(
  target: Uint32Array,
  track: Track,
  origin: number,
  scale: number,
  first: number,
  colours: Uint32Array,
) {
  const columnOf = (time: number) => Math.floor((time - origin) * scale);
  for (let event = firstAfter(track, origin + first / scale); event < track.count; ) {
    const left = columnOf(track.begins[event] as number);
    if (left >= first + target.length) break;
    const right = columnOf(track.ends[event] as number);
    // An event that ends with its column is within it.
    const isWide = (track.ends[event] as number) > origin + (left + 1) / scale;
    const next = isWide ? event + 1 : firstAfter(track, origin + (left + 1) / scale, event + 1);
    const shown = next > event + 1 ? longestEvent(track, event, next) : event;
    // A gap separates events that are wide enough to be told apart.
    const end = right - left > 3 ? right - 1 : Math.max(left + 1, right);
    if (end > first) target.fill(colours.at(track.parts[shown] as number) as number, Math.max(0, left - first), end - first);
    event = next;
  }
}
