"""Exchanges of a graph: the library's transfer, the host's relay that completes it, and their costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nodewise.plugin import Floats, Ints, Trace, as_floats
from nodewise_replay.alignment.messages import is_pair
from nodewise_replay.changes.network import Cost, bytes_factor, fitted_cost
from nodewise_replay.changes.scenario import Scenario, is_piece
from nodewise_replay.graph.graph import EdgeKind, Graph, NodeKind

__all__ = ["Exchanges", "exchanges_of", "segment"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Exchanges:
    """Collectives of a graph as columns, and the host time that belongs to them.

    Attributes
    ----------
    transfer : (n,) int
        Node of the library's transfer.
    kind, bytes, ranks : (n,) int
        CollectiveKind, bytes of the exchange (-1 = not known), how many take part.
    relay, relay_of : (m,) int
        Pieces of host threads that complete an exchange after the library, or that a message is wrapped in, and the
        exchange that each belongs to, as an index.
    """

    transfer: Ints
    kind: Ints
    bytes: Ints
    ranks: Ints
    relay: Ints
    relay_of: Ints

    def __len__(self) -> int:
        return len(self.transfer)

    def wire_bytes(self, ranks: Ints | None = None) -> Floats:
        """Bytes that each exchange brings to a link; ``ranks`` = another number of participants."""
        factor = bytes_factor(self.kind, self.ranks if ranks is None else ranks)
        wire_bytes: Floats = factor * np.maximum(self.bytes, 0)
        return wire_bytes

    def costs(self, scenario: Scenario) -> dict[int, tuple[Cost, Cost]]:
        """By kind, the costs of the library's transfer and of the relay, fitted over all sizes of the trace.

        Exchanges of unknown size are left out. Transfers are those that all ranks shared: the graph separates them from
        waiting.
        """
        costs = {}
        relay_s = self.relay_s(scenario)
        transfers = as_floats(scenario.duration_ns[self.transfer] * 1e-9)
        wire = self.wire_bytes()
        for kind in np.unique(self.kind):
            mine = np.flatnonzero((self.kind == kind) & (self.bytes > 0) & (self.ranks > 1))
            if len(mine):
                costs[int(kind)] = (
                    fitted_cost(wire[mine], transfers[mine], scenario.latency_bytes),
                    fitted_cost(wire[mine], relay_s[mine], scenario.latency_bytes),
                )
        return costs

    def relay_s(self, scenario: Scenario) -> Floats:
        """Seconds of each exchange's relay, on the rank where it takes longest."""
        relay_s = np.zeros(len(self))
        if len(self.relay):
            owners, member = np.unique(
                np.column_stack((self.relay_of, scenario.graph.rank[self.relay])), axis=0, return_inverse=True
            )
            total = np.bincount(member.reshape(-1), weights=scenario.duration_ns[self.relay] * 1e-9)
            np.maximum.at(relay_s, owners[:, 0], total)
        return relay_s

    def retime(
        self, scenario: Scenario, ranks: Ints | None = None, *, bandwidth: float = 1.0, latency: float = 1.0
    ) -> Ints:
        """Durations of a job's nodes with its exchanges among other ranks or over another link.

        Exchanges of no known size stay as they are. Among one rank there are none.
        """
        takers = self.ranks if ranks is None else ranks
        seconds = np.stack((scenario.duration_ns[self.transfer] * 1e-9, self.relay_s(scenario)))
        wire, after = self.wire_bytes(), self.wire_bytes(takers)
        ratio = np.ones_like(seconds)
        for kind, pair in self.costs(scenario).items():
            mine = np.flatnonzero((self.kind == kind) & (wire > 0))
            for which, cost in enumerate(pair):
                took = seconds[which, mine]
                then = cost.rescale(took, wire[mine], after[mine], bandwidth=bandwidth, latency=latency)
                ratio[which, mine] = np.where(took > 0, then / np.maximum(took, 1e-12), 1.0)
        ratio[:, takers <= 1] = 0.0
        duration = scenario.duration_ns.astype(np.float64)
        duration[self.transfer] *= ratio[0]
        duration[self.relay] *= ratio[1][self.relay_of]
        result: Ints = np.rint(duration).astype(np.int64)
        return result


def exchanges_of(scenario: Scenario) -> Exchanges:
    """Find the exchanges of a job, with the changes made to it before."""
    graph, rows = scenario.graph, scenario.graph.collectives
    transfer, first, member = np.unique(rows.transfer, return_index=True, return_inverse=True)
    present = np.bincount(member, minlength=len(transfer))
    kind, takers = (np.zeros(len(transfer), dtype=np.int64) for _ in range(2))
    for place, row in enumerate(first):
        table = scenario.traces[scenario.recorded_rank[int(rows.rank[row])]].collectives
        kind[place] = table.kind[int(rows.row[row])]
        takers[place] = 2 if is_pair(int(kind[place])) else max(int(present[place]), graph.world_size)
    pieces = _relays(graph, rows.departure, member) + _wrapping_spans(scenario, kind[member], member)
    relay, relay_of = np.array(pieces, dtype=np.int64).reshape(-1, 2).T
    return Exchanges(
        transfer=transfer,
        kind=kind,
        bytes=scenario.bytes[transfer],
        ranks=takers,
        relay=relay,
        relay_of=relay_of,
    )


def _relays(graph: Graph, departure: Ints, member: Ints) -> list[tuple[int, int]]:
    """Pieces of the threads that pass on an exchange's outcome, each with the exchange.

    A piece that waits for the departure begins a relay if its thread has nothing else to do: it goes on until the
    thread waits again. Threads that steps end on, or that launch or queue anything, are no relays.
    """
    piece = is_piece(graph)
    target = graph.target
    launching = graph.lane[graph.source[graph.edge_kind == EdgeKind.LAUNCH]]
    library = graph.lane[departure]
    lanes = np.unique(np.concatenate((graph.main_lanes, launching, library)))
    relaying = piece[target] & ~np.isin(graph.lane[target], lanes)
    waits = np.flatnonzero((graph.edge_kind == EdgeKind.HOST_SYNC) & relaying)
    of_departure = dict(zip(departure.tolist(), member.tolist(), strict=True))
    pairs = zip(target[waits].tolist(), graph.source[waits].tolist(), strict=True)
    begins = {node: of_departure[source] for node, source in pairs if source in of_departure}
    relay = []
    for node, exchange in begins.items():
        following = node
        while True:
            relay.append((following, exchange))
            following += 1
            if following >= len(graph) or following in begins or not piece[following]:
                break
            if graph.lane[following] != graph.lane[node] or graph.step[following] != graph.step[node]:
                break
    return relay


def segment(graph: Graph, trace: Trace, event: int, arrival: int, departure: int) -> tuple[int, int]:
    """First and last piece of a host thread's work for one message, whose span is ``event``.

    It is the longest span below the step that holds this message and no other.
    """
    first, last = min(arrival, departure), max(arrival, departure)
    reach = np.arange(max(first - _REACH, 0), min(last + _REACH, len(graph)))
    nodes = reach[(graph.lane[reach] == graph.lane[arrival]) & (graph.event[reach] >= 0)]
    messages = np.asarray(trace.collectives.event)
    messages = messages[(messages >= 0) & (trace.lane[messages] == trace.lane[event])]
    steps = set(trace.steps.begin_ns.tolist())
    outer, longest = event, int(trace.duration_ns[event])
    for one in np.unique(graph.event[nodes]):
        begin, end = int(trace.begin_ns[one]), int(trace.end_ns[one])
        if begin > trace.begin_ns[event] or end < trace.end_ns[event] or begin in steps or end - begin <= longest:
            continue
        if ((trace.begin_ns[messages] >= begin) & (trace.end_ns[messages] <= end)).sum() == 1:
            outer, longest = int(one), end - begin
    mine = nodes[graph.event[nodes] == outer]
    return (min(first, int(mine[0])), max(last, int(mine[-1]))) if len(mine) else (first, last)


_REACH = 64
"""Pieces around a message that its span can reach: an annotation, operators and what they call."""


def _wrapping_spans(scenario: Scenario, kind: Ints, member: Ints) -> list[tuple[int, int]]:
    """Host time of the named spans around messages, without the operators inside them, each with the exchange."""
    graph, rows = scenario.graph, scenario.graph.collectives
    spans: list[tuple[int, int]] = []
    on_host = is_piece(graph)
    for row in np.flatnonzero([is_pair(int(one)) for one in kind]):
        arrival, departure = int(rows.arrival[row]), int(rows.departure[row])
        if not on_host[arrival]:
            continue
        trace = scenario.traces[scenario.recorded_rank[int(rows.rank[row])]]
        event = int(trace.collectives.event[rows.row[row]])
        first, last = segment(graph, trace, event, arrival, departure)
        nodes = np.arange(first, last + 1)
        inside = (graph.kind[nodes] == NodeKind.GAP) & (nodes != departure) & (graph.event[nodes] >= 0)
        spans.extend((node, int(member[row])) for node in nodes[inside].tolist())
    return spans
