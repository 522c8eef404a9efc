"""Predictions as JSON and as a table for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from nodewise_cli.console import say
from nodewise_cli.inputs.measured_points import Point, at
from nodewise_cli.views.memory_timeline import timeline_document
from nodewise_cli.views.notes import show_notes
from nodewise_cli.views.numbers import format_number, gibibytes
from nodewise_cli.views.plain import plain, short
from nodewise_cli.views.table import figures, print_columns, words
from nodewise_cli.views.units import Unit
from nodewise_client import Basis, Prediction, PredictResult, Problem, RowStatus

__all__ = ["document", "headline", "problem_of", "refusal_of", "revision_of", "row_document", "share_used", "show"]

_COLUMNS: Final = (
    *("nodes", "workers", "status", "step_seconds", "steps_per_second", "samples_per_second"),
    *("lower_steps_per_second", "upper_steps_per_second", "lower_samples_per_second", "upper_samples_per_second"),
    *("interval_coverage", "interval_basis", "breakdown_seconds", "bottleneck", "utilization", "extrapolation_ratio"),
    *("staleness_mean_steps", "staleness_p95_steps", "memory_bytes", "excess_memory_bytes"),
    *("finish_seconds", "cost", "once_seconds", "extra"),
)
_NAMES: Final = {name: short(name) for name in _COLUMNS} | {
    "interval_coverage": "coverage",
    "breakdown_seconds": "breakdown",
}


def document(result: PredictResult, unit: Unit, *, memory_timeline: bool = False) -> dict[str, Any]:
    """The JSON of a prediction, with the memory of each row over a step if wanted. What is not known is null."""
    rows = [unit.add_rates(row_document(prediction), prediction) for prediction in result]
    if memory_timeline:
        rows = [row | timeline_document(prediction) for row, prediction in zip(rows, result)]
    return {
        "predictions": rows,
        "recommended": unit.in_words(plain(result.recommendation)),
        "estimator": result.basis.estimator,
        "estimator_version": result.basis.estimator_version,
        "revision": revision_of(result.basis),
        "choice": result.basis.choice,
        "mixture": plain(result.basis.mixture),
        "evidence": list(result.basis.evidence),
        "warnings": unit.in_words(plain((*unit.notices, *result.warnings))),
    }


def revision_of(basis: Basis) -> int | str:
    """The revision of the profile; of an inline profile, its digest."""
    return basis.profile_revision or basis.profile_digest


def row_document(prediction: Prediction) -> dict[str, Any]:
    """The JSON of a row."""
    json_name = {json_name: getattr(prediction, name) for name, json_name in _NAMES.items()}
    return json_name | {"refusal": None if prediction.refusal is None else plain(prediction.refusal.problem)}


def refusal_of(prediction: Prediction) -> Problem | None:
    """Why a row was not predicted."""
    return None if prediction.refusal is None else prediction.refusal.problem or Problem()


def problem_of(prediction: Prediction) -> Problem | None:
    """Why a row has no rate; None = it has one."""
    if prediction.status is not RowStatus.INFEASIBLE_MEMORY:
        return refusal_of(prediction)
    excess_bytes = prediction.excess_memory_bytes
    by = "" if excess_bytes is None else f": {gibibytes(excess_bytes)} GiB too much"
    return Problem(message=f"does not fit into memory{by}")


def headline(name: str, result: PredictResult, unit: Unit) -> str:
    """The recommendation in one sentence."""
    row = result.recommended
    if row is None:
        return f"{name}: none of {len(result)} rows can be recommended."
    nodes = f"{row.nodes:,} {'node' if row.nodes == 1 else 'nodes'}, {row.workers:,} workers"
    interval = "" if row.upper_steps_per_second is None else f" ({_interval(row, unit)})"
    return f"{name}: {nodes}: {format_number(unit.rate(row))} {unit.counts}/s{interval}."


def show(
    name: str, result: PredictResult, points: Sequence[Point], currency: str, unit: Unit, *, verbose: bool
) -> None:
    """Print what was predicted, what was measured there, and what is recommended."""
    measurements = [at(points, prediction) for prediction in result]
    coverage = next(
        (prediction.interval_coverage for prediction in result if prediction.interval_coverage is not None), None
    )
    table = [
        (words(""), [_mark(result, row) for row in range(len(result))]),
        (figures("nodes", 0), [f"{prediction.nodes:,}" for prediction in result]),
        (figures("workers", 4), [f"{prediction.workers:,}" for prediction in result]),
        (figures(f"{unit.counts}/s", 0), [format_number(unit.rate(prediction)) for prediction in result]),
        (figures(f"{100 * (coverage or 0):.4g} % interval", 2), [_interval(prediction, unit) for prediction in result]),
        (figures("measured", 3), [_tell_measurement(point, unit) for point in measurements]),
        (figures("error", 5), [_error(prediction, point, unit) for prediction, point in zip(result, measurements)]),
        (figures("tokens/s", 6.5), [_tokens(prediction, unit) for prediction in result]),
        (figures("tokens/s/device", 6.6), [_tokens(prediction, unit, prediction.workers) for prediction in result]),
        (figures("GiB", 6.7), [_gibibytes(prediction) for prediction in result]),
        (figures("MFU", 6.8), [share_used(prediction) for prediction in result]),
        (
            figures("step s", 7),
            [format_number(prediction.step_seconds if unit.has_steps else None) for prediction in result],
        ),
        (words("bottleneck", 6), [prediction.bottleneck or "-" for prediction in result]),
        (figures("x evidence", 8), [format_number(prediction.extrapolation_ratio, 3) for prediction in result]),
        (figures("done in s", 2.5), [format_number(prediction.finish_seconds) for prediction in result]),
        (figures(f"cost {currency}".rstrip(), 2.6), [format_number(prediction.cost) for prediction in result]),
        (words("status", 1), [_status(prediction) for prediction in result]),
    ]
    # Beside the scale and the rate, only what is known of some row.
    columns = [column for column in table if column[0].priority in (None, 0, 4) or set(column[1]) - {"", "-"}]
    basis = result.basis
    print_columns(*columns, title=f"{name}, predicted by {basis.estimator} {basis.estimator_version}".rstrip())
    refusals = Counter(f"{why.reason}: {why.message}" for why in map(refusal_of, result) if why is not None)
    for why, count in refusals.items():
        say(f"{count} of {len(result)} rows were refused. {why}.")
    if any(point is not None and point.train for point in measurements):
        say("t: train row, which the estimator learned from")
    if result.recommendation is not None:
        say(f"Recommended ({result.recommendation.rule}): {unit.in_words(result.recommendation.why)}.")
    if basis.choice:
        say(f"Why {basis.estimator}: {basis.choice}.")
    if basis.evidence:
        say(f"Based on: {'; '.join(basis.evidence)}.")
    notices = (*unit.notices, *result.warnings)
    show_notes(((notice.reason, unit.in_words(notice.message)) for notice in notices), verbose=verbose)


def _mark(result: PredictResult, row: int) -> str:
    return "->" if result.recommendation is not None and result.recommendation.row == row else ""


def _interval(prediction: Prediction, unit: Unit) -> str:
    high = unit.rate(prediction, "upper_")
    return "-" if high is None else f"{format_number(unit.rate(prediction, 'lower_'))} to {format_number(high)}"


def _tokens(prediction: Prediction, unit: Unit, devices: int | None = None) -> str:
    """Tokens per second, of one device where these are given; where they are the unit, they stand there already."""
    tokens = unit.tokens(prediction)
    if tokens is None or (unit.counts == "tokens" and devices is None):
        return "-"
    return format_number(tokens / (devices or 1))


def _gibibytes(prediction: Prediction) -> str:
    return "-" if prediction.memory_bytes is None else gibibytes(prediction.memory_bytes)


def share_used(prediction: Prediction) -> str:
    """The model's FLOPs over the devices' peak (MFU), where it is known."""
    mfu = prediction.utilization.get("model_flops")
    return f"{100 * mfu:.0f} %" if mfu else "-"


def _tell_measurement(point: Point | None, unit: Unit) -> str:
    return "-" if point is None else ("t " if point.train else "") + format_number(unit.rate(point))


def _error(prediction: Prediction, point: Point | None, unit: Unit) -> str:
    rate = unit.rate(prediction)
    measured_rate = None if point is None else unit.rate(point)
    if rate is None or not measured_rate:
        return "-"
    text = f"{100 * (rate / measured_rate - 1):+.1f} %"
    return text if text.strip("+-0. %") else "0.0 %"


def _status(prediction: Prediction) -> str:
    if prediction.answered:
        return ""
    refusal = refusal_of(prediction)
    if refusal is not None:
        return refusal.reason
    if prediction.status is RowStatus.INFEASIBLE_MEMORY and prediction.excess_memory_bytes:
        return f"does not fit: {format_number(prediction.excess_memory_bytes / 2**30)} GiB too much on each device"
    return str(prediction.status)
