import { scaleLinear, scaleUtc } from "d3-scale";
import { area, line } from "d3-shape";
import { useState } from "preact/hooks";
import { seconds, timeTicks } from "../format.js";
import { Axes, Figure, MARGIN, type Scale, ticksOf, useWidth } from "./frame.js";

/** A line of values over something that grows, such as time. */
export interface Series {
  name: string;
  points: readonly { x: number; y: number; lower?: number | undefined; upper?: number | undefined }[];
}

const HEIGHT = 220;
const COLOURS = 10;

/** Lines on one pair of axes, each with the band of its interval where it has one. */
export function Lines({
  title,
  series,
  xLabel,
  format,
  formatX,
  reference,
  dates = false,
}: {
  title: string;
  series: readonly Series[];
  xLabel: string;
  format: (value: number) => string;
  formatX: (value: number) => string;
  /** A value that has a line of its own. */
  reference?: number;
  /** Whether x is a date, in milliseconds since 1970. */
  dates?: boolean;
}) {
  const [frame, width] = useWidth<HTMLDivElement>();
  const [pointed, setPointed] = useState<number>();
  const all = series.flatMap(({ points }) => points);
  const xs = all.map((point) => point.x);
  const ys = [...all.flatMap((point) => [point.y, point.lower ?? point.y, point.upper ?? point.y]), reference ?? 0];
  const [left, right] = [Math.min(...xs), Math.max(...xs)];
  const [low, high] = [Math.min(...ys, 0), Math.max(...ys)];
  const domain = [left, right > left ? right : left + 1];
  const range = [MARGIN.left, width - MARGIN.right];
  const x = scaleLinear(domain, range);
  const y = scaleLinear([low, high + (high - low || 1) * 0.05], [HEIGHT - MARGIN.bottom, MARGIN.top]);
  const most = Math.max(2, width / 110);
  const time = scaleUtc(domain, range);
  const ticks = dates
    ? time.ticks(most).map((date) => ({ at: Number(date), text: time.tickFormat()(date) }))
    : formatX === seconds
      ? timeTicks(domain[0] as number, domain[1] as number, most)
      : ticksOf(x as Scale, most, true).map((at) => ({ at, text: formatX(at) }));
  const path = line<Series["points"][number]>(
    (point) => x(point.x),
    (point) => y(point.y),
  );
  const band = area<Series["points"][number]>(
    (point) => x(point.x),
    (point) => y(point.lower ?? point.y),
    (point) => y(point.upper ?? point.y),
  ).defined((point) => point.upper !== undefined);
  const colour = (index: number) => `part${index % COLOURS}`;
  const at = pointed === undefined ? undefined : x.invert(pointed);
  const value = (points: Series["points"]) => points.findLast((point) => point.x <= (at ?? 0));
  return (
    <Figure title={title} legend={series.map(({ name }, index) => [colour(index), name] as const)}>
      <div ref={frame}>
        <svg
          width={width}
          height={HEIGHT}
          class="lines"
          role="img"
          aria-label={title}
          onPointerMove={(event) => setPointed(event.offsetX)}
          onPointerLeave={() => setPointed(undefined)}
        >
          <Axes
            x={x as Scale}
            y={y as Scale}
            width={width}
            height={HEIGHT}
            xLabel={xLabel}
            yLabel=""
            xTicks={[]}
            format={format}
          />
          {ticks.map(({ at: tick, text }) => (
            <text key={tick} x={x(tick)} y={HEIGHT - MARGIN.bottom + 16} text-anchor="middle">
              {text}
            </text>
          ))}
          {reference !== undefined && (
            <line class="linear" x1={MARGIN.left} x2={width - MARGIN.right} y1={y(reference)} y2={y(reference)} />
          )}
          {/* The first line last, so that no other covers it. */}
          {series
            .map(({ name, points }, index) => (
              <g key={name} class={colour(index)}>
                <path class="interval" d={band([...points]) ?? ""} />
                <path class="trend" d={path([...points]) ?? ""} />
                {points.length === 1 && <circle cx={x(points[0]?.x ?? 0)} cy={y(points[0]?.y ?? 0)} r="3" />}
              </g>
            ))
            .reverse()}
          {pointed !== undefined && (
            <line class="cursor" x1={pointed} x2={pointed} y1={MARGIN.top} y2={HEIGHT - MARGIN.bottom} />
          )}
        </svg>
        <p class="reading">
          {at !== undefined &&
            `${formatX(at)}: ${series
              .flatMap(({ name, points }) => {
                const point = value(points);
                return point ? [`${name} ${format(point.y)}`] : [];
              })
              .join(", ")}`}
        </p>
      </div>
    </Figure>
  );
}
