import { scaleLinear, scaleLog } from "d3-scale";
import { area, line } from "d3-shape";
import { useRef, useState } from "preact/hooks";
import { number, percent } from "../format.js";
import { Axes, Figure, MARGIN, type Scale, useWidth } from "./frame.js";

/** A predicted point of a curve. Throughputs have the unit of the curve. */
export interface CurvePoint {
  nodes: number;
  value: number;
  lower?: number | undefined;
  upper?: number | undefined;
  /** How far beyond the evidence: above 1 the point is extrapolated. */
  extrapolation: number;
}

interface CurveProps {
  points: readonly CurvePoint[];
  measured: readonly { nodes: number; value: number }[];
  recommended: number | undefined;
  suggested: readonly number[];
  unit: string;
  coverage: number | undefined;
  logarithmic: boolean;
  /** Throughput that meets the deadline; undefined = there is no deadline. */
  needed: number | undefined;
  onNeeded: (value: number) => void;
}

const HEIGHT = 340;

/** Throughput by nodes: interval, measured runs, extrapolation dashed, linear scaling beside it. */
export function Curve(props: CurveProps) {
  const { points, measured, recommended, suggested, unit, coverage, logarithmic, needed, onNeeded } = props;
  const [frame, width] = useWidth<HTMLDivElement>();
  const [hovered, setHovered] = useState<number>();
  const picture = useRef<SVGSVGElement>(null);
  const first = points[0];
  const last = points.at(-1);
  if (!first || !last) return null;
  const most = Math.max(...points.map((p) => p.upper ?? p.value), ...measured.map((m) => m.value), needed ?? 0);
  const least = Math.min(...points.map((p) => p.lower || p.value), ...measured.map((m) => m.value));
  const xs = logarithmic ? scaleLog().base(2) : scaleLinear();
  const ys = logarithmic ? scaleLog() : scaleLinear();
  const from = Math.min(first.nodes, ...measured.map((m) => m.nodes));
  const to = Math.max(last.nodes, ...measured.map((m) => m.nodes));
  const x = xs.domain([from, from === to ? to + 1 : to]).range([MARGIN.left, width - MARGIN.right]) as Scale;
  const y = ys.domain([logarithmic ? least * 0.9 : 0, most * 1.05]).range([HEIGHT - MARGIN.bottom, MARGIN.top]) as Scale;
  const within = points.filter((p) => p.extrapolation <= 1);
  const beyond = within.length ? points.slice(within.length - 1) : points;
  const path = line<CurvePoint>(
    (p) => x(p.nodes),
    (p) => y(p.value),
  );
  const band = area<CurvePoint>(
    (p) => x(p.nodes),
    (p) => y(p.lower || (logarithmic ? least * 0.9 : 0)),
    (p) => y(p.upper ?? p.value),
  ).defined((p) => p.upper !== undefined);
  const linear = points
    .map((p) => ({ ...p, value: (first.value / first.nodes) * p.nodes }))
    .filter((p) => p.value <= most * 1.05);
  const place = (event: PointerEvent | MouseEvent) => {
    const box = picture.current?.getBoundingClientRect();
    return box ? { x: event.clientX - box.left, y: event.clientY - box.top } : { x: 0, y: 0 };
  };
  const nearest = (at: number) =>
    points.reduce(
      (best, p, index) => (Math.abs(x(p.nodes) - at) < Math.abs(x(points[best]?.nodes ?? 0) - at) ? index : best),
      0,
    );
  const shown = hovered === undefined ? undefined : points[hovered];
  const chosen = points.find((p) => p.nodes === recommended);
  const move = (by: number) => setHovered(Math.min(points.length - 1, Math.max(0, (hovered ?? 0) + by)));
  const drag = (event: PointerEvent) => {
    if (event.buttons) onNeeded(Math.max(least / 100, y.invert(Math.min(HEIGHT - MARGIN.bottom - 1, place(event).y))));
  };
  return (
    <Figure
      title={`Throughput, ${unit}`}
      legend={[
        ["line", "predicted"],
        ["dashed", "extrapolated"],
        ["band", `${percent(coverage)} interval`],
        ["dot", "measured"],
        ["linear", "linear scaling"],
        ...(suggested.length ? [["suggested", "measure next"] as const] : []),
      ]}
    >
      <div ref={frame}>
        <svg
          ref={picture}
          width={width}
          height={HEIGHT}
          class="curve"
          role="group"
          aria-label={`Throughput from ${first.nodes} to ${last.nodes} nodes; left and right arrows read the points`}
          tabindex={0}
          onPointerMove={(event) => setHovered(nearest(place(event).x))}
          onPointerLeave={() => setHovered(undefined)}
          onKeyDown={(event) => {
            if (event.key === "ArrowRight") move(1);
            else if (event.key === "ArrowLeft") move(-1);
            else return;
            event.preventDefault();
          }}
        >
          <Axes x={x} y={y} width={width} height={HEIGHT} xLabel="nodes" yLabel={unit} />
          <path class="band" d={band([...points]) ?? ""} />
          <path class="linear" d={path(linear) ?? ""} />
          <path class="line" d={path(within) ?? ""} />
          <path class="line dashed" d={path(beyond) ?? ""} />
          {suggested.map((nodes) => (
            <line key={nodes} class="suggested" x1={x(nodes)} x2={x(nodes)} y1={MARGIN.top} y2={HEIGHT - MARGIN.bottom} />
          ))}
          {measured.map((m, index) => (
            <circle key={index} class="dot" cx={x(m.nodes)} cy={y(m.value)} r="4" />
          ))}
          {chosen && (
            <g class="chosen">
              <line x1={x(chosen.nodes)} x2={x(chosen.nodes)} y1={y(chosen.value)} y2={HEIGHT - MARGIN.bottom} />
              <circle cx={x(chosen.nodes)} cy={y(chosen.value)} r="6" />
            </g>
          )}
          {needed !== undefined && (
            <g
              class="needed"
              role="slider"
              tabindex={0}
              aria-label="Throughput that meets the deadline"
              aria-valuenow={needed}
              aria-valuetext={`${number(needed)} ${unit}`}
              onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
              onPointerMove={drag}
              onKeyDown={(event) => {
                const factor = { ArrowUp: 1.02, ArrowDown: 1 / 1.02 }[event.key];
                if (!factor) return;
                event.preventDefault();
                onNeeded(needed * factor);
              }}
            >
              <line class="grip" x1={MARGIN.left} x2={width - MARGIN.right} y1={y(needed)} y2={y(needed)} />
              <line x1={MARGIN.left} x2={width - MARGIN.right} y1={y(needed)} y2={y(needed)} />
              <text x={width - MARGIN.right} y={y(needed) - 6} text-anchor="end">
                deadline
              </text>
            </g>
          )}
          {shown && (
            <line class="cursor" x1={x(shown.nodes)} x2={x(shown.nodes)} y1={MARGIN.top} y2={HEIGHT - MARGIN.bottom} />
          )}
        </svg>
        <p class="reading" aria-live="polite">
          {shown
            ? `${number(shown.nodes)} nodes: ${number(shown.value)} ${unit}` +
              (shown.upper === undefined ? "" : ` (${number(shown.lower)} to ${number(shown.upper)})`) +
              (shown.extrapolation > 1 ? `, ${number(shown.extrapolation)} × beyond the evidence` : "")
            : " "}
        </p>
      </div>
    </Figure>
  );
}
