"""Rows in messages: configurations, and what is predicted of them, as lists of columns, each distinct one once.

These are most of what crosses. Written field by field like other values they took most of a call.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from nodewise.domain.configurations import COLUMNS, Configurations
from nodewise.domain.predictions import Predictions

if TYPE_CHECKING:
    from nodewise.hosting.processes.codec import Decoder, Encoder

__all__ = ["read_configurations", "read_predictions", "write_configurations", "write_predictions"]

_columns: Final = attrgetter(*COLUMNS)

_PLAIN: Final = ("status", "step_s", "log_spread", "bottleneck_index", "extrapolation")
_OPTIONAL: Final = ("staleness_mean", "staleness_p95", "memory_bytes", "excess_memory_bytes", "once_s")
_GROUPS: Final = ("breakdown_s", "utilisation", "extra")
_plain: Final = attrgetter(*_PLAIN)
_optional: Final = attrgetter(*_OPTIONAL)
_groups: Final = attrgetter(*_GROUPS)
_others: Final = attrgetter("bottlenecks", "simulated", "refusals", "notices")


def write_configurations(encoder: Encoder, value: Configurations) -> Any:
    """Configurations as part of the tree."""
    one = encoder.one
    columns = _columns(value)
    distinct = {id(column): column for column in columns}
    place = dict(zip(distinct, range(len(distinct)), strict=True))
    return [
        "C",
        [one(column) for column in distinct.values()],
        [place[id(column)] for column in columns],
        *map(one, (value.devices, value.precisions, value.placement, value.worker_groups)),
    ]


def read_configurations(decoder: Decoder, entry: list[Any]) -> Configurations:
    """As written."""
    one = decoder.one
    _, distinct, places, *others = entry
    devices, precisions, placement, worker_groups = map(one, others)
    found = [one(column) for column in distinct]
    return Configurations(
        devices=devices,
        precisions=precisions,
        placement=placement,
        worker_groups=worker_groups,
        **dict(zip(COLUMNS, [found[place] for place in places], strict=True)),
    )


def write_predictions(encoder: Encoder, value: Predictions) -> Any | None:
    """Predictions as part of the tree; None = they hold what they should not, and are written as any value is."""
    groups = _groups(value)
    if not all(type(group).__name__ in ("dict", "mappingproxy") for group in groups):
        return None
    names = [list(group) for group in groups]
    if not all(type(name) is str for each in names for name in each):
        return None
    optional = _optional(value)
    columns = [*_plain(value), *(column for group in groups for column in group.values())]
    columns += [column for column in optional if column is not None]
    if not all(type(column) is np.ndarray for column in columns):
        return None
    one = encoder.one
    there = [column is not None for column in optional]
    return ["P", [one(column) for column in columns], names, there, *map(one, _others(value))]


def read_predictions(decoder: Decoder, entry: list[Any]) -> Predictions:
    """As written."""
    one = decoder.one
    _, columns, names, there, *others = entry
    bottlenecks, simulated, refusals, notices = map(one, others)
    values: dict[str, Any] = dict(zip(_PLAIN, [one(column) for column in columns[: len(_PLAIN)]], strict=True))
    rest = [one(column) for column in columns[: len(_PLAIN) - 1 : -1]]  # the last one first
    for group, keys in zip(_GROUPS, names, strict=True):
        values[group] = {key: rest.pop() for key in keys}
    for name, is_there in zip(_OPTIONAL, there, strict=True):
        values[name] = rest.pop() if is_there else None
    return Predictions(bottlenecks=bottlenecks, simulated=simulated, refusals=refusals, notices=notices, **values)
