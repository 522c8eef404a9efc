import { scaleLinear } from "d3-scale";
import { seconds, timeTicks } from "../format.js";
import { Figure, useWidth } from "./frame.js";

/** A figure with its interval, and the values that it is the mean of. */
export interface DotRow {
  label: string;
  value: number;
  lower?: number | undefined;
  upper?: number | undefined;
  values?: readonly number[];
}

/** Values with intervals, one row each, on one axis. A reference line stands at `reference`. */
export function Dots({
  title,
  rows,
  format,
  reference,
}: {
  title: string;
  rows: readonly DotRow[];
  format: (value: number) => string;
  reference?: number | undefined;
}) {
  const [frame, width] = useWidth<HTMLDivElement>();
  const left = 170;
  const height = rows.length * 28 + 26;
  const all = rows.flatMap((row) => [row.value, row.lower ?? row.value, row.upper ?? row.value, ...(row.values ?? [])]);
  const low = Math.min(...all, reference ?? Number.POSITIVE_INFINITY);
  const high = Math.max(...all, reference ?? Number.NEGATIVE_INFINITY);
  const space = (high - low || 1) * 0.06;
  const x = scaleLinear([low - space, high + space], [left, width - 90]);
  const marks =
    format === seconds ? timeTicks(low - space, high + space, 5) : x.ticks(5).map((at) => ({ at, text: format(at) }));
  return (
    <Figure title={title}>
      <div ref={frame}>
        <svg width={width} height={height} role="img" aria-label={`${title}; the numbers stand beside the points`}>
          {marks.map(({ at, text }) => (
            <g key={at} transform={`translate(${x(at)} 0)`}>
              <line class="grid" y2={height - 20} />
              <text y={height - 6} text-anchor="middle">
                {text}
              </text>
            </g>
          ))}
          {reference !== undefined && <line class="linear" x1={x(reference)} x2={x(reference)} y1="0" y2={height - 20} />}
          {rows.map((row, index) => (
            <g key={row.label} transform={`translate(0 ${index * 28 + 14})`}>
              <text x={left - 10} dy="0.32em" text-anchor="end">
                {row.label}
              </text>
              {row.values?.map((value, at) => (
                <circle key={at} class="faint" cx={x(value)} r="3" />
              ))}
              {row.upper !== undefined && <line class="whisker" x1={x(row.lower ?? row.value)} x2={x(row.upper)} />}
              <circle class="dot" cx={x(row.value)} r="4.5" />
              <text x={width - 84} dy="0.32em">
                {format(row.value)}
              </text>
            </g>
          ))}
        </svg>
      </div>
    </Figure>
  );
}
