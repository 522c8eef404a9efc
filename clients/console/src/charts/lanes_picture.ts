import { seconds } from "../format.js";
import { eventsOf, firstAfter, paintColumns, type Timeline, type Track } from "./tracks.js";

/** Pixels of a lane's row, of the labels beside the rows, and of the axis above them. */
const ROW = 15;
const LEFT = 150;
const TOP = 22;

/** The part of a timeline that is in view, milliseconds. */
export interface View {
  begin: number;
  span: number;
}

/** The view of a whole timeline. */
export function wholeView(timeline: Timeline): View {
  return { begin: timeline.begin, span: timeline.end - timeline.begin };
}

/** The height of a picture, pixels of the page. */
export function heightOf(timeline: Timeline): number {
  return TOP + timeline.tracks.length * ROW + 4;
}

/** Tracks with the colour of each part. */
interface Layer {
  tracks: readonly Track[];
  colours: Uint32Array;
}

/**
 * Draws the lanes of a timeline, at most once in a frame of the screen.
 *
 * Columns of pixels are aligned to the timeline, so a moved view shows the columns of the frame before at another place:
 * only columns that come into view are painted. Colours and labels are read and drawn once.
 */
export class LanesPicture {
  readonly #context: CanvasRenderingContext2D;
  readonly #columns: number;
  readonly #ratio = devicePixelRatio || 1;
  readonly #layers: Layer[];
  readonly #ink: string;
  readonly #grid: string;
  readonly #gridPixel: number;
  /** One line of pixels for each track. */
  readonly #lines: Uint32Array;
  readonly #image: ImageData;
  readonly #pixels: Uint32Array;
  #scale = Number.NaN;
  #first = 0;
  #request = 0;

  constructor(
    readonly canvas: HTMLCanvasElement,
    readonly timeline: Timeline,
    readonly view: View,
    readonly width: number,
    colourOf: (part: string) => string,
    chosen: string,
  ) {
    const rows = timeline.tracks.length;
    canvas.width = Math.round(width * this.#ratio);
    canvas.height = Math.round(heightOf(timeline) * this.#ratio);
    this.#context = canvas.getContext("2d") as CanvasRenderingContext2D;
    this.#context.scale(this.#ratio, this.#ratio);
    this.#context.font = "12px system-ui, sans-serif";
    this.#context.textBaseline = "middle";
    this.#columns = Math.max(1, canvas.width - Math.round(LEFT * this.#ratio));
    this.#lines = new Uint32Array(this.#columns * rows);
    this.#image = this.#context.createImageData(this.#columns, Math.max(1, Math.round(rows * ROW * this.#ratio)));
    this.#pixels = new Uint32Array(this.#image.data.buffer);
    const colours = new ColourReader(canvas);
    this.#ink = colours.css("ink");
    this.#grid = colours.css("line");
    this.#gridPixel = colours.pixel("line", 1);
    const layer = (tracks: readonly Track[], opacity: number): Layer => ({
      tracks,
      colours: Uint32Array.from([...timeline.parts, ""], (part) => colours.pixel(part ? colourOf(part) : "faint", opacity)),
    });
    this.#layers = chosen
      ? [
          layer(timeline.tracks, 0.15),
          layer(
            eventsOf(timeline, (part) => part.startsWith(chosen)),
            1,
          ),
        ]
      : [layer(timeline.tracks, 1)];
    colours.close();
    this.#drawLabels();
    this.draw();
  }

  /** Draws in the next frame. */
  drawSoon() {
    this.#request ||= requestAnimationFrame(() => {
      this.#request = 0;
      this.draw();
    });
  }

  /** Ends what was requested. */
  close() {
    cancelAnimationFrame(this.#request);
  }

  /** Moves the view by pixels of the page. */
  shift(pixels: number) {
    const { view, timeline } = this;
    const begin = view.begin + (pixels / (this.width - LEFT)) * view.span;
    view.begin = Math.min(Math.max(begin, timeline.begin - view.span / 2), timeline.end - view.span / 2);
    this.drawSoon();
  }

  /** Multiplies the time in view; what is at `x` stays there, or what is in the middle. */
  zoom(factor: number, x = (LEFT + this.width) / 2) {
    const { view, timeline } = this;
    const span = Math.min(Math.max(view.span * factor, 1e-4), (timeline.end - timeline.begin) * 1.2);
    view.begin += ((view.span - span) * (x - LEFT)) / (this.width - LEFT);
    view.span = span;
    this.drawSoon();
  }

  /** Shows the whole timeline. */
  showAll() {
    Object.assign(this.view, wholeView(this.timeline));
    this.drawSoon();
  }

  /** What is at a place, in words; empty = nothing. */
  textAt(x: number, y: number): string {
    const { names, tracks } = this.timeline;
    const track = tracks[Math.floor((y - TOP) / ROW)];
    const time = this.view.begin + ((x - LEFT) / (this.width - LEFT)) * this.view.span;
    if (!track || x < LEFT) return "";
    const event = firstAfter(track, time);
    const begin = track.begins[event];
    if (begin === undefined || begin > time) return "";
    return (
      `rank ${track.rank}, ${track.lane}: ${names[track.names[event] as number]}, ` +
      `${seconds(((track.ends[event] as number) - begin) / 1000)} from ${seconds(begin / 1000)}`
    );
  }

  draw() {
    const columns = this.#columns;
    const origin = this.timeline.begin;
    const scale = columns / this.view.span;
    const first = Math.round((this.view.begin - origin) * scale);
    const moved = scale === this.#scale ? Math.max(-columns, Math.min(columns, first - this.#first)) : columns;
    this.#scale = scale;
    this.#first = first;
    const from = moved > 0 ? columns - moved : 0;
    const to = moved < 0 ? -moved : columns;
    const times = timesOf(scale / this.#ratio, first / scale, (first + columns) / scale);
    const grid = new Uint32Array(columns);
    for (const time of times) grid[Math.floor(time * scale) - first] = this.#gridPixel;
    if (moved !== 0)
      this.timeline.tracks.forEach((_, row) => {
        const line = this.#lines.subarray(row * columns, (row + 1) * columns);
        if (moved > 0) line.copyWithin(0, moved);
        else line.copyWithin(-moved, 0, columns + moved);
        const part = line.subarray(from, to);
        part.set(grid.subarray(from, to));
        for (const { tracks, colours } of this.#layers)
          paintColumns(part, tracks[row] as Track, origin, scale, first + from, colours);
      });
    this.#show(grid);
    this.#drawTimes(times, scale, first);
  }

  /** Repeats each line over the height of its row; the grid shows between the rows. */
  #show(grid: Uint32Array) {
    const columns = this.#columns;
    this.timeline.tracks.forEach((_, row) => {
      const line = this.#lines.subarray(row * columns, (row + 1) * columns);
      const [top, begin, end, bottom] = [0, 1, ROW - 2, ROW].map((y) => Math.round((row * ROW + y) * this.#ratio)) as [
        number,
        number,
        number,
        number,
      ];
      for (let y = top; y < bottom; y++) this.#pixels.set(y >= begin && y < end ? line : grid, y * columns);
    });
    this.#context.putImageData(this.#image, Math.round(LEFT * this.#ratio), Math.round(TOP * this.#ratio));
  }

  #drawTimes(times: readonly number[], scale: number, first: number) {
    const context = this.#context;
    context.clearRect(LEFT, 0, this.width - LEFT, TOP);
    for (const time of times) {
      const x = LEFT + (Math.floor(time * scale) - first) / this.#ratio;
      context.fillStyle = this.#grid;
      context.fillRect(x, TOP - 4, 1 / this.#ratio, 4);
      context.fillStyle = this.#ink;
      context.fillText(seconds(time / 1000), x + 3, 9);
    }
  }

  #drawLabels() {
    this.#context.fillStyle = this.#ink;
    this.timeline.tracks.forEach(({ rank, lane, depth }, row) => {
      if (depth === 0) this.#context.fillText(`${rank} ${lane}`.slice(0, 22), 4, TOP + row * ROW + ROW / 2, LEFT - 10);
    });
  }
}

/** Round times of an axis between two times, at least 90 pixels apart. */
function timesOf(pixelsPerMillisecond: number, from: number, to: number): number[] {
  const step = 10 ** Math.ceil(Math.log10(90 / pixelsPerMillisecond));
  const width = step * pixelsPerMillisecond;
  const fine = width > 450 ? step / 5 : width > 220 ? step / 2 : step;
  const times: number[] = [];
  for (let index = Math.ceil(from / fine); index * fine < to; index++) times.push(index * fine);
  return times;
}

/** Reads the colours of the page, which follow its scheme. */
class ColourReader {
  readonly #probe = document.createElement("i");

  constructor(canvas: HTMLCanvasElement) {
    canvas.after(this.#probe);
  }

  css(name: string): string {
    this.#probe.style.color = `var(--${name})`;
    return getComputedStyle(this.#probe).color;
  }

  /** A colour as a canvas' pixel. */
  pixel(name: string, opacity: number): number {
    const [red = 0, green = 0, blue = 0] = (this.css(name).match(/[\d.]+/g) ?? []).map(Number);
    return new Uint32Array(Uint8Array.of(red, green, blue, Math.round(opacity * 255)).buffer)[0] as number;
  }

  close() {
    this.#probe.remove();
  }
}
