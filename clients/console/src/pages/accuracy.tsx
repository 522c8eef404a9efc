import { AnswerView, useAnswer } from "../answer.js";
import { Dots } from "../charts/dots.js";
import { ago, number, percent } from "../format.js";
import { server } from "../server.js";
import { SortableTable } from "../table.js";

/** How well predictions matched the runs that were measured after them. */
export function Accuracy() {
  const answer = useAnswer("estimators", (signal) => server().listEstimators({}, { signal }).all());
  return (
    <>
      <h1>Accuracy</h1>
      <AnswerView answer={answer}>
        {(estimators) => {
          const scored = estimators.filter(({ score }) => score && score.observationsCount > 0n);
          return (
            <>
              {scored.length > 0 ? (
                <>
                  <p class="sentence">
                    Each run that jobs report is compared with what had been predicted for it before. Errors are
                    |ln(predicted / measured)|: 0.05 is about 5 %.
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
        }}
      </AnswerView>
    </>
  );
}
