import { nodeRange, objective, profileSource, rows } from "@nodewise/client";
import { IntervalBasis, type PredictResponse, type Profile, type SuggestMeasurementsResponse } from "@nodewise/client/v1";
import { type Answer, AnswerView, useAnswer, useDelayed } from "../answer.js";
import { StackedBars } from "../charts/bars.js";
import { Curve } from "../charts/curve.js";
import { ago, bytes, count, number, percent, seconds, words } from "../format.js";
import { link, useParameter } from "../router.js";
import { type Comparable, comparable, runsOf, UNMEASURED_NODES } from "../runs.js";
import { server } from "../server.js";
import { SortableTable } from "../table.js";

const RULES = {
  knee: "the knee",
  highestThroughput: "highest throughput",
  fewestDevices: "fewest devices by a deadline",
  leastCost: "least cost",
  leastTime: "least time",
} as const;
type Rule = keyof typeof RULES;

/** What the caller wants, as the address keeps it. */
function useQuestion() {
  const [rule, setRule] = useParameter("rule", "knee");
  const [share, setShare] = useParameter("share", "0.5");
  const [hours, setHours] = useParameter("hours");
  const [price, setPrice] = useParameter("price");
  const [samples, setSamples] = useParameter("samples");
  const [confidence, setConfidence] = useParameter("confidence");
  const [most, setMost] = useParameter("most");
  const [batch, setBatch] = useParameter("batch");
  const [estimator, setEstimator] = useParameter("estimator", "auto");
  const [revision, setRevision] = useParameter("revision");
  return {
    ...{
      rule: (rule in RULES ? rule : "knee") as Rule,
      share,
      hours,
      price,
      samples,
      confidence,
      most,
      batch,
      estimator,
      revision,
    },
    ...{ setRule, setShare, setHours, setPrice, setSamples, setConfidence, setMost, setBatch, setEstimator, setRevision },
  };
}

type Question = ReturnType<typeof useQuestion>;

function above0(text: string): number | undefined {
  const value = Number(text);
  return text && value > 0 ? value : undefined;
}

function objectiveOf(question: Question) {
  const confidence = above0(question.confidence);
  const deadline = above0(question.hours);
  const by = deadline === undefined ? {} : { deadlineSeconds: deadline * 3600 };
  const options = confidence === undefined ? {} : { confidence };
  if (question.rule === "knee") return objective("knee", { share: above0(question.share) ?? 0.5 }, options);
  if (question.rule === "fewestDevices")
    return objective("fewestDevices", { deadlineSeconds: (deadline ?? 24) * 3600 }, options);
  if (question.rule === "leastCost") return objective("leastCost", by, options);
  return objective(question.rule, {}, options);
}

function requestOf(profile: Profile, question: Question) {
  const revision = above0(question.revision);
  const samples = above0(question.samples);
  const price = above0(question.price);
  const most = above0(question.most) ?? (profile.observationsCount ? undefined : UNMEASURED_NODES);
  const batch = above0(question.batch);
  const settings = batch === undefined ? {} : { settings: { globalBatchSamples: Math.trunc(batch) } };
  return {
    profile: profileSource(profile.profileId, revision === undefined ? {} : { revision: BigInt(Math.trunc(revision)) }),
    objective: objectiveOf(question),
    ...(most === undefined
      ? batch === undefined
        ? {}
        : { ranges: [settings] }
      : { ranges: [nodeRange(1, Math.trunc(most), settings)] }),
    ...(samples === undefined ? {} : { work: { amount: { case: "samples" as const, value: samples } } }),
    ...(price === undefined ? {} : { offers: [{ pricePerNodeHour: price }] }),
  };
}

/** A job: its curve, what binds it, what to measure next, and what the answer rests on. */
export function Job({ profileId }: { profileId: string }) {
  const profile = useAnswer(profileId, async (signal) => {
    const reply = await server().getProfile({ profileId }, { signal });
    return reply.profile as Profile;
  });
  return (
    <>
      <p class="path">
        <a href={link(["jobs"])}>Jobs</a> /
      </p>
      <h1>{profileId}</h1>
      <AnswerView answer={profile}>{(value) => <KnownJob profile={value} />}</AnswerView>
    </>
  );
}

function KnownJob({ profile }: { profile: Profile }) {
  const question = useQuestion();
  const { rule, share, hours, price, samples, confidence, most, batch, estimator, revision } = question;
  const key = useDelayed(
    JSON.stringify([rule, share, hours, price, samples, confidence, most, batch, estimator, revision]),
    120,
  );
  const options = { model: { estimator } };
  const prediction = useAnswer(key, (signal) => server().predict({ ...requestOf(profile, question), options }, { signal }));
  const estimators = useAnswer("estimators", (signal) => server().listEstimators({}, { signal }).all());
  return (
    <>
      <Facts profile={profile} />
      <Controls
        question={question}
        names={estimators.state === "ready" ? estimators.value.map((each) => each.plugin?.name ?? "") : []}
      />
      <AnswerView answer={prediction}>
        {(reply) => <PredictionView reply={reply} profile={profile} question={question} />}
      </AnswerView>
    </>
  );
}

function Facts({ profile }: { profile: Profile }) {
  const traces = profile.content?.traces.length ?? 0;
  return (
    <p class="quiet">
      {profile.displayName && <>{profile.displayName}; </>}
      {count(profile.observationsCount, "measured run")}, last report {ago(profile.updateTime)}, revision{" "}
      {String(profile.revision)}
      {Object.entries(profile.labels).map(([label, value]) => (
        <span class="label" key={label}>
          {label}
          {value && `=${value}`}
        </span>
      ))}
      {traces > 0 && (
        <>
          {" "}
          <a href={link(["diagnosis"], { job: profile.profileId })}>Why is it slow? ({count(traces, "trace")})</a>
        </>
      )}
      {profile.warnings.map((warning) => (
        <span key={warning.message} class="block warn">
          {warning.message}
        </span>
      ))}
    </p>
  );
}

function Controls({ question, names }: { question: Question; names: readonly string[] }) {
  const text = (label: string, value: string, set: (value: string) => void, step = "any") => (
    <label>
      {label}
      <input type="number" min="0" step={step} value={value} onInput={(event) => set(event.currentTarget.value)} />
    </label>
  );
  return (
    <form class="controls" onSubmit={(event) => event.preventDefault()}>
      <label>
        Objective
        <select value={question.rule} onChange={(event) => question.setRule(event.currentTarget.value)}>
          {Object.entries(RULES).map(([rule, name]) => (
            <option key={rule} value={rule}>
              {name}
            </option>
          ))}
        </select>
      </label>
      {question.rule === "knee" && (
        <label>
          Each node must add {percent(Number(question.share))} of the first
          <input
            type="range"
            min="0.05"
            max="1"
            step="0.05"
            value={question.share}
            onInput={(event) => question.setShare(event.currentTarget.value)}
          />
        </label>
      )}
      {text("Samples left", question.samples, question.setSamples)}
      {text("Deadline, hours", question.hours, question.setHours)}
      {text("Price of a node and hour", question.price, question.setPrice)}
      {text("Up to nodes", question.most, question.setMost, "1")}
      {text("Global batch, samples", question.batch, question.setBatch, "1")}
      <label>
        Confidence {question.confidence ? percent(Number(question.confidence)) : "as predicted"}
        <input
          type="range"
          min="0.5"
          max="0.95"
          step="0.05"
          value={question.confidence || "0.5"}
          onInput={(event) =>
            question.setConfidence(Number(event.currentTarget.value) > 0.5 ? event.currentTarget.value : "")
          }
        />
      </label>
      <label>
        Estimator
        <select value={question.estimator} onChange={(event) => question.setEstimator(event.currentTarget.value)}>
          {[...new Set(["auto", question.estimator, ...names])].map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
      {text("Revision", question.revision, question.setRevision, "1")}
    </form>
  );
}

function PredictionView({ reply, profile, question }: { reply: PredictResponse; profile: Profile; question: Question }) {
  const suggestions = useSuggestions(profile, question);
  const suggested = suggestions.state === "ready" ? suggestions.value.suggestions.map(({ nodes }) => nodes) : [];
  const all = [...rows(reply)];
  const curve = comparable(reply);
  const recommendation = reply.recommendation;
  const coverage = curve.rows[0]?.intervalCoverage;
  const samples = above0(question.samples);
  const deadline = above0(question.hours);
  const needed = samples && deadline && curve.unit === "samples/s" ? samples / (deadline * 3600) : undefined;
  const refusal = all.find((row) => row.refusal)?.refusal;
  const logarithmic = (curve.rows.at(-1)?.nodes ?? 1) / (curve.rows[0]?.nodes ?? 1) > 32;
  return (
    <>
      <section class="sentence">
        {recommendation ? (
          <p>
            <strong>{RULES[question.rule]}</strong>: {recommendation.why}.
            {recommendation.finishSeconds !== undefined && ` Done in ${seconds(recommendation.finishSeconds)}`}
            {recommendation.cost !== undefined && ` for ${number(recommendation.cost)}`}
            {recommendation.finishSeconds !== undefined && "."}
          </p>
        ) : (
          <p>No number of nodes meets the objective. {refusal?.message}</p>
        )}
      </section>
      {curve.rows.length > 0 && (
        <Curve
          points={curve.rows.map((row) => ({
            nodes: row.nodes ?? 0,
            value: curve.value(row),
            lower: curve.lower(row),
            upper: curve.upper(row),
            extrapolation: row.extrapolationRatio ?? 1,
          }))}
          measured={measuredOf(profile, curve)}
          recommended={recommendation?.nodes}
          suggested={suggested}
          unit={curve.unit}
          coverage={coverage}
          logarithmic={logarithmic}
          needed={needed}
          onNeeded={(value) => samples && question.setHours((samples / value / 3600).toPrecision(3))}
        />
      )}
      <Parts curve={curve} recommended={recommendation?.nodes} />
      <Suggestions answer={suggestions} />
      <Numbers curve={curve} recommended={recommendation?.nodes} />
      <Basis reply={reply} />
    </>
  );
}

function measuredOf(profile: Profile, curve: Comparable) {
  return runsOf(profile.content).flatMap((run) => {
    const value = curve.unit === "samples/s" ? run.samplesPerSecond : run.stepsPerSecond;
    return value === undefined ? [] : [{ nodes: run.nodes, value }];
  });
}

function Parts({ curve, recommended }: { curve: Comparable; recommended: number | undefined }) {
  const bars = curve.rows
    .map((row) => ({ label: String(row.nodes), parts: row.breakdownSeconds }))
    .filter(({ parts }) => parts.size > 0);
  if (!bars.length) return null;
  return (
    <StackedBars
      title="What a step waits for"
      bars={bars}
      xLabel="nodes"
      format={seconds}
      emphasised={String(recommended)}
    />
  );
}

function useSuggestions(profile: Profile, question: Question): Answer<SuggestMeasurementsResponse> {
  const { rule, share, hours, samples, price, most, batch } = question;
  const key = useDelayed(JSON.stringify([rule, share, hours, samples, price, most, batch]), 400);
  return useAnswer(key, (signal) =>
    server().suggestMeasurements({ ...requestOf(profile, question), maxSuggestions: 3 }, { signal, timeoutMs: 60_000 }),
  );
}

function Suggestions({ answer }: { answer: Answer<SuggestMeasurementsResponse> }) {
  return (
    <section>
      <h2>What to measure next</h2>
      <AnswerView answer={answer}>
        {(reply) => (
          <>
            <p>
              Deciding now risks {percent(reply.expectedRegret)} of the best throughput.
              {reply.suggestions.length === 0 && " No measurement would improve the decision."}
            </p>
            <ol>
              {reply.suggestions.map((each) => (
                <li key={each.row}>
                  <strong>{count(each.nodes, "node")}</strong>: {each.why}; costs {number(each.costNodeSeconds / 3600)}{" "}
                  node-hours.
                </li>
              ))}
            </ol>
          </>
        )}
      </AnswerView>
    </section>
  );
}

function Numbers({ curve, recommended }: { curve: Comparable; recommended: number | undefined }) {
  return (
    <details>
      <summary>The numbers</summary>
      <SortableTable
        caption="Predictions by number of nodes"
        parameter="order"
        rows={curve.rows}
        keyOf={(row) => row.nodes ?? 0}
        chosen={recommended ?? -1}
        columns={[
          { name: "nodes", title: "Nodes", value: (row) => row.nodes, numeric: true },
          { name: "workers", title: "Workers", value: (row) => row.workers, numeric: true },
          { name: "value", title: curve.unit, value: curve.value, numeric: true },
          { name: "lower", title: "from", value: curve.lower, numeric: true },
          { name: "upper", title: "to", value: curve.upper, numeric: true },
          {
            name: "step",
            title: "Step",
            value: (row) => row.stepSeconds,
            show: (row) => seconds(row.stepSeconds),
            numeric: true,
          },
          { name: "bottleneck", title: "Bottleneck", value: (row) => words(row.bottleneck ?? "") },
          {
            name: "memory",
            title: "Memory",
            value: (row) => row.memoryBytes,
            show: (row) => bytes(row.memoryBytes),
            numeric: true,
          },
          {
            name: "finish",
            title: "Done in",
            value: (row) => row.finishSeconds,
            show: (row) => seconds(row.finishSeconds),
            numeric: true,
          },
          { name: "cost", title: "Cost", value: (row) => row.cost, numeric: true },
          { name: "beyond", title: "× evidence", value: (row) => row.extrapolationRatio, numeric: true },
        ]}
      />
    </details>
  );
}

const INTERVALS: Record<IntervalBasis, string> = {
  [IntervalBasis.UNSPECIFIED]: "no interval",
  [IntervalBasis.MODEL_SPREAD]: "the interval is the model's own spread",
  [IntervalBasis.CONFORMAL]: "the interval is calibrated on measured errors",
  [IntervalBasis.SIMULATION]: "the interval is that of a simulation",
};

function Basis({ reply }: { reply: PredictResponse }) {
  const basis = reply.basis;
  const warnings = reply.predictions?.warnings ?? [];
  return (
    <section>
      <h2>What it rests on</h2>
      <ul>
        {warnings.map((warning) => (
          <li key={warning.reason + warning.message} class="warn">
            {warning.message}
          </li>
        ))}
        <li>
          {basis?.choice || basis?.estimator} ({basis?.estimator} {basis?.estimatorVersion}
          {basis?.stale && ", of an older revision"}
          {basis?.fallback && ", as a fallback"}), {INTERVALS[reply.predictions?.intervalBasis ?? 0]}
        </li>
        {basis?.mixture.map((part) => (
          <li key={part.estimator}>
            {percent(part.weight)} {part.estimator} {part.estimatorVersion}, expected error {percent(part.expectedLogError)}
          </li>
        ))}
        {basis?.evidence.map((each) => (
          <li key={each}>{each}</li>
        ))}
        <li class="quiet">
          revision {String(basis?.profileRevision ?? "of the question")}, fitted {ago(basis?.fitTime)}
          {basis?.priorIds.length ? `, prior ${basis.priorIds.join(", ")}` : ", no prior"}, generation{" "}
          {basis?.generation || "–"}
        </li>
      </ul>
    </section>
  );
}
