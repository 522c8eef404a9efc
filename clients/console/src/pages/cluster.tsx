import { nodePool, profileSource } from "@nodewise/client";
import { ScheduleAction, type ScheduleResponse } from "@nodewise/client/v1";
import {
  type SimulationJobRows,
  SimulationMeasure,
  type SimulationResult,
  type SimulationTimelineRows,
} from "@nodewise/client/v1beta1";
import { useMemo, useState } from "preact/hooks";
import { AnswerView, Failure, useAnswer } from "../answer.js";
import { Dots } from "../charts/dots.js";
import { Gantt, type GanttJob } from "../charts/gantt.js";
import { Lines, type Series } from "../charts/lines.js";
import { count, number, percent, seconds, words } from "../format.js";
import { type PoolText, poolsOf } from "../pools.js";
import { link, useParameter } from "../router.js";
import { server } from "../server.js";
import { meanOf } from "../statistics.js";
import { Long, SortableTable } from "../table.js";

const HOUR = 3600;
const MOST_JOBS = 200;
/** Share of the jobs that end early, so that repetitions differ; the page says so. */
const EARLY_STOPS = 0.1;

/** Who gets what now, and what policies would make of the same jobs over time. */
export function Cluster() {
  const [devices, setDevices] = useParameter("devices", "v100=4x4");
  const [prefix, setPrefix] = useParameter("prefix");
  const [samples, setSamples] = useParameter("samples", "1e6");
  const [policy, setPolicy] = useParameter("policy");
  const [others, setOthers] = useParameter("policies");
  const policies = useAnswer("policies", (signal) => server().listPolicies({}, { signal }).all());
  const names = policies.state === "ready" ? policies.value.map((each) => each.name) : [];
  const [asked, setAsked] = useState<"schedule" | "simulate">();
  let pools: PoolText[] = [];
  let problem: Error | undefined;
  try {
    pools = poolsOf(devices);
    if (!pools.length) throw new Error("Devices: name at least one pool, such as h100=4x8.");
    if (!(Number(samples) > 0)) throw new Error("Samples of each job: give a number above 0.");
  } catch (error) {
    problem = error as Error;
  }
  const question = { pools, prefix, samples: Number(samples), policy };
  return (
    <>
      <h1>Cluster</h1>
      <form class="controls" onSubmit={(event) => event.preventDefault()}>
        <label>
          Devices
          <input value={devices} onInput={(event) => setDevices(event.currentTarget.value)} />
        </label>
        <label>
          Jobs whose names begin with
          <input type="search" value={prefix} onInput={(event) => setPrefix(event.currentTarget.value)} />
        </label>
        <label>
          Samples of each job
          <input value={samples} onInput={(event) => setSamples(event.currentTarget.value)} />
        </label>
        <label>
          Policy
          <select value={policy} onChange={(event) => setPolicy(event.currentTarget.value)}>
            {["", ...names].map((name) => (
              <option key={name} value={name}>
                {name || "default"}
              </option>
            ))}
          </select>
        </label>
        <label>
          Compare in the simulation
          <select value={others} onChange={(event) => setOthers(event.currentTarget.value)}>
            {["", ...names].map((name) => (
              <option key={name} value={name}>
                {name || "all policies"}
              </option>
            ))}
          </select>
        </label>
        <button type="button" disabled={problem !== undefined} onClick={() => setAsked("schedule")}>
          Schedule now
        </button>
        <button type="button" disabled={problem !== undefined} onClick={() => setAsked("simulate")}>
          Simulate
        </button>
      </form>
      {problem && <Failure error={problem} />}
      {asked === "schedule" && !problem && <ScheduleView {...question} />}
      {asked === "simulate" && !problem && <SimulationView {...question} policies={others ? [policy, others] : names} />}
      {!asked && !problem && (
        <p class="quiet">“Schedule now” divides the devices among the stored jobs; “Simulate” plays them in time.</p>
      )}
    </>
  );
}

interface Question {
  pools: PoolText[];
  prefix: string;
  samples: number;
  policy: string;
}

const clusterOf = (pools: readonly PoolText[]) => ({
  pools: pools.map(({ deviceName, nodes, devicesPerNode }) => nodePool(deviceName, deviceName, { nodes, devicesPerNode })),
});

async function jobNames(prefix: string, signal: AbortSignal): Promise<string[]> {
  const { profiles } = await server().listProfiles({ namePrefix: prefix, pageSize: MOST_JOBS }, { signal }).page();
  return profiles.map(({ profileId }) => profileId);
}

function ScheduleView({ pools, prefix, samples, policy }: Question) {
  const answer = useAnswer(JSON.stringify([pools, prefix, samples, policy]), async (signal) => {
    const names = await jobNames(prefix, signal);
    const jobs = names.map((jobId) => ({ jobId, profile: profileSource(jobId), remainingSamples: samples }));
    return server().schedule({ cluster: clusterOf(pools), jobs, policy }, { signal, timeoutMs: 60_000 });
  });
  return <AnswerView answer={answer}>{(reply) => <Allocations reply={reply} pools={pools} />}</AnswerView>;
}

function Allocations({ reply, pools }: { reply: ScheduleResponse; pools: readonly PoolText[] }) {
  const running = reply.allocations.filter((each) => each.placement.length > 0);
  const colours = new Map(running.map((each, index) => [each.jobId, `part${index % 10}`]));
  if (!reply.allocations.length) return <p class="empty">No job matches.</p>;
  return (
    <>
      <p class="sentence">
        {count(running.length, "job")} of {reply.allocations.length} run; {reply.policy} {reply.policyVersion} took{" "}
        {seconds(reply.decisionSeconds)}.
      </p>
      {pools.map((pool) => (
        <figure key={pool.deviceName}>
          <figcaption>
            <strong>{pool.deviceName}</strong>
          </figcaption>
          <div class="nodes">
            {Array.from({ length: pool.nodes }, (_, node) => {
              const slots = running
                .filter((each) => each.pool === pool.deviceName)
                .flatMap((each) =>
                  each.placement
                    .filter(({ nodeIndex }) => nodeIndex === node)
                    .flatMap(({ devicesCount }) => Array<string>(devicesCount).fill(each.jobId)),
                );
              return (
                <div class="node" key={node} title={`node ${node}`}>
                  {Array.from({ length: pool.devicesPerNode }, (_, device) => {
                    const job = slots[device];
                    return <i key={device} class={`slot ${job ? colours.get(job) : ""}`} title={job ?? "free"} />;
                  })}
                </div>
              );
            })}
          </div>
        </figure>
      ))}
      <SortableTable
        caption="Allocations"
        rows={reply.allocations}
        keyOf={(each) => each.jobId}
        columns={[
          {
            name: "job",
            title: "Job",
            value: (each) => each.jobId,
            show: (each) => (
              <>
                <i class={`swatch ${colours.get(each.jobId) ?? "none"}`} />{" "}
                <a href={link(["jobs", each.jobId])}>{each.jobId}</a>
              </>
            ),
          },
          { name: "action", title: "Action", value: (each) => words((ScheduleAction[each.action] ?? "").toLowerCase()) },
          { name: "devices", title: "Devices", value: (each) => each.devicesCount, numeric: true },
          { name: "speed", title: "samples/s", value: (each) => each.samplesPerSecond || undefined, numeric: true },
          {
            name: "done",
            title: "Done in",
            value: (each) => each.finishSeconds,
            show: (each) => seconds(each.finishSeconds),
            numeric: true,
          },
          { name: "next", title: "One more device adds", value: (each) => each.marginalSamplesPerSecond, numeric: true },
          {
            name: "why",
            title: "Why",
            value: (each) => each.problem?.message ?? each.why,
            show: (each) => <Long text={each.problem?.message ?? each.why} />,
          },
        ]}
      />
    </>
  );
}

interface Played {
  policy: string;
  result: SimulationResult;
  jobs: GanttJob[];
  /** Times from arrival to completion, ascending, of each repetition. */
  times: number[][];
}

/** What is simulated, apart from the policy. */
interface Setting {
  pools: readonly PoolText[];
  names: readonly string[];
  samples: number;
  hours: number;
  repetitions: number;
}

function simulate(
  { pools, names, samples, hours, repetitions }: Setting,
  policy: string,
  error: number,
  signal: AbortSignal,
) {
  // Half of the error's variance is that of whole curves, half that of single rows.
  const sigma = (error * Math.sqrt(Math.PI / 2)) / Math.SQRT2;
  return server().simulate(
    {
      cluster: clusterOf(pools),
      policy,
      jobs: {
        count: names.length,
        jobIds: [...names],
        arrivalSeconds: names.map((_, index) => (index * hours * HOUR) / Math.max(1, names.length)),
        workSamples: [samples],
        curveIndexes: names.map((_, index) => index),
      },
      curves: names.map((name) => ({ source: { case: "profile" as const, value: { profile: profileSource(name) } } })),
      settings: {
        earlyStops: { probability: EARLY_STOPS, progressShares: [] },
        ...(error ? { predictionError: { jobSigma: sigma, rowSigma: sigma } } : {}),
      },
      repetitionsCount: repetitions,
      includeJobs: true,
      includeTimeline: true,
    },
    { signal, timeoutMs: 300_000 },
  );
}

function SimulationView({ pools, prefix, samples, policies }: Question & { policies: readonly string[] }) {
  const [hours, setHours] = useParameter("hours", "1");
  const [repetitions, setRepetitions] = useParameter("repetitions", "5");
  const [shown, setShown] = useState(0);
  const key = JSON.stringify([pools, prefix, samples, policies, hours, repetitions]);
  const answer = useAnswer(
    policies.length ? key : undefined,
    async (signal): Promise<{ setting: Setting; played: Played[] }> => {
      const names = await predictableJobs(await jobNames(prefix, signal), pools, signal);
      const setting = { pools, names, samples, hours: Number(hours), repetitions: countOf(repetitions) };
      if (!names.length) return { setting, played: [] };
      const requests = policies.map((policy) => simulate(setting, policy, 0, signal));
      const answers = await Promise.all(requests);
      const played = answers.map(({ result, pieces }) => ({
        policy: result.policy,
        result,
        jobs: ganttOf(pieces),
        times: timesOf(pieces),
      }));
      return { setting, played };
    },
  );
  return (
    <>
      <form class="controls" onSubmit={(event) => event.preventDefault()}>
        <label>
          Jobs arrive over hours
          <input type="number" min="0" step="any" value={hours} onInput={(event) => setHours(event.currentTarget.value)} />
        </label>
        <label>
          Repetitions
          <input
            type="number"
            min="1"
            max="50"
            value={repetitions}
            onInput={(event) => setRepetitions(event.currentTarget.value)}
          />
        </label>
      </form>
      <AnswerView answer={answer}>
        {({ setting, played }) =>
          played.length > 0 ? (
            <>
              <Policies played={played} shown={shown} onShow={setShown} />
              <ValueOfPrediction setting={setting} policy={(played[shown] ?? played[0])?.policy ?? ""} />
            </>
          ) : (
            <p class="empty">No job matches that can be predicted on these devices.</p>
          )
        }
      </AnswerView>
    </>
  );
}

/** A number of repetitions from text. */
const countOf = (text: string) => Math.max(1, Math.trunc(Number(text)) || 1);

/** The jobs that can be predicted on the pools; a simulation refuses all others. */
async function predictableJobs(
  names: readonly string[],
  pools: readonly PoolText[],
  signal: AbortSignal,
): Promise<string[]> {
  const jobs = names.map((jobId) => ({ jobId, profile: profileSource(jobId), remainingSamples: 1 }));
  const { allocations } = await server().schedule({ cluster: clusterOf(pools), jobs }, { signal, timeoutMs: 60_000 });
  return allocations.flatMap((each) => (each.problem ? [] : [each.jobId]));
}

/** Times from arrival to completion, ascending, by repetition. */
function timesOf(pieces: readonly { case: string; value: unknown }[]): number[][] {
  const times = new Map<number, number[]>();
  for (const piece of pieces)
    if (piece.case === "jobs") {
      const { seed, arrivalSeconds, completionSeconds } = piece.value as SimulationJobRows;
      const before = times.get(seed) ?? [];
      times.set(seed, [...before, ...completionSeconds.map((end, row) => end - (arrivalSeconds[row] ?? 0))]);
    }
  return [...times.values()].map((each) => each.sort((a, b) => a - b));
}

const MOMENTS = 60;

/** The share of jobs that are done within a time of their arrival, with its confidence over the repetitions. */
function distributionOf({ policy, times }: Played, jobsCount: number, longest: number): Series {
  const points = Array.from({ length: MOMENTS + 1 }, (_, index) => {
    const x = (longest * index) / MOMENTS;
    const { value, lower, upper } = meanOf(times.map((each) => each.filter((time) => time <= x).length / jobsCount));
    return { x, y: value, lower: lower && Math.max(0, lower), upper: upper && Math.min(1, upper) };
  });
  return { name: policy, points };
}

function ganttOf(pieces: readonly { case: string; value: unknown }[]): GanttJob[] {
  const jobs = new Map<string, GanttJob & { runs: { begin: number; end: number; devices: number }[] }>();
  let seed: number | undefined;
  for (const piece of pieces)
    if (piece.case === "jobs") {
      const columns = piece.value as SimulationJobRows;
      seed ??= columns.seed;
      if (columns.seed !== seed) continue;
      columns.jobIds.forEach((id, row) => {
        jobs.set(id, {
          id,
          arrival: columns.arrivalSeconds[row] ?? 0,
          completion: columns.completionSeconds[row],
          runs: [],
        });
      });
    }
  for (const piece of pieces)
    if (piece.case === "timeline") {
      const columns = piece.value as SimulationTimelineRows;
      if (columns.seed !== seed) continue;
      columns.jobIds.forEach((id, row) => {
        jobs.get(id)?.runs.push({
          begin: columns.beginSeconds[row] ?? 0,
          end: columns.endSeconds[row] ?? 0,
          devices: columns.devicesCounts[row] ?? 0,
        });
      });
    }
  return [...jobs.values()].sort((a, b) => a.arrival - b.arrival);
}

function Policies({ played, shown, onShow }: { played: readonly Played[]; shown: number; onShow: (index: number) => void }) {
  const figure = (each: Played, measure: SimulationMeasure) => each.result.figures.find((f) => f.measure === measure);
  const best = useMemo(
    () =>
      [...played].sort(
        (a, b) =>
          (figure(a, SimulationMeasure.AVERAGE_JCT_SECONDS)?.mean ?? Number.POSITIVE_INFINITY) -
          (figure(b, SimulationMeasure.AVERAGE_JCT_SECONDS)?.mean ?? Number.POSITIVE_INFINITY),
      )[0],
    [played],
  );
  const chosen = played[shown] ?? best;
  if (!best || !chosen) return <p class="empty">No policy was asked about.</p>;
  const mean = (each: Played) => figure(each, SimulationMeasure.AVERAGE_JCT_SECONDS)?.mean ?? 0;
  const ties = played.filter((each) => each !== best && mean(each) <= mean(best) * 1.0001);
  const longest = Math.max(...[best, chosen].flatMap((each) => each.times.map((time) => time.at(-1) ?? 0)), 1);
  const times = (each: Played) => each.result.runs.map((run) => run.averageJctSeconds ?? 0);
  return (
    <>
      <p class="sentence">
        <strong>{best.policy}</strong>
        {ties.length > 0 && ` (and equally ${ties.map((each) => each.policy).join(", ")})`} completes the{" "}
        {count(chosen.jobs.length, "job")} that can be predicted here soonest:{" "}
        {seconds(figure(best, SimulationMeasure.AVERAGE_JCT_SECONDS)?.mean)} from arrival on average, over{" "}
        {count(best.result.runs.length, "repetition")}.
      </p>
      <p class="quiet">{percent(EARLY_STOPS)} of the jobs end early at random, which no policy knows.</p>
      <Dots
        title="Mean completion time by policy, with its 95 % confidence; faint: each repetition"
        rows={played.map((each) => {
          const jct = figure(each, SimulationMeasure.AVERAGE_JCT_SECONDS);
          return { label: each.policy, value: jct?.mean ?? 0, lower: jct?.lower, upper: jct?.upper, values: times(each) };
        })}
        format={seconds}
      />
      <Dots
        title={`Completion time relative to ${best.policy}, on the same seeds, with its 95 % confidence`}
        reference={1}
        rows={played
          .filter((each) => each !== best)
          .map((each) => {
            const ratios = times(each).map((time, index) => time / (times(best)[index] || 1));
            return { label: each.policy, ...meanOf(ratios), values: ratios };
          })}
        format={number}
      />
      <Lines
        title="Share of jobs that complete within a time of their arrival, with its 95 % confidence"
        series={(chosen === best ? [best] : [best, chosen]).map((each) => distributionOf(each, each.jobs.length, longest))}
        xLabel="from arrival to completion"
        format={percent}
        formatX={seconds}
      />
      <SortableTable
        caption="Policies"
        rows={played}
        keyOf={(each) => each.policy}
        chosen={chosen.policy}
        onChoose={(each) => onShow(played.indexOf(each))}
        columns={[
          { name: "policy", title: "Policy", value: (each) => each.policy },
          ...(
            [
              ["jct", "Mean completion", SimulationMeasure.AVERAGE_JCT_SECONDS, seconds],
              ["p99", "99th percentile", SimulationMeasure.P99_JCT_SECONDS, seconds],
              ["waiting", "Mean waiting", SimulationMeasure.AVERAGE_WAITING_SECONDS, seconds],
              ["busy", "Utilisation", SimulationMeasure.UTILIZATION_RATIO, percent],
              ["fair", "Worst fairness", SimulationMeasure.WORST_FINISH_TIME_FAIRNESS_RATIO, number],
            ] as const
          ).map(([name, title, measure, format]) => ({
            name,
            title,
            value: (each: Played) => figure(each, measure)?.mean,
            show: (each: Played) => format(figure(each, measure)?.mean),
            numeric: true,
          })),
        ]}
      />
      <Gantt
        title={`The first repetition by ${chosen.policy}`}
        jobs={chosen.jobs}
        end={Math.max(...chosen.jobs.map((job) => job.completion ?? 0), 1)}
      />
    </>
  );
}

/** Mean absolute errors of predictions that are compared. */
const ERRORS = [0.05, 0.1, 0.2, 0.4];

/** What errors of predictions cost: the same jobs and seeds, where the policy sees other curves than the true ones. */
function ValueOfPrediction({ setting, policy }: { setting: Setting; policy: string }) {
  const key = JSON.stringify([setting, policy]);
  const [asked, setAsked] = useState<string>();
  const answer = useAnswer(asked === key ? key : undefined, async (signal) => {
    const estimators = await server().listEstimators({}, { signal }).all();
    const measured = estimators.find(({ plugin, score }) => plugin?.name === "auto" && score)?.score?.meanAbsoluteLogError;
    const errors = [0, ...ERRORS, ...(measured ? [measured] : [])].sort((a, b) => a - b);
    const answers = await Promise.all(errors.map((error) => simulate(setting, policy, error, signal)));
    const times = answers.map(({ result }) => result.runs.map((run) => run.averageJctSeconds ?? 0));
    const rows = errors.slice(1).map((error, index) => {
      const ratios = (times[index + 1] as number[]).map((time, run) => time / (times[0]?.[run] || 1));
      return { error, isMeasured: error === measured, values: ratios, ...meanOf(ratios) };
    });
    return { policy: answers[0]?.result.policy ?? policy, rows };
  });
  return (
    <section>
      <h2>What better predictions are worth</h2>
      <p class="quiet">
        The policy sees each curve with a random error, and the jobs run by the true curve. A policy that does not predict is
        not affected.
      </p>
      <button type="button" disabled={asked === key} onClick={() => setAsked(key)}>
        Compare errors under {policy}
      </button>
      {asked === key && (
        <AnswerView answer={answer}>
          {({ policy: name, rows }) => {
            const measured = rows.find(({ isMeasured }) => isMeasured);
            const shown = measured ?? rows.find(({ error }) => error === 0.2);
            return (
              <>
                <p class="sentence">
                  With {measured ? "the error that was measured here, " : "a mean error of "}
                  {percent(shown?.error)}, {name} completes the jobs {changeOf(shown?.value ?? 1)} than with perfect
                  predictions
                  {shown?.upper !== undefined && ` (from ${changeOf(shown.lower ?? 1)} to ${changeOf(shown.upper)})`}.
                </p>
                <Dots
                  title="Mean completion time by the mean error of predictions, relative to none, with its 95 % confidence"
                  reference={1}
                  rows={rows.map(({ error, isMeasured, ...row }) => ({
                    ...row,
                    label: `${percent(error)}${isMeasured ? ", measured" : ""}`,
                  }))}
                  format={number}
                />
              </>
            );
          }}
        </AnswerView>
      )}
    </section>
  );
}

/** A ratio of times in words. */
function changeOf(ratio: number): string {
  return `${percent(Math.abs(ratio - 1))} ${ratio < 1 ? "sooner" : "later"}`;
}
