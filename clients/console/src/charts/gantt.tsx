import { scaleLinear } from "d3-scale";
import { seconds, short, timeTicks } from "../format.js";
import { Figure, useWidth } from "./frame.js";

/** One job in simulated time. */
export interface GanttJob {
  id: string;
  arrival: number;
  completion: number | undefined;
  runs: readonly { begin: number; end: number; devices: number }[];
}

const ROW = 16;
const LEFT = 120;
const MOST_ROWS = 200;

/** Jobs over time: waiting thin, running thick, darker with more devices. */
export function Gantt({ title, jobs, end }: { title: string; jobs: readonly GanttJob[]; end: number }) {
  const [frame, width] = useWidth<HTMLDivElement>();
  const shown = jobs.slice(0, MOST_ROWS);
  const most = Math.max(1, ...shown.flatMap((job) => job.runs.map((run) => run.devices)));
  const x = scaleLinear([0, end || 1], [LEFT, width - 16]);
  const height = shown.length * ROW + 30;
  return (
    <Figure
      title={title}
      legend={[
        ["waits", "waits"],
        ["runs", `runs, darker on more devices (at most ${most})`],
      ]}
    >
      <div ref={frame}>
        <svg width={width} height={height} role="img" aria-label={`${title}: ${jobs.length} jobs in ${seconds(end)}`}>
          {timeTicks(0, end, Math.max(2, width / 120)).map(({ at, text }) => (
            <g key={at} transform={`translate(${x(at)} 0)`}>
              <line class="grid" y1="0" y2={height - 22} />
              <text y={height - 8} text-anchor="middle">
                {text}
              </text>
            </g>
          ))}
          {shown.map((job, index) => (
            <g key={job.id} transform={`translate(0 ${index * ROW + 2})`}>
              <text x={LEFT - 6} y="11" text-anchor="end">
                {job.id.length > 16 ? `${job.id.slice(0, 15)}…` : job.id}
              </text>
              <rect
                class="waits"
                x={x(job.arrival)}
                width={Math.max(0, x(job.completion ?? end) - x(job.arrival))}
                y="6"
                height="2"
              />
              {job.runs.map((run) => (
                <rect
                  key={run.begin}
                  class="runs"
                  fill-opacity={0.35 + (0.65 * run.devices) / most}
                  x={x(run.begin)}
                  width={Math.max(1, x(run.end) - x(run.begin))}
                  y="1"
                  height="12"
                >
                  <title>{`${job.id}: ${short(run.devices)} devices from ${seconds(run.begin)} to ${seconds(run.end)}`}</title>
                </rect>
              ))}
            </g>
          ))}
        </svg>
        {jobs.length > MOST_ROWS && <p class="quiet">The first {MOST_ROWS} jobs by arrival.</p>}
      </div>
    </Figure>
  );
}
