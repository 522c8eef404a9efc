"""Other gradient buckets: the same gradients, exchanged in other groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from nodewise.plugin import Change, CollectiveKind, Floats, Ints, NodewiseError, Reason, as_floats
from nodewise_replay.changes.exchanges import Exchanges, exchanges_of
from nodewise_replay.changes.gradients import Pass, backward_passes, group_by_cap
from nodewise_replay.changes.network import Cost
from nodewise_replay.changes.refusing import invalid, unsupported_error
from nodewise_replay.changes.scenario import GraphDraft, Scenario
from nodewise_replay.graph.graph import NO_NODE, EdgeKind, NodeKind

__all__ = ["in_each_buckets", "in_other_buckets"]


def in_other_buckets(scenario: Scenario, change: Change) -> Scenario:
    """Apply BUCKET_BYTES to every step in which all ranks exchange gradients.

    Raises
    ------
    NodewiseError
        INVALID_FIELD for a size of 0 or less, EVIDENCE_MISSING where no gradient all-reduce of known size is found.
    """
    if change.value <= 0:
        raise invalid("value", f"must be above 0 bytes, not {change.value:g}")
    exchanges, passes = _gradients(scenario)
    return _Regrouping(scenario, exchanges, passes, change.value).scenario()


def in_each_buckets(scenario: Scenario, sizes: Iterable[float]) -> Iterator[tuple[float, Scenario]]:
    """As `in_other_buckets` for several sizes above 0, which share the search for gradients; without those refused."""
    with suppress(NodewiseError):
        exchanges, passes = _gradients(scenario)
        for size in sizes:
            with suppress(NodewiseError):
                yield size, _Regrouping(scenario, exchanges, passes, size).scenario()


def _gradients(scenario: Scenario) -> tuple[Exchanges, list[Pass]]:
    """The exchanges of a job and its backward passes. Raises NodewiseError, EVIDENCE_MISSING, where it has none."""
    exchanges = exchanges_of(scenario)
    passes = backward_passes(scenario, exchanges)
    if not passes:
        raise unsupported_error(
            "no all-reduce of gradients was recognised: the operators of the backward pass and the sizes of "
            "all-reduces are needed; record with shapes (record_shapes=True)",
            "traces.collectives.bytes",
        )
    return exchanges, passes


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
        self._wire = exchanges.wire_bytes()
        self._relays: dict[tuple[int, int], list[int]] = {}
        ranks = self._graph.rank[exchanges.relay]
        for exchange, rank, piece in sorted(zip(exchanges.relay_of.tolist(), ranks.tolist(), exchanges.relay.tolist())):
            self._relays.setdefault((exchange, rank), []).append(piece)
        self._duration = scenario.duration_ns.astype(np.int64)

    def scenario(self) -> Scenario:
        regrouped_count = 0
        self._charge()
        for passes in self._passes.values():
            regrouped_count += self._step(passes)
        if not regrouped_count:
            raise unsupported_error(
                "ranks issue different all-reduces of gradients in the same step: it is unknown which belong together",
                "traces.collectives",
            )
        gradients = len(next(iter(self._passes.values()))[0].bytes)
        try:
            return self._draft.scenario(*self._basis(gradients))
        except NodewiseError as error:
            if error.reason != Reason.CONTRADICTORY_FACTS:
                raise
            raise unsupported_error(
                "some gradients are waited for before others are ready, so they cannot share a bucket: try smaller "
                "buckets",
                "traces.process_groups",
            ) from None

    def _basis(self, gradients: int) -> tuple[str, ...]:
        """The basis of the new buckets."""
        return (
            (
                f"{gradients} gradients in the order in which they became ready, each with an even share of its "
                "recorded bucket"
            ),
            f"all-reduce times fitted to {self._cost[0].sizes} sizes"
            if self._cost[0].latency_told
            else "all-reduces of a single size, whose time is split into latency and bandwidth as on common links",
        )

    def _charge(self) -> None:
        """Move the host time of issuing all-reduces from the gradients that issued to those that issue now.

        It is the excess of gradients that issue over those that do not; where all gradients issue, the two cannot be
        separated, and the time inside the operators around the issue counts.
        """
        self._issue_ns = dict.fromkeys(self._graph.ranks, 0.0)
        for rank in self._issue_ns:
            mine = [one for passes in self._passes.values() for one in passes if one.rank == rank]
            took = np.concatenate([np.zeros(0, dtype=np.int64), *(self._took(one) for one in mine)])
            issues = np.concatenate([np.zeros(0, dtype=np.bool_), *(one.issues for one in mine)])
            if issues.any() and not issues.all():
                self._issue_ns[rank] = max(float(np.median(took[issues]) - np.median(took[~issues])), 0.0)

    def _took(self, one: Pass) -> Ints:
        """Recorded time of every operator that makes gradients ready."""
        upto = np.concatenate(([0], np.cumsum(self._duration)))
        took: Ints = upto[one.last + 1] - upto[one.first]
        return took

    def _step(self, passes: Sequence[Pass]) -> bool:
        """Regroup one step; False where its ranks do not agree on what they exchange."""
        first, rows = passes[0], self._graph.collectives
        present = np.unique(rows.rank[np.isin(rows.transfer, self._exchanges.transfer[first.exchange])])
        alike = all(np.array_equal(one.exchange, first.exchange) for one in passes) and len(passes) == len(present)
        if not alike or any(len(one.bytes) != len(first.bytes) for one in passes):
            return False
        bucket_of = np.array(group_by_cap(first.bytes, self._cap))
        bytes_of = as_floats(np.bincount(bucket_of, weights=first.bytes))
        transfers = self._transfers(first, bytes_of)
        for one in passes:
            self._rank(one, bucket_of, bytes_of, transfers)
        return True

    def _durations(self, cost: Cost, rows: Ints, took_ns: Ints, bytes_of: Floats) -> Ints:
        """Duration of new buckets: by their cost, plus the excess of the recorded buckets of the step over theirs."""
        per_byte = self._wire[rows[0]] / self._exchanges.bytes[rows[0]]
        seconds = float(took_ns.sum()) * 1e-9
        beyond = max(seconds - cost.s_per_byte * float(self._wire[rows].sum()), 0.0) / len(rows)
        whole: Ints = np.rint((beyond + cost.s_per_byte * per_byte * bytes_of) * 1e9).astype(np.int64)
        return whole

    def _transfers(self, one: Pass, bytes_of: Floats) -> Ints:
        """Remove the recorded transfers of a step and insert the new ones."""
        nodes = self._exchanges.transfer[one.exchange]
        duration = self._durations(self._cost[0], one.exchange, self._duration[nodes], bytes_of)
        template = np.full(len(bytes_of), nodes[0])
        new = self._draft.copy_nodes(template, np.rint(bytes_of).astype(np.int64), duration_ns=duration)
        # Ranks without a trace hold the first new transfer back as they held the first recorded one.
        source, into = self._graph.source, self._draft.edges_into(nodes)
        into = into[self._graph.kind[source[into]] == NodeKind.PEERS]
        absent, later = (source[into[(self._target[into] == nodes[0]) == first]] for first in (True, False))
        self._draft.add_edges(absent, np.full(len(absent), new[0]), 0, EdgeKind.COLLECTIVE)
        self._draft.drop_nodes(later)
        self._replace(nodes, new, *self._heirs(one))
        return new

    def _replace(self, nodes: Ints, new: Ints, holds: Ints, full: Ints) -> None:
        """Replace nodes of recorded buckets by nodes of the new ones, as listed in ``_heirs``."""
        self._draft.drop_nodes(nodes)
        self._draft.inherit(nodes, new[holds], np.where(full >= 0, new[full], NO_NODE))

    def _heirs(self, one: Pass) -> tuple[Ints, Ints]:
        """For every recorded bucket, the new one that holds its last gradient, and the last one that is full by then.

        Readers of gradients wait for the former. Exchanges after a recorded bucket come after the latter (-1 = none):
        other exchanges are issued later, perhaps because of it.
        """
        bucket_of = np.array([*group_by_cap(one.bytes, self._cap), -1])
        ends = np.searchsorted(one.bucket, np.arange(len(one.row)), "right") - 1
        holds = bucket_of[ends]
        return holds, holds - (bucket_of[ends + 1] == holds)

    def _rank(self, one: Pass, bucket_of: Ints, bytes_of: Floats, transfers: Ints) -> None:
        graph, draft, recorded = self._graph, self._draft, self._graph.collectives.rows(one.row)
        count = len(bytes_of)
        ready = self._issue_buckets(one, np.searchsorted(bucket_of, np.arange(count), "right") - 1)
        # New exchanges take turns on the lanes of the recorded ones.
        first_on = np.sort(np.unique(graph.lane[recorded.arrival], return_index=True)[1])
        like, lanes = recorded.rows(np.resize(first_on, count)), len(first_on)
        arrival = draft.copy_nodes(like.arrival, duration_ns=0)
        departure = draft.copy_nodes(like.departure, duration_ns=int(np.median(self._duration[recorded.departure])))
        self._launch(recorded.arrival, arrival, ready)
        draft.add_edges(arrival, transfers, 0, EdgeKind.COLLECTIVE)
        draft.add_edges(transfers, departure, 0, EdgeKind.COLLECTIVE)
        on_host = graph.lanes[graph.lane[like.arrival[0]]][1].is_host
        draft.add_edges(departure[:-lanes], arrival[lanes:], 0, EdgeKind.HOST if on_host else EdgeKind.STREAM)
        pieces = [self._relays.get((exchange, one.rank), []) for exchange in one.exchange.tolist()]
        outcome = self._relay(one, pieces, departure, bytes_of) if all(pieces) else departure
        holds, full = self._heirs(one)
        # Work of the library before a bucket comes before the new bucket that is full no earlier.
        self._follow(recorded.arrival, arrival[holds])
        self._replace(recorded.arrival, arrival, holds, full)
        self._replace(recorded.departure, departure, holds, full)
        for relay, hold, upto in zip(pieces, holds, full, strict=True):
            self._replace(np.array(relay, dtype=np.int64), outcome, hold, upto)
        rows = graph.collectives.rows(np.resize(one.row, count))
        draft.add_rows(replace(rows, transfer=transfers, arrival=arrival, departure=departure))

    def _issue_buckets(self, one: Pass, last_of: Ints) -> Ints:
        """The pieces after which new buckets are issued; moves the time of issuing to them."""
        cost, took, is_issued = self._issue_ns[one.rank], self._took(one), np.zeros(len(one.first), dtype=np.bool_)
        is_issued[last_of] = True
        self._draft.lengthen(one.last[is_issued & ~one.issues], int(cost))
        for place in np.flatnonzero(one.issues & ~is_issued & (took > 0)):
            pieces = np.arange(one.first[place], one.last[place] + 1)
            share = max(1.0 - cost / float(took[place]), 0.0)
            self._draft.lengthen(pieces, np.rint((share - 1.0) * self._duration[pieces]).astype(np.int64))
        first, last = one.first[last_of], one.last[last_of]
        issue = one.issue[np.minimum(np.searchsorted(one.issue, first), len(one.issue) - 1)]
        return np.where((first <= issue) & (issue <= last), issue, last)

    def _launch(self, rows: Ints, arrival: Ints, ready: Ints) -> None:
        """Queue new exchanges from where they are issued, and let streams wait for the gradients' kernels."""
        graph = self._graph
        into = self._draft.edges_into(rows)
        launches = into[graph.edge_kind[into] == EdgeKind.LAUNCH]
        lag = int(np.median(graph.explained_lag_ns[launches])) if len(launches) else 0
        self._draft.add_edges(ready, arrival, lag, EdgeKind.LAUNCH)
        waits = into[graph.edge_kind[into] == EdgeKind.STREAM_WAIT]
        for lane in np.unique(graph.lane[graph.source[waits]]):
            launched = np.flatnonzero((graph.lane[self._target] == lane) & (graph.edge_kind == EdgeKind.LAUNCH))
            issued_ns, work = graph.end_ns[graph.source[launched]], self._target[launched]
            order = np.argsort(issued_ns, kind="stable")
            at = np.searchsorted(issued_ns[order], graph.end_ns[ready], "right") - 1
            in_range = at >= 0
            pause = int(np.median(self._scenario.lag_ns[waits[graph.lane[graph.source[waits]] == lane]]))
            self._draft.add_edges(work[order[at[in_range]]], arrival[in_range], pause, EdgeKind.STREAM_WAIT)

    def _follow(self, rows: Ints, arrivals: Ints) -> None:
        """Order of a lane before new nodes: the nodes that recorded ones followed."""
        graph, before = self._graph, self._draft.edges_into(rows)
        target = np.repeat(arrivals, np.diff(graph.first_edge)[rows])
        ordering = np.isin(graph.edge_kind[before], (int(EdgeKind.STREAM), int(EdgeKind.HOST)))
        before, target = before[ordering], target[ordering]
        source, kinds = (column[before].astype(np.int64) for column in (graph.source, graph.edge_kind))
        self._draft.add_edges(source, target, self._scenario.lag_ns[before], kinds)

    def _relay(self, one: Pass, pieces: Sequence[Sequence[int]], departure: Ints, bytes_of: Floats) -> Ints:
        """One piece per new bucket for the thread that passes on its outcome, one after the other."""
        durations = self._duration[[piece for relay in pieces for piece in relay]]
        duration = self._durations(self._cost[1], one.exchange, durations, bytes_of)
        longest = np.array([max(relay, key=lambda piece: int(self._duration[piece])) for relay in pieces])
        relay = self._draft.copy_nodes(np.resize(longest, len(bytes_of)), duration_ns=duration)
        self._draft.add_edges(departure, relay, 0, EdgeKind.HOST_SYNC)
        self._draft.add_edges(relay[:-1], relay[1:], 0, EdgeKind.HOST)
        # The thread may have taken the recorded ones in another order than that of their issue.
        self._follow(np.array([min(own[0] for own in pieces)]), relay[:1])
        return relay
