"""The recorded events of the steps of interest, each with the part of a step that it belongs to."""

from __future__ import annotations

import numpy as np

from nodewise.plugin import Timeline
from nodewise_diagnosis.accounting import Accounting
from nodewise_diagnosis.case import Case
from nodewise_replay.graph.graph import NodeKind
from nodewise_replay.replaying.timeline import timeline

__all__ = ["lanes"]


def lanes(case: Case, accounting: Accounting) -> Timeline:
    """A timeline since the begin of the first step, with parts.

    Time between a host's events, and the own time of a span, is an event where a named part consists of it: its name is
    then what the part is. That between launches is none: any number of threads wait meanwhile.
    """
    graph = case.graph
    part = np.full(len(graph), -1, dtype=np.int64)
    names: list[str] = []
    for (kind, what), nodes in accounting.members.items():
        part[nodes if kind != "launch" else nodes[graph.kind[nodes] != NodeKind.GAP]] = len(names)
        names.append(f"{kind}: {what}")
    origin_ns = case.watch.origin_ns()
    return timeline(graph, graph.begin_ns, graph.end_ns, case.watch.steps, part, tuple(names), origin_ns)
