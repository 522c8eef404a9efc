"""Checks of a model's answer about many architectures before it is used."""

from __future__ import annotations

from typing import Any

import numpy as np

from nodewise.domain.configurations import Configurations
from nodewise.estimation.estimators.check import check_predictions
from nodewise.hosting.calls import ImpossibleAnswerError
from nodewise.plugin import ArchitecturePredictions

__all__ = ["check_architectures"]


def check_architectures(answer: Any, rows: int) -> ArchitecturePredictions:
    """Return the answer about many architectures if it is valid.

    Raises
    ------
    ImpossibleAnswerError
        An invalid column; the text names the column and the fault.
    """
    if not isinstance(answer, ArchitecturePredictions):
        raise ImpossibleAnswerError(f"a {type(answer).__name__} instead of ArchitecturePredictions")
    check_predictions(answer.predictions, Configurations.of(rows, nodes=1))
    for name, dimensions in (("shared_log_errors", 2), ("own_log_errors", 1)):
        column: Any = getattr(answer, name)
        if not isinstance(column, np.ndarray) or column.ndim != dimensions or len(column) != rows:
            raise ImpossibleAnswerError(f"{name} is no array of {dimensions} dimensions with {rows} rows")
        if column.dtype.kind != "f" or not np.isfinite(column).all():
            raise ImpossibleAnswerError(f"{name} holds something that is no finite number")
    if answer.own_log_errors.min(initial=0.0) < 0.0:
        raise ImpossibleAnswerError("own_log_errors is negative")
    return answer
