import { fromJson, type JsonValue, toJson } from "@bufbuild/protobuf";
import { type PredictionRow, profileSource, rows } from "@nodewise/client";
import {
  type Configurations,
  ConfigurationsSchema,
  Recomputation,
  type Workload,
  WorkloadSchema,
} from "@nodewise/client/v1";
import { MemoryFit, type PlanProgress, type PlanResult } from "@nodewise/client/v1beta1";
import { useEffect, useState } from "preact/hooks";
import { AnswerView, Failure, useAnswer, useDelayed } from "../answer.js";
import { Areas } from "../charts/areas.js";
import { coloursOfParts, RowBars } from "../charts/bars.js";
import { Scatter } from "../charts/scatter.js";
import { convert } from "../convert.js";
import { bytes, count, number, percent, seconds, words } from "../format.js";
import { poolsOf } from "../pools.js";
import { useParameter } from "../router.js";
import { server } from "../server.js";
import { SortableTable } from "../table.js";

const EXAMPLE = JSON.stringify(
  {
    model_type: "llama",
    hidden_size: 5120,
    intermediate_size: 13824,
    num_hidden_layers: 40,
    num_attention_heads: 40,
    vocab_size: 32000,
    max_position_embeddings: 4096,
    torch_dtype: "bfloat16",
  },
  null,
  1,
);
const MODEL = "nodewise.model";

/** The model stays in this tab: it is too long for an address. */
function useModel(): [string, (text: string) => void] {
  const [text, setText] = useState(sessionStorage.getItem(MODEL) ?? EXAMPLE);
  useEffect(() => sessionStorage.setItem(MODEL, text), [text]);
  return [text, setText];
}

/** A model as the server's reader of `config.json` understands it. */
interface Model {
  workload: Workload;
  /** What it assumes. */
  notes: string[];
}

async function readModel(text: string, sequenceLength: number | undefined, signal: AbortSignal): Promise<Model> {
  let config: unknown;
  try {
    config = JSON.parse(text);
  } catch {
    throw new Error("The file is not valid JSON. Give the config.json of a model.");
  }
  const { workload, notes } = await convert<{ workload: JsonValue; notes: string[] }>(
    "model",
    { config, sequenceLength },
    signal,
  );
  return { workload: fromJson(WorkloadSchema, workload, { ignoreUnknownFields: true }), notes };
}

/** Best layouts of a model on devices: in words, as a frontier, and with what to paste. */
export function Plan() {
  const [text, setText] = useModel();
  const [devices, setDevices] = useParameter("devices", "h100=4x8");
  const [batch, setBatch] = useParameter("batch", "512");
  const [sequence, setSequence] = useParameter("sequence", "4096");
  const [precision, setPrecision] = useParameter("precision", "bf16");
  const [tokens, setTokens] = useParameter("tokens", "1e11");
  const [asked, setAsked] = useState<string>();
  const [progress, setProgress] = useState<PlanProgress>();
  const model = useAnswer(useDelayed(JSON.stringify([text, sequence])), (signal) =>
    readModel(text, Number(sequence) || undefined, signal),
  );
  const workload: Workload | undefined =
    model.state === "ready" && !model.stale ? { ...model.value.workload, precision } : undefined;
  let problem: Error | undefined;
  let request: Parameters<ReturnType<typeof server>["plan"]>[0] | undefined;
  try {
    const pools = poolsOf(devices).map(({ deviceName, nodes, devicesPerNode }) => ({
      deviceName,
      nodes: { ranges: [{ first: 1, last: nodes }] },
      workersPerNode: devicesPerNode,
    }));
    if (workload)
      request = {
        profile: profileSource({ workload }),
        constraints: { pools, globalBatchSamples: { values: [Number(batch)] } },
      };
  } catch (error) {
    problem = error as Error;
  }
  const key = JSON.stringify([text, devices, batch, sequence, precision]);
  const answer = useAnswer(asked, async (signal) => {
    if (!request || !workload) throw new Error("The model is not read yet.");
    const { result } = await server().plan(request, { signal, onProgress: setProgress, timeoutMs: 300_000 });
    // The page shows these with the result, whatever is typed meanwhile.
    return { result, workload, batch: Number(batch), sequence: Number(sequence) };
  });
  const drop = async (files: FileList | null | undefined) => files?.[0] && setText(await files[0].text());
  return (
    <>
      <h1>Plan</h1>
      <form
        class="controls"
        onSubmit={(event) => {
          event.preventDefault();
          setProgress(undefined);
          setAsked(key);
        }}
        onDragOver={(event) => event.preventDefault()}
        onDrop={(event) => {
          event.preventDefault();
          drop(event.dataTransfer?.files);
        }}
      >
        <label class="wide">
          Model: drop or paste a config.json
          <textarea rows={5} spellcheck={false} value={text} onInput={(event) => setText(event.currentTarget.value)} />
          <input
            type="file"
            accept=".json"
            aria-label="Read a config.json"
            onChange={(event) => drop(event.currentTarget.files)}
          />
        </label>
        <label>
          Devices
          <input value={devices} onInput={(event) => setDevices(event.currentTarget.value)} />
        </label>
        <label>
          Global batch, samples
          <input type="number" min="1" value={batch} onInput={(event) => setBatch(event.currentTarget.value)} />
        </label>
        <label>
          Sequence, tokens
          <input type="number" min="1" value={sequence} onInput={(event) => setSequence(event.currentTarget.value)} />
        </label>
        <label>
          Precision
          <select value={precision} onChange={(event) => setPrecision(event.currentTarget.value)}>
            {["bf16", "fp16", "fp8", "fp32"].map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
        <label>
          Tokens to train
          <input value={tokens} onInput={(event) => setTokens(event.currentTarget.value)} />
        </label>
        <button type="submit" disabled={request === undefined || asked === key}>
          Find the best layouts
        </button>
      </form>
      {problem && <Failure error={problem} />}
      {model.state === "failed" && <Failure error={model.error} again={model.again} />}
      {model.state === "ready" && model.value.notes.length > 0 && (
        <ul class="quiet">
          {model.value.notes.map((note) => (
            <li key={note}>{note}</li>
          ))}
        </ul>
      )}
      {asked !== undefined && !problem && (
        <AnswerView
          answer={answer}
          progress={
            progress &&
            `${number(Number(progress.evaluatedCount + progress.prunedCount))} of ${number(Number(progress.spaceCount))} ` +
              `layouts; the best so far takes ${seconds(progress.bestStepSeconds)} a step`
          }
        >
          {(plan) => <PlanView {...plan} tokens={Number(tokens)} />}
        </AnswerView>
      )}
    </>
  );
}

interface PlanViewProps {
  result: PlanResult;
  sequence: number;
  tokens: number;
  workload: Workload;
  batch: number;
}

// The terms that add up to the memory at its highest; others of the same form are bounds and parts of these.
const MEMORY_TERMS = [
  "weights",
  "gradients",
  "optimizer",
  "update",
  "activations",
  "logits",
  "gathered",
  "buffers",
  "cache",
].map((term) => `memory_${term}_bytes`);

function PlanView({ result, sequence, tokens, workload, batch }: PlanViewProps) {
  const all = [...rows(result)];
  const [chosen, setChosen] = useState(0);
  const row = all[chosen];
  const layout = result.configurations;
  if (!row || !layout)
    return (
      <section class="failure">
        <h2>Nothing fits</h2>
        <ul>
          {result.rejections.map((each) => (
            <li key={each.message}>{each.message}</li>
          ))}
        </ul>
      </section>
    );
  const points = all.map((each, index) => ({
    x: each.workers ?? 1,
    y: each.samplesPerSecond ?? 0,
    label: `${count(each.workers ?? 0, "device")}, ${layoutOf(layout, index)}: ${number((each.samplesPerSecond ?? 0) * sequence)} tokens/s, ${bytes(each.memoryBytes)}`,
  }));
  const tokensPerSecond = (row.samplesPerSecond ?? 0) * sequence;
  const terms = new Map(
    [...row.extra]
      .filter(([name]) => MEMORY_TERMS.includes(name))
      .map(([name, value]) => [name.replace(/^memory_|_bytes$/g, ""), value]),
  );
  const memory = [{ label: "memory", parts: terms }];
  return (
    <>
      <section class="sentence">
        <p>
          <strong>
            {count(row.workers ?? 0, "device")}, {layoutOf(layout, chosen)}
          </strong>
          : {number(tokensPerSecond)} tokens/s, {number(tokensPerSecond / (row.workers ?? 1))} on each device, a step takes{" "}
          {seconds(row.stepSeconds)}; {number(tokens)} tokens take {seconds(tokens / tokensPerSecond)}. Memory{" "}
          {bytes(row.memoryBytes)}. {chosen === 0 && result.recommendation?.why}
        </p>
        {!result.complete && <p class="warn">The time ended before the search did; this is the best so far.</p>}
      </section>
      <Scatter
        title="Frontier: devices and throughput; choose a layout"
        points={points}
        xLabel="devices"
        yLabel="samples/s"
        chosen={chosen}
        onChoose={setChosen}
      />
      {terms.size > 0 && <RowBars title="Memory of a device by term" bars={memory} format={bytes} />}
      <MemoryOverStep row={row} colours={coloursOfParts(memory)} />
      <RowBars title="What a step consists of" bars={[{ label: "step", parts: row.breakdownSeconds }]} format={seconds} />
      <Alternatives result={result} />
      <Launches layout={layout} index={chosen} workload={workload} />
      <Card layout={layout} row={row} index={chosen} workload={workload} sequence={sequence} tokens={tokens} batch={batch} />
    </>
  );
}

interface Moments {
  points: { time: number; phase: string; terms: Record<string, number> }[];
  peak: string;
  /** False = times are shares of the step. */
  timed: boolean;
}

/** How the memory of the fullest device grows and falls. */
function MemoryOverStep({ row, colours }: { row: PredictionRow; colours: ReadonlyMap<string, string> }) {
  const question = {
    extra: Object.fromEntries(row.extra),
    breakdownSeconds: Object.fromEntries(row.breakdownSeconds),
  };
  const answer = useAnswer(JSON.stringify(question), (signal) => convert<Moments>("memory", question, signal));
  return (
    <AnswerView answer={answer}>
      {({ points, peak, timed }) =>
        points.length > 0 ? (
          <Areas
            title="Memory of the fullest device over a step"
            points={points.map(({ time, phase, terms }) => ({
              at: time,
              label: phase,
              parts: new Map(Object.entries(terms)),
            }))}
            colours={colours}
            format={bytes}
            formatAt={timed ? seconds : percent}
            text={`${peak}.`}
          />
        ) : (
          <p class="quiet">The estimator does not predict memory over the step.</p>
        )
      }
    </AnswerView>
  );
}

type Column = readonly (number | boolean)[];
const at = (column: Column, index: number) => (column.length === 1 ? column[0] : column[index]);

/** A layout in the field's short words: TP 2 · PP 4 · DP 4. */
function layoutOf(layout: Configurations, index: number): string {
  const degrees: [string, Column][] = [
    ["TP", layout.tensorParallelDegrees],
    ["PP", layout.pipelineParallelDegrees],
    ["DP", layout.dataParallelDegrees],
    ["CP", layout.contextParallelDegrees],
    ["EP", layout.expertParallelDegrees],
    ["ZeRO", layout.zeroStages],
    ["micro-batch", layout.batchPerWorkerSamples],
  ];
  const recomputation = layout.recomputations[layout.recomputations.length === 1 ? 0 : index];
  const named = recomputation === undefined ? undefined : Recomputation[recomputation];
  return [
    ...degrees
      .filter(([, column]) => Number(at(column, index) ?? 0) > 0)
      .map(([name, column]) => `${name} ${at(column, index)}`),
    ...(named && named !== "UNSPECIFIED" ? [`recompute ${named.toLowerCase()}`] : []),
  ].join(" · ");
}

function Alternatives({ result }: { result: PlanResult }) {
  const explanation = result.explanation;
  if (!explanation) return null;
  return (
    <section>
      <h2>If one dimension changes</h2>
      <SortableTable
        caption="The best layout with another value of one dimension"
        rows={explanation.alternatives}
        keyOf={(each) => each.dimension + each.alternativeValue}
        columns={[
          { name: "dimension", title: "Dimension", value: (each) => words(each.dimension) },
          { name: "from", title: "Chosen", value: (each) => each.chosenValue },
          { name: "to", title: "Instead", value: (each) => each.alternativeValue },
          {
            name: "change",
            title: "Time per sample",
            value: (each) => each.timeChangeRatio,
            show: (each) => (each.fits ? `+${percent(each.timeChangeRatio)}` : "does not fit"),
            numeric: true,
          },
          { name: "why", title: "Why", value: (each) => each.why },
        ]}
      />
      <ul>
        {explanation.sensitivities.map((each) => (
          <li key={each.change}>
            With {words(each.change)}: {each.obstacle || `${number(each.speedupRatio)} times as fast with ${each.best}`}
          </li>
        ))}
        {explanation.binding.map((each) => (
          <li key={each.message}>{each.message}</li>
        ))}
      </ul>
    </section>
  );
}

interface Launch {
  framework: string;
  /** Why the framework cannot train the layout; absent = it can. */
  problem?: string;
  name?: string;
  texts?: Record<string, string>;
  notes?: string[];
}

/** What starts the layout, by framework. */
function Launches({ layout, index, workload }: { layout: Configurations; index: number; workload: Workload }) {
  const [framework, setFramework] = useParameter("framework", "megatron");
  const question = {
    workload: toJson(WorkloadSchema, workload),
    configurations: toJson(ConfigurationsSchema, layout),
    index,
  };
  const answer = useAnswer(JSON.stringify(question), (signal) =>
    convert<{ launches: Launch[] }>("launches", question, signal),
  );
  return (
    <section>
      <h2>What to paste</h2>
      <AnswerView answer={answer}>
        {({ launches }) => {
          const shown = launches.find((each) => each.framework === framework) ?? launches[0];
          return (
            <>
              <label class="narrow">
                Framework
                <select value={shown?.framework} onChange={(event) => setFramework(event.currentTarget.value)}>
                  {launches.map((each) => (
                    <option key={each.framework} value={each.framework}>
                      {each.framework}
                      {each.problem && " (cannot train this layout)"}
                    </option>
                  ))}
                </select>
              </label>
              {shown?.problem && <p class="warn">{shown.problem}.</p>}
              {shown?.name && <p class="quiet">For {shown.name}.</p>}
              {Object.entries(shown?.texts ?? {}).map(([name, text]) => (
                <CopyableText key={name + text} name={name} text={text} />
              ))}
              <ul>
                {shown?.notes?.map((note) => (
                  <li key={note}>{note}</li>
                ))}
              </ul>
            </>
          );
        }}
      </AnswerView>
    </section>
  );
}

function CopyableText({ name, text }: { name: string; text: string }) {
  const [copied, setCopied] = useState(false);
  return (
    <div class="copied">
      <p>
        {name}{" "}
        <button type="button" onClick={() => navigator.clipboard.writeText(text).then(() => setCopied(true))}>
          {copied ? "Copied" : "Copy"}
        </button>
      </p>
      <pre tabIndex={0}>{text}</pre>
    </div>
  );
}

interface CardProps {
  layout: Configurations;
  row: PredictionRow;
  index: number;
  workload: Workload;
  sequence: number;
  tokens: number;
  batch: number;
}

const FITS: Record<MemoryFit, string> = {
  [MemoryFit.UNSPECIFIED]: "not known",
  [MemoryFit.FITS]: "fits",
  [MemoryFit.UNSURE]: "may not fit",
  [MemoryFit.EXCEEDED]: "does not fit",
};

/** The card of the chosen layout: memory, time and energy with failures, and what is unsure. */
function Card({ layout, row, index, workload, sequence, tokens, batch }: CardProps) {
  const number1 = (column: Column) => Number(at(column, index) ?? 0);
  const device = layout.deviceNames[layout.deviceIndexes.length ? (layout.deviceIndexes[index] ?? 0) : 0] ?? "";
  const key = JSON.stringify([index, toJson(WorkloadSchema, workload), tokens, batch]);
  const answer = useAnswer(key, (signal) =>
    server().estimateRun(
      {
        profile: profileSource({ workload }),
        work: { amount: { case: "samples", value: Math.ceil(tokens / sequence) } },
        configurations: {
          nodes: [row.nodes ?? 1],
          workers: [row.workers ?? 1],
          deviceNames: [device],
          globalBatchSamples: [batch],
          batchPerWorkerSamples: [number1(layout.batchPerWorkerSamples)],
          tensorParallelDegrees: [number1(layout.tensorParallelDegrees) || 1],
          pipelineParallelDegrees: [number1(layout.pipelineParallelDegrees) || 1],
          contextParallelDegrees: [number1(layout.contextParallelDegrees) || 1],
          expertParallelDegrees: [number1(layout.expertParallelDegrees) || 1],
          interleaveDegrees: [number1(layout.interleaveDegrees) || 1],
          zeroStages: [number1(layout.zeroStages)],
          sequenceParallel: [Boolean(at(layout.sequenceParallel, index))],
          recomputations: layout.recomputations.length
            ? [layout.recomputations[layout.recomputations.length === 1 ? 0 : index] ?? 0]
            : [],
          syncModes: layout.syncModes.length ? [layout.syncModes[layout.syncModes.length === 1 ? 0 : index] ?? 0] : [],
        },
      },
      { signal, timeoutMs: 60_000 },
    ),
  );
  return (
    <section>
      <h2>The card of this run</h2>
      <AnswerView answer={answer}>
        {({ memory, completion, energy, doubts, assumptions }) => (
          <>
            <dl class="card">
              <dt>Memory</dt>
              <dd>
                {FITS[memory?.fit ?? 0]}: {bytes(memory?.bytes)} ({bytes(memory?.lowerBytes)} to {bytes(memory?.upperBytes)})
                of {bytes(memory?.capacityBytes)}
              </dd>
              <dt>Time, with failures</dt>
              <dd>
                {seconds(completion?.timeSeconds?.mean)}; with 90 % probability within{" "}
                {seconds(completion?.timeSeconds?.p90)}
              </dd>
              <dt>Energy</dt>
              <dd>
                {energy?.joules
                  ? `${number(energy.joules.value / 3.6e6)} kWh (${number(energy.joules.lower / 3.6e6)} to ${number(energy.joules.upper / 3.6e6)})`
                  : "not known"}
              </dd>
            </dl>
            <details>
              <summary>What is unsure, and what is assumed</summary>
              <ul>
                {doubts.map((each) => (
                  <li key={each.figure + each.why}>
                    {each.figure}: {each.why}
                  </li>
                ))}
                {assumptions.map((each) => (
                  <li key={each.field}>
                    {words(each.field)} = {number(each.value)}: {each.why}
                  </li>
                ))}
              </ul>
            </details>
          </>
        )}
      </AnswerView>
    </section>
  );
}
