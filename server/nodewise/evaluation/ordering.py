"""Ranks of rows by their content, so that results do not depend on the order of a table's rows."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.columns import Ints, freeze
from nodewise.domain.configurations import Configurations, Placement, packed_placement
from nodewise.domain.measurements import MeasurementTable
from nodewise.profiles.digest import CONFIGURATION_COLUMNS, PHASE_COLUMNS

__all__ = ["canonical_order", "compact", "configuration_ranks"]

_DICTIONARIES: Final = {"devices": "device_index", "precisions": "precision_index"}


def configuration_ranks(configurations: Configurations) -> Ints:
    """One number per row, ascending by content: equal numbers, equal configurations.

    An explicit placement that is the packed one equals none, and so do groups that add nothing to their row.
    """
    columns: list[NDArray[Any]] = [getattr(configurations, name) for name in CONFIGURATION_COLUMNS]
    for names, index in _DICTIONARIES.items():
        columns.append(_by_name(getattr(configurations, names), getattr(configurations, index)))
    placement = configurations.placement
    if placement is not None:
        explicit = _layouts(placement)
        nodes, workers = configurations.nodes.tolist(), configurations.workers.tolist()
        layouts = [
            () if layout and layout == packed_placement(workers[row], nodes[row]) else layout
            for row, layout in enumerate(explicit)
        ]
        columns.append(_by_value(layouts))
    if configurations.has_groups:
        columns.append(_by_value(_groups(configurations)))
    return _dense_ranks(columns, len(configurations))


def compact(configurations: Configurations) -> Configurations:
    """The same rows without unused parts: dictionaries hold only names in use, sorted; no empty columns."""
    changes: dict[str, object] = {}
    groups = configurations.worker_groups
    if groups is not None and not len(groups.workers):
        groups = changes["worker_groups"] = None
    for names, index in _DICTIONARIES.items():
        dictionary, column = getattr(configurations, names), getattr(configurations, index)
        in_groups = groups.device_index if groups is not None and names == "devices" else column[:0]
        in_use = np.unique(np.concatenate((column, in_groups)))
        names_in_use = tuple(sorted({dictionary[code] for code in in_use.tolist()})) or ("",)
        if names_in_use != dictionary:
            number = {name: code for code, name in enumerate(names_in_use)}
            codes = np.array([number.get(name, 0) for name in dictionary], dtype=np.int64)
            changes[names], changes[index] = names_in_use, freeze(codes[column])
            if groups is not None and names == "devices":
                changes["worker_groups"] = groups.recode(codes)
    if configurations.placement is not None and not len(configurations.placement.workers):
        changes["placement"] = None
    return configurations.replaced(**changes) if changes else configurations


def canonical_order(table: MeasurementTable) -> Ints:
    """Rows job by job, within a job by their content, whatever the order of the table.

    Rows that tie are alike in everything that an estimator can see.
    """
    columns: list[NDArray[Any]] = [
        table.job_index,
        configuration_ranks(table.configurations),
        table.train,
        table.steps_per_s,
        table.measured_at_s,
        table.exposed_sync_s,
        table.steps,
        table.step_variation,
        table.measured_memory_bytes,
        table.fitted,
    ]
    if table.configurations.placement is not None:
        columns.append(_by_value(_layouts(table.configurations.placement)))
    if table.configurations.worker_groups is not None:
        columns.append(_by_value(_groups(table.configurations)))
    if len(table.phase_rows):
        for name in PHASE_COLUMNS:
            column = np.full(len(table), -np.inf)
            column[table.phase_rows] = getattr(table.phase_timings, name)
            columns.append(column)
    return np.lexsort(columns[::-1])


def _by_name(names: tuple[str, ...], index: Ints) -> Ints:
    """Entries of a dictionary numbered by name; the same name twice has one number."""
    return np.unique(np.array(names), return_inverse=True)[1].reshape(-1)[index]


def _layouts(placement: Placement) -> list[tuple[int, ...]]:
    offsets, workers = placement.offsets.tolist(), placement.workers.tolist()
    return [tuple(workers[first:last]) for first, last in itertools.pairwise(offsets)]


def _groups(configurations: Configurations) -> list[tuple[Any, ...]]:
    """The groups of each row; empty where they add nothing to their row."""
    has_groups = configurations.grouped().tolist()
    return [
        tuple((group.device, group.workers, group.compute_factor) for group in configurations.groups(row))
        if has_groups[row]
        else ()
        for row in range(len(configurations))
    ]


def _by_value(values: Sequence[tuple[Any, ...]]) -> Ints:
    number = {value: rank for rank, value in enumerate(sorted(set(values)))}
    return np.array([number[value] for value in values], dtype=np.int64)


def _dense_ranks(columns: Sequence[NDArray[Any]], rows: int) -> Ints:
    varying = [column for column in columns if len(column) and (column != column[0]).any()]
    ranks = np.zeros(rows, dtype=np.int64)
    if not varying:
        return ranks
    order = np.lexsort(varying[::-1])
    starts = np.zeros(rows, dtype=np.int64)
    for column in varying:
        sorted_column = column[order]
        starts[1:] |= sorted_column[1:] != sorted_column[:-1]
    ranks[order] = np.cumsum(starts)
    return ranks
