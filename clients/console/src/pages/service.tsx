import { NodewiseError } from "@nodewise/client";
import { PluginKind, PluginMode } from "@nodewise/client/v1";
import { AnswerView, useAnswer } from "../answer.js";
import { ago, number, words } from "../format.js";
import { server, token } from "../server.js";
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

/** One sample of Prometheus' text format. */
interface Sample {
  name: string;
  labels: string;
  value: number;
}

async function samples(signal: AbortSignal): Promise<Sample[]> {
  const headers: Record<string, string> = token.get() ? { Authorization: `Bearer ${token.get()}` } : {};
  const response = await fetch("metrics", { signal, headers });
  if (!response.ok) throw new NodewiseError("FAILED_PRECONDITION", "The server does not serve /metrics to this caller.");
  return (await response.text()).split("\n").flatMap((each) => {
    const match = /^(nodewise_\w+)(?:\{(.*?)\})? ([^ #]+)/.exec(each);
    return match ? [{ name: match[1] ?? "", labels: match[2] ?? "", value: Number(match[3]) }] : [];
  });
}

const SHOWN = ["nodewise_queue_", "nodewise_store_", "nodewise_cache_bytes", "nodewise_workers"];

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
  const load = useAnswer("load", samples);
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
      <h2>Load</h2>
      <AnswerView answer={load}>
        {(all) => (
          <SortableTable
            caption="Metrics of this server; Grafana's dashboards in deploy/ have them over time"
            parameter="load"
            rows={all.filter(({ name }) => SHOWN.some((prefix) => name.startsWith(prefix)))}
            keyOf={({ name, labels }) => name + labels}
            columns={[
              { name: "metric", title: "Metric", value: ({ name }) => name },
              { name: "labels", title: "Labels", value: ({ labels }) => labels },
              {
                name: "value",
                title: "Value",
                value: ({ value }) => value,
                show: ({ value }) => number(value),
                numeric: true,
              },
            ]}
          />
        )}
      </AnswerView>
    </>
  );
}
