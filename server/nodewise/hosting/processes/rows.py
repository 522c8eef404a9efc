"""Rows in messages: configurations, and what is predicted of them, as lists of columns, each distinct one once.

These are most of what crosses. Written field by field like other values they took most of a call.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import orjson

from nodewise.domain.configurations import COLUMNS, Configurations
from nodewise.domain.predictions import Predictions

if TYPE_CHECKING:
    from nodewise.hosting.processes.codec import Encoder
    from nodewise.hosting.processes.decoder import Decoder

__all__ = [
    "GROUPS",
    "OPTIONAL",
    "OTHERS",
    "PLAIN",
    "read_configurations",
    "read_predictions",
    "write_configurations",
    "write_predictions",
]

_columns: Final = attrgetter(*COLUMNS)

PLAIN: Final = ("status", "step_s", "log_spread", "bottleneck_index", "extrapolation")
OPTIONAL: Final = ("staleness_mean", "staleness_p95", "memory_bytes", "excess_memory_bytes", "once_s")
GROUPS: Final = ("breakdown_s", "utilisation", "extra")
_plain: Final = attrgetter(*PLAIN)
_optional: Final = attrgetter(*OPTIONAL)
_groups: Final = attrgetter(*GROUPS)
_NO: Final = ("t",)
OTHERS: Final = ("bottlenecks", "simulated", "refusals", "notices")
_others: Final = attrgetter(*OTHERS)


MOST_FORMS: Final = 512
"""Forms of rows whose trees are remembered, each some 300 bytes."""
_forms: Final[dict[tuple[Any, ...], orjson.Fragment]] = {}


def _written(tree: tuple[Any, ...]) -> orjson.Fragment:
    """The tree of rows as bytes that are put into the message; it holds nothing but tuples, texts and numbers."""
    found = _forms.get(tree)
    if found is None:
        if len(_forms) >= MOST_FORMS:
            _forms.clear()
        found = _forms[tree] = orjson.Fragment(orjson.dumps(tree))
    return found


def _are_texts(names: Any) -> bool:
    return type(names) is tuple and all(type(each) is str for each in names)


def _places(columns: Sequence[Any]) -> tuple[list[Any], tuple[int, ...]]:
    """The distinct columns, and which of them each is."""
    known: dict[int, int] = {}
    places = tuple([known.setdefault(id(column), len(known)) for column in columns])
    distinct: list[Any] = [None] * len(known)
    for place, column in zip(places, columns, strict=True):
        distinct[place] = column
    return distinct, places


def write_configurations(encoder: Encoder, value: Configurations) -> Any:
    """Configurations as part of the tree."""
    one = encoder.one
    columns = _columns(value)
    names = value.devices, value.precisions
    if value.placement is None and value.worker_groups is None and all(map(_are_texts, names)):
        distinct, places = _places(columns)
        put = encoder.columns(distinct)
        if put is not None:
            tree = ("C", put, places, *[("t", *each) for each in names], None, None)
            return _written(tree)
    distinct, places = _places(columns)
    return [
        "C",
        [one(column) for column in distinct],
        places,
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
    there = tuple([column is not None for column in optional])
    bottlenecks, simulated, refusals, notices = _others(value)
    if refusals == () == notices and type(simulated) is bool and _are_texts(bottlenecks):
        distinct, places = _places(columns)
        put = encoder.columns(distinct)
        if put is not None:
            keys = tuple([tuple(each) for each in names])
            texts = "t", *bottlenecks
            return _written(("P", tuple([put[place] for place in places]), keys, there, texts, simulated, _NO, _NO))
    one = encoder.one
    return ["P", [one(column) for column in columns], names, there, *map(one, _others(value))]


def read_predictions(decoder: Decoder, entry: list[Any]) -> Predictions:
    """As written."""
    one = decoder.one
    _, columns, names, there, *others = entry
    bottlenecks, simulated, refusals, notices = map(one, others)
    values: dict[str, Any] = dict(zip(PLAIN, [one(column) for column in columns[: len(PLAIN)]], strict=True))
    rest = [one(column) for column in columns[: len(PLAIN) - 1 : -1]]  # the last one first
    for group, keys in zip(GROUPS, names, strict=True):
        values[group] = {key: rest.pop() for key in keys}
    for name, is_there in zip(OPTIONAL, there, strict=True):
        values[name] = rest.pop() if is_there else None
    return Predictions(bottlenecks=bottlenecks, simulated=simulated, refusals=refusals, notices=notices, **values)
