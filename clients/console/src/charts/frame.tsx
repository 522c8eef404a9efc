import type { ScaleContinuousNumeric } from "d3-scale";
import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { short } from "../format.js";

/** Pixels around a picture's data. */
export const MARGIN = { top: 14, right: 18, bottom: 40, left: 62 } as const;

/** The width of an element, which follows the window. */
export function useWidth<E extends HTMLElement>(otherwise = 720): [RefObject<E | null>, number] {
  const element = useRef<E>(null);
  const [width, setWidth] = useState(otherwise);
  useEffect(() => {
    if (!element.current) return;
    const observer = new ResizeObserver(([entry]) => entry && setWidth(Math.max(280, Math.floor(entry.contentRect.width))));
    observer.observe(element.current);
    return () => observer.disconnect();
  }, []);
  return [element, width];
}

export type Scale = ScaleContinuousNumeric<number, number>;

/** Ticks of a scale; of a logarithmic one its powers, of few integers each. */
export function ticksOf(scale: Scale, most: number, whole = false): number[] {
  const ticks = scale.ticks(most).filter((tick) => !whole || Number.isInteger(tick));
  const step = Math.ceil(ticks.length / most);
  return ticks.filter((_, index) => index % step === 0);
}

interface AxesProps {
  x: Scale;
  y: Scale;
  width: number;
  height: number;
  xLabel: string;
  yLabel: string;
  xTicks?: number[] | undefined;
  format?: ((value: number) => string) | undefined;
}

/** Both axes with a quiet grid. */
export function Axes({ x, y, width, height, xLabel, yLabel, xTicks, format = short }: AxesProps) {
  const bottom = height - MARGIN.bottom;
  return (
    <g class="axes">
      {ticksOf(y, 6).map((tick) => (
        <g key={`y${tick}`} transform={`translate(0 ${y(tick)})`}>
          <line class="grid" x1={MARGIN.left} x2={width - MARGIN.right} />
          <text x={MARGIN.left - 8} dy="0.32em" text-anchor="end">
            {format(tick)}
          </text>
        </g>
      ))}
      {(xTicks ?? ticksOf(x, Math.max(3, width / 90), true)).map((tick) => (
        <g key={`x${tick}`} transform={`translate(${x(tick)} ${bottom})`}>
          <line y2="5" class="tick" />
          <text y="18" text-anchor="middle">
            {short(tick)}
          </text>
        </g>
      ))}
      <line class="tick" x1={MARGIN.left} x2={width - MARGIN.right} y1={bottom} y2={bottom} />
      <text class="label" x={(MARGIN.left + width - MARGIN.right) / 2} y={height - 4} text-anchor="middle">
        {xLabel}
      </text>
      <text class="label" transform={`translate(13 ${(MARGIN.top + bottom) / 2}) rotate(-90)`} text-anchor="middle">
        {yLabel}
      </text>
    </g>
  );
}

/** A picture with its title, its legend, and what it says in words for those who do not see it. */
export function Figure({
  title,
  legend,
  children,
}: {
  title: string;
  legend?: readonly (readonly [className: string, text: string])[];
  children: ComponentChildren;
}) {
  return (
    <figure>
      <figcaption>
        <strong>{title}</strong>
        {legend && (
          <ul class="legend">
            {legend.map(([className, text]) => (
              <li key={text}>
                <i class={`swatch ${className}`} /> {text}
              </li>
            ))}
          </ul>
        )}
      </figcaption>
      {children}
    </figure>
  );
}
