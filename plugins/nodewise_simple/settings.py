"""Groups rows by their setting, column by column, so that the cost hardly grows with the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Configurations, Ints, Network

__all__ = ["PARTITION", "Setting", "by_setting"]

PARTITION: Final = (
    "tensor_parallel",
    "pipeline_parallel",
    "context_parallel",
    "expert_parallel",
    "sequence_parallel",
    "interleave",
    "zero_stage",
    "recomputation",
)
"""Columns that say how a replica is made: as long as they stay as they were measured, a replica may be opaque."""


class Setting(NamedTuple):
    """What no rule has a term for: rows are answered from runs that are alike in all of it.

    Attributes
    ----------
    device : str
    link_bytes_per_s : float
        Link of a node; 0 = not stated.
    precision : str
        "" = the job's own.
    partition : tuple of int
        Columns of PARTITION.
    """

    device: str
    link_bytes_per_s: float
    precision: str
    partition: tuple[int, ...]


def by_setting(configurations: Configurations, network: Network, precision: str, rows: Ints) -> dict[Setting, Ints]:
    """Some rows by their settings, in the order in which these come first; what is not stated is the job's own."""
    stated_links = configurations.link_bytes_per_s
    links = np.where(stated_links > 0, stated_links, network.link_bytes_per_s or 0)[rows]
    formats = tuple(name or precision for name in configurations.precisions)
    devices, precisions = configurations.device_index[rows], configurations.precision_index[rows]
    degrees = np.stack([getattr(configurations, name) for name in PARTITION])[:, rows]
    differing = degrees[(degrees != degrees[:, :1]).any(axis=1)]
    rows_by_setting = {}
    for at in _alike(
        [_name_numbers(configurations.devices, devices), links, _name_numbers(formats, precisions), *differing]
    ):
        first = at[0]
        setting = Setting(
            configurations.devices[devices[first]],
            float(links[first]),
            formats[precisions[first]],
            tuple(degrees[:, first].tolist()),
        )
        rows_by_setting[setting] = rows[at]
    return rows_by_setting


def _name_numbers(names: Sequence[str], index: Ints) -> Ints:
    """Numbers that are equal where the names are: a dictionary may hold a name twice."""
    if len(names) == 1:
        return index
    codes = np.array([names.index(name) for name in names])
    coded: Ints = codes[index]
    return coded


def _alike(columns: Sequence[NDArray[np.generic]]) -> list[Ints]:
    """The places of rows that are equal in all columns, in the order in which they come first."""
    rows = len(columns[0])
    if not rows:
        return []
    differing = [column for column in columns if (column != column[0]).any()]
    if not differing:
        return [np.arange(rows)]
    group = np.zeros(rows, dtype=np.int64)
    for column in differing:
        values, codes = np.unique(column, return_inverse=True)
        group = np.unique(group * len(values) + codes, return_inverse=True)[1]
    order = np.argsort(group, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(group[order])) + 1)
    return sorted(groups, key=lambda places: int(places[0]))
