"""Rows that state one more column: what an estimator that lists it must not pass over."""

from __future__ import annotations

from typing import Final

import numpy as np

from nodewise.domain.columns import as_floats, as_ints
from nodewise.domain.configurations import Configurations
from nodewise.domain.facts import CONFIGURATION_DEFAULTS
from nodewise.domain.groups import WorkerGroup, WorkerGroups
from nodewise.plugin import BASIC_COLUMNS

__all__ = ["stating"]

_VALUES: Final = {
    name: 1 + default
    for name, default in CONFIGURATION_DEFAULTS.items()
    if isinstance(default, int) and name not in BASIC_COLUMNS
}
"""Values of columns of whole numbers; where a row has that value already, twice as much."""

_SLOWER: Final = 2.0
"""Compute time of the one worker of each row that differs from the others."""


def stating(column: str, rows: Configurations) -> Configurations | None:
    """The rows with another value of a column; None = the column is not known here."""
    if column in _VALUES:
        stated = _VALUES[column]
        before = getattr(rows, column)
        return rows.replaced(**{column: as_ints(np.where(before == stated, 2 * stated, stated))})
    if column == "hybrid_sync_fraction":
        return rows.replaced(hybrid_sync_fraction=as_floats((rows.hybrid_sync_fraction + 0.25) % 1.0))
    if column == "hybrid_switch_s":
        return rows.replaced(hybrid_switch_s=as_floats(rows.hybrid_switch_s + 10.0))
    if column == "precision":
        return rows.replaced(precisions=("fp32", "fp16"), precision_index=as_ints(np.arange(len(rows)) % 2))
    if column == "groups":
        return rows.replaced(worker_groups=WorkerGroups.of(map(_groups, _of(rows)), rows.devices))
    return None


def _of(rows: Configurations) -> list[tuple[str, int]]:
    return list(zip(rows.device_names(), rows.workers.tolist(), strict=True))


def _groups(row: tuple[str, int]) -> list[WorkerGroup]:
    device, workers = row
    alike = [WorkerGroup(device, workers - 1)] if workers > 1 else []
    return [*alike, WorkerGroup(device, 1, _SLOWER)]
