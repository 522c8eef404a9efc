import { NodewiseError } from "@nodewise/client";
import { useEffect, useRef, useState } from "preact/hooks";
import { token } from "./server.js";

/** One sample of Prometheus' text format. */
interface Sample {
  name: string;
  labels: Readonly<Record<string, string>>;
  value: number;
}

/** What /metrics said at one time. */
interface Scrape {
  /** Seconds since 1970. */
  at: number;
  samples: readonly Sample[];
}

/** As often as the server samples itself. */
const INTERVAL_MS = 5000;
const MOST_SCRAPES = 720;

async function scrape(signal: AbortSignal): Promise<Scrape> {
  const headers: Record<string, string> = token.get() ? { Authorization: `Bearer ${token.get()}` } : {};
  const response = await fetch("metrics", { signal, headers }).catch((error: Error) => {
    throw new NodewiseError("UNAVAILABLE", error.message);
  });
  if (!response.ok) throw new NodewiseError("FAILED_PRECONDITION", "The server does not serve /metrics to this caller.");
  const samples = (await response.text()).split("\n").flatMap((each) => {
    const [, name, labels = "", value] = /^(nodewise_\w+)(?:\{(.*?)\})? ([^ #]+)/.exec(each) ?? [];
    if (!name) return [];
    const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map((pair) => [pair[1], pair[2]]);
    return [{ name, labels: Object.fromEntries(pairs) as Record<string, string>, value: Number(value) }];
  });
  return { at: Date.now() / 1000, samples };
}

/** Metrics since the page was opened. */
export class Metrics {
  constructor(
    readonly scrapes: readonly Scrape[],
    /** Why the last scrape failed. */
    readonly error?: Error,
  ) {}

  get latest(): Scrape {
    return this.scrapes.at(-1) ?? { at: 0, samples: [] };
  }

  /** Seconds between the first scrape and the latest. */
  get seconds(): number {
    return this.latest.at - (this.scrapes[0]?.at ?? 0);
  }

  /** The latest samples of a name. */
  samples(name: string): readonly Sample[] {
    return this.latest.samples.filter((each) => each.name === name);
  }

  /** The sum of the latest samples of a name that a condition selects. */
  sum(name: string, isSelected: (labels: Sample["labels"]) => boolean = () => true): number {
    return sumOf(this.latest, name, isSelected);
  }

  /** By how much that sum grew since the page was opened. */
  increase(name: string, isSelected: (labels: Sample["labels"]) => boolean = () => true): number {
    return this.sum(name, isSelected) - (this.scrapes[0] ? sumOf(this.scrapes[0], name, isSelected) : 0);
  }

  /** The values of a label of a name. */
  labels(name: string, label: string): string[] {
    return [...new Set(this.samples(name).map(({ labels }) => labels[label] ?? ""))];
  }

  /** Growth of a counter for each second between two scrapes, with seconds since the page was opened. */
  rates(name: string): { x: number; y: number }[] {
    return this.scrapes.slice(1).map((each, index) => {
      const before = this.scrapes[index] as Scrape;
      const growth = sumOf(each, name, () => true) - sumOf(before, name, () => true);
      return { x: each.at - (this.scrapes[0] as Scrape).at, y: Math.max(0, growth) / (each.at - before.at) };
    });
  }

  /** A quantile of a histogram's growth since the page was opened, linear within a bucket; undefined = no growth. */
  quantile(share: number, histogram: string, isSelected: (labels: Sample["labels"]) => boolean): number | undefined {
    const name = `${histogram}_bucket`;
    const bounds = this.labels(name, "le").sort((a, b) => Number(a.replace("+", "")) - Number(b.replace("+", "")));
    const counts = bounds.map((le) => this.increase(name, (labels) => labels.le === le && isSelected(labels)));
    const wanted = share * (counts.at(-1) ?? 0);
    if (!wanted) return undefined;
    const index = counts.findIndex((each) => each >= wanted);
    const [low, high] = [Number(bounds[index - 1] ?? 0), Number(bounds[index])];
    const [before, after] = [counts[index - 1] ?? 0, counts[index] as number];
    return Number.isFinite(high) ? low + ((high - low) * (wanted - before)) / (after - before) : low;
  }
}

function sumOf(scrape: Scrape, name: string, isSelected: (labels: Sample["labels"]) => boolean): number {
  return scrape.samples.reduce((sum, each) => (each.name === name && isSelected(each.labels) ? sum + each.value : sum), 0);
}

/** Metrics while the page is open; undefined = none has arrived. */
export function useMetrics(): { metrics: Metrics | undefined; error: Error | undefined; again: () => void } {
  const [metrics, setMetrics] = useState<Metrics>();
  const [error, setError] = useState<Error>();
  const [attempt, setAttempt] = useState(0);
  const scrapes = useRef<Scrape[]>([]);
  useEffect(() => {
    const controller = new AbortController();
    let timer: ReturnType<typeof setTimeout>;
    const next = async () => {
      try {
        scrapes.current = [...scrapes.current.slice(1 - MOST_SCRAPES), await scrape(controller.signal)];
        setError(undefined);
        setMetrics(new Metrics(scrapes.current));
      } catch (failure) {
        if (controller.signal.aborted) return;
        setError(failure as Error);
        setMetrics(scrapes.current.length ? new Metrics(scrapes.current, failure as Error) : undefined);
      }
      timer = setTimeout(next, INTERVAL_MS);
    };
    next();
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [attempt]);
  return { metrics, error, again: () => setAttempt((before) => before + 1) };
}
