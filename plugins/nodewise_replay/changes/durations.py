"""Events that take another share of their time, or longer and shorter by some."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Change, ChangeKind
from nodewise_replay.changes.refusing import invalid
from nodewise_replay.changes.scenario import Scenario
from nodewise_replay.graph.graph import Graph, NodeKind

__all__ = ["with_other_durations"]

_EVENT_KINDS: dict[str, NodeKind] = {
    "operator": NodeKind.OPERATOR,
    "gap": NodeKind.GAP,
    "call": NodeKind.CALL,
    "kernel": NodeKind.KERNEL,
    "copy": NodeKind.COPY,
    "fill": NodeKind.FILL,
    "collective": NodeKind.TRANSFER,
}
"""What changes may select, by name."""


def _select(graph: Graph, change: Change) -> NDArray[np.bool_]:
    """Nodes that a change concerns.

    Raises
    ------
    NodewiseError
        INVALID_FIELD for an unknown kind of event or a pattern that is none.
    """
    unknown = [kind for kind in change.event_kinds if kind not in _EVENT_KINDS]
    if unknown:
        raise invalid("event_kinds", f"{unknown[0]!r} is not an event kind; known are {', '.join(_EVENT_KINDS)}")
    kinds = [int(_EVENT_KINDS[kind]) for kind in change.event_kinds] or [int(kind) for kind in _EVENT_KINDS.values()]
    mask: NDArray[np.bool_] = np.isin(graph.kind, kinds)
    if change.name_pattern:
        try:
            pattern = re.compile(change.name_pattern)
        except re.error as error:
            raise invalid("name_pattern", f"is not a regular expression: error at position {error.pos}") from None
        mask &= graph.match_names(pattern)
    if change.ranks:
        of_ranks = np.isin(graph.rank, change.ranks)
        rows = graph.collectives
        of_ranks[rows.transfer[np.isin(rows.rank, change.ranks)]] = True
        mask &= of_ranks
    return mask


def with_other_durations(scenario: Scenario, change: Change) -> Scenario:
    """Apply SCALE or DELAY.

    Raises
    ------
    NodewiseError
        INVALID_FIELD for values out of range and for a selection that makes no sense.
    """
    mask = _select(scenario.graph, change)
    duration = scenario.duration_ns.astype(np.float64)
    if change.kind == ChangeKind.DELAY:
        duration[mask] = np.maximum(duration[mask] + change.value * 1e9, 0.0)
    elif change.value < 0:
        raise invalid("value", f"must be 0 or more, not {change.value:g}")
    else:
        duration[mask] *= change.value
    return scenario.with_durations(np.rint(duration).astype(np.int64))
