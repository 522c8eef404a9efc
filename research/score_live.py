"""How the diagnosis of running jobs does beside published methods: false alarms, and steps until a slowdown is found.

    NODEWISE_DATA=... python research/score_live.py [--steps RECORDED.csv] [--rank-hours 5000] [--faults 50]

Step times are real: of every rank of the published jobs in `stragglers/` (computation of each step), and of recordings
(columns rank, step, own_s). They are few, so longer runs are drawn from them by the stationary bootstrap (Politis and
Romano, 1994) of whole steps, all ranks together, which keeps how ranks depend on each other and steps on their
neighbours. A fault makes one rank's own time 10 % longer from one step on. Every method sees the same windows of ten
steps and the same ratio of each rank's time to its peers' median. Thresholds of the published methods are the lowest of
a list that keeps to one false alarm in 1,000 rank-hours on all other sources; ours has none to choose.
Needs pyarrow for the tables, and ruptures for PELT, else it is left out.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import importlib.util
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import StepTimes
from nodewise_diagnosis.running_job import diagnose_steps, windows_between_alarms
from nodewise_diagnosis.slowdowns import find_slowdowns
from nodewise_diagnosis.step_windows import peer_log_ratio

Floats = NDArray[np.float64]
WINDOW: Final = 10
LEARNED: Final = 20
BLOCK: Final = 5
"""Mean steps of a block of the bootstrap."""
SLOWER: Final = 1.10
FAULT_AT: Final = 400
"""Steps before the fault, within a window at random."""
AFTER: Final = 300
"""Steps after it."""
ALLOWED: Final = 1.0
"""False alarms in 1,000 rank-hours."""
CLEAN_STEPS: Final = 2000
PELT_RUNS: Final = 2
"""It takes seconds a run."""


@dataclass(frozen=True)
class Source:
    """Own time of every step and rank, and the job's mean step."""

    name: str
    own_s: Floats
    step_s: float


Detector = Callable[[Floats, float], Iterator[tuple[int, int]]]
"""From windows [window, rank] of own times and a threshold to alarms: the window after which, and the rank."""


def tables() -> Iterator[Source]:
    """The published jobs, with the computation of every step and rank."""
    from nodewise_job_traces.operations import read_operations  # noqa: PLC0415 - needs pyarrow

    for path in sorted((Path(os.environ["NODEWISE_DATA"]) / "stragglers").glob("*.parquet")):
        table = read_operations(path)
        ranks = sorted({(index, place[2]) for place, start in table.start.items() for index in range(start.shape[1])})
        own: dict[tuple[int, int], Floats] = {}
        for place, start in table.start.items():
            if place[0] in {"forward-compute", "backward-compute"}:
                for index in range(start.shape[1]):
                    took = (table.end[place] - start)[:, index]
                    own[index, place[2]] = own.get((index, place[2]), np.zeros(len(took))) + took
        columns = [own[rank] for rank in ranks if rank in own]
        begin = np.min([start.min(axis=1) for start in table.start.values()], axis=0)
        end = np.max([finish.max(axis=1) for finish in table.end.values()], axis=0)
        yield Source(path.stem, np.column_stack(columns), float(np.median(end - begin)))


def recorded(path: Path) -> Source:
    """A recording: steps that all ranks have."""
    with path.open() as file:
        rows = [(int(row["rank"]), int(row["step"]), float(row["own_s"])) for row in csv.DictReader(file)]
    ranks = sorted({rank for rank, _, _ in rows})
    steps = sorted(set.intersection(*({s for r, s, _ in rows if r == rank} for rank in ranks)))
    own = {(rank, step): seconds for rank, step, seconds in rows}
    matrix = np.array([[own[rank, step] for rank in ranks] for step in steps])
    return Source(path.stem, matrix, float(np.median(matrix.max(axis=1))))


def drawn(source: Source, steps: int, rng: np.random.Generator) -> Floats:
    """Steps by the stationary bootstrap."""
    count = len(source.own_s)
    jump = rng.random(steps) < 1.0 / BLOCK
    start = rng.integers(count, size=steps)
    index = np.empty(steps, dtype=np.int64)
    for step in range(steps):
        index[step] = start[step] if step == 0 or jump[step] else (index[step - 1] + 1) % count
    return source.own_s[index]


def windows_of(own_s: Floats) -> Floats:
    """Medians over windows."""
    whole = len(own_s) // WINDOW
    return np.median(own_s[: whole * WINDOW].reshape(whole, WINDOW, -1), axis=1)


# --- methods


def ours(windows: Floats, _threshold: float, step_s: float) -> Iterator[tuple[int, int]]:
    """As the service does; alarms of the whole job bear rank -1. What was always slower is no alarm of a change."""
    count, ranks = windows.shape
    own, unknown = windows.ravel(), np.full(count * ranks, -1.0)
    first = np.repeat(np.arange(count) * WINDOW, ranks)
    whole = np.maximum(np.repeat(windows.max(axis=1), ranks), step_s)
    times = StepTimes(
        rank=np.tile(np.arange(ranks), count),
        node=np.full(count * ranks, -1),
        first_step=first,
        steps=np.full(count * ranks, WINDOW),
        begin_s=(first * step_s).astype(np.float64),
        step_s=whole,
        loading_s=unknown,
        forward_s=unknown,
        backward_s=unknown,
        exchange_s=whole - own,
        update_s=unknown,
    )
    changed = [alarm for alarm in diagnose_steps(times, StepTimes.concatenated([])).alarms if alarm.first_step >= 0]
    after = {
        (one.series, one.begin * WINDOW): one.alarm
        for one in find_slowdowns(peer_log_ratio(windows), windows_between_alarms(WINDOW * step_s))
    }
    for alarm in changed:
        rank = alarm.ranks[0] if alarm.ranks else -1
        yield after.get((rank, alarm.first_step), alarm.first_step // WINDOW), rank


def baselines() -> Mapping[str, tuple[Detector, tuple[float, ...]]]:
    """Published methods, each with the thresholds that it may have."""
    found: dict[str, tuple[Detector, tuple[float, ...]]] = {
        "cusum": (cusum, (4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0, 50.0, 100.0)),
        "z_score_of_peers": (z_score, (2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 7.0)),
        "robust_z_of_peers": (robust_z, (3.0, 3.5, 5.0, 7.0, 10.0, 15.0, 20.0, 40.0)),
    }
    if importlib.util.find_spec("ruptures") is not None:
        found["pelt"] = (pelt, (2.0, 4.0, 8.0, 16.0, 32.0, 64.0))
    return found


def cusum(windows: Floats, threshold: float) -> Iterator[tuple[int, int]]:
    """Page's, with the textbook's allowance of half a standard deviation and a reference of the first windows."""
    ratio = peer_log_ratio(windows)
    centre, spread = ratio[:LEARNED].mean(axis=0), ratio[:LEARNED].std(axis=0, ddof=1)
    sums = np.zeros(windows.shape[1])
    for window in range(LEARNED, len(windows)):
        sums = np.maximum(sums + (ratio[window] - centre) / spread - 0.5, 0.0)
        for rank in np.flatnonzero(sums > threshold).tolist():
            sums[rank] = 0.0
            yield window, rank


def _crossings(scores: Floats, threshold: float) -> Iterator[tuple[int, int]]:
    over = scores > threshold
    over[1:] &= ~over[:-1]
    for window, rank in np.argwhere(over).tolist():
        if window >= LEARNED:
            yield window, rank


def z_score(windows: Floats, threshold: float) -> Iterator[tuple[int, int]]:
    """Standard score among the ranks of a window."""
    logs = np.log(windows)
    return _crossings((logs - logs.mean(axis=1, keepdims=True)) / logs.std(axis=1, keepdims=True), threshold)


def robust_z(windows: Floats, threshold: float) -> Iterator[tuple[int, int]]:
    """The same by median and median absolute deviation (Iglewicz and Hoaglin, 1993)."""
    logs = np.log(windows)
    apart = logs - np.median(logs, axis=1, keepdims=True)
    return _crossings(0.6745 * apart / np.median(np.abs(apart), axis=1, keepdims=True), threshold)


def pelt(windows: Floats, threshold: float) -> Iterator[tuple[int, int]]:
    """Killick et al.'s over the newest 40 windows, with a penalty of so many times ln n, after every second window."""
    ruptures = importlib.import_module("ruptures")
    ratio = peer_log_ratio(windows)
    spread = np.median(np.abs(np.diff(ratio[:LEARNED], axis=0)), axis=0) * 1.4826 / math.sqrt(2)
    for rank in range(windows.shape[1]):
        held = False
        for last in range(LEARNED + 1, len(windows), 2):
            recent = ratio[max(0, last - 39) : last + 1, rank] / spread[rank]
            cuts = ruptures.Pelt(model="l2", min_size=2, jump=1).fit_predict(recent, threshold * math.log(len(recent)))
            raised = len(cuts) > 1 and recent[cuts[-2] :].mean() > recent[: cuts[-2]].mean()
            if raised and not held:
                yield last, rank
            held = raised


# --- scores


def false_alarms(source: Source, method: Detector, threshold: float, rank_hours: float, seed: int) -> float:
    """In 1,000 rank-hours, of runs in which nothing was planted."""
    rng = np.random.default_rng(seed)
    ranks = source.own_s.shape[1]
    per_run = ranks * (CLEAN_STEPS - LEARNED * WINDOW) * source.step_s / 3600.0
    runs = max(3, math.ceil(rank_hours / per_run))
    runs = min(runs, PELT_RUNS) if method is pelt else runs
    count = sum(len(list(method(windows_of(drawn(source, CLEAN_STEPS, rng)), threshold))) for _ in range(runs))
    return float(1000.0 * count / (runs * per_run))


def delays(source: Source, method: Detector, threshold: float, faults: int, seed: int) -> list[float]:
    """Steps from the fault to the end of the window after which its rank is named; infinity = never."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(faults):
        at, rank = FAULT_AT + int(rng.integers(WINDOW)), int(rng.integers(source.own_s.shape[1]))
        own = drawn(source, FAULT_AT + AFTER, rng).copy()
        own[at:, rank] *= SLOWER
        named = [w for w, r in method(windows_of(own), threshold) if r == rank and (w + 1) * WINDOW > at]
        found.append((min(named) + 1) * WINDOW - at if named else math.inf)
    return found


def main() -> None:
    """Print one line a method and source."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=Path, nargs="*", default=[])
    parser.add_argument("--rank-hours", type=float, default=5000.0)
    parser.add_argument("--faults", type=int, default=50)
    parser.add_argument("--only", nargs="*", default=None, help="methods")
    options = parser.parse_args()
    sources = [*tables(), *map(recorded, options.steps)]
    for source in sources:
        print(json.dumps({"source": source.name, "steps": len(source.own_s), "ranks": source.own_s.shape[1],
                          "step_s": round(source.step_s, 4)}))  # fmt: skip
    methods: dict[str, tuple[Detector | None, tuple[float, ...]]] = {"nodewise": (None, (0.0,)), **baselines()}
    for name, (method, thresholds) in methods.items():
        if options.only and name not in options.only:
            continue
        by_source: dict[str, Detector] = {
            source.name: partial(ours, step_s=source.step_s) if method is None else method for source in sources
        }
        rates = {
            (source.name, each): false_alarms(source, by_source[source.name], each, options.rank_hours, seed=1)
            for source in sources
            for each in thresholds
        }
        for source in sources:
            fit = [
                each
                for each in thresholds
                if all(rates[other.name, each] <= ALLOWED for other in sources if other is not source)
            ]
            chosen = fit[0] if fit else thresholds[-1]
            steps = sorted(delays(source, by_source[source.name], chosen, options.faults, seed=2))
            print(
                json.dumps(
                    {
                        "method": name,
                        "source": source.name,
                        "threshold": chosen if method is not None else None,
                        "false_alarms_per_1000_rank_hours": round(rates[source.name, chosen], 3),
                        "found": round(float(np.isfinite(steps).mean()), 3),
                        "found_within_50_steps": round(float(np.mean(np.array(steps) <= 50)), 3),
                        "median_delay_steps": steps[len(steps) // 2] if math.isfinite(steps[len(steps) // 2]) else None,
                    }
                ),
                flush=True,
            )


if __name__ == "__main__":
    main()
