"""More and fewer ranks: copies of the recorded ones, and exchanges that take as long as among so many."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from nodewise.plugin import Change
from nodewise_replay.alignment.messages import is_pair
from nodewise_replay.changes.copies import RankCopies
from nodewise_replay.changes.exchanges import exchanges_of
from nodewise_replay.changes.refusing import invalid, unsupported_error
from nodewise_replay.changes.scenario import GraphDraft, Scenario
from nodewise_replay.changes.servers import hub_of, served_by
from nodewise_replay.graph.graph import NodeKind

__all__ = ["in_another_world"]

LARGEST_GRAPH: Final = 2_000_000
"""Nodes: a second or two of replay."""


def in_another_world(scenario: Scenario, change: Change) -> Scenario:
    """Apply WORLD_SIZE.

    Ranks that are added are copies of the recorded ones whose work takes what it took in another step, so that ranks
    differ from each other as they were seen to: the more there are, the later the last one comes. Of fewer ranks, those
    stay that represent all, from the quickest to the slowest.

    Raises
    ------
    NodewiseError
        INVALID_FIELD for no whole number of at least 1, EVIDENCE_MISSING where the traces do not tell.
    """
    rank_count = int(change.value)
    if rank_count != change.value or rank_count < 1:
        raise invalid("value", f"must be a whole number of ranks, at least 1, not {change.value:g}")
    graph = scenario.graph
    if rank_count == graph.world_size:
        return scenario
    if not len(graph.collectives):
        raise unsupported_error(
            f"no exchange was recorded with {graph.world_size} ranks, so it is unknown what additional ranks would "
            "wait for; record a run on two ranks or more",
            "traces.collectives",
        )
    exchanges = exchanges_of(scenario)
    messages = np.array([is_pair(int(kind)) for kind in exchanges.kind], dtype=np.bool_)
    if messages.any():
        hub = hub_of(scenario, exchanges)
        if hub < 0:
            raise unsupported_error(
                "ranks send to each other in pairs, and no rank serves all others: it is unknown which rank would "
                "send to an added one",
                "traces.process_groups",
            )
        return served_by(scenario, hub, rank_count)
    _whole_world(scenario)
    among = np.full(len(exchanges), rank_count)
    scenario = scenario.with_durations(exchanges.retime(scenario, among), "exchange times scaled by the bytes per link")
    if len(graph.ranks) < graph.world_size and rank_count == 1:
        # No rank is left to wait for.
        alone = np.where(graph.kind == NodeKind.PEERS, 0, scenario.duration_ns)
        scenario = scenario.with_durations(alone, "ranks that were not recorded removed")
        return replace(scenario, graph=replace(graph, world_size=1))
    if len(graph.ranks) < graph.world_size:
        missing = graph.world_size - len(graph.ranks)
        note = (
            f"{missing} of {graph.world_size} ranks were not recorded: added ranks are assumed to arrive when these did"
        )
        return replace(
            scenario, graph=replace(scenario.graph, world_size=rank_count), rests_on=(*scenario.rests_on, note)
        )
    return _fewer(scenario, rank_count) if rank_count < graph.world_size else _more(scenario, rank_count)


def _whole_world(scenario: Scenario) -> None:
    """Refuse groups smaller than the world: which ranks an added one would join is not known."""
    world = scenario.graph.world_size
    for rank, trace in scenario.traces.items():
        for group in trace.collectives.groups:
            size = group.size or len(group.ranks)
            if size and size not in (1, world):
                raise unsupported_error(
                    f"rank {rank} exchanges in groups of {size} of {world} ranks, so the group of an added rank is "
                    "unknown; only data parallelism over all ranks can be scaled",
                    "traces.process_groups",
                )


def _fewer(scenario: Scenario, rank_count: int) -> Scenario:
    """Keep some ranks, evenly from the one that arrives first on average to the one that arrives last."""
    graph, rows = scenario.graph, scenario.graph.collectives
    ahead = graph.begin_ns[rows.transfer] - graph.end_ns[rows.arrival]
    early = [float(np.mean(ahead[rows.rank == rank])) for rank in graph.ranks]
    by_lateness = [graph.ranks[place] for place in np.argsort(-np.array(early), kind="stable")]
    places = np.linspace(len(by_lateness) - 1, 0, rank_count).round().astype(int)
    ranks_left = sorted(by_lateness[place] for place in places)
    return GraphDraft(scenario).of_ranks(ranks_left, f"ranks {', '.join(map(str, ranks_left))} kept")


def _more(scenario: Scenario, rank_count: int) -> Scenario:
    graph = scenario.graph
    # Ranks beyond one copy per recorded step would repeat each other, and the last of them comes no later.
    steps_seen = max(int((graph.steps.last_node >= 0).any(axis=1).sum()), 1)
    node_budget = max(int(LARGEST_GRAPH / len(graph) * len(graph.ranks)) - len(graph.ranks), 0)
    copy_count = min(rank_count - graph.world_size, len(graph.ranks) * steps_seen, node_budget)
    copies = RankCopies(GraphDraft(scenario), scenario)
    for index in range(copy_count):
        copies.add(graph.ranks[index % len(graph.ranks)], shift=1 + index // len(graph.ranks))
    return copies.scenario(
        rank_count,
        f"{copy_count} ranks added as copies of the recorded ones in other steps"
        + (
            f" (for {rank_count - graph.world_size} ranks to add)" if copy_count < rank_count - graph.world_size else ""
        ),
    )
