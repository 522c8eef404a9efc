"""Runs in SkyPilot's environment: its own optimizer over a catalogue of the tests, at home in an empty folder.

``skypilot_program.py TARGET SECONDS``, or with further targets, at each of which Nodewise fails.
"""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

import sky
from sky.optimizer import Optimizer
from small_catalogue import prepare

from nodewise_client import ExponentialLifetimes, LifetimeLaw
from nodewise_integrations.advice import Adviser, NoAnswer
from nodewise_integrations.skypilot import Spot, choose_offer, time_estimator

PROFILE = "team-a/cifar10"
COLUMNS = {"global_batch_samples": 2048, "sync_modes": "allreduce"}


def task(*accelerators: str, nodes: int = 2) -> tuple[sky.Dag, sky.Task]:
    with sky.Dag() as dag:
        made = sky.Task(run="true", num_nodes=nodes)
        made.set_resources({sky.Resources(accelerators=each) for each in accelerators})
    return dag, made


def told(**what: Any) -> None:
    print(json.dumps(what), flush=True)


def optimized(adviser: Adviser, minimize: Any) -> None:
    dag, made = task("T4:4", "V100:4", "A100:4")
    asked: list[str] = []
    estimate = time_estimator(made, PROFILE, steps=334_300, adviser=adviser, columns=COLUMNS)
    made.set_time_estimator(lambda resources: asked.append(str(resources)) or estimate(resources))
    Optimizer.optimize(dag, minimize=minimize, quiet=True)
    (chosen,) = made.best_resources.accelerators.items()
    told(chosen=chosen, nodes=made.num_nodes, seconds=estimate(made.best_resources), asked=len(asked))


def chosen(adviser: Adviser, *, spot: bool, deadline_hours: float) -> None:
    dag, made = task("T4:4", "V100:4", "A100:4", nodes=1)
    lifetime = LifetimeLaw(exponential=ExponentialLifetimes(mean_seconds=20 * 3600))
    found = choose_offer(
        made,
        PROFILE,
        samples=334_300 * 2048,
        nodes=(1, 2, 4),
        deadline_seconds=deadline_hours * 3600,
        confidence=0.9 if spot else None,
        spot=Spot(lifetime=lifetime, restart_seconds=60, checkpoint_seconds=5, replacement_seconds=150)
        if spot
        else None,
        adviser=adviser,
        columns=COLUMNS,
    )
    Optimizer.optimize(dag, quiet=True)
    best = made.best_resources
    told(
        answer=str(found),
        answered=not isinstance(found, NoAnswer),
        nodes=made.num_nodes,
        accelerators=best.accelerators,
        spot=best.use_spot,
        seconds=getattr(found, "seconds", None),
    )


def large(adviser: Adviser) -> None:
    dag, made = task("V100-32GB:8", nodes=1)
    columns = {"batch_per_worker_samples": 1, "sync_modes": "allreduce"}
    found = choose_offer(made, "team-a/llm", samples=1e6, nodes=(1, 2, 4), adviser=adviser, columns=columns)
    Optimizer.optimize(dag, quiet=True)
    told(nodes=made.num_nodes, answer=str(found))


def failing(target: str) -> None:
    for ask in (
        lambda adviser: optimized(adviser, sky.OptimizeTarget.COST),
        lambda adviser: chosen(adviser, spot=False, deadline_hours=24),
        lambda adviser: chosen(adviser, spot=True, deadline_hours=24),
    ):
        ask(Adviser(target, timeout_seconds=1.0))


def main() -> None:
    logging.basicConfig(level=logging.INFO)
    prepare()
    for target in sys.argv[3:]:
        failing(target)
    if sys.argv[3:]:
        return
    adviser = Adviser(sys.argv[1], timeout_seconds=float(sys.argv[2]))
    optimized(adviser, sky.OptimizeTarget.COST)
    optimized(adviser, sky.OptimizeTarget.TIME)
    chosen(adviser, spot=False, deadline_hours=24)
    chosen(adviser, spot=True, deadline_hours=24)
    large(adviser)
    sys.stdin.readline()  # Nodewise is stopped now
    optimized(adviser, sky.OptimizeTarget.COST)
    chosen(adviser, spot=True, deadline_hours=24)


main()
