"""Refuse rows that state a column which an estimator does not take into account, before the estimator is called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter, is_
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.columns import Ints, as_ints, constant_floats, constant_ints
from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import Refusal
from nodewise.domain.facts import CONFIGURATION_DEFAULTS
from nodewise.domain.predictions import Predictions, RowRefusal
from nodewise.plugin import BASIC_COLUMNS

__all__ = ["SupportedRows", "mask_unsupported"]

_DEFAULTS: Final = {name: default for name, default in CONFIGURATION_DEFAULTS.items() if name not in BASIC_COLUMNS}
"""Columns of numbers that an estimator may not support, and the value that means "not stated"."""


@dataclass(frozen=True, slots=True, eq=False)
class SupportedRows:
    """The rows that an estimator is asked about, and why the others are refused.

    ``rows`` are the rows' indices in the question; None = the whole question, in order.
    """

    configurations: Configurations
    rows: Ints | None
    refusals: tuple[RowRefusal, ...]

    def merge(self, predictions: Predictions, rows: int) -> Predictions:
        """Put predictions into their places among all rows, and add the refusals of the others."""
        return Predictions.joined(rows, ((self.rows, predictions),), refusals=self.refusals)


def _states_no_more(columns: frozenset[str], configurations: Configurations) -> bool:
    """Whether all columns outside ``columns`` are certainly unstated: each is the object of the defaults."""
    if configurations.worker_groups is not None or configurations.precisions != ("",):
        return False
    nothing = Configurations.defaults(len(configurations.workers))
    others = _others(columns)
    return others is None or all(map(is_, others(configurations), others(nothing)))


@lru_cache(maxsize=256)
def _others(columns: frozenset[str]) -> Callable[[Configurations], tuple[object, ...]] | None:
    """Return a getter for the columns of numbers that the estimator does not support; None = there are none."""
    names = [name for name in _DEFAULTS if name not in columns]
    if not names:
        return None
    return attrgetter(*names, names[0])  # a getter of one name would return the column itself instead of a tuple


def mask_unsupported(columns: frozenset[str], configurations: Configurations, precision: str) -> SupportedRows:
    """Return the resolved rows without those that state a column outside ``columns``.

    Parameters
    ----------
    precision : str
        The workload's own number format: a row that states the same format counts as unstated.
    """
    if _states_no_more(columns, configurations):
        return SupportedRows(configurations, None, ())
    rows = len(configurations)
    refusals = RowRefusal.first(
        rows, ((is_stated, _not_known(name)) for name, is_stated in _stated_columns(columns, configurations, precision))
    )
    if not refusals:
        return SupportedRows(configurations, None, ())
    supported_rows = as_ints(np.flatnonzero(RowRefusal.left(rows, refusals)))
    return SupportedRows(configurations.take(supported_rows), supported_rows, refusals)


def _not_known(name: str) -> Refusal:
    return Refusal.unsupported(
        f"the estimator does not take {name} into account: leave it unstated, or ask another estimator"
    )


def _stated_columns(
    columns: frozenset[str], configurations: Configurations, precision: str
) -> list[tuple[str, NDArray[np.bool_]]]:
    """Return the unsupported columns that are not at their defaults throughout, with the rows that state them."""
    rows = len(configurations)
    columns_of_rows: list[tuple[str, NDArray[np.bool_]]] = []
    for name, default in _DEFAULTS.items():
        constant = constant_floats(rows, default) if isinstance(default, float) else constant_ints(rows, default)
        if name in columns or getattr(configurations, name) is constant:
            continue
        is_stated = getattr(configurations, name) != default
        if name == "data_parallel":
            # Data parallelism over all workers is also the meaning of an unstated degree.
            is_stated &= configurations.data_parallel != configurations.workers
        columns_of_rows.append((name, is_stated))
    if configurations.has_groups and "groups" not in columns:
        columns_of_rows.append(("groups", configurations.grouped()))
    if "precision" not in columns and configurations.precisions != ("",):
        new = np.array([name not in ("", precision) for name in configurations.precisions], dtype=bool)
        columns_of_rows.append(("precision", new[configurations.precision_index]))
    return columns_of_rows
