import { useEffect, useRef, useState } from "preact/hooks";
import { Figure, useWidth } from "./frame.js";
import { heightOf, LanesPicture, type View, wholeView } from "./lanes_picture.js";
import type { Timeline } from "./tracks.js";

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
  const reading = useRef<HTMLParagraphElement>(null);
  const picture = useRef<LanesPicture>(undefined);
  const shown = useRef<{ timeline: Timeline; view: View }>(undefined);
  const scheme = useScheme();
  const height = heightOf(timeline);

  useEffect(() => {
    if (!canvas.current) return;
    // Another width or colour leaves the view as it is.
    if (shown.current?.timeline !== timeline) shown.current = { timeline, view: wholeView(timeline) };
    const made = new LanesPicture(canvas.current, timeline, shown.current.view, width, colourOf, chosen);
    picture.current = made;
    return () => made.close();
  }, [timeline, width, chosen, colourOf, scheme]);
  useEffect(() => {
    const element = canvas.current;
    const zoom = (event: WheelEvent) => {
      event.preventDefault();
      picture.current?.zoom(Math.exp(event.deltaY / 400), event.offsetX);
    };
    // A listener of a component would be passive and could not keep the page from scrolling.
    element?.addEventListener("wheel", zoom, { passive: false });
    return () => element?.removeEventListener("wheel", zoom);
  }, []);

  // No movement of the pointer renders the component again.
  const onPointerMove = (event: PointerEvent) => {
    if (event.buttons & 1) picture.current?.shift(-event.movementX);
    else if (reading.current) reading.current.textContent = picture.current?.textAt(event.offsetX, event.offsetY) ?? "";
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "ArrowLeft") picture.current?.shift(-width / 10);
    else if (event.key === "ArrowRight") picture.current?.shift(width / 10);
    else if (event.key === "+") picture.current?.zoom(0.8);
    else if (event.key === "-") picture.current?.zoom(1.25);
    else if (event.key === "Home") picture.current?.showAll();
    else return;
    event.preventDefault();
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
        <p class="reading" ref={reading} />
      </div>
    </Figure>
  );
}

/** A number that changes with the colours of the page. */
function useScheme(): number {
  const [changes, setChanges] = useState(0);
  useEffect(() => {
    const change = () => setChanges((before) => before + 1);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const observer = new MutationObserver(change);
    observer.observe(document.documentElement, { attributeFilter: ["style"] });
    dark.addEventListener("change", change);
    return () => {
      observer.disconnect();
      dark.removeEventListener("change", change);
    };
  }, []);
  return changes;
}
