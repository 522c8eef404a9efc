import { type PredictionRow, profileSource, rows } from "@nodewise/client";
import { type Configurations, Recomputation } from "@nodewise/client/v1";
import { MemoryFit, type PlanProgress, type PlanResult } from "@nodewise/client/v1beta1";
import { useEffect, useState } from "preact/hooks";
import { AnswerView, Failure, useAnswer } from "../answer.js";
import { RowBars } from "../charts/bars.js";
import { Scatter } from "../charts/scatter.js";
import { bytes, count, number, percent, seconds, words } from "../format.js";
import { poolsOf, workloadOf } from "../model.js";
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

/** Best layouts of a model on devices: in words, as a frontier, and with what to paste. */
export function Plan() {
  const [model, setModel] = useModel();
  const [devices, setDevices] = useParameter("devices", "h100=4x8");
  const [batch, setBatch] = useParameter("batch", "512");
  const [sequence, setSequence] = useParameter("sequence", "4096");
  const [precision, setPrecision] = useParameter("precision", "bf16");
  const [tokens, setTokens] = useParameter("tokens", "1e11");
  const [asked, setAsked] = useState<string>();
  const [progress, setProgress] = useState<PlanProgress>();
  let problem: Error | undefined;
  let request: Parameters<ReturnType<typeof server>["plan"]>[0] | undefined;
  try {
    const workload = workloadOf(model, Number(sequence) || undefined);
    request = {
      profile: profileSource({ workload: { ...workload, ...(precision ? { precision } : {}) } }),
      constraints: {
        pools: poolsOf(devices).map(({ deviceName, nodes, devicesPerNode }) => ({
          deviceName,
          nodes: { ranges: [{ first: 1, last: nodes }] },
          workersPerNode: devicesPerNode,
        })),
        globalBatchSamples: { values: [Number(batch)] },
      },
    };
  } catch (error) {
    problem = error as Error;
  }
  const key = JSON.stringify([model, devices, batch, sequence, precision]);
  const answer = useAnswer(asked, (signal) =>
    server().plan(request ?? {}, { signal, onProgress: setProgress, timeoutMs: 300_000 }),
  );
  const drop = async (files: FileList | null | undefined) => files?.[0] && setModel(await files[0].text());
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
          <textarea rows={5} spellcheck={false} value={model} onInput={(event) => setModel(event.currentTarget.value)} />
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
        <button type="submit" disabled={problem !== undefined || asked === key}>
          Find the best layouts
        </button>
      </form>
      {problem && <Failure error={problem} />}
      {asked !== undefined && !problem && (
        <AnswerView
          answer={answer}
          progress={
            progress &&
            `${number(Number(progress.evaluatedCount + progress.prunedCount))} of ${number(Number(progress.spaceCount))} ` +
              `layouts; the best so far takes ${seconds(progress.bestStepSeconds)} a step`
          }
        >
          {({ result }) => (
            <PlanView
              result={result}
              sequence={Number(sequence)}
              tokens={Number(tokens)}
              precision={precision}
              model={model}
              devices={devices}
              batch={batch}
            />
          )}
        </AnswerView>
      )}
    </>
  );
}

interface PlanViewProps {
  result: PlanResult;
  sequence: number;
  tokens: number;
  precision: string;
  model: string;
  devices: string;
  batch: string;
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

function PlanView({ result, sequence, tokens, precision, model, devices, batch }: PlanViewProps) {
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
  const terms = [...row.extra].filter(([name]) => MEMORY_TERMS.includes(name));
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
      {terms.length > 0 && (
        <RowBars
          title="Memory of a device by term"
          bars={[
            {
              label: "memory",
              parts: new Map(terms.map(([name, value]) => [name.replace(/^memory_|_bytes$/g, ""), value])),
            },
          ]}
          format={bytes}
        />
      )}
      <RowBars title="What a step consists of" bars={[{ label: "step", parts: row.breakdownSeconds }]} format={seconds} />
      <Alternatives result={result} />
      <Paste layout={layout} index={chosen} devices={devices} batch={batch} sequence={sequence} precision={precision} />
      <Card
        layout={layout}
        row={row}
        index={chosen}
        model={model}
        sequence={sequence}
        tokens={tokens}
        precision={precision}
        batch={batch}
      />
    </>
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

interface PasteProps {
  layout: Configurations;
  index: number;
  devices: string;
  batch: string;
  sequence: number;
  precision: string;
}

/** What starts the layout in Megatron-LM, and the command for every other framework. */
function Paste({ layout, index, devices, batch, sequence, precision }: PasteProps) {
  const value = (column: Column) => Number(at(column, index) ?? 1) || 1;
  const flags = [
    `--tensor-model-parallel-size ${value(layout.tensorParallelDegrees)}`,
    `--pipeline-model-parallel-size ${value(layout.pipelineParallelDegrees)}`,
    `--context-parallel-size ${value(layout.contextParallelDegrees)}`,
    `--expert-model-parallel-size ${value(layout.expertParallelDegrees)}`,
    `--micro-batch-size ${value(layout.batchPerWorkerSamples)}`,
    `--global-batch-size ${batch}`,
    ...(at(layout.sequenceParallel, index) ? ["--sequence-parallel"] : []),
    ...(Number(at(layout.zeroStages, index) ?? 0) ? ["--use-distributed-optimizer"] : []),
  ].join(" \\\n  ");
  const command = `nodewise plan config.json --cluster ${devices} --batch ${batch} --sequence ${sequence} --precision ${precision} --flags FRAMEWORK`;
  return (
    <section>
      <h2>What to paste</h2>
      <CopyableText name="Parallelism in Megatron-LM" text={flags} />
      <CopyableText name="Complete settings for Megatron-LM, DeepSpeed, torchtitan, NeMo or Accelerate" text={command} />
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
  model: string;
  sequence: number;
  tokens: number;
  precision: string;
  batch: string;
}

const FITS: Record<MemoryFit, string> = {
  [MemoryFit.UNSPECIFIED]: "not known",
  [MemoryFit.FITS]: "fits",
  [MemoryFit.UNSURE]: "may not fit",
  [MemoryFit.EXCEEDED]: "does not fit",
};

/** The card of the chosen layout: memory, time and energy with failures, and what is unsure. */
function Card({ layout, row, index, model, sequence, tokens, precision, batch }: CardProps) {
  const number1 = (column: Column) => Number(at(column, index) ?? 0);
  const device = layout.deviceNames[layout.deviceIndexes.length ? (layout.deviceIndexes[index] ?? 0) : 0] ?? "";
  const answer = useAnswer(`${index} ${model} ${sequence} ${tokens} ${precision} ${batch}`, (signal) =>
    server().estimateRun(
      {
        profile: profileSource({ workload: { ...workloadOf(model, sequence), precision } }),
        work: { amount: { case: "samples", value: Math.ceil(tokens / sequence) } },
        configurations: {
          nodes: [row.nodes ?? 1],
          workers: [row.workers ?? 1],
          deviceNames: [device],
          globalBatchSamples: [Number(batch)],
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
