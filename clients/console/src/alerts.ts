import { percent, seconds } from "./format.js";
import type { Metrics } from "./metrics.js";

/** What an alert says now. */
export interface Verdict {
  state: "holds" | "does not hold" | "not judged";
  /** What holds, or why it is not judged. */
  text: string;
}

/** A rule of deploy/prometheus/alerts.yaml, as far as one page can judge it. */
export interface Alert {
  name: string;
  severity: "critical" | "warning" | "info";
  /** The condition, with the threshold of the rule. */
  condition: string;
  judge: (metrics: Metrics) => Verdict;
}

const notJudged = (text: string) => (): Verdict => ({ state: "not judged", text });

/** A condition that holds if there is anything to name. */
const holds = (texts: readonly (string | false)[]): Verdict => {
  const all = texts.filter((each) => each !== false);
  return { state: all.length ? "holds" : "does not hold", text: all.join("; ") };
};

const FAILURES = ["INTERNAL", "UNAVAILABLE", "UNKNOWN", "DATA_LOSS"];
const CALLS = "nodewise_rpc_duration_seconds";

/** The alerts by severity. Rates are those since the page was opened; a rule's own waiting time is not applied. */
export const ALERTS: readonly Alert[] = [
  {
    name: "NodewiseServerDown",
    severity: "critical",
    condition: "the server does not answer",
    judge: ({ error }) => holds([error ? error.message : false]),
  },
  {
    name: "NodewiseWorkersRestarting",
    severity: "critical",
    condition: "worker processes within 15 minutes > 1 + 2 × workers",
    judge: notJudged("needs 15 minutes of history"),
  },
  {
    name: "NodewiseStoreDown",
    severity: "critical",
    condition: "a worker does not reach the store",
    judge: (metrics) =>
      holds(metrics.samples("nodewise_store_up").map(({ value }) => value === 0 && "the store does not answer")),
  },
  {
    name: "NodewiseErrors",
    severity: "critical",
    condition: "share of calls that fail by the server > 0.01",
    judge: (metrics) => {
      const calls = metrics.increase(`${CALLS}_count`);
      return holds(
        FAILURES.map((code) => {
          const share = metrics.increase(`${CALLS}_count`, (labels) => labels.code === code) / calls;
          return share > 0.01 && `${percent(share)} with ${code}`;
        }),
      );
    },
  },
  {
    name: "NodewiseWorkerMissing",
    severity: "warning",
    condition: "workers < most workers before",
    judge: (metrics) => {
      const counts = metrics.scrapes.map(({ samples }) =>
        samples.reduce((sum, { name, value }) => (name === "nodewise_workers" ? sum + value : sum), 0),
      );
      const now = counts.at(-1) ?? 0;
      return holds([now < Math.max(...counts) && `${now} serve, of ${Math.max(...counts)}`]);
    },
  },
  {
    name: "NodewiseStoreSlow",
    severity: "warning",
    condition: "mean time of a write > 0.25 s",
    judge: (metrics) => {
      const mean = metrics.increase("nodewise_store_write_seconds_total") / metrics.increase("nodewise_store_writes_total");
      return holds([mean > 0.25 && `a write takes ${seconds(mean)}`]);
    },
  },
  {
    name: "NodewiseSlowPredictions",
    severity: "warning",
    condition: "99th percentile of Predict > 1 s",
    judge: (metrics) => {
      const time = metrics.quantile(0.99, CALLS, ({ method }) => method?.endsWith("/Predict") ?? false);
      return holds([time !== undefined && time > 1 && `1 % take longer than ${seconds(time)}`]);
    },
  },
  {
    name: "NodewiseOverloaded",
    severity: "warning",
    condition: "calls that a queue refuses > 0",
    judge: (metrics) =>
      holds(
        metrics.labels("nodewise_queue_refused_calls_total", "queue").map((queue) => {
          const refused = metrics.increase("nodewise_queue_refused_calls_total", (labels) => labels.queue === queue);
          return refused > 0 && `${queue} refused ${refused}`;
        }),
      ),
  },
  {
    name: "NodewiseQueueLong",
    severity: "warning",
    condition: "calls that wait > permits of the queue",
    judge: (metrics) =>
      holds(
        metrics.samples("nodewise_queue_waiting_calls").map(({ value, labels: { queue } }) => {
          const permits = metrics.sum("nodewise_queue_permits", (labels) => labels.queue === queue);
          return value > permits && `${value} wait in ${queue}`;
        }),
      ),
  },
  {
    name: "NodewisePluginBreakerOpen",
    severity: "warning",
    condition: "plugins that are not called as they failed > 0",
    judge: (metrics) =>
      holds(
        metrics
          .samples("nodewise_plugin_breakers_open")
          .map(({ value, labels }) => value > 0 && `${labels.distribution} is not called`),
      ),
  },
  {
    name: "NodewisePluginHostDead",
    severity: "warning",
    condition: "plugin processes alive < plugin hosts",
    judge: (metrics) =>
      holds(
        metrics.samples("nodewise_plugin_hosts").map(({ value, labels: { distribution } }) => {
          const alive = metrics.sum("nodewise_plugin_hosts_alive", (labels) => labels.distribution === distribution);
          return alive < value && `${distribution} has no process`;
        }),
      ),
  },
  {
    name: "NodewisePluginFailing",
    severity: "warning",
    condition: "share of a plugin's calls that fail > 0.1",
    judge: (metrics) =>
      holds(
        metrics.labels("nodewise_plugin_calls_total", "distribution").map((distribution) => {
          const calls = (outcome?: string) =>
            metrics.increase(
              "nodewise_plugin_calls_total",
              (labels) => labels.distribution === distribution && (!outcome || labels.outcome === outcome),
            );
          const share = calls("failed") / calls();
          return share > 0.1 && `${percent(share)} of the calls of ${distribution} fail`;
        }),
      ),
  },
  {
    name: "NodewiseEstimatorDrift",
    severity: "warning",
    condition: "error of a day > 2 × error of two weeks, of more than 50 runs",
    judge: notJudged("needs two weeks of history"),
  },
  {
    name: "NodewiseCoverageLow",
    severity: "warning",
    condition: "share of runs in their 90 % interval < 0.75, of more than 50 runs",
    judge: (metrics) =>
      holds(
        metrics.samples("nodewise_estimator_intervals_total").map(({ value, labels: { estimator, namespace } }) => {
          const isSame = (labels: Readonly<Record<string, string>>) =>
            labels.estimator === estimator && labels.namespace === namespace;
          const share = metrics.sum("nodewise_estimator_covered_total", isSame) / value;
          return value > 50 && share < 0.75 && `${percent(share)} for ${estimator}, since the server's start`;
        }),
      ),
  },
  {
    name: "NodewiseMemoryNearLimit",
    severity: "warning",
    condition: "share of the memory limit of a pod > 0.9",
    judge: notJudged("needs metrics of Kubernetes"),
  },
  {
    name: "NodewiseCacheFull",
    severity: "info",
    condition: "share of the caches' capacity > 0.95",
    judge: (metrics) => {
      const share = metrics.sum("nodewise_cache_bytes") / metrics.sum("nodewise_cache_capacity_bytes");
      return holds([share > 0.95 && `caches are full to ${percent(share)}`]);
    },
  },
];
