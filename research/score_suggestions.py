"""Simulate measuring what the service suggests, beside fixed designs: `score_suggestions.py TABLE.csv...`.

Every job and batch of a table is a decision: which of the measured configurations is best. It begins with two runs.
Then one configuration after the other is "run", which is to look its throughput up in the table, until all were.
Counted are the node-seconds until the configuration that the estimator recommends lies within a regret of the best one,
for the first time and for good. All designs decide with the same estimator, `scaling` under a prior that saw no job of
the same network.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from measurement_designs import CRITERIA, doubling, optimal, random_order
from nodewise.domain.columns import as_floats
from nodewise.domain.configurations import SyncMode
from nodewise.domain.objective import HighestThroughput, Knee, Objective
from nodewise.domain.predictions import Predictions
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.answer.objectives import verdict_of
from nodewise.estimation.question import Question, Terms
from nodewise.estimation.suggestion.search import Suggestions, Wish
from nodewise.estimation.suggestion.suggest import suggest
from nodewise.hosting.registry import load_registry
from nodewise.plugin import Prior
from score_scaling import Lessons
from simulated_jobs import Case, Job, cases_of, jobs_of

SUGGESTED: Final = "suggested"
RECOMMENDED: Final = "recommended"
DESIGNS: Final = (SUGGESTED, RECOMMENDED, "doubling", *CRITERIA, "random")
"""``RECOMMENDED`` runs what is recommended until that has run, then the rest by nodes: a plain rule, but not fixed."""
ENDS: Final = ("first", "lasting")
OBJECTIVES: Final = {
    "highest-throughput": Objective(rule=HighestThroughput(), most_extrapolation=0.0),
    "knee": Objective(rule=Knee(), most_extrapolation=0.0),
}
"""Of every row, however far it lies from what ran."""
NOT_NEEDED: Final = "no further run would change the decision"
RUN_STEPS: Final = 100
TIE: Final = 1e-9

Choose = Callable[[Sequence[int]], int | None]
"""The next row, given those that ran; None = none."""


@dataclass(frozen=True, slots=True)
class Walk:
    """What came of one design: regrets and node-seconds at the start and after each run.

    ``enough`` counts the runs after which the service expected a regret within the asked one, ``settled`` those after
    which it expected nothing of any measurement.
    """

    regrets: tuple[float, ...]
    node_s: tuple[float, ...]
    enough: int = -1
    settled: int = -1

    def until(self, regret: float, end: str) -> float:
        """Node-seconds until the regret is met: the first time, or for good."""
        met = [each <= regret for each in self.regrets]
        if end == "first":
            return self.node_s[met.index(True)] if True in met else self.node_s[-1]
        missed = [index for index, each in enumerate(met) if not each]
        return self.node_s[min(missed[-1] + 1, len(met) - 1)] if missed else 0.0


class Simulation:
    """One decision, its configurations "run" one after the other."""

    def __init__(self, engine: Answers, case: Case, objective: Objective, estimator: str, start_up_s: float) -> None:
        self._engine, self._case, self._objective, self._terms = engine, case, objective, Terms(estimator=estimator)
        self._wish = Wish(start_up_s=start_up_s, run_steps=RUN_STEPS)
        self._asked = case.job.configurations(case.rows)
        resolved = engine.resolve_configurations(case.job.profile(case.start), self._asked)
        steps_per_s = as_floats([case.job.steps_per_s[row] for row in case.rows])
        step_s = as_floats(resolved.cycles_per_step() / steps_per_s)
        samples = steps_per_s * resolved.samples_per_step()
        minibatches = steps_per_s * resolved.minibatches_per_step()
        profile = case.job.profile(case.start)
        verdict = verdict_of(objective, resolved, Predictions.of(step_s), samples, minibatches, profile.workload)
        assert verdict.recommendation is not None
        rates = samples if samples.all() else minibatches
        self._regrets: list[float] = np.abs(rates / rates[verdict.recommendation.row] - 1.0).tolist()
        self.costs = (resolved.nodes_held() * (start_up_s + RUN_STEPS * step_s)).tolist()
        self.open = [index for index, row in enumerate(case.rows) if row not in case.start]

    def in_order(self, order: Iterable[int]) -> Walk:
        """Of a fixed design: places among the open rows."""
        rows = [self.open[place] for place in order]
        return self._walk(lambda ran: rows[len(ran)] if len(ran) < len(rows) else None)

    def recommended(self) -> Walk:
        """Of running what is recommended."""

        def choose(ran: Sequence[int]) -> int | None:
            left = [row for row in self.open if row not in ran]
            row = self._recommended(ran)
            return row if row in left else next(iter(left), None)

        return self._walk(choose)

    def suggested(self, regret: float) -> Walk:
        """Of running what is suggested, then the rest by nodes."""
        enough, settled = [], []

        def choose(ran: Sequence[int]) -> int | None:
            left = [row for row in self.open if row not in ran]
            found = self._suggestions(ran)
            if found.expected_regret <= regret:
                enough.append(len(ran))
            if not found.suggestions or NOT_NEEDED in found.suggestions[0].why:
                settled.append(len(ran))
            return found.suggestions[0].row if found.suggestions else next(iter(left), None)

        walk = self._walk(choose)
        last = len(walk.regrets) - 1
        return replace(walk, enough=next(iter(enough), last), settled=next(iter(settled), last))

    def regret(self, ran: Sequence[int]) -> float:
        """Of what is recommended once some of the open rows ran."""
        return self._regrets[self._recommended(ran)]

    def _walk(self, choose: Choose) -> Walk:
        ran: list[int] = []
        regrets, node_s = [self.regret(ran)], [0.0]
        while len(ran) < len(self.open):
            row = choose(ran)
            if row is None:
                break
            ran.append(row)
            regrets.append(self.regret(ran))
            node_s.append(node_s[-1] + self.costs[row])
        return Walk(tuple(regrets), tuple(node_s))

    def _question(self, ran: Sequence[int]) -> Question:
        case = self._case
        profile = case.job.profile([*case.start, *(case.rows[index] for index in ran)])
        asked, objective = self._asked, self._objective
        return Question(profile=profile, configurations=asked, objective=objective, terms=self._terms)

    def _recommended(self, ran: Sequence[int]) -> int:
        recommendation = self._engine.answer(self._question(ran)).recommendation
        assert recommendation is not None
        return recommendation.row

    def _suggestions(self, ran: Sequence[int]) -> Suggestions:
        return suggest(self._engine, self._question(ran), self._wish)


def walks_of(simulation: Simulation, case: Case, regret: float, seeds: int) -> dict[str, list[Walk]]:
    """Every design's; of random orders several."""
    rows = [case.rows[index] for index in simulation.open]
    fixed = {"doubling": doubling(rows), **{each: optimal(rows, case.start, each) for each in CRITERIA}}
    return {
        SUGGESTED: [simulation.suggested(regret)],
        RECOMMENDED: [simulation.recommended()],
        **{name: [simulation.in_order(order)] for name, order in fixed.items()},
        "random": [simulation.in_order(random_order(rows, seed)) for seed in range(seeds)],
    }


class Scores:
    """Walks of all decisions, by job."""

    def __init__(self, regret: float, jobs: Mapping[str, Sequence[Mapping[str, Sequence[Walk]]]]) -> None:
        self.regret, self.jobs = regret, jobs

    def node_s(self, walks: Sequence[Walk], end: str) -> float:
        """Mean over a design's walks."""
        return float(np.mean([walk.until(self.regret, end) for walk in walks]))

    def by_job(self, design: str, end: str) -> dict[str, float]:
        """Mean node-seconds over each job's decisions."""
        return {
            name: float(np.mean([self.node_s(each[design], end) for each in cases]))
            for name, cases in self.jobs.items()
        }

    def against(self, design: str, end: str, start_node_s: Mapping[str, float]) -> dict[str, float]:
        """Jobs and decisions in which suggestions cost less and more, and the mean ratio of node-seconds over jobs.

        The ratio counts the two runs at the start, so that no job is left out for costing nothing more.
        """
        ours, theirs = self.by_job(SUGGESTED, end), self.by_job(design, end)
        cases = [each for several in self.jobs.values() for each in several]
        pairs = [(self.node_s(each[SUGGESTED], end), self.node_s(each[design], end)) for each in cases]
        ratios = [math.log((start_node_s[job] + ours[job]) / (start_node_s[job] + theirs[job])) for job in ours]
        further = [math.log(ours[job] / theirs[job]) for job in ours if ours[job] > 0.0 < theirs[job]]
        return {
            "jobs_won": sum(ours[job] < theirs[job] * (1.0 - TIE) for job in ours),
            "jobs_lost": sum(ours[job] > theirs[job] * (1.0 + TIE) for job in ours),
            "decisions_won": sum(one < other * (1.0 - TIE) for one, other in pairs),
            "decisions_lost": sum(one > other * (1.0 + TIE) for one, other in pairs),
            "ratio": math.exp(float(np.mean(further))) if further else 1.0,
            "ratio_with_start": math.exp(float(np.mean(ratios))),
        }

    def stops(self) -> dict[str, dict[str, float]]:
        """When the service says that it is enough, and what is true then: means over decisions."""
        walks = [each[SUGGESTED][0] for several in self.jobs.values() for each in several]
        places = {"start": [0] * len(walks), "enough": [w.enough for w in walks], "settled": [w.settled for w in walks]}
        places["everything"] = [len(walk.regrets) - 1 for walk in walks]
        found = {}
        for name, at in places.items():
            regrets = np.array([walk.regrets[place] for walk, place in zip(walks, at, strict=True)])
            node_s = [walk.node_s[place] for walk, place in zip(walks, at, strict=True)]
            within = float((regrets <= self.regret).mean())
            found[name] = {
                "runs": float(np.mean(at)), "node_s": float(np.mean(node_s)), "regret": float(regrets.mean()),
                "within": within,
            }  # fmt: skip
        return found


def main() -> int:
    """Simulate all tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("tables", nargs="+", type=Path, help="measurements, all rows of which are used")
    parser.add_argument(
        "--objective", choices=OBJECTIVES, default="highest-throughput", help="knee: by batch per worker"
    )
    parser.add_argument("--regret", type=float, default=0.03, help="to be met, a share of the best throughput")
    parser.add_argument("--start-up-s", type=float, default=0.0, help="seconds to start a run")
    parser.add_argument("--second-nodes", type=int, default=1, help="full nodes of the second run before the decision")
    parser.add_argument("--least-rows", type=int, default=4, help="configurations of a decision")
    parser.add_argument("--most-cases", type=int, default=12, help="decisions of a job, evenly over its batches")
    parser.add_argument("--seeds", type=int, default=8, help="random orders")
    parser.add_argument("--estimator", default="scaling", help='what decides; "auto" chooses')
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    arguments = parser.parse_args()
    scores, start_node_s = simulated(arguments)
    if not scores.jobs:
        parser.error("no job of the tables has the runs to begin with and --least-rows configurations of one batch")
    document = {
        end: {
            "node_s": {design: scores.by_job(design, end) for design in DESIGNS},
            "against": {design: scores.against(design, end, start_node_s) for design in DESIGNS[1:]},
        }
        for end in ENDS
    }
    if arguments.json:
        print(json.dumps({**document, "stops": scores.stops(), "start_node_s": start_node_s}))
    else:
        _print(document, scores)
    return 0


def simulated(arguments: argparse.Namespace) -> tuple[Scores, dict[str, float]]:
    """Walks of all jobs, and node-seconds of the two runs that each begins with."""
    registry = load_registry(safe_mode=True)
    jobs = jobs_of(arguments.tables)
    lessons = Lessons([path for path in arguments.tables if _all_reduce(jobs_of([path]))])
    objective = OBJECTIVES[arguments.objective]
    found, start_node_s = {}, {}
    for job in jobs:
        cases = list(
            cases_of(
                job,
                weak=arguments.objective == "knee",
                second_nodes=arguments.second_nodes,
                least_rows=arguments.least_rows,
                most_cases=arguments.most_cases,
            )
        )
        if not cases:
            continue
        engine = Answers(registry, priors=priors_of(lessons, job))
        several = []
        for case in cases:
            simulation = Simulation(engine, case, objective, arguments.estimator, arguments.start_up_s)
            several.append(walks_of(simulation, case, arguments.regret, arguments.seeds))
        found[job.name] = several
        asked = engine.resolve_configurations(job.profile(cases[0].start), job.configurations(cases[0].start))
        step_s = asked.cycles_per_step() / np.array([job.steps_per_s[row] for row in cases[0].start])
        start_node_s[job.name] = float((asked.nodes_held() * (arguments.start_up_s + RUN_STEPS * step_s)).sum())
    return Scores(arguments.regret, found), start_node_s


def _all_reduce(jobs: Sequence[Job]) -> bool:
    return all(job.sync_mode is SyncMode.ALLREDUCE for job in jobs)


def priors_of(lessons: Lessons, job: Job) -> dict[str, Prior]:
    """What `scaling` may know of other networks; parameter servers' estimators learn nothing of jobs."""
    if job.sync_mode is not SyncMode.ALLREDUCE:
        return {}
    knowledge = lessons.knowledge(job.network, "")
    return {"scaling": Prior(prior_id=f"without-{job.network}", estimator="scaling", sources=(), content=knowledge)}


def _print(document: Mapping[str, Any], scores: Scores) -> None:
    width = max(len(name) for name in scores.jobs) + 2
    for end, found in document.items():
        told = "for the first time" if end == "first" else "for good"
        print(f"Node-seconds to a regret of {100 * scores.regret:g} % {told}, mean over a job's decisions")
        print(f"{'':{width}}{'n':>4}" + "".join(f"{design:>15}" for design in DESIGNS))
        for name, cases in scores.jobs.items():
            cells = "".join(f"{found['node_s'][design][name]:15.1f}" for design in DESIGNS)
            print(f"{name:{width}}{len(cases):4}{cells}")
        for design, each in found["against"].items():
            print(
                f"suggested against {design}: {each['jobs_won']} jobs cost less, {each['jobs_lost']} more; decisions "
                f"{each['decisions_won']} and {each['decisions_lost']}; node-seconds x {each['ratio']:.2f} "
                f"(x {each['ratio_with_start']:.2f} with the start)"
            )
        print()
    print("Where suggestions are followed up to a point: means over decisions")
    for name, stop in scores.stops().items():
        print(
            f"{name:12} {stop['runs']:6.2f} runs {stop['node_s']:9.1f} node-s  regret {100 * stop['regret']:5.2f} %  "
            f"within {100 * stop['within']:.0f} %"
        )


if __name__ == "__main__":
    sys.exit(main())
