"""Rows that state a column which an estimator does not take into account: refused before it sees them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.columns import Ints, as_ints, constant_floats, constant_ints, freeze
from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import Reason, Refusal
from nodewise.domain.facts import CONFIGURATION_DEFAULTS
from nodewise.domain.predictions import Predictions, RowRefusal, RowStatus
from nodewise.estimation.derived import KEPT_ROWS
from nodewise.ports.cache import LruCache

__all__ = ["Shown", "merged", "shown_to"]

_ALWAYS_KNOWN: Final = frozenset(
    {
        "nodes",
        "workers",
        "parameter_servers",
        "sync_mode",
        "batch_per_worker",
        "accumulation",
        "global_batch",
        "link_bytes_per_s",
    }
)
_DEFAULTS: Final = {name: default for name, default in CONFIGURATION_DEFAULTS.items() if name not in _ALWAYS_KNOWN}
"""Columns of numbers that an estimator may not know, and the value that states nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """What an estimator is asked: the rows that it may know, and why the others are refused.

    ``rows`` are the places of ``configurations`` in the question; None = all of it, in order.
    """

    configurations: Configurations
    rows: Ints | None
    refusals: tuple[RowRefusal, ...]


_kept: LruCache[tuple[Configurations, frozenset[str], str], Shown] = LruCache(KEPT_ROWS)


def shown_to(columns: frozenset[str], configurations: Configurations, precision: str) -> Shown:
    """Resolved rows without those that state a column which is not among ``columns``.

    Parameters
    ----------
    precision : str
        The workload's own number format: a row that states it states nothing new.
    """
    key = (configurations, columns, precision)
    known = _kept.get(key)
    if known is None:
        known = _shown(columns, configurations, precision)
        _kept.put(key, known, len(configurations) or 1)
    return known


def _shown(columns: frozenset[str], configurations: Configurations, precision: str) -> Shown:
    left = np.ones(len(configurations), dtype=bool)
    refusals = []
    for name, stated in _stated(columns, configurations, precision):
        rows = np.flatnonzero(stated & left)
        if len(rows):
            left[rows] = False
            message = f"the estimator does not take {name} into account: leave it unstated, or ask another estimator"
            refusals.append(RowRefusal(tuple(rows.tolist()), Refusal(Reason.UNSUPPORTED_CONFIGURATION, message)))
    if not refusals:
        return Shown(configurations, None, ())
    kept = as_ints(np.flatnonzero(left))
    return Shown(configurations.take(kept), kept, tuple(refusals))


def _stated(
    columns: frozenset[str], configurations: Configurations, precision: str
) -> list[tuple[str, NDArray[np.bool_]]]:
    """Columns that are not known and not at their defaults throughout, with the rows that state them."""
    rows = len(configurations)
    found: list[tuple[str, NDArray[np.bool_]]] = []
    for name, default in _DEFAULTS.items():
        constant = constant_floats(rows, default) if isinstance(default, float) else constant_ints(rows, default)
        if name in columns or getattr(configurations, name) is constant:
            continue
        stated = getattr(configurations, name) != default
        if name == "data_parallel":
            # Every worker a replica is what an unstated degree means as well.
            stated &= configurations.data_parallel != configurations.workers
        found.append((name, stated))
    if configurations.has_groups and "groups" not in columns:
        found.append(("groups", configurations.grouped()))
    if "precision" not in columns and configurations.precisions != ("",):
        new = np.array([name not in ("", precision) for name in configurations.precisions], dtype=bool)
        found.append(("precision", new[configurations.precision_index]))
    return found


def merged(predictions: Predictions, shown: Shown, rows: int) -> Predictions:
    """The predictions of the rows that were shown, in their places among all, with the refusals of the others."""
    if shown.rows is None:
        return predictions
    places = shown.rows

    def column(values: NDArray[np.float64]) -> NDArray[np.float64]:
        whole = np.zeros(rows)
        whole[places] = values
        return freeze(whole)

    def optional(values: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
        return None if values is None else column(values)

    def moved(named: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(places[list(named)].tolist())

    status = np.full(rows, int(RowStatus.REFUSED), dtype=np.int64)
    status[places] = predictions.status
    bottleneck = np.full(rows, -1, dtype=np.int64)
    bottleneck[places] = predictions.bottleneck_index
    return replace(
        predictions,
        status=freeze(status),
        step_s=column(predictions.step_s),
        log_spread=column(predictions.log_spread),
        extrapolation=column(predictions.extrapolation),
        breakdown_s={name: column(part) for name, part in predictions.breakdown_s.items()},
        utilisation={name: column(part) for name, part in predictions.utilisation.items()},
        bottleneck_index=freeze(bottleneck),
        once_s=optional(predictions.once_s),
        extra={name: column(values) for name, values in predictions.extra.items()},
        staleness_mean=optional(predictions.staleness_mean),
        staleness_p95=optional(predictions.staleness_p95),
        memory_bytes=optional(predictions.memory_bytes),
        excess_memory_bytes=optional(predictions.excess_memory_bytes),
        refusals=(*(RowRefusal(moved(each.rows), each.refusal) for each in predictions.refusals), *shown.refusals),
        notices=tuple(
            replace(notice, rows=moved(notice.rows) if notice.rows else tuple(places.tolist()))
            for notice in predictions.notices
        ),
    )
