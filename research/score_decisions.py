"""What decides how much suggestions save, the order of runs or the model: `score_decisions.py TABLE.csv...`.

The decisions are those of `score_suggestions.py`, as far as few configurations are open. After every set of these the
model is asked what it recommends, in whatever order they ran. That tells how often it decides within a regret of the
best one, and what an order costs that is chosen in hindsight: no order costs less until the decision is right for good.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Final

import numpy as np

from nodewise.estimation.answer.answers import Answers
from nodewise.hosting.registry import load_registry
from score_scaling import Lessons
from score_suggestions import OBJECTIVES, Simulation, priors_of
from simulated_jobs import cases_of, jobs_of

MOST_OPEN: Final = 6
"""Configurations that may be open: the model is asked after each of their 2^n sets."""

Sets = Mapping[frozenset[int], bool]
"""Rows that ran, and whether the decision was right then."""


def right_after(simulation: Simulation, regret: float) -> Sets:
    """Every set of the open rows, smallest first."""
    sets = (rows for count in range(len(simulation.open) + 1) for rows in combinations(simulation.open, count))
    return {frozenset(rows): simulation.regret(rows) <= regret for rows in sets}


def least_node_s(right: Sets, costs: Sequence[float]) -> float:
    """Of all orders, the least node-seconds until the decision is right and stays so."""
    everything = max(right, key=len)
    lasting: set[frozenset[int]] = set()
    for ran in sorted(right, key=len, reverse=True):
        if right[ran] and (ran == everything or any(ran | {row} in lasting for row in everything - ran)):
            lasting.add(ran)
    return min((sum(costs[row] for row in ran) for ran in lasting), default=sum(costs[row] for row in everything))


def main() -> int:
    """Ask about all tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("tables", nargs="+", type=Path, help="measurements of all-reduce jobs")
    parser.add_argument("--regret", type=float, default=0.03, help="to be met, a share of the best throughput")
    arguments = parser.parse_args()
    registry, lessons = load_registry(safe_mode=True), Lessons(arguments.tables)
    print(
        f"{'':18}{'decisions':>10}{'right after':>14}{'best order':>14}{'suggested':>14}   node-seconds until for good"
    )
    for job in jobs_of(arguments.tables):
        engine = Answers(registry, priors=priors_of(lessons, job))
        found = []
        for case in cases_of(job, weak=False, second_nodes=1, least_rows=4, most_cases=12):
            simulation = Simulation(engine, case, OBJECTIVES["highest-throughput"], "scaling", 0.0)
            if len(simulation.open) <= MOST_OPEN:
                right = right_after(simulation, arguments.regret)
                followed = simulation.suggested(arguments.regret).until(arguments.regret, "lasting")
                found.append((sum(right.values()) / len(right), least_node_s(right, simulation.costs), followed))
        if found:
            share, best, followed = np.mean(found, axis=0)
            print(f"{job.name:18}{len(found):10}{100 * share:12.0f} %{best:14.1f}{followed:14.1f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
