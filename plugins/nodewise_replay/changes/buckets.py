"""Other gradient buckets: the same gradients, exchanged in other groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nodewise.plugin import Change, CollectiveKind, Floats, Ints, NodewiseError, Reason, as_floats
from nodewise_replay.changes.exchanges import Exchanges, exchanges_of
from nodewise_replay.changes.gradients import Gradient, Pass, backward_passes, grouped
from nodewise_replay.changes.network import Cost
from nodewise_replay.changes.refusing import invalid, unsupported
from nodewise_replay.changes.scenario import GraphDraft, Scenario
from nodewise_replay.graph.graph import NO_NODE, EdgeKind, NodeKind

__all__ = ["in_other_buckets"]


def in_other_buckets(scenario: Scenario, change: Change) -> Scenario:
    """Apply BUCKET_BYTES to every step in which all ranks exchange gradients.

    Raises
    ------
    NodewiseError
        INVALID_FIELD for a size of 0 or less, EVIDENCE_MISSING where no gradient all-reduce of known size is found.
    """
    if change.value <= 0:
        raise invalid("value", f"must be above 0 bytes, not {change.value:g}")
    exchanges = exchanges_of(scenario)
    passes = backward_passes(scenario, exchanges)
    if not passes:
        raise unsupported(
            "no all-reduce of gradients is found: it needs the backward pass's operators and the all-reduces' sizes; "
            "record with shapes",
            "traces.collectives.bytes",
        )
    return _Regrouping(scenario, exchanges, passes, change.value).scenario()


class _Regrouping:
    def __init__(self, scenario: Scenario, exchanges: Exchanges, passes: Sequence[Pass], cap_bytes: float) -> None:
        self._scenario, self._exchanges, self._cap = scenario, exchanges, cap_bytes
        self._draft = GraphDraft(scenario)
        self._graph = scenario.graph
        self._target = scenario.graph.target
        self._passes: dict[int, list[Pass]] = {}
        for one in passes:
            self._passes.setdefault(one.step, []).append(one)
        self._cost = exchanges.costs(scenario)[int(CollectiveKind.ALL_REDUCE)]
        self._relays: dict[tuple[int, int], Ints] = {}
        for exchange in np.unique(exchanges.relay_of):
            pieces = exchanges.relay[exchanges.relay_of == exchange]
            for rank in np.unique(self._graph.rank[pieces]):
                self._relays[int(exchange), int(rank)] = np.sort(pieces[self._graph.rank[pieces] == rank])
        self._duration = scenario.duration_ns.astype(np.int64).copy()

    def scenario(self) -> Scenario:
        regrouped = 0
        self._charge()
        for passes in self._passes.values():
            regrouped += self._step(passes)
        if not regrouped:
            raise unsupported(
                "ranks issue different gradient all-reduces in the same step: which belong together is not known",
                "traces.collectives",
            )
        gradients = sum(len(group) for group in next(iter(self._passes.values()))[0].gradients)
        try:
            return self._draft.scenario(*self._basis(gradients))
        except NodewiseError as error:
            if error.reason != Reason.CONTRADICTORY_FACTS:
                raise
            raise unsupported(
                "some gradients are waited for before others are ready, so that they cannot share a bucket: smaller "
                "buckets may do",
                "traces.process_groups",
            ) from None

    def _basis(self, gradients: int) -> tuple[str, ...]:
        """What the new buckets were derived from."""
        return (
            f"{gradients} gradients in the order in which they got ready, each an even share of its recorded bucket",
            f"all-reduces fitted over {self._cost[0].sizes} sizes"
            if self._cost[0].latency_told
            else "all-reduces of a single size, split into latency and bandwidth as links commonly are",
        )

    def _charge(self) -> None:
        """Host time of issuing an all-reduce leaves gradients that no longer do and comes to those that now do.

        It is what gradients that issue take beyond those that do not; between gradients that all issue nothing tells
        the two apart, and the time inside the operators around the issue counts.
        """
        self._issue_ns: dict[int, float] = {}
        for rank in self._graph.ranks:
            issuing: list[int] = []
            others: list[int] = []
            for passes in self._passes.values():
                for one in (each for each in passes if each.rank == rank):
                    for group in one.gradients:
                        for gradient in group:
                            took = int(self._duration[gradient.first : gradient.last + 1].sum())
                            (issuing if gradient.issues else others).append(took)
            extra = float(np.median(issuing)) - (float(np.median(others)) if others else 0.0) if issuing else 0.0
            self._issue_ns[rank] = max(extra, 0.0) if others else 0.0

    def _step(self, passes: Sequence[Pass]) -> bool:
        """Regroup one step; False where its ranks do not agree on what they exchange."""
        first = passes[0]
        exchanged = [[bucket.exchange for bucket in one.buckets] for one in passes]
        rows = self._graph.collectives
        present = np.unique(rows.rank[np.isin(rows.transfer, self._exchanges.transfer[exchanged[0]])])
        if any(one != exchanged[0] for one in exchanged) or len(passes) != len(present):
            return False
        sizes = [gradient.bytes for group in first.gradients for gradient in group]
        bucket_of = grouped(sizes, self._cap)
        if any(len([g for group in one.gradients for g in group]) != len(sizes) for one in passes):
            return False
        count = bucket_of[-1] + 1
        bytes_of = as_floats(np.bincount(bucket_of, weights=sizes, minlength=count))
        transfers = self._transfers(first, bytes_of)
        for one in passes:
            self._rank(one, bucket_of, bytes_of, transfers)
        return True

    def _seconds(self, cost: Cost, recorded: Sequence[int], seconds: float, bytes_of: Floats) -> Floats:
        """Seconds of new buckets: bytes by their cost, and to each what the step's recorded ones took beyond theirs."""
        exchanges = self._exchanges
        wire = exchanges.wire_bytes()
        per_byte = wire[recorded[0]] / exchanges.bytes[recorded[0]]
        beyond = max(seconds - cost.s_per_byte * float(wire[list(recorded)].sum()), 0.0) / len(recorded)
        found: Floats = beyond + cost.s_per_byte * per_byte * bytes_of
        return found

    def _transfers(self, one: Pass, bytes_of: Floats) -> Ints:
        """Take the recorded transfers of a step away and put the new ones in their place."""
        recorded = [bucket.exchange for bucket in one.buckets]
        nodes = self._exchanges.transfer[recorded]
        seconds = self._seconds(self._cost[0], recorded, float(self._duration[nodes].sum()) * 1e-9, bytes_of)
        template = np.full(len(bytes_of), nodes[0])
        new = self._draft.copy_nodes(
            template, np.rint(bytes_of).astype(np.int64), duration_ns=np.rint(seconds * 1e9).astype(np.int64)
        )
        # Ranks without a trace hold the first new transfer back as they held the first recorded one.
        source, into = self._graph.source, self._draft.edges_into(nodes)
        into = into[self._graph.kind[source[into]] == NodeKind.PEERS]
        absent, later = (source[into[(self._target[into] == nodes[0]) == first]] for first in (True, False))
        self._draft.add_edges(absent, np.full(len(absent), new[0]), 0, EdgeKind.COLLECTIVE)
        self._draft.drop_nodes(later)
        self._draft.drop_nodes(nodes)
        for node, (holds, done) in zip(nodes.tolist(), self._heirs(one), strict=True):
            self._draft.inherit(node, int(new[holds]), _at(new, done))
        return new

    def _heirs(self, one: Pass) -> list[tuple[int, int]]:
        """For every recorded bucket, the new one that holds its last gradient, and the last one that is full by then.

        What reads gradients waits for the former. What was exchanged after a recorded bucket comes after the latter
        (-1 = none): others are issued later, perhaps because of it.
        """
        sizes = [gradient.bytes for group in one.gradients for gradient in group]
        bucket_of = np.array(grouped(sizes, self._cap))
        ends = np.cumsum([len(group) for group in one.gradients]) - 1
        full = [int(bucket_of[end]) - (end + 1 < len(sizes) and bucket_of[end + 1] == bucket_of[end]) for end in ends]
        return list(zip(bucket_of[ends].tolist(), full, strict=True))

    def _rank(self, one: Pass, bucket_of: list[int], bytes_of: Floats, transfers: Ints) -> None:
        graph, draft, rows = self._graph, self._draft, self._graph.collectives
        gradients = [gradient for group in one.gradients for gradient in group]
        count = len(bytes_of)
        last_of = [max(place for place, bucket in enumerate(bucket_of) if bucket == which) for which in range(count)]
        ready = self._issued(one, gradients, last_of)
        recorded = [bucket.row for bucket in one.buckets]
        arrivals, departures = rows.arrival[recorded], rows.departure[recorded]
        lanes = list(dict.fromkeys(graph.lane[arrivals].tolist()))
        first_on = [int(np.flatnonzero(graph.lane[arrivals] == lane)[0]) for lane in lanes]
        turn = np.array([first_on[place % len(lanes)] for place in range(count)])
        template, ends = arrivals[turn], departures[turn]
        tail = int(np.median(self._duration[departures]))
        arrival = draft.copy_nodes(template, duration_ns=0)
        departure = draft.copy_nodes(ends, duration_ns=tail)
        self._launch(arrivals, arrival, ready)
        draft.add_edges(arrival, transfers, 0, EdgeKind.COLLECTIVE)
        draft.add_edges(transfers, departure, 0, EdgeKind.COLLECTIVE)
        ordering = EdgeKind.HOST if graph.lanes[lanes[0]][1].is_host else EdgeKind.STREAM
        draft.add_edges(departure[: -len(lanes)], arrival[len(lanes) :], 0, ordering)
        relay = self._relay(one, departure, bytes_of)
        outcome = departure if relay is None else relay
        for bucket, (holds, done) in zip(one.buckets, self._heirs(one), strict=True):
            gone = self._relays.get((bucket.exchange, one.rank), np.zeros(0, dtype=np.int64))
            own = [int(rows.arrival[bucket.row]), int(rows.departure[bucket.row])]
            # What the library did before a bucket it does before the new one that is full no earlier.
            self._follow(own[0], int(arrival[holds]))
            draft.drop_nodes(np.concatenate((own, gone)).astype(np.int64))
            draft.inherit(own[0], int(arrival[holds]), _at(arrival, done))
            draft.inherit(own[1], int(departure[holds]), _at(departure, done))
            for piece in gone.tolist():
                draft.inherit(piece, int(outcome[holds]), _at(outcome, done))
        like = rows.rows(np.resize(recorded, count))
        draft.add_rows(replace(like, transfer=transfers, arrival=arrival, departure=departure))

    def _issued(self, one: Pass, gradients: Sequence[Gradient], last_of: Sequence[int]) -> Ints:
        """The pieces after which new buckets are issued; moves the time of issuing to them."""
        cost = self._issue_ns[one.rank]
        issue_of = {bucket.issue for bucket in one.buckets}
        found = []
        for place, gradient in enumerate(gradients):
            wanted = place in last_of
            if wanted:
                own = [piece for piece in issue_of if gradient.first <= piece <= gradient.last]
                found.append(own[0] if own else gradient.last)
            if wanted == gradient.issues:
                continue
            pieces = np.arange(gradient.first, gradient.last + 1)
            took = float(self._duration[pieces].sum())
            if wanted:
                self._draft.lengthen(gradient.last, int(cost))
            elif took > 0:
                share = max(1.0 - cost / took, 0.0)
                for piece in pieces.tolist():
                    self._draft.lengthen(piece, round((share - 1.0) * int(self._duration[piece])))
        return np.array(found, dtype=np.int64)

    def _launch(self, recorded: Ints, arrival: Ints, ready: Ints) -> None:
        """Queue new exchanges from where they are issued, and let streams wait for the gradients' kernels."""
        graph = self._graph
        into = self._draft.edges_into(recorded)
        launches = into[graph.edge_kind[into] == EdgeKind.LAUNCH]
        lag = int(np.median(graph.explained_lag_ns[launches])) if len(launches) else 0
        self._draft.add_edges(ready, arrival, lag, EdgeKind.LAUNCH)
        waits = into[graph.edge_kind[into] == EdgeKind.STREAM_WAIT]
        for lane in np.unique(graph.lane[graph.source[waits]]):
            launched = np.flatnonzero((graph.lane[self._target] == lane) & (graph.edge_kind == EdgeKind.LAUNCH))
            issued_ns, work = graph.end_ns[graph.source[launched]], self._target[launched]
            order = np.argsort(issued_ns, kind="stable")
            at = np.searchsorted(issued_ns[order], graph.end_ns[ready], "right") - 1
            held = at >= 0
            pause = int(np.median(self._scenario.lag_ns[waits[graph.lane[graph.source[waits]] == lane]]))
            self._draft.add_edges(work[order[at[held]]], arrival[held], pause, EdgeKind.STREAM_WAIT)

    def _follow(self, recorded: int, arrival: int) -> None:
        """Order of a lane before the first new exchange: what the first recorded one followed."""
        graph, before = self._graph, self._draft.edges_into(recorded)
        kinds = graph.edge_kind[before]
        before, kinds = (one[(kinds == EdgeKind.STREAM) | (kinds == EdgeKind.HOST)] for one in (before, kinds))
        self._draft.add_edges(graph.source[before], np.full(len(before), arrival), self._scenario.lag_ns[before], kinds)

    def _relay(self, one: Pass, departure: Ints, bytes_of: Floats) -> Ints | None:
        """One piece per new bucket for what passes its outcome on, one after the other; None where nothing does."""
        pieces = [self._relays.get((bucket.exchange, one.rank)) for bucket in one.buckets]
        if any(piece is None for piece in pieces):
            return None
        own = [piece for piece in pieces if piece is not None]
        seconds = float(sum(self._duration[piece].sum() for piece in own)) * 1e-9
        exchanges = [bucket.exchange for bucket in one.buckets]
        took = self._seconds(self._cost[1], exchanges, seconds, bytes_of)
        longest = [int(piece[np.argmax(self._duration[piece])]) for piece in own]
        relay = self._draft.copy_nodes(
            np.resize(np.array(longest), len(bytes_of)), duration_ns=np.rint(took * 1e9).astype(np.int64)
        )
        self._draft.add_edges(departure, relay, 0, EdgeKind.HOST_SYNC)
        self._draft.add_edges(relay[:-1], relay[1:], 0, EdgeKind.HOST)
        # The thread may have taken the recorded ones in another order than that of their issue.
        self._follow(min(int(piece[0]) for piece in own), int(relay[0]))
        return relay


def _at(nodes: Ints, place: int) -> int:
    """A node by its place, NO_NODE before the first."""
    return int(nodes[place]) if place >= 0 else NO_NODE
