"""Ranks without a trace: after a change their behaviour is unknown, and lies between two cases."""

from __future__ import annotations

from typing import Final

import numpy as np

from nodewise.plugin import Ints
from nodewise_replay.graph.graph import Graph, NodeKind

__all__ = ["alike", "has_absent_ranks"]

_NEVER_NS: Final = -(1 << 60)
"""A lag that holds nothing back."""


def has_absent_ranks(graph: Graph) -> bool:
    """Whether some collectives have members without a trace."""
    return bool((graph.kind == NodeKind.PEERS).any())


def alike(graph: Graph, duration_ns: Ints, lag_ns: Ints) -> tuple[Ints, Ints]:
    """Durations and lags for the case that absent ranks change as the present ones do.

    They then come as much later than these as they were recorded to: a collective takes what it was seen to take,
    waiting included. As built, a graph holds the other case: absent ranks go on as recorded whatever is changed, and
    what the present ones gain they spend on waiting.
    """
    duration, lag = duration_ns.copy(), lag_ns.copy()
    leads = np.flatnonzero(graph.kind[graph.source] == NodeKind.PEERS)
    transfers = graph.target[leads]
    duration[transfers] = graph.end_ns[transfers] - graph.begin_ns[transfers]
    lag[leads] = _NEVER_NS
    return duration, lag
