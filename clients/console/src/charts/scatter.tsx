import { scaleLinear, scaleLog } from "d3-scale";
import { useState } from "preact/hooks";
import { Axes, Figure, MARGIN, type Scale, useWidth } from "./frame.js";

/** A point that can be chosen. */
export interface ScatterPoint {
  x: number;
  y: number;
  label: string;
}

const HEIGHT = 300;

/** Points of a frontier; a click or Enter chooses one. */
export function Scatter({
  title,
  points,
  xLabel,
  yLabel,
  chosen,
  onChoose,
}: {
  title: string;
  points: readonly ScatterPoint[];
  xLabel: string;
  yLabel: string;
  chosen: number;
  onChoose: (index: number) => void;
}) {
  const [frame, width] = useWidth<HTMLDivElement>();
  const [hovered, setHovered] = useState<number>();
  const extent = (values: number[]): [number, number] => [Math.min(...values), Math.max(...values)];
  const [left, right] = extent(points.map((p) => p.x));
  const [low, high] = extent(points.map((p) => p.y));
  const wide = right / left > 8;
  const x = (wide ? scaleLog().base(2) : scaleLinear())
    .domain(
      wide
        ? [left / 1.1, right * 1.1]
        : [Math.max(0, left - (right - left || 1) * 0.05), right + (right - left || 1) * 0.05],
    )
    .range([MARGIN.left, width - MARGIN.right]) as Scale;
  const y = scaleLinear([Math.min(0, low), high * 1.08], [HEIGHT - MARGIN.bottom, MARGIN.top]);
  return (
    <Figure title={title}>
      <div ref={frame}>
        <svg width={width} height={HEIGHT} role="group" aria-label={title}>
          <Axes x={x} y={y} width={width} height={HEIGHT} xLabel={xLabel} yLabel={yLabel} />
          {/* The chosen one last, so that no other covers it. */}
          {points
            .map((point, index) => ({ point, index }))
            .sort((a, b) => Number(a.index === chosen) - Number(b.index === chosen))
            .map(({ point, index }) => (
              <circle
                key={index}
                class={`choice ${index === chosen ? "chosen" : ""}`}
                cx={x(point.x)}
                cy={y(point.y)}
                r={index === chosen ? 7 : 5}
                role="button"
                tabindex={0}
                aria-label={point.label}
                aria-pressed={index === chosen}
                onClick={() => onChoose(index)}
                onKeyDown={(event) => event.key === "Enter" && onChoose(index)}
                onPointerEnter={() => setHovered(index)}
                onPointerLeave={() => setHovered(undefined)}
              />
            ))}
        </svg>
        <p class="reading">{points[hovered ?? chosen]?.label ?? " "}</p>
      </div>
    </Figure>
  );
}
