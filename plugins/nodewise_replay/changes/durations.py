"""Changes of the recorded job, as other durations and lags of the same graph."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Change, ChangeKind, Ints, NodewiseError, Violation
from nodewise_replay.graph.graph import Graph, NodeKind

__all__ = ["EVENT_KINDS", "changed", "selected"]

EVENT_KINDS: dict[str, NodeKind] = {
    "operator": NodeKind.OPERATOR,
    "gap": NodeKind.GAP,
    "call": NodeKind.CALL,
    "kernel": NodeKind.KERNEL,
    "copy": NodeKind.COPY,
    "fill": NodeKind.FILL,
    "collective": NodeKind.TRANSFER,
}
"""What changes may select, by name."""


def selected(graph: Graph, change: Change) -> NDArray[np.bool_]:
    """Nodes that a change concerns.

    Raises
    ------
    NodewiseError
        INVALID_FIELD for an unknown kind of event or a pattern that is none.
    """
    unknown = [kind for kind in change.event_kinds if kind not in EVENT_KINDS]
    if unknown:
        raise _invalid("event_kinds", f"{unknown[0]!r} is none; known: {', '.join(EVENT_KINDS)}")
    kinds = [int(EVENT_KINDS[kind]) for kind in change.event_kinds] or [int(kind) for kind in EVENT_KINDS.values()]
    chosen: NDArray[np.bool_] = np.isin(graph.kind, kinds)
    if change.name_pattern:
        try:
            pattern = re.compile(change.name_pattern)
        except re.error as error:
            raise _invalid("name_pattern", f"no regular expression: position {error.pos} makes no sense") from None
        named = np.fromiter((pattern.search(name) is not None for name in graph.names), dtype=np.bool_)
        chosen &= named[graph.name]
    if change.ranks:
        concerned = np.isin(graph.rank, change.ranks)
        rows = graph.collectives
        concerned[rows.transfer[np.isin(rows.rank, change.ranks)]] = True
        chosen &= concerned
    return chosen


def changed(graph: Graph, duration_ns: Ints, changes: Sequence[Change]) -> Ints:
    """Durations after changes, in the order given.

    Raises
    ------
    NodewiseError
        INVALID_FIELD for values out of range and for kinds that need a model of the network.
    """
    duration = duration_ns.astype(np.float64)
    for change in changes:
        if not np.isfinite(change.value):
            raise _invalid("value", "must be a finite number")
        chosen = selected(graph, change)
        if change.kind == ChangeKind.SCALE:
            if change.value < 0:
                raise _invalid("value", f"must be 0 or more, not {change.value:g}")
            duration[chosen] *= change.value
        elif change.kind == ChangeKind.DELAY:
            duration[chosen] = np.maximum(duration[chosen] + change.value * 1e9, 0.0)
        else:
            raise _invalid("kind", f"{ChangeKind(change.kind).name} needs a model of the network; a replay has none")
    result: Ints = np.rint(duration).astype(np.int64)
    return result


def _invalid(field: str, description: str) -> NodewiseError:
    return NodewiseError.invalid([Violation(f"changes.{field}", description)])
