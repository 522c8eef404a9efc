import type { Profile } from "@nodewise/client/v1";
import { server } from "./server.js";

/** A prediction of a measured run from what was measured before it. */
export interface Scored {
  job: string;
  estimator: string;
  /** When the run was measured, milliseconds since 1970; 0 = not known. */
  at: number;
  /** ln(predicted / measured). */
  error: number;
  /** Whether the run lies within the 90 % interval; undefined = there was none. */
  covered: boolean | undefined;
}

/** Times at which the past of a job is divided. */
const MOST_ORIGINS = 3;

/**
 * Scores estimators on a job's runs in their order: the runs until a time train, those until the next time are predicted,
 * and so on (rolling origin). Runs that the service measured without a time keep the order in which they were stored.
 */
export async function backtestsOf(profile: Profile, signal: AbortSignal): Promise<Scored[]> {
  const observations = profile.content?.observations;
  const configurations = observations?.configurations;
  const rates = observations?.stepsPerSecond ?? [];
  const times = observations?.measuredAtUnixSeconds ?? [];
  if (!observations || !configurations || rates.length < 2) return [];
  const order = rates.map((_, row) => row).sort((a, b) => (times[a] ?? 0) - (times[b] ?? 0));
  const origins = Math.min(MOST_ORIGINS, rates.length - 1);
  const chunkOf = new Map(order.map((row, place) => [row, Math.floor((place * (origins + 1)) / rates.length)]));
  const chunk = (row: number) => chunkOf.get(row) ?? 0;
  const answers = Array.from({ length: origins }, (_, origin) =>
    server().backtest(
      {
        estimators: ["all", "auto"],
        table: {
          jobNames: [profile.profileId],
          jobIndexes: rates.map(() => 0),
          configurations,
          // A rate of 0 = not measured yet: the row is not scored.
          stepsPerSecond: rates.map((rate, row) => (chunk(row) <= origin + 1 ? rate : 0)),
          train: rates.map((_, row) => chunk(row) <= origin),
          ...(profile.content?.workload ? { workloads: [profile.content.workload] } : {}),
          ...(profile.content?.network ? { networks: [profile.content.network] } : {}),
        },
      },
      { signal, timeoutMs: 300_000 },
    ),
  );
  const scored: Scored[] = [];
  for (const [origin, { result }] of (await Promise.all(answers)).entries())
    for (const { estimator, predictions } of result.evaluations)
      predictions?.rows.forEach((row, index) => {
        const predicted = predictions.stepsPerSecond[index];
        const measured = rates[row];
        if (!predicted || !measured || chunk(row) !== origin + 1) return;
        const upper = predictions.upperStepsPerSecond[index];
        scored.push({
          job: profile.profileId,
          estimator,
          at: 1000 * (times[row] ?? 0),
          error: Math.log(predicted / measured),
          covered: upper ? measured <= upper && measured >= (predictions.lowerStepsPerSecond[index] ?? 0) : undefined,
        });
      });
  return scored;
}
