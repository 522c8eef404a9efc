import { useEffect, useRef, useState } from "preact/hooks";
import { seconds } from "../format.js";
import { Figure, useWidth } from "./frame.js";
import { firstAfter, type Timeline, type Track } from "./tracks.js";

const ROW = 15;
const LEFT = 150;
const TOP = 22;

interface View {
  begin: number;
  end: number;
}

/** Lanes of a timeline on a canvas: drag to move, wheel to zoom, or arrows, + and - on the keyboard. */
export function Lanes({
  timeline,
  colourOf,
  chosen,
}: {
  timeline: Timeline;
  colourOf: (part: string) => string;
  chosen: string;
}) {
  const [frame, width] = useWidth<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  const view = useRef<View>({ begin: timeline.begin, end: timeline.end });
  const waiting = useRef(false);
  const [reading, setReading] = useState(" ");
  const height = TOP + timeline.tracks.length * ROW + 4;

  // A frame draws what was rendered last, not what was there when the frame was requested.
  const draw = useRef(() => {});
  draw.current = () => {
    waiting.current = false;
    const context = canvas.current?.getContext("2d");
    if (context) paint(context, timeline, view.current, width, height, colourOf, chosen);
  };
  const drawSoon = () => {
    if (waiting.current) return;
    waiting.current = true;
    requestAnimationFrame(() => draw.current());
  };
  useEffect(() => {
    view.current = { begin: timeline.begin, end: timeline.end };
  }, [timeline]);
  useEffect(() => {
    const element = canvas.current;
    if (!element) return;
    const ratio = devicePixelRatio || 1;
    element.width = width * ratio;
    element.height = height * ratio;
    element.getContext("2d")?.scale(ratio, ratio);
    drawSoon();
  }, [timeline, width, height, chosen, colourOf]);
  useEffect(() => {
    const element = canvas.current;
    const zoom = (event: WheelEvent) => {
      event.preventDefault();
      scaleView(timeline, view.current, Math.exp(event.deltaY / 400), (event.offsetX - LEFT) / (width - LEFT));
      drawSoon();
    };
    // A listener of a component would be passive and could not keep the page from scrolling.
    element?.addEventListener("wheel", zoom, { passive: false });
    return () => element?.removeEventListener("wheel", zoom);
  }, [timeline, width]);

  const timeAt = (x: number) => view.current.begin + ((x - LEFT) / (width - LEFT)) * (view.current.end - view.current.begin);
  const onPointerMove = (event: PointerEvent) => {
    if (event.buttons & 1) {
      const span = view.current.end - view.current.begin;
      shiftView(timeline, view.current, (-event.movementX / (width - LEFT)) * span);
      drawSoon();
      return;
    }
    const track = timeline.tracks[Math.floor((event.offsetY - TOP) / ROW)];
    const time = timeAt(event.offsetX);
    const index = track ? firstAfter(track, time) : 0;
    const begin = track?.begins[index];
    setReading(
      track && begin !== undefined && begin <= time
        ? `rank ${track.rank}, ${track.lane}: ${timeline.names[track.names[index] as number]}, ` +
            `${seconds(((track.ends[index] as number) - begin) / 1000)} from ${seconds(begin / 1000)}`
        : " ",
    );
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const span = view.current.end - view.current.begin;
    if (event.key === "ArrowLeft") shiftView(timeline, view.current, -span / 10);
    else if (event.key === "ArrowRight") shiftView(timeline, view.current, span / 10);
    else if (event.key === "+") scaleView(timeline, view.current, 0.8, 0.5);
    else if (event.key === "-") scaleView(timeline, view.current, 1.25, 0.5);
    else if (event.key === "Home") view.current = { begin: timeline.begin, end: timeline.end };
    else return;
    event.preventDefault();
    drawSoon();
  };
  return (
    <Figure title={`Executed events: ${timeline.count.toLocaleString("en")}`}>
      <div ref={frame}>
        <canvas
          ref={canvas}
          class="lanes"
          style={{ width: `${width}px`, height: `${height}px` }}
          role="img"
          tabIndex={0}
          aria-label="Events by rank and lane. Drag to move, turn the wheel to zoom; or arrows, + and -, Home for all."
          onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
          onPointerMove={onPointerMove}
          onKeyDown={onKeyDown}
        />
        <p class="reading">{reading}</p>
      </div>
    </Figure>
  );
}

function shiftView(timeline: Timeline, view: View, by: number) {
  const span = view.end - view.begin;
  view.begin = Math.min(Math.max(view.begin + by, timeline.begin - span / 2), timeline.end - span / 2);
  view.end = view.begin + span;
}

function scaleView(timeline: Timeline, view: View, factor: number, at: number) {
  const span = view.end - view.begin;
  const wanted = Math.min(Math.max(span * factor, 1e-4), (timeline.end - timeline.begin) * 1.2);
  view.begin += (span - wanted) * at;
  view.end = view.begin + wanted;
}

/** One pixel for each column and track, which is then stretched to the height of a row: events need no call each. */
const pixels = new OffscreenCanvas(1, 1);

function paint(
  context: CanvasRenderingContext2D,
  timeline: Timeline,
  view: View,
  width: number,
  height: number,
  colourOf: (part: string) => string,
  chosen: string,
) {
  const style = getComputedStyle(context.canvas);
  const ink = style.getPropertyValue("--ink");
  const scale = (width - LEFT) / (view.end - view.begin);
  context.clearRect(0, 0, width, height);
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  paintTimes(context, view, scale, height, ink, style.getPropertyValue("--line"), timeline.begin);
  context.fillStyle = ink;
  timeline.tracks.forEach((track, row) => {
    const y = TOP + row * ROW + ROW / 2;
    if (track.depth === 0) context.fillText(`${track.rank} ${track.lane}`.slice(0, 22), 4, y, LEFT - 10);
  });
  const columns = Math.max(1, Math.round((width - LEFT) * (devicePixelRatio || 1)));
  const colours = coloursOf(timeline, (part) => style.getPropertyValue(`--${part ? colourOf(part) : "faint"}`), chosen);
  pixels.width = columns;
  pixels.height = timeline.tracks.length;
  const area = pixels.getContext("2d");
  if (!area) return;
  const image = area.createImageData(columns, timeline.tracks.length);
  const data = new Uint32Array(image.data.buffer);
  timeline.tracks.forEach((track, row) => {
    fill(data.subarray(row * columns, (row + 1) * columns), track, view, colours);
  });
  area.putImageData(image, 0, 0);
  context.imageSmoothingEnabled = false;
  timeline.tracks.forEach((_, row) => {
    context.drawImage(pixels, 0, row, columns, 1, LEFT, TOP + row * ROW + 1, width - LEFT, ROW - 3);
  });
}

/** The pixel of each part; the last is that of events without a part. Parts that are not chosen fade. */
function coloursOf(timeline: Timeline, css: (part: string) => string, chosen: string): Uint32Array {
  const probe = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  return Uint32Array.from([...timeline.parts, ""], (part) => {
    if (!probe) return 0;
    probe.clearRect(0, 0, 1, 1);
    probe.globalAlpha = chosen && !part.startsWith(chosen) ? 0.15 : 1;
    probe.fillStyle = css(part);
    probe.fillRect(0, 0, 1, 1);
    return new Uint32Array(probe.getImageData(0, 0, 1, 1).data.buffer)[0] as number;
  });
}

/** Fills the pixels of a track. Events that are narrower than a pixel are passed over by a search, not one by one. */
function fill(row: Uint32Array, track: Track, view: View, colours: Uint32Array) {
  const scale = row.length / (view.end - view.begin);
  for (let index = firstAfter(track, view.begin); index < track.count; ) {
    const begin = track.begins[index] as number;
    if (begin >= view.end) break;
    const left = Math.max(0, Math.floor((begin - view.begin) * scale));
    const right = Math.floor(((track.ends[index] as number) - view.begin) * scale);
    // A gap separates events that are wide enough to be told apart.
    row.fill(
      colours.at(track.parts[index] as number) as number,
      left,
      right - left > 3 ? right - 1 : Math.max(left + 1, right),
    );
    index = right > left ? index + 1 : firstAfter(track, view.begin + (left + 1) / scale, index + 1);
  }
}

function paintTimes(
  context: CanvasRenderingContext2D,
  view: View,
  scale: number,
  height: number,
  ink: string,
  grid: string,
  origin: number,
) {
  const step = 10 ** Math.ceil(Math.log10(90 / scale));
  const fine = step * scale > 450 ? step / 5 : step * scale > 220 ? step / 2 : step;
  for (let time = Math.ceil((view.begin - origin) / fine) * fine; time + origin < view.end; time += fine) {
    const x = LEFT + (time + origin - view.begin) * scale;
    context.fillStyle = grid;
    context.fillRect(x, TOP - 4, 1, height);
    context.fillStyle = ink;
    context.fillText(seconds(time / 1000), x + 3, 9);
  }
}
