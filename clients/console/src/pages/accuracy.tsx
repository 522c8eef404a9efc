import type { Estimator } from "@nodewise/client/v1";
import { useState } from "preact/hooks";
import { AnswerView, useAnswer } from "../answer.js";
import { backtestsOf, type Scored } from "../backtests.js";
import { Dots } from "../charts/dots.js";
import { Lines, type Series } from "../charts/lines.js";
import { ago, count, number, percent } from "../format.js";
import { link, useParameter } from "../router.js";
import { profilesOf, server } from "../server.js";
import { runningMeans } from "../statistics.js";
import { SortableTable } from "../table.js";
import { Support } from "./support.js";

/** How well predictions matched the runs that were measured after them. */
export function Accuracy() {
  const answer = useAnswer("estimators", (signal) => server().listEstimators({}, { signal }).all());
  return (
    <>
      <h1>Accuracy</h1>
      <AnswerView answer={answer}>{(estimators) => <RunningScores estimators={estimators} />}</AnswerView>
      <OverTime />
      <Support />
    </>
  );
}

function RunningScores({ estimators }: { estimators: readonly Estimator[] }) {
  const scored = estimators.filter(({ score }) => score && score.observationsCount > 0n);
  return (
    <>
      {scored.length > 0 ? (
        <>
          <p class="sentence">
            Each run that jobs report is compared with what had been predicted for it before. Errors are |ln(predicted /
            measured)|: 0.05 is about 5 %.
          </p>
          <Dots
            title="Bias: below 0 predictions are too slow, above 0 too fast"
            reference={0}
            rows={scored.map(({ plugin, score, track }) => ({
              label: `${plugin?.name} ${track}`,
              value: score?.meanLogError ?? 0,
              lower: -(score?.meanAbsoluteLogError ?? 0),
              upper: score?.meanAbsoluteLogError ?? 0,
            }))}
            format={percent}
          />
        </>
      ) : (
        <section class="empty">
          <h2>No prediction has been scored yet</h2>
          <p>A score needs a job that was predicted, and a run of it that was reported afterwards.</p>
        </section>
      )}
      <SortableTable
        caption="Estimators"
        rows={estimators}
        keyOf={({ plugin, track }) => `${plugin?.name} ${plugin?.version} ${track}`}
        columns={[
          { name: "name", title: "Estimator", value: ({ plugin }) => plugin?.name },
          { name: "version", title: "Version", value: ({ plugin }) => plugin?.version },
          { name: "track", title: "Track", value: ({ track }) => track || "stable" },
          {
            name: "runs",
            title: "Scored runs",
            value: ({ score }) => (score ? Number(score.observationsCount) : undefined),
            numeric: true,
          },
          {
            name: "error",
            title: "Mean error",
            value: ({ score }) => score?.meanAbsoluteLogError,
            show: ({ score }) => percent(score?.meanAbsoluteLogError),
            numeric: true,
          },
          {
            name: "bias",
            title: "Bias",
            value: ({ score }) => score?.meanLogError,
            show: ({ score }) => percent(score?.meanLogError),
            numeric: true,
          },
          {
            name: "coverage",
            title: "In the 90 % interval",
            value: ({ score }) => score?.coverage,
            show: ({ score }) => percent(score?.coverage),
            numeric: true,
          },
          {
            name: "unanswered",
            title: "Not answered",
            value: ({ score }) => (score ? Number(score.unansweredCount) : undefined),
            show: ({ score }) => number(score ? Number(score.unansweredCount) : undefined),
            numeric: true,
          },
          { name: "last", title: "Last scored", value: ({ score }) => ago(score?.updateTime) },
          {
            name: "can",
            title: "Answers from",
            value: ({ capabilities }) => capabilities.join(", ").replaceAll("_", " "),
          },
        ]}
      />
    </>
  );
}

const MOST_JOBS = 20;
/** Runs that a running mean is taken over. */
const WINDOW = 20;
/** Lines that can still be told apart. */
const MOST_LINES = 6;

interface Backtests {
  scored: Scored[];
  /** Jobs with fewer than two runs. */
  leftOut: number;
  /** Jobs that could not be scored, with the reason. */
  failed: string[];
  more: boolean;
}

/** Errors by time and by job, from backtests of the stored runs. */
function OverTime() {
  const [prefix, setPrefix] = useParameter("prefix");
  const [asked, setAsked] = useState<{ namePrefix: string; attempt: number }>();
  const [done, setDone] = useState("");
  const answer = useAnswer(asked && JSON.stringify(asked), async (signal): Promise<Backtests> => {
    const page = await server()
      .listProfiles({ namePrefix: asked?.namePrefix ?? "", pageSize: MOST_JOBS }, { signal })
      .page();
    const profiles = await profilesOf(
      page.profiles.map(({ profileId }) => profileId),
      { signal },
    );
    const result: Backtests = { scored: [], leftOut: 0, failed: [], more: page.nextPageToken !== "" };
    for (const [index, profile] of profiles.entries()) {
      setDone(`Job ${index + 1} of ${profiles.length} …`);
      if (!profile || (profile.content?.observations?.stepsPerSecond.length ?? 0) < 2) result.leftOut++;
      else
        await backtestsOf(profile, signal).then(
          (scored) => result.scored.push(...scored),
          (error: Error) => {
            if (signal.aborted) throw error;
            result.failed.push(`${profile.profileId}: ${error.message}`);
          },
        );
    }
    result.scored.sort((a, b) => a.at - b.at);
    return result;
  });
  return (
    <>
      <h2>Over time, and by job</h2>
      <form
        class="controls"
        onSubmit={(event) => {
          event.preventDefault();
          setAsked({ namePrefix: prefix, attempt: (asked?.attempt ?? 0) + 1 });
        }}
      >
        <label>
          Jobs whose names begin with
          <input type="search" value={prefix} onInput={(event) => setPrefix(event.currentTarget.value)} />
        </label>
        <button type="submit">Score the stored runs</button>
      </form>
      {asked === undefined ? (
        <p class="quiet">
          The service keeps sums of errors, not their history. This predicts each stored run from the runs of its job before
          it, by every estimator, for at most {MOST_JOBS} jobs.
        </p>
      ) : (
        <AnswerView answer={answer} progress={done}>
          {(backtests) => <BacktestView {...backtests} />}
        </AnswerView>
      )}
    </>
  );
}

function BacktestView({ scored, leftOut, failed, more }: Backtests) {
  const [estimator, setEstimator] = useParameter("estimator", "auto");
  const byEstimator = groupsOf(scored, (each) => each.estimator);
  const chosen = byEstimator.get(estimator) ?? [];
  // Those with the least errors, and the chosen one.
  const named = [...byEstimator]
    .sort(([a, first], [b, second]) => Number(b === estimator) - Number(a === estimator) || errorOf(first) - errorOf(second))
    .slice(0, MOST_LINES);
  const dated = scored.every(({ at }) => at > 0);
  const lines = (value: (each: Scored) => number | undefined): Series[] =>
    named.map(([name, all]) => {
      const known = all.flatMap((each) => {
        const y = value(each);
        return y === undefined ? [] : [{ x: each.at, y }];
      });
      const means = runningMeans(
        known.map(({ y }) => y),
        WINDOW,
      );
      return { name, points: known.map(({ x }, index) => ({ x: dated ? x : index + 1, y: means[index] as number })) };
    });
  const axis = {
    xLabel: dated ? "measured (UTC)" : "runs, in the order in which they were stored",
    formatX: dated ? (at: number) => new Date(at).toISOString().slice(5, 16).replace("T", " ") : number,
    format: percent,
    dates: dated,
  };
  const jobs = [...groupsOf(chosen, (each) => each.job)].sort(([, a], [, b]) => errorOf(b) - errorOf(a));
  if (!scored.length)
    return (
      <section class="empty">
        <h2>No stored run can be scored</h2>
        <p>A job needs two measured runs: one to predict from, and one to predict.</p>
        <Failed reasons={failed} />
      </section>
    );
  return (
    <>
      <p class="sentence">
        {estimator} predicted {count(chosen.length, "run")} of {count(jobs.length, "job")} from the runs before with a mean
        error of {percent(errorOf(chosen))}
        {jobs[0] && jobs.length > 1 && (
          <>
            ; it is worst on <strong>{jobs[0][0]}</strong>, by {percent(errorOf(jobs[0][1]))}
          </>
        )}
        .
      </p>
      <label class="narrow">
        Estimator
        <select value={estimator} onChange={(event) => setEstimator(event.currentTarget.value)}>
          {[...byEstimator.keys()].map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <Lines title={`Mean error of the last ${WINDOW} runs`} series={lines((each) => Math.abs(each.error))} {...axis} />
      <Lines title="Bias of these: above 0 = too fast" series={lines((each) => each.error)} reference={0} {...axis} />
      <Lines
        title="Share of these within their 90 % interval"
        series={lines(({ covered }) => (covered === undefined ? undefined : Number(covered)))}
        reference={0.9}
        {...axis}
      />
      <SortableTable
        caption={`Jobs by the error of ${estimator}, the worst first`}
        parameter="worst"
        rows={jobs}
        keyOf={([job]) => job}
        columns={[
          { name: "job", title: "Job", value: ([job]) => job, show: ([job]) => <a href={link(["jobs", job])}>{job}</a> },
          { name: "runs", title: "Predicted runs", value: ([, all]) => all.length, numeric: true },
          {
            name: "error",
            title: "Mean error",
            value: ([, all]) => errorOf(all),
            show: ([, all]) => percent(errorOf(all)),
            numeric: true,
          },
          {
            name: "bias",
            title: "Bias",
            value: ([, all]) => mean(all.map(({ error }) => error)),
            show: ([, all]) => percent(mean(all.map(({ error }) => error))),
            numeric: true,
          },
          {
            name: "coverage",
            title: "In the 90 % interval",
            value: ([, all]) => coverageOf(all),
            show: ([, all]) => percent(coverageOf(all)),
            numeric: true,
          },
        ]}
      />
      {leftOut > 0 && <p class="quiet">{count(leftOut, "job")} with fewer than two measured runs cannot be scored.</p>}
      {more && <p class="quiet">There are more jobs; name the beginning of others to score them.</p>}
      <Failed reasons={failed} />
    </>
  );
}

function Failed({ reasons }: { reasons: readonly string[] }) {
  return (
    <ul>
      {reasons.map((each) => (
        <li key={each} class="warn">
          {each}
        </li>
      ))}
    </ul>
  );
}

const mean = (values: readonly number[]) => values.reduce((a, b) => a + b, 0) / Math.max(1, values.length);
const errorOf = (all: readonly Scored[]) => mean(all.map(({ error }) => Math.abs(error)));

function coverageOf(all: readonly Scored[]): number | undefined {
  const known = all.flatMap(({ covered }) => (covered === undefined ? [] : [Number(covered)]));
  return known.length ? mean(known) : undefined;
}

function groupsOf<T>(all: readonly T[], keyOf: (each: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const each of all) {
    const group = groups.get(keyOf(each));
    if (group) group.push(each);
    else groups.set(keyOf(each), [each]);
  }
  return groups;
}
