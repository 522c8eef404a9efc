"""The search for the best partition: a space of 2.4 million configurations, beside the same model asked row by row."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from results import Result

from nodewise.catalogue.loading import load_catalogue
from nodewise.domain.columns import as_ints
from nodewise.estimation.answer.answers import Answers
from nodewise.hosting.registry import load_registry
from nodewise.planning.plan import make_plan
from nodewise.planning.planner import planner_of
from nodewise.planning.results import PlanQuestion, PlanResult
from nodewise.ports.limits import Limits
from nodewise.rpc.options import ReadOptions
from nodewise.rpc.plans import read_plan
from nodewise.rpc.sources import read_content
from nodewise_cli.inputs.documents import read_value
from nodewise_values import PlanRequest
from nodewise_values.wire import to_message

SPEC = Path(__file__).parent.parent / "examples" / "plan_22b_64_devices.json"
ONE_BY_ONE = 2_000
REPEATS = 3


def question(*, exhaustive: bool, frontier_points: int = 100) -> PlanQuestion:
    request = to_message(read_value(SPEC, PlanRequest))
    plan, _ = read_plan(request, ReadOptions(), Limits())
    return replace(
        plan,
        profile=read_content(request.profile.content, "profile.content", Limits()),
        exhaustive=exhaustive,
        frontier_points=frontier_points,
        explain=False,
    )


def searched(engine: Answers, asked: PlanQuestion, repeats: int = REPEATS) -> PlanResult:
    """The quickest of some searches."""
    return min((make_plan(engine, asked) for _ in range(repeats)), key=lambda found: found.search_s)


def best(found: PlanResult) -> list[int]:
    assert found.answer is not None
    row = found.answer.configurations
    names = ("nodes", "workers", "global_batch", "tensor_parallel", "pipeline_parallel", "data_parallel", "interleave")
    return [int(getattr(row, name)[0]) for name in names]


def one_by_one_s(engine: Answers) -> float:
    """Seconds of one configuration when each is evaluated alone."""
    planner = planner_of(engine, question(exhaustive=True))
    space = planner.space()
    few = as_ints(np.random.default_rng(0).choice(len(space.prefixes), ONE_BY_ONE, replace=False))
    rows, _, _ = space.evaluate(few)
    singles = [rows.take(as_ints([row])) for row in np.linspace(0, len(rows) - 1, ONE_BY_ONE).astype(int)]
    started = time.perf_counter()
    for single in singles:
        planner.model.evaluate(single, planner.constraints)
    return (time.perf_counter() - started) / ONE_BY_ONE


def run() -> Iterator[Result]:
    """One core: NumPy's products are small, and nothing here has threads."""
    engine = Answers(load_registry(safe_mode=True), catalogue=load_catalogue())
    exhaustive = searched(engine, question(exhaustive=True))
    pruned = searched(engine, question(exhaustive=False))
    best_alone = searched(engine, question(exhaustive=False, frontier_points=0))
    if not best(exhaustive) == best(pruned) == best(best_alone):
        raise SystemExit("pruning changed the optimum")
    alone_s = one_by_one_s(engine)
    space = exhaustive.space
    yield Result("plan_evaluated", space / exhaustive.search_s, f"configurations/s of {space}", 1.0 / alone_s)
    yield Result("plan_22b_64_devices_exhaustive", exhaustive.search_s, "s", space * alone_s)
    yield Result("plan_22b_64_devices_pruned", pruned.search_s, "s", exhaustive.search_s)
    yield Result("plan_22b_64_devices_pruned_best_alone", best_alone.search_s, "s", exhaustive.search_s)
