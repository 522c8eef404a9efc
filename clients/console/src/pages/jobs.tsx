import { type NodewiseError, nodeRange, jobs as outcomesOf, profileSource } from "@nodewise/client";
import { PredictionColumn, type Profile, type Recommendation } from "@nodewise/client/v1";
import { AnswerView, Failure, useAnswer, useDelayed } from "../answer.js";
import { ago, count, number, percent } from "../format.js";
import { link, useParameter } from "../router.js";
import { type Comparable, comparable, latestRun, type Run, UNMEASURED_NODES } from "../runs.js";
import { profilesOf, server } from "../server.js";
import { SortableTable } from "../table.js";

const PAGE = 50;
const ALARM = "nodewise.alarm";

interface Job {
  profile: Profile;
  now: Run | undefined;
  recommendation: Recommendation | undefined;
  curve: Comparable;
  /** How much faster the job would be with more devices, relative. */
  gain: number | undefined;
  error: NodewiseError | undefined;
}

const COLUMNS = { columns: [PredictionColumn.INTERVAL] };

interface JobPage {
  profiles: readonly Profile[];
  /** The latest run of each profile. */
  runs: readonly (Run | undefined)[];
  nextPageToken: string;
}

async function listJobs(prefix: string, labels: string, pageToken: string, signal: AbortSignal): Promise<JobPage> {
  const page = await server()
    .listProfiles(
      { namePrefix: prefix, labels: labels.split(/[\s,]+/).filter(Boolean), pageSize: PAGE, pageToken },
      { signal },
    )
    .page();
  const names = page.profiles.map(({ profileId }) => profileId);
  const contents = await profilesOf(names, { signal });
  return {
    profiles: page.profiles,
    runs: contents.map((each) => latestRun(each?.content)),
    nextPageToken: page.nextPageToken,
  };
}

/** The jobs of a list with their predictions. Models that were never fitted take their time, so the list comes first. */
async function predictJobs({ profiles, runs }: JobPage, devices: number, signal: AbortSignal): Promise<Job[]> {
  if (!profiles.length) return [];
  const options = { signal, timeoutMs: 120_000 };
  const batch = await server().batchPredict({ jobs: profiles.map(question), options: COLUMNS }, options);
  const gains = await gainsOf(
    profiles.map(({ profileId }) => profileId),
    runs,
    devices,
    options,
  );
  return [...outcomesOf(batch)].map(({ job, recommendation, rows, error }) => ({
    profile: profiles[job] as Profile,
    now: runs[job],
    recommendation,
    curve: comparable(rows),
    gain: gains.get(job),
    error,
  }));
}

function isAbout(jobs: readonly Job[], { profiles }: JobPage): boolean {
  return jobs.length === profiles.length && jobs.every(({ profile }, index) => profile.uid === profiles[index]?.uid);
}

function jobsWithoutPredictions({ profiles, runs }: JobPage): Job[] {
  const nothing = { recommendation: undefined, curve: comparable([]), gain: undefined, error: undefined };
  return profiles.map((profile, job) => ({ profile, now: runs[job], ...nothing }));
}

/** A job without a measured run has no range of its own. */
function question({ profileId, observationsCount }: Profile) {
  return { profile: profileSource(profileId), ...(observationsCount ? {} : { ranges: [nodeRange(1, UNMEASURED_NODES)] }) };
}

/** How much faster each job would be than it is on its present nodes, if it had more devices. */
async function gainsOf(
  names: readonly string[],
  runs: readonly (Run | undefined)[],
  devices: number,
  options: { signal: AbortSignal; timeoutMs: number },
): Promise<Map<number, number>> {
  const known = runs.flatMap((run, job) => (run && devices ? [{ job, run }] : []));
  if (!known.length) return new Map();
  const jobs = known.map(({ job, run }) => {
    const workersPerNode = Math.max(1, Math.round((run.workers ?? run.nodes) / run.nodes));
    const step = Math.max(1, Math.round(devices / workersPerNode));
    return {
      profile: profileSource(names[job] as string),
      ranges: [nodeRange(run.nodes, run.nodes + step, { step, workersPerNode })],
    };
  });
  const batch = await server().batchPredict({ jobs, options: COLUMNS }, options);
  const gains = new Map<number, number>();
  for (const { job, rows } of outcomesOf(batch)) {
    const { rows: answered, value } = comparable(rows);
    const [present, more] = answered;
    if (present && more && answered.length === 2) gains.set(known[job]?.job ?? -1, value(more) / value(present) - 1);
  }
  return gains;
}

/** How the interval of the recommended row reaches around its value: a half of its width, relative. */
function uncertainty({ recommendation, curve }: Job): number | undefined {
  const row = curve.rows.find((each) => each.nodes === recommendation?.nodes && each.workers === recommendation?.workers);
  const upper = row && curve.upper(row);
  const lower = row && curve.lower(row);
  return row && upper !== undefined && lower !== undefined ? (upper - lower) / 2 / curve.value(row) : undefined;
}

function excess({ now, recommendation }: Job): number | undefined {
  return now && recommendation ? now.nodes - recommendation.nodes : undefined;
}

/** All jobs: what is recommended, how sure that is, and who would gain from more devices. */
export function Jobs() {
  const [prefix, setPrefix] = useParameter("prefix");
  const [labels, setLabels] = useParameter("labels");
  const [devices, setDevices] = useParameter("devices", "16");
  const [pageToken, setPageToken] = useParameter("page");
  const more = Math.max(0, Math.trunc(Number(devices)) || 0);
  const asked = useDelayed(JSON.stringify([prefix, labels, pageToken]));
  const list = useAnswer(asked, (signal) => listJobs(prefix, labels, pageToken, signal));
  const profiles = list.state === "ready" && !list.stale ? list.value : undefined;
  const answer = useAnswer(useDelayed(profiles && `${asked} ${more}`, 100), (signal) =>
    predictJobs(profiles ?? { profiles: [], runs: [], nextPageToken: "" }, more, signal),
  );
  return (
    <>
      <h1>Jobs</h1>
      <form class="controls" onSubmit={(event) => event.preventDefault()}>
        <label>
          Name begins with
          <input type="search" value={prefix} onInput={(event) => setPrefix(event.currentTarget.value)} />
        </label>
        <label>
          Labels
          <input
            type="search"
            placeholder="team=vision nodewise.alarm"
            value={labels}
            onInput={(event) => setLabels(event.currentTarget.value)}
          />
        </label>
        <label>
          What would more devices buy?
          <input
            type="number"
            min="0"
            max="100000"
            value={devices}
            onInput={(event) => setDevices(event.currentTarget.value)}
          />
        </label>
      </form>
      <AnswerView answer={list}>
        {(page) =>
          page.profiles.length === 0 ? (
            <section class="empty">
              <h2>{prefix || labels ? "No job matches" : "No job is stored yet"}</h2>
              <p>
                Store measured runs by <code>nodewise ingest runs.csv --server ADDRESS</code>, or by a client; an example
                file comes from <code>nodewise ingest --template</code>.
              </p>
            </section>
          ) : (
            <>
              {answer.state === "failed" && <Failure error={answer.error} again={answer.again} />}
              {answer.state === "loading" && (
                <p class="loading" role="status">
                  Predicting …
                </p>
              )}
              <SortableTable
                caption={count(page.profiles.length, "job")}
                rows={answer.state === "ready" && isAbout(answer.value, page) ? answer.value : jobsWithoutPredictions(page)}
                keyOf={(job) => job.profile.profileId}
                columns={[
                  {
                    name: "job",
                    title: "Job",
                    value: (job) => job.profile.profileId,
                    show: (job) => <a href={link(["jobs", job.profile.profileId])}>{job.profile.profileId}</a>,
                  },
                  { name: "now", title: "Nodes now", value: (job) => job.now?.nodes, numeric: true },
                  { name: "recommended", title: "Recommended", value: (job) => job.recommendation?.nodes, numeric: true },
                  {
                    name: "excess",
                    title: "Too many",
                    value: excess,
                    show: (job) => withSign(excess(job)),
                    numeric: true,
                  },
                  {
                    name: "gain",
                    title: `+${more} devices`,
                    value: (job) => job.gain,
                    show: (job) => percent(job.gain),
                    numeric: true,
                  },
                  {
                    name: "sure",
                    title: "± of 90 %",
                    value: uncertainty,
                    show: (job) => percent(uncertainty(job)),
                    numeric: true,
                  },
                  { name: "runs", title: "Runs", value: (job) => job.profile.observationsCount, numeric: true },
                  {
                    name: "changed",
                    title: "Last report",
                    value: (job) => -Number(job.profile.updateTime?.seconds ?? 0),
                    show: (job) => ago(job.profile.updateTime),
                  },
                  {
                    name: "state",
                    title: "State",
                    value: (job) => (job.profile.labels[ALARM] ? 0 : job.error ? 1 : 2),
                    show: (job) => <State job={job} />,
                  },
                ]}
              />
              {page.nextPageToken && (
                <button type="button" onClick={() => setPageToken(page.nextPageToken)}>
                  Next page
                </button>
              )}
            </>
          )
        }
      </AnswerView>
    </>
  );
}

function withSign(value: number | undefined): string {
  return value === undefined ? number(undefined) : value > 0 ? `+${number(value)}` : number(value);
}

function State({ job }: { job: Job }) {
  const alarm = job.profile.labels[ALARM];
  if (alarm)
    return (
      <a class="bad" href={link(["diagnosis"], { job: job.profile.profileId })} title={alarm}>
        slow
      </a>
    );
  if (job.error)
    return (
      <span class="warn" title={job.error.message}>
        {job.error.reason.toLowerCase().replaceAll("_", " ")}
      </span>
    );
  return job.recommendation ? <span class="good">predicted</span> : <span class="quiet">–</span>;
}
