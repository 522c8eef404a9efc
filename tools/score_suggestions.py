"""Simulate measuring what the service suggests, beside fixed designs: `score_suggestions.py TABLE.csv...`.

Every job of a table and batch is a decision: which of the measured configurations is the best for the objective. It
begins with two runs, and then one configuration after the other is "run", which is to look its throughput up in the
table. Counted are the node-seconds until the configuration that the estimator recommends is within a regret of the
best one. All designs decide with the same estimator, under a prior that saw no job of the same network.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import math
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from measurement_designs import Row, doubling, optimal, random_order  # type: ignore[import-not-found]
from nodewise.domain.columns import as_floats, as_ints
from nodewise.domain.configurations import Configurations, SyncMode
from nodewise.domain.objective import HighestThroughput, Knee, Objective
from nodewise.domain.predictions import Predictions
from nodewise.domain.profile import Observations, Profile
from nodewise.domain.workload import Workload
from nodewise.estimation.engine import Engine
from nodewise.estimation.objectives import judged
from nodewise.estimation.question import Question
from nodewise.estimation.registry import load_registry
from nodewise.estimation.suggest import Wish
from nodewise.plugin import Prior
from score_scaling import Lessons, model_of  # type: ignore[import-not-found]

SUGGESTED: Final = "suggested"
RECOMMENDED: Final = "recommended"
FIXED: Final = ("doubling", "A-optimal", "D-optimal", "D-optimal/node", "random")
DESIGNS: Final = (SUGGESTED, RECOMMENDED, *FIXED)
OBJECTIVES: Final = {"highest-throughput": Objective(rule=HighestThroughput()), "knee": Objective(rule=Knee())}
RUN_STEPS: Final = 100


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """One decision.

    Attributes
    ----------
    job, device : str
    batch : int
        What its rows share: the global batch, or that of one worker.
    rows, step_s : of equal length
        What may be run and chosen, and its step seconds: means over placements.
    start : mapping of Row to float
        The two runs that it begins with, and their step seconds.
    """

    job: str
    device: str
    batch: int
    rows: tuple[Row, ...]
    step_s: tuple[float, ...]
    start: Mapping[Row, float]


@dataclass(frozen=True, slots=True)
class Path_:
    """What one design came to: regret at the start and after each run, node-seconds after each run."""

    regrets: tuple[float, ...]
    node_s: tuple[float, ...]
    stopped: int | None = None

    def first(self, regret: float) -> float:
        """Node-seconds until the regret is met."""
        return self.node_s[next((index for index, each in enumerate(self.regrets) if each <= regret), -1)]

    def lasting(self, regret: float) -> float:
        """Node-seconds until the regret is met and stays."""
        above = [index for index, each in enumerate(self.regrets) if each > regret]
        return self.node_s[min(above[-1] + 1, len(self.node_s) - 1)] if above else 0.0


def tables_of(paths: Iterable[Path]) -> dict[tuple[str, str], dict[Row, float]]:
    """Step seconds by job and configuration; of a job in several tables that with most configurations."""
    found: dict[tuple[str, str], dict[Row, float]] = {}
    for path in paths:
        runs: dict[tuple[str, str], dict[Row, list[float]]] = defaultdict(lambda: defaultdict(list))
        with path.open(encoding="utf-8", newline="") as stream:
            for line in csv.DictReader(stream):
                row = Row(int(line["nodes"]), int(line["workers"]), int(line["batch_per_worker"]))
                runs[line["job"], line["device"]][row].append(1.0 / float(line["steps_per_s"]))
        for job, by_row in runs.items():
            if len(by_row) > len(found.get(job, ())):
                found[job] = {row: float(np.mean(steps)) for row, steps in by_row.items()}
    return found


def cases_of(
    job: tuple[str, str], steps: Mapping[Row, float], *, weak: bool, second_nodes: int, least: int, most: int
) -> Iterator[Case]:
    """At most so many decisions of a job, spread evenly over its batches, of at least so many configurations."""
    groups: dict[int, list[Row]] = defaultdict(list)
    for row in sorted(steps):
        groups[row.batch if weak else row.batch * row.workers].append(row)
    batches = sorted(batch for batch, rows in groups.items() if len(rows) >= least)
    start = start_of(steps, second_nodes)
    for place in np.unique(np.linspace(0, len(batches) - 1, min(most, len(batches))).round().astype(int)):
        rows = groups[batches[place]]
        yield Case(*job, batches[place], tuple(rows), tuple(steps[row] for row in rows), start)


def start_of(steps: Mapping[Row, float], second_nodes: int) -> dict[Row, float]:
    """One worker with the middle of its batches, and full nodes with the batch next to it."""
    single = sorted(row for row in steps if row.workers == 1)
    middle = single[len(single) // 2]
    most = max(row.workers for row in steps if row.nodes == second_nodes)
    full = [row for row in steps if (row.nodes, row.workers) == (second_nodes, most)]
    second = min(full, key=lambda row: (abs(math.log(row.batch / middle.batch)), row))
    return {middle: steps[middle], second: steps[second]}


class Bench:
    """One decision in simulation."""

    def __init__(self, engine: Engine, case: Case, objective: Objective, start_up_s: float) -> None:
        self._engine, self._case, self._objective = engine, case, objective
        self._wish = Wish(start_up_s=start_up_s, run_steps=RUN_STEPS)
        self._asked = configurations_of(case.rows, case.device)
        step_s = as_floats(case.step_s)
        samples = as_floats([row.workers * row.batch for row in case.rows])
        self._rates = samples / step_s
        verdict = judged(
            objective,
            self._asked.replaced(sync_mode=as_ints([int(SyncMode.ALLREDUCE)] * len(step_s))),
            Predictions.of(step_s),
            self._rates,
            self._rates,
            Workload(),
        )
        assert verdict.recommendation is not None
        self._best = self._rates[verdict.recommendation.row]
        self._costs = [
            row.nodes * (start_up_s + RUN_STEPS * each) for row, each in zip(case.rows, case.step_s, strict=True)
        ]

    def _question(self, ran: Sequence[int]) -> Question:
        case = self._case
        rows = [*case.start, *(case.rows[index] for index in ran)]
        steps = [*case.start.values(), *(case.step_s[index] for index in ran)]
        observations = Observations.of(configurations_of(rows, case.device), as_floats(1.0 / np.array(steps)))
        observations = replace(observations, measured_at_s=as_floats(1.0 + np.arange(len(rows))))
        digest = hashlib.sha256(repr((case.job, rows, steps)).encode()).hexdigest()
        profile = Profile(digest=digest, observations=observations)
        return Question(
            profile=profile, configurations=self._asked, objective=self._objective, estimator=ESTIMATOR
        )

    def _recommended(self, ran: Sequence[int]) -> int:
        recommendation = self._engine.answer(self._question(ran)).recommendation
        assert recommendation is not None
        return recommendation.row

    def _regret(self, ran: Sequence[int]) -> float:
        return abs(1.0 - float(self._rates[self._recommended(ran)] / self._best))

    @property
    def unknown(self) -> list[int]:
        return [index for index, row in enumerate(self._case.rows) if row not in self._case.start]

    def path(self, order: Iterable[int]) -> Path_:
        """Of runs in an order that was fixed before."""
        ran: list[int] = []
        regrets, node_s = [self._regret(ran)], [0.0]
        for index in order:
            ran.append(index)
            regrets.append(self._regret(ran))
            node_s.append(node_s[-1] + self._costs[index])
        return Path_(tuple(regrets), tuple(node_s))

    def recommended(self) -> Path_:
        """Of running what is recommended, as long as it was not run; then what is left, by nodes."""
        ran: list[int] = []
        regrets, node_s = [self._regret(ran)], [0.0]
        unknown = self.unknown
        while unknown:
            index = self._recommended(ran)
            index = index if index in unknown else unknown[0]
            unknown.remove(index)
            ran.append(index)
            regrets.append(self._regret(ran))
            node_s.append(node_s[-1] + self._costs[index])
        return Path_(tuple(regrets), tuple(node_s))

    def suggested(self) -> Path_:
        """Of running what is suggested, until nothing is or everything was run."""
        ran: list[int] = []
        regrets, node_s = [self._regret(ran)], [0.0]
        stopped = None
        left = set(self.unknown)
        while left and len(ran) < 3 * len(self._case.rows):
            found = self._engine.suggest(self._question(ran), self._wish)
            if stopped is None and (
                not found.suggestions or found.suggestions[0].why.startswith("no measurement is needed")
            ):
                stopped = len(ran)
            if not found.suggestions:
                break
            index = found.suggestions[0].row
            left.discard(index)
            ran.append(index)
            regrets.append(self._regret(ran))
            node_s.append(node_s[-1] + self._costs[index])
        REPEATS.append((len(ran), len(ran) - len(set(ran))))
        return Path_(tuple(regrets), tuple(node_s), len(ran) if stopped is None else stopped)


REPEATS: list[tuple[int, int]] = []
ESTIMATOR = "scaling"


def configurations_of(rows: Sequence[Row], device: str) -> Configurations:
    """As asked and as observed."""
    plain = Configurations.of(
        len(rows),
        nodes=[row.nodes for row in rows],
        workers=[row.workers for row in rows],
        device=device,
        sync_mode=SyncMode.ALLREDUCE,
    )
    return plain.replaced(batch_per_worker=as_ints([row.batch for row in rows]))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("tables", nargs="+", type=Path)
    parser.add_argument("--objective", choices=OBJECTIVES, default="highest-throughput")
    parser.add_argument("--regret", type=float, default=0.03)
    parser.add_argument("--start-up-s", type=float, default=0.0)
    parser.add_argument("--second-nodes", type=int, default=1)
    parser.add_argument("--least", type=int, default=4)
    parser.add_argument("--most", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--verbose", action="store_true")
    a = parser.parse_args()
    import time, pickle
    t0 = time.time()
    lessons = Lessons(a.tables)
    cache = Path("/tmp/wt-g-tmp/know.pkl")
    know = pickle.loads(cache.read_bytes()) if cache.exists() else {}
    registry = load_registry(safe_mode=True)
    total = {}
    for job, steps in sorted(tables_of(a.tables).items()):
        model = model_of(job)
        if model not in know:
            know[model] = lessons.knowledge(model, "")
            cache.write_bytes(pickle.dumps(know))
        prior = Prior(prior_id=f"without-{model}", estimator="scaling", sources=(), content=know[model])
        engine = Engine(registry, priors={"scaling": prior})
        per = defaultdict(list)
        for case in cases_of(
            job, steps, weak=a.objective == "knee", second_nodes=a.second_nodes, least=a.least, most=a.most
        ):
            bench = Bench(engine, case, OBJECTIVES[a.objective], a.start_up_s)
            un = bench.unknown
            rows = [case.rows[i] for i in un]
            start = list(case.start)
            orders = {
                "doubling": [doubling(rows)],
                **{n: [optimal(rows, start, criterion=c)] for n, c in (("A-optimal", "A"), ("D-optimal", "D"), ("D-optimal/node", "D/cost"))},
                "random": [random_order(rows, s) for s in range(a.seeds)],
            }
            for n, os_ in orders.items():
                per[n].append([bench.path([un[i] for i in o]) for o in os_])
            per[SUGGESTED].append([bench.suggested()])
            per[RECOMMENDED].append([bench.recommended()])
            if a.verbose:
                p = per[SUGGESTED][-1][0]
                print(job, case.batch, len(case.rows), [f"{100*r:.0f}" for r in p.regrets], "stop", p.stopped, *(f"{n} {np.mean([q.first(a.regret) for q in per[n][-1]]):.0f}/{np.mean([q.lasting(a.regret) for q in per[n][-1]]):.0f}" for n in DESIGNS))
        if per:
            total[job[0]] = per
    print(f"{time.time()-t0:.0f} s; runs {sum(x for x,_ in REPEATS)} repeats {sum(y for _,y in REPEATS)}")
    for kind in ("first", "lasting"):
        print(kind)
        val = {}
        for job, per in total.items():
            val[job] = {n: np.mean([np.mean([getattr(q, kind)(a.regret) for q in c]) for c in per[n]]) for n in DESIGNS}
            st = [c[0] for c in per[SUGGESTED]]
            print(f"{job:16}{len(st):4}" + "".join(f"{val[job][n]:12.1f}" for n in DESIGNS) + f" stop: {np.mean([q.node_s[q.stopped] for q in st]):.1f} regret {100*np.mean([q.regrets[q.stopped] for q in st]):.1f} start {100*np.mean([q.regrets[0] for q in st]):.1f} within3 {np.mean([q.regrets[q.stopped]<=a.regret for q in st]):.2f}")
        for n in DESIGNS[1:]:
            w = sum(v[SUGGESTED] < v[n]*(1-1e-9) for v in val.values()); l = sum(v[SUGGESTED] > v[n]*(1+1e-9) for v in val.values())
            r = [math.log(v[SUGGESTED] / v[n]) for v in val.values() if v[n] > 0 and v[SUGGESTED] > 0]
            cw = cl = 0
            for per in total.values():
                for c, d in zip(per[SUGGESTED], per[n]):
                    x, y = getattr(c[0], kind)(a.regret), np.mean([getattr(q, kind)(a.regret) for q in d])
                    cw += x < y - 1e-9; cl += x > y + 1e-9
            print(f"  vs {n:16} jobs won {w} lost {l} of {len(val)}; geomean ratio {math.exp(np.mean(r)):.2f} over {len(r)}; decisions won {cw} lost {cl}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
