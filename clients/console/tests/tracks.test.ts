// What the lanes show, pixel by pixel: painted as the picture does it, and event by event.
import assert from "node:assert/strict";
import { test } from "node:test";
import { eventsOf, firstAfter, paintColumns, type Timeline, type Track, timelineOf } from "../src/charts/tracks.js";

/** Numbers from 0 to 1 that are the same in each run. */
function* draws(seed: number): Generator<number> {
  for (let state = seed; ; ) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    yield state / 2 ** 32;
  }
}

const PARTS = ["computation: gemm", "transfer: all_reduce", "waiting: all_reduce"];

/** A lane of events of very different lengths, with and without gaps, in nanoseconds. */
function timeline(count: number, seed: number): Timeline {
  const random = draws(seed);
  const next = () => random.next().value as number;
  const begins: bigint[] = [];
  const durations: bigint[] = [];
  let at = 1_000_000_000;
  for (let event = 0; event < count; event++) {
    const duration = Math.round(10 ** (2 + 4 * next()));
    begins.push(BigInt(at));
    durations.push(BigInt(duration));
    at += duration + (next() < 0.5 ? 0 : Math.round(10 ** (1 + 4 * next())));
  }
  return timelineOf([
    {
      names: ["kernel"],
      lanes: ["stream 7"],
      parts: PARTS,
      beginNanoseconds: begins,
      durationNanoseconds: durations,
      nameIndexes: begins.map(() => 0),
      laneIndexes: begins.map(() => 0),
      rankNumbers: begins.map(() => 0),
      partIndexes: begins.map(() => Math.floor(4 * next()) - 1),
    },
  ]);
}

const COLOURS = Uint32Array.of(11, 22, 33, 99);

/** The same columns without any shortcut. */
function paintEach(track: Track, origin: number, scale: number, first: number, width: number): Uint32Array {
  const target = new Uint32Array(width);
  const longest = new Map<number, number>();
  for (let event = 0; event < track.count; event++) {
    const begin = track.begins[event] as number;
    const end = track.ends[event] as number;
    const left = Math.floor((begin - origin) * scale);
    const right = Math.floor((end - origin) * scale);
    const isNarrow = end <= origin + (left + 1) / scale;
    if (isNarrow && end - begin <= (longest.get(left) ?? 0)) continue;
    if (isNarrow) longest.set(left, end - begin);
    const stop = right - left > 3 ? right - 1 : Math.max(left + 1, right);
    for (let column = left; column < stop; column++)
      if (column >= first && column < first + width)
        target[column - first] = COLOURS.at(track.parts[event] as number) as number;
  }
  return target;
}

const WIDTH = 400;

for (const events of [1, 7, 500, 20_000])
  for (const zoom of [1, 3.7, 60, 5000])
    test(`${events} events, ${zoom} times as large, are painted as one by one`, () => {
      const shown = timeline(events, events + zoom);
      const track = shown.tracks[0] as Track;
      const scale = (WIDTH * zoom) / (shown.end - shown.begin);
      for (const share of [0, 0.31, 0.93]) {
        const first = Math.round(share * WIDTH * (zoom - 1));
        const whole = new Uint32Array(WIDTH);
        paintColumns(whole, track, shown.begin, scale, first, COLOURS);
        assert.deepEqual(whole, paintEach(track, shown.begin, scale, first, WIDTH));
      }
    });

test("columns look the same wherever the painting begins", () => {
  const shown = timeline(20_000, 5);
  const track = shown.tracks[0] as Track;
  for (const zoom of [1, 9, 300]) {
    const scale = (WIDTH * zoom) / (shown.end - shown.begin);
    const whole = new Uint32Array(WIDTH);
    paintColumns(whole, track, shown.begin, scale, 0, COLOURS);
    for (const from of [1, 50, 133, 399]) {
      const part = new Uint32Array(WIDTH - from);
      paintColumns(part, track, shown.begin, scale, from, COLOURS);
      assert.deepEqual(part, whole.subarray(from));
    }
  }
});

test("the first event after a time is that of a walk from the begin", () => {
  const track = timeline(300, 3).tracks[0] as Track;
  const times = [...track.begins, ...track.ends, 0, Number.POSITIVE_INFINITY];
  for (const time of times)
    for (const from of [0, 1, 150, 299, 300]) {
      let walked = from;
      while (walked < track.count && (track.ends[walked] as number) <= time) walked++;
      assert.equal(firstAfter(track, time, from), walked);
    }
});

test("events of chosen parts keep their names, times and order", () => {
  const shown = timeline(500, 8);
  const [track] = shown.tracks as [Track];
  const [chosen] = eventsOf(shown, (part) => part.startsWith("transfer")) as [Track];
  const expected = [...track.begins.keys()].filter((event) => track.parts[event] === 1);
  assert.ok(expected.length > 50);
  assert.deepEqual(
    [...chosen.begins],
    expected.map((event) => track.begins[event]),
  );
  assert.deepEqual(new Set(chosen.parts), new Set([1]));
});

test("events in any order, nested, are divided by lane and depth", () => {
  const { tracks, count } = timelineOf([
    {
      names: ["inner", "outer"],
      lanes: ["thread"],
      parts: [],
      beginNanoseconds: [2_000_000n, 0n, 6_000_000n],
      durationNanoseconds: [1_000_000n, 5_000_000n, 1_000_000n],
      nameIndexes: [0, 1, 1],
      laneIndexes: [0, 0, 0],
      rankNumbers: [3, 3, 3],
      partIndexes: [],
    },
  ]);
  assert.equal(count, 3);
  assert.deepEqual(
    tracks.map(({ rank, lane, depth, begins }) => ({ rank, lane, depth, begins: [...begins] })),
    [
      { rank: 3, lane: "thread", depth: 0, begins: [0, 6] },
      { rank: 3, lane: "thread", depth: 1, begins: [2] },
    ],
  );
});
