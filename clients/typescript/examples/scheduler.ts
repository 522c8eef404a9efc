// A small cluster scheduler on Nodewise: clients/examples.md says what it does, step by step, in every language.
//
//   node build/examples/scheduler.js [TARGET [DEVICES [ROUNDS]]]
import { once } from "node:events";
import {
  type Client,
  type ConfigurationRow,
  createClient,
  jobs as jobsOf,
  NodewiseError,
  nodePool,
  phaseTimings,
  profileSource,
  workerRange,
} from "@nodewise/client";
import { type JobAllocation, type NodeDevices, ScheduleAction, SyncMode } from "@nodewise/client/v1";

const PREFIX = "examples/scheduler-typescript/";
const DEVICES_PER_NODE = 4;
const BATCH_SAMPLES = 32;
const ROUND_SECONDS = 600;
const PATIENCE_MS = 30_000;
const BEGIN_SECONDS = Date.UTC(2026, 0, 1) / 1000;

/** What a job holds. */
interface Held {
  pool: string;
  placement: NodeDevices[];
  ageSeconds: number;
}

/** A job of the cluster. */
class Job {
  holds: Held | undefined;
  /** The allocation that it runs on. */
  runs: JobAllocation | undefined;

  constructor(
    readonly name: string,
    readonly parameterBytes: number,
    readonly computeSeconds: number,
    readonly transferSeconds: number,
    public samplesLeft: number,
  ) {}

  get profileId(): string {
    return PREFIX + this.name;
  }
}

/** The newest revision of each profile, as the watch tells it. */
class Profiles extends EventTarget {
  readonly revisions = new Map<string, bigint>();
  #caughtUp = false;
  readonly #ending = new AbortController();

  /** Hears of profiles until it is ended. */
  async watch(client: Client): Promise<void> {
    try {
      for await (const event of client.watchProfiles({ namePrefix: PREFIX }, { signal: this.#ending.signal })) {
        for (const profile of event.profiles) this.revisions.set(profile.profileId, profile.revision);
        this.#caughtUp ||= event.caughtUp;
        this.dispatchEvent(new Event("news"));
      }
    } catch (error) {
      if (!this.#ending.signal.aborted) throw error;
    }
  }

  end(): void {
    this.#ending.abort();
  }

  /** Waits until there is nothing more to hear of what was there at the start. */
  allTold(): Promise<void> {
    return this.#until(() => this.#caughtUp);
  }

  /** Waits until the watch has told of a revision. */
  reached(profileId: string, revision: bigint): Promise<void> {
    return this.#until(() => (this.revisions.get(profileId) ?? 0n) >= revision);
  }

  async #until(done: () => boolean): Promise<void> {
    const signal = AbortSignal.timeout(PATIENCE_MS);
    while (!done()) await once(this, "news", { signal });
  }
}

/** Predicts, schedules, applies and reports, round by round. */
class Scheduler {
  readonly #profiles = new Profiles();
  #policyState: Uint8Array = new Uint8Array();
  #decisions = 0;
  #observations = 0;
  readonly #jobs = [
    new Job("small", 25_000_000, 0.06, 0.02, 2e6),
    new Job("medium", 102_000_000, 0.21, 0.082, 4e6),
    new Job("large", 550_000_000, 0.48, 0.44, 3e6),
  ];

  constructor(
    readonly client: Client,
    readonly devices: number,
  ) {}

  /** Runs so many rounds, or until all jobs are finished. */
  async run(rounds: number): Promise<void> {
    for (const job of this.#jobs) await this.#append(job);
    const watching = this.#profiles.watch(this.client);
    try {
      await Promise.race([this.#profiles.allTold(), watching]);
      console.log(`watching ${this.#profiles.revisions.size} profiles`);
      let done = 0;
      for (; done < rounds; done++) {
        const jobs = this.#jobs.filter((job) => job.samplesLeft > 0);
        if (!jobs.length) break;
        console.log(`round ${done + 1}`);
        await this.#round(jobs, BEGIN_SECONDS + done * ROUND_SECONDS);
      }
      console.log(`done: ${done} rounds, ${this.#decisions} decisions, ${this.#observations} observations`);
    } finally {
      this.#profiles.end();
      await watching;
    }
  }

  /** What a short run on one node has shown of a job. The same `requestId` again changes nothing. */
  async #append(job: Job): Promise<void> {
    await this.client.appendProfile({
      profileId: job.profileId,
      requestId: "seed",
      content: {
        workload: { modelName: job.name, parameterBytes: job.parameterBytes },
        network: { linkBytesPerSecond: 1.25e9 },
        phaseTimings: phaseTimings([
          {
            configuration: ranOn(1, 1),
            downloadSeconds: job.transferSeconds,
            computeSeconds: job.computeSeconds,
            uploadSeconds: job.transferSeconds,
            updateSeconds: 0.004,
            computeVariation: 0.06,
          },
        ]),
      },
    });
  }

  async #round(jobs: Job[], nowSeconds: number): Promise<void> {
    await this.#predict(jobs);
    await this.#schedule(jobs, nowSeconds);
    for (const job of jobs) {
      if (!job.holds || !job.runs) continue;
      job.holds.ageSeconds += ROUND_SECONDS;
      job.samplesLeft = Math.max(0, job.samplesLeft - ROUND_SECONDS * job.runs.samplesPerSecond);
      const revision = await this.#report(job, job.runs, nowSeconds + ROUND_SECONDS);
      await this.#profiles.reached(job.profileId, revision);
      if (job.samplesLeft === 0) {
        job.holds = undefined;
        console.log(`  ${job.name}: finished`);
      }
    }
  }

  /** Asks about all jobs in one call, on every number of workers. */
  async #predict(jobs: Job[]): Promise<void> {
    const answer = await this.client.batchPredict({
      jobs: jobs.map((job) => ({ profile: this.#source(job) })),
      ranges: [workerRange(1, this.devices, { workersPerNode: DEVICES_PER_NODE })],
    });
    for (const { job, rows, recommendation, error } of jobsOf(answer)) {
      const name = jobs[job]?.name;
      const best = recommendation && rows.at(recommendation.row);
      if (best) console.log(`  ${name}: best ${best.workers} workers, ${whole(best.samplesPerSecond ?? 0)} samples/s`);
      else console.log(`  ${name}: no prediction, ${error?.reason ?? "NO_RECOMMENDATION"}`);
    }
  }

  /** Shares the cluster, and applies what was decided. */
  async #schedule(jobs: Job[], nowSeconds: number): Promise<void> {
    const nodes = this.devices / DEVICES_PER_NODE;
    const reply = await this.client.schedule({
      now: { seconds: BigInt(nowSeconds) },
      cluster: { pools: [nodePool("v100", "V100", { nodes, devicesPerNode: DEVICES_PER_NODE })] },
      policyState: this.#policyState,
      jobs: jobs.map((job) => ({
        jobId: job.name,
        profile: this.#source(job),
        remainingSamples: job.samplesLeft,
        submitTime: { seconds: BigInt(BEGIN_SECONDS) },
        ...(job.holds ? { currentAllocation: job.holds } : {}),
      })),
    });
    this.#policyState = reply.policyState;
    for (const [place, given] of reply.allocations.entries()) {
      this.#decisions++;
      this.#apply(jobs[place] as Job, given);
    }
  }

  /** Lets a job hold what it was given. */
  #apply(job: Job, given: JobAllocation): void {
    const { action, pool, placement } = given;
    if (action === ScheduleAction.START || action === ScheduleAction.CHANGE) job.holds = { pool, placement, ageSeconds: 0 };
    if (action === ScheduleAction.WAIT) job.holds = undefined;
    else if (action !== ScheduleAction.NO_ANSWER) job.runs = given;
    const name = ScheduleAction[action];
    if (!job.holds || !job.runs) {
      console.log(`  ${job.name}: ${name}`);
      return;
    }
    const rate = whole(job.runs.samplesPerSecond);
    const left = whole(job.samplesLeft);
    console.log(`  ${job.name}: ${name} ${job.runs.devicesCount} devices, ${rate} samples/s, ${left} samples left`);
  }

  /** Tells what the job was measured to do, a little less than predicted; returns the profile's revision. */
  async #report(job: Job, runs: JobAllocation, endSeconds: number): Promise<bigint> {
    const measured = 0.95 * runs.samplesPerSecond;
    await using writer = await this.client.ingest(job.profileId);
    await writer.observe({
      configuration: ranOn(runs.nodesCount, runs.devicesCount),
      stepsPerSecond: measured / BATCH_SAMPLES,
      measuredAtUnixSeconds: endSeconds,
    });
    const { revision } = await writer.commit();
    this.#observations++;
    console.log(`  ${job.name}: reported ${whole(measured)} samples/s, revision ${revision}`);
    return revision;
  }

  /** Its profile, at least as new as the watch has told. */
  #source(job: Job) {
    const minimumRevision = this.#profiles.revisions.get(job.profileId);
    return profileSource(job.profileId, minimumRevision === undefined ? {} : { minimumRevision });
  }
}

/** Asynchronous training on V100. */
function ranOn(nodes: number, workers: number): ConfigurationRow {
  return { deviceName: "V100", nodes, workers, syncMode: SyncMode.ASYNC, batchPerWorkerSamples: BATCH_SAMPLES };
}

/** The nearest whole number, halves upwards. */
function whole(value: number): number {
  return Math.floor(value + 0.5);
}

const [target = process.env.NODEWISE_SERVER ?? "", devices = "8", rounds = "4"] = process.argv.slice(2);
if (!(Number(devices) >= DEVICES_PER_NODE) || Number(devices) % DEVICES_PER_NODE)
  throw new TypeError(`DEVICES is ${devices}; nodes have ${DEVICES_PER_NODE} each: give a multiple of that`);
using client = createClient(target);
try {
  await new Scheduler(client, Number(devices)).run(Number(rounds));
} catch (error) {
  if (!(error instanceof NodewiseError)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
