"""Recordings: which of a profile's traces were taken together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.plugin import Trace
from nodewise_replay.alignment.clocks import align_clocks
from nodewise_replay.building.assembly import build_graph
from nodewise_replay.changes.exchanges import Exchanges, exchanges_of
from nodewise_replay.changes.scenario import Scenario
from nodewise_replay.changes.servers import hub_of
from nodewise_replay.replaying.measures import StepTimer

__all__ = ["Recording", "recordings_of"]

_DAY_NS: Final = 86_400_000_000_000
"""Times below are since some start, not since 1970: they say nothing of what ran when."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Recording:
    """Traces of one run, and their graph.

    Attributes
    ----------
    hub : int
        Rank of the parameter server; -1 = none.
    persistence : float
        Standard deviation of ln(step time) over the recorded steps; of a single step over its ranks, which is all that
        tells how much times vary.
    """

    scenario: Scenario
    exchanges: Exchanges
    hub: int
    persistence: float
    steps: int

    @property
    def workers(self) -> int:
        """Ranks that compute."""
        return self.scenario.graph.world_size - (self.hub >= 0)

    @property
    def is_complete(self) -> bool:
        """Whether every rank left a trace."""
        return len(self.scenario.graph.ranks) == self.scenario.graph.world_size


def recordings_of(traces: Sequence[Trace]) -> list[Recording]:
    """Put traces together that were recorded at the same time, and build the graph of each recording.

    A reference to a trace does not state its run. Traces belong together if they state the same world, come from
    different ranks and cover a common time; where times say nothing, those that hold the same steps, in the order
    given.
    """
    groups: list[list[Trace]] = []
    for trace in traces:
        if not trace.timed or not len(trace):
            continue
        fitting = [group for group in groups if _together(group, trace)]
        if fitting:
            fitting[0].append(trace)
        else:
            groups.append([trace])
    return [_recording(group) for group in groups]


def _together(group: Sequence[Trace], trace: Trace) -> bool:
    first = group[0]
    if first.world_size != trace.world_size or any(one.rank == trace.rank for one in group):
        return False
    window, other = _window(first), _window(trace)
    if window[0] < _DAY_NS or other[0] < _DAY_NS:
        return bool(np.array_equal(first.steps.number, trace.steps.number))
    return window[0] <= other[1] and other[0] <= window[1]


def _window(trace: Trace) -> tuple[int, int]:
    return int(trace.begin_ns.min()), int(trace.end_ns.max())


def _recording(group: Sequence[Trace]) -> Recording:
    by_rank = sorted(group, key=lambda trace: trace.rank)
    graph = build_graph(by_rank, align_clocks(by_rank))
    scenario = Scenario.from_recording(graph, {trace.rank: trace for trace in by_rank}, graph.duration_ns, graph.lag_ns)
    exchanges = exchanges_of(scenario)
    took = StepTimer(graph).times(graph.end_ns).step_ns
    of_ranks = np.maximum(took[(took >= 0).all(axis=1)], 1).astype(np.float64)
    lengths = of_ranks.mean(axis=1)
    lengths_s = lengths if len(lengths) > 1 else of_ranks.reshape(-1)
    spread = float(np.std(np.log(lengths_s), ddof=1)) if len(lengths_s) > 1 else 0.0
    return Recording(
        scenario=scenario,
        exchanges=exchanges,
        hub=hub_of(scenario, exchanges) if len(exchanges) else -1,
        persistence=spread,
        steps=len(lengths),
    )
