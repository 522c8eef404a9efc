"""Plans as JSON and for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from nodewise.cli.console import print_table, say, shown
from nodewise_client import Planned, PlanRejection, PlanResult

__all__ = ["document", "show"]

SHOWN_POINTS: Final = 20
"""Points of the frontier that a reader is shown; all of them are in the JSON."""

_DEFAULTS: Final[dict[str, Any]] = {
    "device": "",
    "nodes": 0,
    "workers": 0,
    "global_batch": 0,
    "batch_per_worker": 0,
    "accumulation": 1,
    "tensor_parallel": 1,
    "pipeline_parallel": 1,
    "data_parallel": 0,
    "context_parallel": 1,
    "expert_parallel": 1,
    "interleave": 1,
    "recompute": None,
    "sequence_parallel": False,
    "zero_stage": 0,
    "precision": "",
    "sync": None,
    "parameter_servers": 0,
}
"""What a configuration says, and what the columns that an answer leaves out hold."""


def document(result: PlanResult) -> dict[str, Any]:
    """The JSON of a plan. What is not known is null."""
    chosen = result.recommendation
    return {
        "space": result.space,
        "evaluated": result.evaluated,
        "pruned": result.pruned,
        "feasible": result.feasible,
        "search_s": result.search_s,
        "complete": result.complete,
        "best": None if result.best is None else _row(result.best),
        "rule": None if chosen is None else chosen.rule,
        "why": None if chosen is None else chosen.why,
        "numbers": {} if chosen is None else chosen.numbers,
        "frontier": [_row(found) for found in result.frontier],
        "frontier_count": result.frontier_count,
        "rejections": [_rejection(found) for found in result.rejections],
        "explanation": None if result.explanation is None else asdict(result.explanation),
        "estimator": result.estimator,
        "estimator_version": result.estimator_version,
        "revision": None if result.basis is None else result.basis.profile_revision or result.basis.profile_digest,
    }


def show(result: PlanResult) -> None:
    """Print the best, the frontier and the reasons."""
    rate = result.space / result.search_s if result.search_s > 0 else None
    say(
        f"{result.space} configurations: {result.evaluated} evaluated, {result.feasible} of these feasible, "
        f"{result.pruned} left out; {shown(result.search_s)} s ({shown(rate)} a second), by {result.estimator} "
        f"{result.estimator_version}."
    )
    if not result.complete:
        say("Time was over: this is the best so far.")
    rows = list(result.frontier[:SHOWN_POINTS])
    if result.best is not None:
        _table("Best", [result.best])
        if result.recommendation is not None:
            say(f"Best ({result.recommendation.rule}): {result.recommendation.why}.")
        parts = result.best.prediction.breakdown
        total = result.best.prediction.step_s
        if parts and total:
            listed = ", ".join(f"{name} {shown(each)} s ({100 * each / total:.0f} %)" for name, each in parts.items())
            say(f"Its step of {shown(total)} s: {listed}.")
    if rows:
        of = f" ({len(rows)} of {result.frontier_count})" if len(rows) < result.frontier_count else ""
        _table(f"Frontier of time, devices and memory{of}", rows)
    _reasons(result)


def _reasons(result: PlanResult) -> None:
    found = result.explanation
    if found is not None:
        print_table(
            [("dimension", False), ("best", True), ("instead", True), ("time", True), ("why", False)],
            [
                [each.dimension, each.chosen, each.alternative, f"{100 * each.change:+.1f} %", each.why]
                for each in found.alternatives
            ],
            title="One dimension changed",
        )
        for binding in found.binding:
            say(f"{binding.message[:1].upper()}{binding.message[1:]}.")
        for each in found.sensitivities:
            gain = "nothing is feasible" if each.speedup == 0 else f"{100 * (each.speedup - 1):+.1f} % throughput"
            say(f"With {each.change}: {gain}; best is {each.best}.")
        if not found.complete:
            say("Time was over before all reasons were looked at.")
    for rejected in result.rejections:
        say(f"Left out ({rejected.constraint}): {rejected.message}.")


def _table(title: str, rows: Sequence[Planned]) -> None:
    columns = [
        ("device", False),
        ("nodes", True),
        ("devices", True),
        ("batch", True),
        ("t", True),
        ("p", True),
        ("c", True),
        ("x", True),
        ("d", True),
        ("micro", True),
        ("chunks", True),
        ("recompute", False),
        ("SP", False),
        ("ZeRO", True),
        ("step s", True),
        ("samples/s", True),
        ("GiB", True),
        ("bottleneck", False),
    ]
    names = (
        "device", "nodes", "workers", "global_batch", "tensor_parallel", "pipeline_parallel", "context_parallel",
        "expert_parallel", "data_parallel", "batch_per_worker", "interleave", "recompute",
    )  # fmt: skip
    cells = []
    for found in rows:
        stated = _DEFAULTS | dict(found.configuration)
        prediction = found.prediction
        memory = None if prediction.memory_bytes is None else prediction.memory_bytes / 2**30
        cells.append(
            [
                *(str(stated[name] if stated[name] is not None else "-") for name in names),
                "yes" if stated["sequence_parallel"] else "",
                str(stated["zero_stage"]),
                shown(prediction.step_s),
                shown(prediction.samples_per_s),
                shown(memory),
                prediction.bottleneck or "-",
            ]
        )
    print_table(columns, cells, title=title)


def _row(found: Planned) -> dict[str, Any]:
    prediction = found.prediction
    stated = _DEFAULTS | dict(found.configuration)
    return {name: stated[name] for name in _DEFAULTS} | {
        "step_s": prediction.step_s,
        "steps_per_s": prediction.steps_per_s,
        "samples_per_s": prediction.samples_per_s,
        "lower_samples_per_s": prediction.lower_samples_per_s,
        "upper_samples_per_s": prediction.upper_samples_per_s,
        "coverage": prediction.coverage,
        "breakdown": prediction.breakdown,
        "bottleneck": prediction.bottleneck,
        "memory_bytes": prediction.memory_bytes,
        "finish_s": prediction.finish_s,
        "cost": prediction.cost,
        "extra": prediction.extra,
        "status": prediction.status,
    }


def _rejection(found: PlanRejection) -> dict[str, Any]:
    return asdict(found)
