import { scaleLinear } from "d3-scale";
import { area, type SeriesPoint, stack } from "d3-shape";
import { useState } from "preact/hooks";
import { words } from "../format.js";
import { Axes, Figure, MARGIN, useWidth } from "./frame.js";

/** What there is at a moment, by part. */
export interface Moment {
  at: number;
  label: string;
  parts: ReadonlyMap<string, number>;
}

const HEIGHT = 240;

/** Parts over time, one on the other; between two moments they grow or fall evenly. */
export function Areas({
  title,
  points,
  colours,
  format,
  formatAt,
  text,
}: {
  title: string;
  points: readonly Moment[];
  /** Class of each part. */
  colours: ReadonlyMap<string, string>;
  format: (value: number) => string;
  formatAt: (value: number) => string;
  /** What to read where no moment is pointed at. */
  text: string;
}) {
  const [frame, width] = useWidth<HTMLDivElement>();
  const [pointed, setPointed] = useState<number>();
  // Parts stand in the order in which they are given: what stays lies below what comes and goes.
  const names = [...(points[0]?.parts.keys() ?? [])].filter((name) => points.some(({ parts }) => parts.get(name)));
  const sum = ({ parts }: Moment) => [...parts.values()].reduce((a, b) => a + b, 0);
  const end = points.at(-1)?.at || 1;
  const x = scaleLinear([0, end], [MARGIN.left, width - MARGIN.right]);
  const y = scaleLinear([0, Math.max(...points.map(sum), 1) * 1.05], [HEIGHT - MARGIN.bottom, MARGIN.top]);
  const layers = stack<unknown, Moment, string>()
    .keys(names)
    .value(({ parts }, name) => parts.get(name) ?? 0)(points);
  const path = area<SeriesPoint<Moment>>(
    ({ data }) => x(data.at),
    ([low]) => y(low),
    ([, high]) => y(high),
  );
  const shown = pointed === undefined ? undefined : points[pointed];
  const nearest = (at: number) =>
    points.reduce((best, each, index) => {
      return Math.abs(x(each.at) - at) < Math.abs(x(points[best]?.at ?? 0) - at) ? index : best;
    }, 0);
  return (
    <Figure title={title} legend={names.map((name) => [colours.get(name) ?? "faint", words(name)] as const)}>
      <div ref={frame}>
        <svg
          width={width}
          height={HEIGHT}
          role="img"
          aria-label={`${title}; ${text}`}
          onPointerMove={(event) => setPointed(nearest(event.offsetX))}
          onPointerLeave={() => setPointed(undefined)}
        >
          <Axes x={x} y={y} width={width} height={HEIGHT} xLabel="" yLabel="" xTicks={[]} format={format} />
          {layers.map((layer) => (
            <path key={layer.key} class={colours.get(layer.key)} d={path(layer) ?? ""} />
          ))}
          <text x={x(end)} y={HEIGHT - MARGIN.bottom + 18} text-anchor="end">
            {formatAt(end)}
          </text>
          {shown && <line class="cursor" x1={x(shown.at)} x2={x(shown.at)} y1={MARGIN.top} y2={HEIGHT - MARGIN.bottom} />}
        </svg>
        <p class="reading">
          {shown
            ? `${formatAt(shown.at)}, ${shown.label}: ${format(sum(shown))}; ${names
                .filter((name) => shown.parts.get(name))
                .map((name) => `${words(name)} ${format(shown.parts.get(name) ?? 0)}`)
                .join(", ")}`
            : text}
        </p>
      </div>
    </Figure>
  );
}
