import { profileSource } from "@nodewise/client";
import type { DiagnosisProgress, DiagnosisResult, TimelinePiece } from "@nodewise/client/v1beta1";
import { useCallback, useMemo, useState } from "preact/hooks";
import { AnswerView, useAnswer } from "../answer.js";
import { type Bar, coloursOfParts, RowBars } from "../charts/bars.js";
import { Lanes } from "../charts/lanes.js";
import { timelineOf } from "../charts/tracks.js";
import { count, number, percent, seconds, words } from "../format.js";
import { link, useParameter } from "../router.js";
import { profilesOf, server } from "../server.js";
import { Long, SortableTable } from "../table.js";

/** What bounds the steps of recorded jobs; two jobs stand side by side. */
export function Diagnosis() {
  const [job, setJob] = useParameter("job");
  const [beside, setBeside] = useParameter("beside");
  const recorded = useAnswer("recorded", async (signal) => {
    const { profiles } = await server().listProfiles({ pageSize: 200 }, { signal }).page();
    const names = profiles.map(({ profileId }) => profileId);
    const whole = await profilesOf(names, { signal, pageSize: 1 });
    return names.filter((_, index) => whole[index]?.content?.traces.length);
  });
  return (
    <>
      <h1>Diagnosis</h1>
      <AnswerView answer={recorded}>
        {(names) =>
          names.length === 0 && !job ? (
            <section class="empty">
              <h2>No job has traces yet</h2>
              <p>
                Store traces of the PyTorch profiler by{" "}
                <code>nodewise ingest rank*.json.gz --job NAME --server ADDRESS</code>.
              </p>
            </section>
          ) : (
            <form class="controls" onSubmit={(event) => event.preventDefault()}>
              <Choice label="Job" value={job || (names[0] ?? "")} names={names} onChoose={setJob} />
              <Choice label="Beside" value={beside} names={["", ...names]} onChoose={setBeside} />
            </form>
          )
        }
      </AnswerView>
      {recorded.state === "ready" && (job || recorded.value[0]) && (
        <div class={beside ? "columns" : ""}>
          <DiagnosisView key={`a${job}`} job={job || (recorded.value[0] as string)} />
          {beside && <DiagnosisView key={`b${beside}`} job={beside} />}
        </div>
      )}
    </>
  );
}

function Choice({
  label,
  value,
  names,
  onChoose,
}: {
  label: string;
  value: string;
  names: readonly string[];
  onChoose: (name: string) => void;
}) {
  return (
    <label>
      {label}
      <select value={value} onChange={(event) => onChoose(event.currentTarget.value)}>
        {[...new Set([...names, value])].map((name) => (
          <option key={name} value={name}>
            {name || "none"}
          </option>
        ))}
      </select>
    </label>
  );
}

function DiagnosisView({ job }: { job: string }) {
  const [progress, setProgress] = useState<DiagnosisProgress>();
  const answer = useAnswer(job, (signal) =>
    server().diagnose(
      { profile: profileSource(job), timeline: true },
      { signal, onProgress: setProgress, timeoutMs: 300_000 },
    ),
  );
  return (
    <section>
      <h2>
        <a href={link(["jobs", job])}>{job}</a>
      </h2>
      <AnswerView
        answer={answer}
        progress={
          progress &&
          `${words(progress.stage)}: ${number(Number(progress.doneCount))} of ${number(Number(progress.totalCount))}`
        }
      >
        {({ result, pieces }) => (
          <Result
            result={result}
            pieces={pieces.flatMap((piece) => (piece.case === "timeline" && !piece.value.recorded ? [piece.value] : []))}
          />
        )}
      </AnswerView>
    </section>
  );
}

function partsOf(result: DiagnosisResult): Bar[] {
  return result.rankShares.map((share) => {
    const parts = new Map<string, number>();
    for (const part of share.parts) parts.set(part.kind, (parts.get(part.kind) ?? 0) + part.seconds);
    return { label: `rank ${share.rank}`, parts };
  });
}

function Result({ result, pieces }: { result: DiagnosisResult; pieces: TimelinePiece[] }) {
  const [chosen, setChosen] = useState("");
  const bars = partsOf(result);
  const colours = useMemo(() => coloursOfParts(partsOf(result)), [result]);
  const timeline = useMemo(() => timelineOf(pieces), [pieces]);
  const colourOf = useCallback((part: string) => colours.get(part.split(": ")[0] ?? "") ?? "faint", [colours]);
  const choose = (part: string) => setChosen((before) => (before === part ? "" : part));
  return (
    <>
      <p class="sentence">{result.verdict}</p>
      {!result.complete && <p class="warn">The time ended before the diagnosis did.</p>}
      <RowBars title="The step of each rank" bars={bars} format={seconds} chosen={chosen} onChoose={choose} />
      {timeline.count > 0 && <Lanes timeline={timeline} colourOf={colourOf} chosen={chosen} />}
      <SortableTable
        caption="What costs time"
        parameter="causes"
        most={8}
        rows={result.bottlenecks}
        keyOf={(each) => `${each.kind} ${each.what} ${each.rank ?? ""}`}
        onChoose={(each) => choose(each.kind)}
        columns={[
          {
            name: "what",
            title: "Cause",
            value: (each) => `${words(each.kind)}: ${each.what}`,
            show: (each) => (
              <button type="button" class="plain" aria-pressed={chosen === each.kind}>
                {words(each.kind)}
                {each.what && `: ${each.what}`}
              </button>
            ),
          },
          { name: "rank", title: "Rank", value: (each) => each.rank, numeric: true },
          {
            name: "seconds",
            title: "Takes",
            value: (each) => each.seconds,
            show: (each) => seconds(each.seconds),
            numeric: true,
          },
          {
            name: "gain",
            title: "Step shorter by",
            value: (each) => each.gainIfRemovedSeconds,
            show: (each) => `${seconds(each.gainIfRemovedSeconds)}${each.matters ? "" : " (within the usual spread)"}`,
            numeric: true,
          },
          { name: "why", title: "Why", value: (each) => each.why, show: (each) => <Long text={each.why} /> },
        ]}
      />
      <SortableTable
        caption="What would help"
        parameter="changes"
        most={6}
        rows={result.strategies}
        keyOf={(each) => each.name}
        columns={[
          { name: "name", title: "Change", value: (each) => words(each.name) },
          {
            name: "speedup",
            title: "Faster by",
            value: (each) => each.speedupRatio,
            show: (each) => percent(each.speedupRatio - 1),
            numeric: true,
          },
          {
            name: "step",
            title: "Step",
            value: (each) => each.predictedStepSeconds,
            show: (each) =>
              `${seconds(each.predictedStepSeconds)}${each.upperStepSeconds ? ` (${seconds(each.lowerStepSeconds)} to ${seconds(each.upperStepSeconds)})` : ""}`,
            numeric: true,
          },
          { name: "effort", title: "Effort", value: (each) => each.effort, show: (each) => <Long text={each.effort} /> },
          { name: "rests", title: "Rests on", value: (each) => each.restsOn, show: (each) => <Long text={each.restsOn} /> },
        ]}
      />
      <ul>
        {result.stragglers.slice(0, 5).map((each) => (
          <li key={each.collective}>
            {each.ranks.length === 1 ? "Rank" : "Ranks"} {each.ranks.join(", ")} arrive last in {each.collective}, by{" "}
            {seconds(each.marginSeconds)}; the others wait {seconds(each.imposedWaitSeconds)} in all.
          </li>
        ))}
        {result.warnings.map((warning) => (
          <li key={warning.message} class="warn">
            {warning.message}
          </li>
        ))}
        <li class="quiet">
          {count(result.basis?.traces.length ?? 0, "trace")}, {count(Number(result.basis?.eventsCount ?? 0), "event")},{" "}
          {result.basis?.diagnoser} {result.basis?.diagnoserVersion}
        </li>
      </ul>
    </>
  );
}
