import { NodewiseError } from "@nodewise/client";
import { PluginKind, PluginMode } from "@nodewise/client/v1";
import { ALERTS } from "../alerts.js";
import { AnswerView, Failure, useAnswer } from "../answer.js";
import { Lines } from "../charts/lines.js";
import { ago, bytes, count, number, percent, seconds, words } from "../format.js";
import { type Metrics, useMetrics } from "../metrics.js";
import { server } from "../server.js";
import { SortableTable } from "../table.js";

interface Check {
  name: string;
  state: string;
  good: boolean;
}

async function readiness(signal: AbortSignal): Promise<Check[]> {
  const response = await fetch("readyz?verbose", { signal });
  const { checks = {} } = (await response.json()) as { checks?: Record<string, string> };
  return Object.entries(checks).map(([name, state]) => ({ name, state, good: state === "ok" }));
}

/** Whether the service is well: health, generations, plugins, load. */
export function Service() {
  const ready = useAnswer("ready", readiness);
  const plugins = useAnswer("plugins", (signal) => server().listPlugins({}, { signal }).page());
  const generations = useAnswer("generations", async (signal) => {
    try {
      return await server().listGenerations({}, { signal }).all();
    } catch (error) {
      // Administration is off by default; the page is useful without it.
      if (error instanceof NodewiseError && ["PERMISSION_DENIED", "UNIMPLEMENTED"].includes(error.code)) return undefined;
      throw error;
    }
  });
  const { metrics, error, again } = useMetrics();
  return (
    <>
      <h1>Service</h1>
      <AnswerView answer={ready}>
        {(checks) => (
          <ul class="checks">
            {checks.map(({ name, state, good }) => (
              <li key={name} class={good ? "good" : "bad"}>
                {words(name)}: {state}
              </li>
            ))}
          </ul>
        )}
      </AnswerView>
      {metrics ? (
        <>
          <Alerts metrics={metrics} />
          <Load metrics={metrics} />
        </>
      ) : error ? (
        <Failure error={error} again={again} />
      ) : (
        <p class="loading">Loading …</p>
      )}
      <h2>Generations</h2>
      <AnswerView answer={generations}>
        {(all) =>
          all === undefined ? (
            <p class="quiet">Administration is off, or this caller may not use it (setting admin).</p>
          ) : all.length === 0 ? (
            <p class="quiet">Only the plugins that were installed with the server serve.</p>
          ) : (
            <SortableTable
              caption="Generations of plugins, the newest first"
              rows={all}
              keyOf={({ number: each }) => each}
              columns={[
                { name: "generation", title: "Generation", value: ({ number: each }) => each, numeric: true },
                { name: "created", title: "Created", value: ({ createTime }) => ago(createTime) },
                { name: "why", title: "Why", value: ({ why }) => why },
                {
                  name: "trial",
                  title: "Trial",
                  value: ({ trial }) => (trial ? trial.failures.join("; ") || "passed" : "not tried"),
                },
              ]}
            />
          )
        }
      </AnswerView>
      <h2>Plugins</h2>
      <AnswerView answer={plugins}>
        {(page) => (
          <>
            {page.problems.map((each) => (
              <p class="bad" key={each.name}>
                {each.name} of {each.distribution} could not be loaded: {each.problem?.message}
              </p>
            ))}
            <SortableTable
              caption="Plugins"
              most={12}
              parameter="plugins"
              rows={page.plugins}
              keyOf={({ kind, name, version }) => `${kind} ${name} ${version}`}
              columns={[
                { name: "kind", title: "Kind", value: ({ kind }) => words((PluginKind[kind] ?? "").toLowerCase()) },
                { name: "name", title: "Name", value: ({ name }) => name },
                { name: "version", title: "Version", value: ({ version }) => version },
                { name: "distribution", title: "Distribution", value: ({ distribution }) => distribution },
                { name: "mode", title: "Runs", value: ({ mode }) => words((PluginMode[mode] ?? "").toLowerCase()) },
                { name: "description", title: "Description", value: ({ description }) => description },
              ]}
            />
          </>
        )}
      </AnswerView>
    </>
  );
}

const SEVERITIES = { critical: "bad", warning: "warn", info: "" } as const;

/** The alerts of deploy/prometheus, judged by what this page has seen. */
function Alerts({ metrics }: { metrics: Metrics }) {
  const judged = ALERTS.map((alert) => ({ ...alert, ...alert.judge(metrics) }));
  const holding = judged.filter(({ state }) => state === "holds");
  const order = ["holds", "not judged", "does not hold"];
  return (
    <>
      <h2>Alerts</h2>
      <p class="sentence">
        {holding.length ? (
          <>
            {count(holding.length, "condition")} of {ALERTS.length} {holding.length === 1 ? "holds" : "hold"}:{" "}
            {holding.map(({ name, severity }) => (
              <strong key={name} class={SEVERITIES[severity]}>
                {name}{" "}
              </strong>
            ))}
          </>
        ) : (
          `None of the ${ALERTS.length} conditions is known to hold.`
        )}
      </p>
      <p class="quiet">
        The rules of <code>deploy/prometheus/alerts.yaml</code>, judged by /metrics in the{" "}
        {seconds(Math.max(1, Math.round(metrics.seconds)))} since this page was opened. Prometheus judges them over their own
        times, and notifies.
      </p>
      <SortableTable
        caption="Conditions of alerts; docs/guides/runbook.md says what to do about each"
        parameter="alerts"
        rows={[...judged].sort((a, b) => order.indexOf(a.state) - order.indexOf(b.state))}
        keyOf={({ name }) => name}
        columns={[
          { name: "alert", title: "Alert", value: ({ name }) => name },
          { name: "severity", title: "Severity", value: ({ severity }) => severity },
          { name: "condition", title: "Condition", value: ({ condition }) => condition },
          {
            name: "state",
            title: "Now",
            value: ({ state }) => state,
            show: ({ state, text, severity }) => (
              <span class={state === "holds" ? SEVERITIES[severity] || "warn" : state === "not judged" ? "quiet" : "good"}>
                {state}
                {text && `: ${text}`}
              </span>
            ),
          },
        ]}
      />
    </>
  );
}

const CALLS = "nodewise_rpc_duration_seconds";

/** What the server is doing: calls, queues, the store, caches. */
function Load({ metrics }: { metrics: Metrics }) {
  const methods = metrics.labels(`${CALLS}_count`, "method");
  const queues = metrics.labels("nodewise_queue_permits", "queue");
  const cpu = metrics.rates("nodewise_worker_cpu_seconds");
  const rate = (value: number) => (metrics.seconds > 0 ? value / metrics.seconds : undefined);
  return (
    <>
      <h2>Load</h2>
      <p>
        {count(metrics.sum("nodewise_workers"), "worker")} with {bytes(metrics.sum("nodewise_worker_resident_memory_bytes"))}{" "}
        of memory; caches hold {bytes(metrics.sum("nodewise_cache_bytes"))} of{" "}
        {bytes(metrics.sum("nodewise_cache_capacity_bytes"))}; the store holds{" "}
        {count(metrics.sum("nodewise_store_profiles"), "profile")}, {bytes(metrics.sum("nodewise_store_bytes"))}.
      </p>
      {cpu.length > 1 && (
        <Lines
          title="CPU time and calls for each second, since this page was opened"
          series={[
            { name: "CPU", points: cpu },
            { name: "calls", points: metrics.rates(`${CALLS}_count`) },
          ]}
          xLabel=""
          format={number}
          formatX={seconds}
        />
      )}
      <SortableTable
        caption="Queues"
        parameter="queues"
        rows={queues}
        keyOf={(queue) => queue}
        columns={[
          { name: "queue", title: "Queue", value: words },
          ...(
            [
              ["work", "At work", "nodewise_queue_permits_in_use"],
              ["permits", "At most", "nodewise_queue_permits"],
              ["waiting", "Waiting", "nodewise_queue_waiting_calls"],
              ["refused", "Refused", "nodewise_queue_refused_calls_total"],
            ] as const
          ).map(([name, title, metric]) => ({
            name,
            title,
            value: (queue: string) => metrics.sum(metric, (labels) => labels.queue === queue),
            numeric: true,
          })),
        ]}
      />
      <SortableTable
        caption="Calls since the server's start; rates and percentiles since this page was opened"
        parameter="calls"
        most={12}
        rows={methods}
        keyOf={(method) => method}
        columns={[
          { name: "method", title: "Method", value: (method) => method.split("/").at(-1) },
          {
            name: "calls",
            title: "Calls",
            value: (method) => metrics.sum(`${CALLS}_count`, (labels) => labels.method === method),
            numeric: true,
          },
          {
            name: "rate",
            title: "Calls/s",
            value: (method) => rate(metrics.increase(`${CALLS}_count`, (labels) => labels.method === method)),
            numeric: true,
          },
          {
            name: "mean",
            title: "Mean time",
            value: (method) => meanTime(metrics, method),
            show: (method) => seconds(meanTime(metrics, method)),
            numeric: true,
          },
          {
            name: "p99",
            title: "99th percentile",
            value: (method) => metrics.quantile(0.99, CALLS, (labels) => labels.method === method),
            show: (method) => seconds(metrics.quantile(0.99, CALLS, (labels) => labels.method === method)),
            numeric: true,
          },
          {
            name: "failed",
            title: "Not OK",
            value: (method) => shareNotOk(metrics, method),
            show: (method) => percent(shareNotOk(metrics, method)),
            numeric: true,
          },
        ]}
      />
    </>
  );
}

function meanTime(metrics: Metrics, method: string): number {
  const isSame = (labels: Readonly<Record<string, string>>) => labels.method === method;
  return metrics.sum(`${CALLS}_sum`, isSame) / metrics.sum(`${CALLS}_count`, isSame);
}

function shareNotOk(metrics: Metrics, method: string): number {
  const calls = (isCounted: (code: string) => boolean) =>
    metrics.sum(`${CALLS}_count`, (labels) => labels.method === method && isCounted(labels.code ?? ""));
  return calls((code) => code !== "OK") / calls(() => true);
}
