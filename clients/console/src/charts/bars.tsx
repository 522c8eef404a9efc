import { scaleLinear } from "d3-scale";
import { words } from "../format.js";
import { Axes, Figure, MARGIN, useWidth } from "./frame.js";

/** A bar that consists of parts. */
export interface Bar {
  label: string;
  parts: ReadonlyMap<string, number>;
}

const HEIGHT = 240;
const COLOURS = 10;

/** Parts in order of their sum, each with the class of its colour. */
export function coloursOfParts(bars: readonly Bar[]): Map<string, string> {
  const sums = new Map<string, number>();
  for (const { parts } of bars) for (const [name, value] of parts) sums.set(name, (sums.get(name) ?? 0) + value);
  const names = [...sums].filter(([, sum]) => sum > 0).sort(([, a], [, b]) => b - a);
  return new Map(names.map(([name], index) => [name, `part${index % COLOURS}`]));
}

/** Upright bars of parts, by their labels: what a step consists of at each number of nodes. */
export function StackedBars({
  title,
  bars,
  xLabel,
  format,
  emphasised,
}: {
  title: string;
  bars: readonly Bar[];
  xLabel: string;
  format: (value: number) => string;
  emphasised?: string | undefined;
}) {
  const [frame, width] = useWidth<HTMLDivElement>();
  const colours = coloursOfParts(bars);
  const sum = (bar: Bar) => [...bar.parts.values()].reduce((a, b) => a + b, 0);
  const y = scaleLinear([0, Math.max(...bars.map(sum), 1e-12) * 1.05], [HEIGHT - MARGIN.bottom, MARGIN.top]);
  const x = scaleLinear([0, bars.length], [MARGIN.left, width - MARGIN.right]);
  const step = Math.ceil(bars.length / (width / 40));
  return (
    <Figure title={title} legend={[...colours].map(([name, className]) => [className, words(name)] as const)}>
      <div ref={frame}>
        <svg width={width} height={HEIGHT} role="img" aria-label={`${title}; the table has the numbers`}>
          <Axes x={x} y={y} width={width} height={HEIGHT} xLabel={xLabel} yLabel="" xTicks={[]} format={format} />
          {bars.map((bar, index) => {
            let top = 0;
            return (
              <g key={bar.label} class={bar.label === emphasised ? "emphasised" : ""}>
                {[...colours].map(([name, className]) => {
                  const value = bar.parts.get(name) ?? 0;
                  top += value;
                  return (
                    <rect
                      key={name}
                      class={className}
                      x={x(index + 0.12)}
                      width={x(0.76) - x(0)}
                      y={y(top)}
                      height={Math.max(0, y(0) - y(value))}
                    >
                      <title>{`${bar.label}: ${words(name)} ${format(value)}`}</title>
                    </rect>
                  );
                })}
                {index % step === 0 && (
                  <text x={x(index + 0.5)} y={HEIGHT - MARGIN.bottom + 16} text-anchor="middle">
                    {bar.label}
                  </text>
                )}
              </g>
            );
          })}
        </svg>
      </div>
    </Figure>
  );
}

/** Lying bars of parts, one under the other: the step of each rank. */
export function RowBars({
  title,
  bars,
  format,
  onChoose,
  chosen,
}: {
  title: string;
  bars: readonly Bar[];
  format: (value: number) => string;
  onChoose?: (part: string) => void;
  chosen?: string;
}) {
  const [frame, width] = useWidth<HTMLDivElement>();
  const colours = coloursOfParts(bars);
  const height = bars.length * 26 + 8;
  const left = 96;
  const sum = (bar: Bar) => [...bar.parts.values()].reduce((a, b) => a + b, 0);
  const x = scaleLinear([0, Math.max(...bars.map(sum), 1e-12)], [left, width - 80]);
  return (
    <Figure title={title} legend={[...colours].slice(0, 12).map(([name, className]) => [className, words(name)] as const)}>
      <div ref={frame}>
        <svg width={width} height={height} role="group" aria-label={title}>
          {bars.map((bar, index) => {
            let at = 0;
            return (
              <g key={bar.label} transform={`translate(0 ${index * 26 + 4})`}>
                <text x={left - 8} y="15" text-anchor="end">
                  {bar.label}
                </text>
                {[...colours].map(([name, className]) => {
                  const value = bar.parts.get(name) ?? 0;
                  const begin = at;
                  at += value;
                  return (
                    value > 0 && (
                      <rect
                        key={name}
                        class={`${className} ${chosen && chosen !== name ? "faded" : ""}`}
                        x={x(begin)}
                        width={Math.max(0.5, x(value) - x(0))}
                        height="20"
                        {...(onChoose && {
                          role: "button",
                          tabindex: 0,
                          "aria-pressed": chosen === name,
                          onClick: () => onChoose(name),
                          onKeyDown: (event: KeyboardEvent) => event.key === "Enter" && onChoose(name),
                        })}
                      >
                        <title>{`${bar.label}: ${words(name)} ${format(value)}`}</title>
                      </rect>
                    )
                  );
                })}
                <text x={x(at) + 6} y="15">
                  {format(sum(bar))}
                </text>
              </g>
            );
          })}
        </svg>
      </div>
    </Figure>
  );
}
