"""Predictions as JSON and as a table for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nodewise_cli.console import print_table, say, shown
from nodewise_cli.inputs.measured import Point, at
from nodewise_client import Prediction, PredictResult, RowStatus, numbers_by_name

__all__ = ["document", "rate_of", "show", "unit_of"]


def document(result: PredictResult) -> dict[str, Any]:
    """The JSON of a prediction. What is not known is null."""
    chosen = result.recommendation
    return {
        "predictions": [_row(found) for found in result],
        "recommended": None
        if chosen is None
        else {
            "nodes": chosen.nodes,
            "workers": chosen.workers,
            "rule": chosen.rule,
            "why": chosen.why,
            "row": chosen.row,
            "numbers": numbers_by_name(chosen.numbers),
        },
        "estimator": result.basis.estimator,
        "estimator_version": result.basis.estimator_version,
        # An inline profile's revision is its digest.
        "revision": result.basis.profile_revision or result.basis.profile_digest,
        "choice": result.basis.choice,
        "mixture": [
            {
                "estimator": part.estimator,
                "estimator_version": part.estimator_version,
                "weight": part.weight,
                "expected_log_error": part.expected_log_error,
            }
            for part in result.basis.mixture
        ],
        "evidence": list(result.basis.evidence),
        "warnings": [
            {"reason": found.reason, "message": found.message, "rows": list(found.rows)} for found in result.warnings
        ],
    }


def unit_of(result: PredictResult) -> str:
    """What a rate counts: samples where the batch of every answered row is known, else steps."""
    answered = [found for found in result if found.answered]
    return "samples" if answered and all(found.samples_per_second is not None for found in answered) else "steps"


def rate_of(found: Prediction | Point, unit: str) -> float | None:
    """A row's rate in a unit."""
    return found.samples_per_second if unit == "samples" else found.steps_per_second


def show(name: str, result: PredictResult, points: Sequence[Point], currency: str) -> None:
    """Print what was predicted, what was measured there, and what is recommended."""
    unit = unit_of(result)
    columns = [("", False), ("nodes", True), ("workers", True), (f"{unit}/s", True)]
    cells = [
        [_mark(result, row), str(f.nodes), str(f.workers), shown(rate_of(f, unit))] for row, f in enumerate(result)
    ]

    def add(heading: str, values: list[str], *, numeric: bool = True) -> None:
        if any(value not in {"", "-"} for value in values):
            columns.append((heading, numeric))
            for line, value in zip(cells, values, strict=True):
                line.append(value)

    coverage = next((found.interval_coverage for found in result if found.interval_coverage is not None), None)
    if coverage is not None:
        add(f"{100 * coverage:.4g} % interval", [_interval(found, unit) for found in result])
    add("measured", [_measured(at(points, found), unit) for found in result])
    add("error", [_error(found, at(points, found), unit) for found in result])
    add("step s", [shown(found.step_seconds) for found in result])
    add("bottleneck", [found.bottleneck or "-" for found in result], numeric=False)
    add("x evidence", [shown(found.extrapolation_ratio, 3) for found in result])
    add("done in s", [shown(found.finish_seconds) for found in result])
    add(f"cost {currency}".rstrip(), [shown(found.cost) for found in result])
    add("status", [_status(found) for found in result], numeric=False)
    basis = result.basis
    print_table(columns, cells, title=f"{name}, predicted by {basis.estimator} {basis.estimator_version}".rstrip())
    if any(at(points, found) is not None and at(points, found).train for found in result):  # type: ignore[union-attr]
        say("t: learned from")
    if result.recommendation is not None:
        say(f"Recommended ({result.recommendation.rule}): {result.recommendation.why}.")
    if basis.choice:
        say(f"Why {basis.estimator}: {basis.choice}.")
    if basis.evidence:
        say(f"Rests on: {'; '.join(basis.evidence)}.")
    for found in result.warnings:
        say(f"Note: {found.message}")


def _row(found: Prediction) -> dict[str, Any]:
    return {
        "nodes": found.nodes,
        "workers": found.workers,
        "samples_per_s": found.samples_per_second,
        "steps_per_s": found.steps_per_second,
        "step_s": found.step_seconds,
        "lower_samples_per_s": found.lower_samples_per_second,
        "upper_samples_per_s": found.upper_samples_per_second,
        "lower_steps_per_s": found.lower_steps_per_second,
        "upper_steps_per_s": found.upper_steps_per_second,
        "coverage": found.interval_coverage,
        "interval_basis": found.interval_basis,
        "breakdown": found.breakdown_seconds,
        "bottleneck": found.bottleneck,
        "extrapolation": found.extrapolation_ratio,
        "status": found.status,
        "utilisation": found.utilisation,
        "staleness_mean_steps": found.staleness_mean_steps,
        "staleness_p95_steps": found.staleness_p95_steps,
        "memory_bytes": found.memory_bytes,
        "excess_memory_bytes": found.excess_memory_bytes,
        "finish_s": found.finish_seconds,
        "once_s": found.once_seconds,
        "cost": found.cost,
        "extra": found.extra,
        "refusal": None
        if found.refusal is None
        else {
            "reason": found.refusal.reason,
            "message": found.refusal.message,
            "missing_fields": list(found.refusal.missing_fields),
        },
    }


def _mark(result: PredictResult, row: int) -> str:
    return "->" if result.recommendation is not None and result.recommendation.row == row else ""


def _interval(found: Prediction, unit: str) -> str:
    samples = unit == "samples"
    low = found.lower_samples_per_second if samples else found.lower_steps_per_second
    high = found.upper_samples_per_second if samples else found.upper_steps_per_second
    return "-" if high is None else f"{shown(low)} to {shown(high)}"


def _measured(point: Point | None, unit: str) -> str:
    if point is None:
        return "-"
    return ("t " if point.train else "") + shown(rate_of(point, unit))


def _error(found: Prediction, point: Point | None, unit: str) -> str:
    predicted = rate_of(found, unit)
    measured = None if point is None else rate_of(point, unit)
    if predicted is None or not measured:
        return "-"
    return f"{100 * (predicted / measured - 1):+.1f} %"


def _status(found: Prediction) -> str:
    if found.answered:
        return ""
    if found.refusal is not None:
        return f"{found.status}: {found.refusal.message}"
    if found.status is RowStatus.INFEASIBLE_MEMORY and found.excess_memory_bytes:
        return f"does not fit: {shown(found.excess_memory_bytes / 2**30)} GiB too much on each device"
    return str(found.status)
