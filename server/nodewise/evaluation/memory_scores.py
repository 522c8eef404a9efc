"""Scores of memory: predicted against measured bytes, and predicted against actual fit."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.columns import Floats, Ints
from nodewise.evaluation import segments
from nodewise_values import Metrics

__all__ = ["MemoryOutcomes", "with_memory"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class MemoryOutcomes:
    """One entry per row that was to be predicted.

    Attributes
    ----------
    predicted_bytes, measured_bytes : float
        0 = none; rows without a prediction are not scored.
    said_to_fit : bool
        Whether the row was answered.
    ran, ran_out : bool
        Whether the row is known to have run, or to have run out of memory.
    """

    predicted_bytes: Floats
    measured_bytes: Floats
    said_to_fit: NDArray[np.bool_]
    ran: NDArray[np.bool_]
    ran_out: NDArray[np.bool_]


def with_memory(metrics: list[Metrics], outcomes: MemoryOutcomes, part: Ints) -> list[Metrics]:
    """Scores with those of memory; None = undefined. ``part`` is the place of each row's part among the scores."""
    has_prediction = outcomes.predicted_bytes > 0.0
    in_both = has_prediction & (outcomes.measured_bytes > 0.0)
    error = np.abs(outcomes.predicted_bytes[in_both] / outcomes.measured_bytes[in_both] - 1.0)
    ran, ran_out = has_prediction & outcomes.ran, has_prediction & outcomes.ran_out
    parts = len(metrics)
    columns = {
        "memory_mape": segments.means(error, part[in_both], parts),
        "false_fits": segments.means(outcomes.said_to_fit[ran_out], part[ran_out], parts),
        "false_refusals": segments.means(~outcomes.said_to_fit[ran], part[ran], parts),
    }
    return [
        replace(each, **{name: _or_none(column[at]) for name, column in columns.items()})  # type: ignore[arg-type]
        for at, each in enumerate(metrics)
    ]


def _or_none(score: float) -> float | None:
    return None if np.isnan(score) else float(score)
