"""A job to diagnose: its graph, the known facts of every node, and the question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nodewise.plugin import DiagnoserContext, DiagnosisQuestion, Floats, Profile, Trace
from nodewise_diagnosis.likeness import Likeness
from nodewise_diagnosis.recurring import Exchange
from nodewise_diagnosis.roles import Roles
from nodewise_diagnosis.stopwatch import Stopwatch
from nodewise_replay.alignment.clocks import Clocks
from nodewise_replay.graph.graph import Graph

__all__ = ["Case"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Case:
    """What all rules of a diagnosis look at.

    Attributes
    ----------
    traces : mapping of rank to Trace
    base_ns : float
        Mean length of the steps of interest, replayed as they were.
    """

    watch: Stopwatch
    roles: Roles
    likeness: Likeness
    exchanges: Sequence[Exchange]
    traces: Mapping[int, Trace]
    clocks: Clocks
    base_ns: float
    profile: Profile
    question: DiagnosisQuestion
    context: DiagnoserContext

    @property
    def graph(self) -> Graph:
        """The recorded job's."""
        return self.watch.graph

    @property
    def whole(self) -> bool:
        """Whether every rank left a trace."""
        return len(self.graph.ranks) >= self.graph.world_size

    def main_lane(self, column: int) -> int:
        """The lane of the thread that goes from step to step on a rank; without one, of its first host thread."""
        graph = self.graph
        last = graph.steps.last_node[:, column]
        if (last >= 0).any():
            return int(graph.lane[last[last >= 0][0]])
        rank = graph.ranks[column]
        return next((n for n, (of, lane) in enumerate(graph.lanes) if of == rank and lane.is_host), -1)

    def late_begins_ns(self) -> Floats | None:
        """By how much each rank begins the first step later than the median of the others.

        None where the steps of interest do not begin with that one, or there is no other rank to compare with.
        """
        graph = self.graph
        if len(graph.ranks) < 2 or self.watch.steps[0] != 0:
            return None
        begins = graph.steps.begin_ns[0]
        return np.array([begin - np.median(np.delete(begins, place)) for place, begin in enumerate(begins)])
