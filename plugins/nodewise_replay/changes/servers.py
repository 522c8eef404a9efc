"""More and fewer workers of a parameter server: it serves them one after the other, as it serves those recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from nodewise.plugin import Ints
from nodewise_replay.alignment.messages import is_receipt
from nodewise_replay.changes.copies import RankCopies
from nodewise_replay.changes.exchanges import Exchanges, segment
from nodewise_replay.changes.refusing import invalid, unsupported_error
from nodewise_replay.changes.scenario import GraphDraft, Scenario, is_piece
from nodewise_replay.graph.graph import NO_NODE, EdgeKind

__all__ = ["hub_of", "served_by"]


def hub_of(scenario: Scenario, exchanges: Exchanges) -> int:
    """The one rank that takes part in every exchange, each between two ranks; -1 = none, or it cannot be determined."""
    graph, rows = scenario.graph, scenario.graph.collectives
    if len(graph.ranks) < 2 or (exchanges.ranks != 2).any():
        return -1
    # The recording may end between the two ends of a message.
    whole = np.bincount(rows.transfer, minlength=len(graph))[rows.transfer] == 2
    counts = [int((whole & (rows.rank == rank)).sum()) for rank in graph.ranks]
    messages = int(whole.sum()) // 2
    hubs = [rank for rank, count in zip(graph.ranks, counts, strict=True) if count == messages]
    if len(hubs) == 1:
        return hubs[0]
    if len(graph.ranks) != 2 or len(hubs) != 2:
        return -1
    # Of two ranks the server is the one that waits for gradients before it has anything to send.
    first = []
    for rank in graph.ranks:
        mine = np.flatnonzero(rows.rank == rank)
        receipt = is_receipt(scenario.traces[scenario.recorded_rank[rank]])[rows.row[mine]]
        step = graph.step[rows.transfer[mine]]
        opening = [int(mine[step == one][0]) for one in np.unique(step)]
        by_row = dict(zip(mine.tolist(), receipt.tolist(), strict=True))
        first.append(np.mean([by_row[one] for one in opening]))
    return graph.ranks[int(np.argmax(first))] if first[0] != first[1] else -1


def served_by(scenario: Scenario, hub: int, rank_count: int) -> Scenario:
    """The job with a server and ``rank_count - 1`` workers.

    Raises
    ------
    NodewiseError
        INVALID_FIELD for a world without a worker, EVIDENCE_MISSING where workers left no trace.
    """
    graph = scenario.graph
    if rank_count < 2:
        raise invalid("value", "must be at least 2: a parameter server and a worker")
    if len(graph.ranks) < graph.world_size:
        raise unsupported_error("some ranks were not recorded: the server's work for them is unknown", "traces")
    if not is_piece(graph)[graph.collectives.arrival].all():
        raise unsupported_error(
            ("the exchanged messages are on device streams: the server's work for each is unknown"), "traces"
        )
    workers = [rank for rank in graph.ranks if rank != hub]
    exchanges = _ServerExchanges(scenario, hub, workers)
    return exchanges.fewer(rank_count - 1) if rank_count - 1 < len(workers) else exchanges.more(rank_count - 1)


class _ServerExchanges:
    def __init__(self, scenario: Scenario, hub: int, workers: list[int]) -> None:
        self._scenario, self._hub, self._workers = scenario, hub, workers
        self._draft = GraphDraft(scenario)
        graph, rows = scenario.graph, scenario.graph.collectives
        partner = {int(node): int(rank) for node, rank in zip(rows.transfer, rows.rank, strict=True) if rank != hub}
        segments_by_key: dict[tuple[int, bool], list[int]] = {}
        trace = scenario.traces[scenario.recorded_rank[hub]]
        receipts = is_receipt(trace)
        self._segments = []
        of_hub = np.flatnonzero(rows.rank == hub)
        for row in of_hub[np.argsort(rows.arrival[of_hub], kind="stable")]:
            arrival, departure = int(rows.arrival[row]), int(rows.departure[row])
            event = int(trace.collectives.event[rows.row[row]])
            first, last = segment(graph, trace, event, arrival, departure)
            node = int(rows.transfer[row])
            kind = (int(graph.step[node]), bool(receipts[rows.row[row]]))
            # Of a message whose other end was not recorded: the worker that had this turn in the step before.
            turn = len(segments_by_key.setdefault(kind, []))
            before = segments_by_key.get((kind[0] - 1, kind[1]), [])
            worker = partner.get(node, before[turn] if turn < len(before) else NO_NODE)
            segments_by_key[kind].append(worker)
            self._segments.append((first, last, int(row), worker, kind))
        self._segments.sort()

    def fewer(self, count: int) -> Scenario:
        """Keep the first workers."""
        graph, rows = self._scenario.graph, self._scenario.graph.collectives
        ranks_left = sorted([self._hub, *self._workers[:count]])
        is_removed = ~np.isin(graph.rank, ranks_left) & (graph.rank >= 0)
        removed_transfers = [rows.transfer[row] for _, _, row, worker, _ in self._segments if worker not in ranks_left]
        is_removed[removed_transfers] = True
        is_removed[rows.transfer[~np.isin(rows.rank, ranks_left)]] = True
        for first, last, _, worker, _ in self._segments:
            if worker not in ranks_left:
                is_removed[first : last + 1] = True
                heir = first - 1
                while is_removed[heir]:
                    heir -= 1
                self._draft.inherit(last, heir, heir)
        self._draft.drop_nodes(np.flatnonzero(is_removed))
        return self._draft.of_ranks(ranks_left, f"the server's time for {len(self._workers) - count} workers removed")

    def more(self, count: int) -> Scenario:
        """Add copies of workers, and of the server's work for each, after its work for the last."""
        copies = RankCopies(self._draft, self._scenario)
        added_segments: dict[tuple[int, bool], list[tuple[int, int]]] = {}
        for index in range(count - len(self._workers)):
            source = self._workers[index % len(self._workers)]
            rank, number = copies.add(source, shift=1 + index // len(self._workers), shared=False)
            self._serve(source, rank, number, added_segments)
        self._link(added_segments)
        return copies.scenario(
            count + 1,
            f"{count - len(self._workers)} workers added as copies of the recorded ones",
            (
                "the server handles added workers one after the other, as it handles the recorded ones; its update "
                "takes as long as recorded"
            ),
        )

    def _serve(
        self, source: int, rank: int, number: Ints, added_segments: dict[tuple[int, bool], list[tuple[int, int]]]
    ) -> None:
        """Copy the server's work for one worker, and the messages between the two."""
        graph, rows, draft = self._scenario.graph, self._scenario.graph.collectives, self._draft
        for first, last, row, worker, kind in self._segments:
            if worker != source:
                continue
            own = np.arange(first, last + 1)
            renumbered = number.copy()
            renumbered[own] = draft.copy_nodes(own)
            transfer = np.array([rows.transfer[row]])
            renumbered[transfer] = draft.copy_nodes(transfer)
            is_copied = renumbered != number
            shared = np.isin(np.arange(len(graph)), transfer)
            ends = is_copied | (graph.rank == source)
            within = np.where(
                shared[graph.source] | shared[graph.target],
                ends[graph.source] & ends[graph.target],
                is_copied[graph.source] & is_copied[graph.target],
            )
            draft.copy_edges(np.flatnonzero(within), renumbered)
            for of, owner in ((rows.rank == self._hub, self._hub), (rows.rank == source, rank)):
                ends = rows.rows((rows.transfer == transfer[0]) & of).renumber(renumbered)
                draft.add_rows(replace(ends, rank=np.full(len(ends), owner)))
            added_segments.setdefault(kind, []).append((int(renumbered[first]), int(renumbered[last])))

    def _link(self, added_segments: Mapping[tuple[int, bool], list[tuple[int, int]]]) -> None:
        """Put the copies into the server's order: after the last message of the same direction in the step."""
        graph = self._scenario.graph
        target = graph.target
        for kind, copies in added_segments.items():
            last = max(segment_end for _, segment_end, _, _, of in self._segments if of == kind)
            onward = np.flatnonzero((graph.source == last) & (graph.edge_kind == EdgeKind.HOST) & (target == last + 1))
            before = last
            for begin, end in copies:
                self._draft.add_edges(np.array([before]), np.array([begin]), 0, EdgeKind.HOST)
                before = end
            if len(onward):
                self._draft.drop_edges(onward)
                self._draft.add_edges(np.array([before]), target[onward], graph.lag_ns[onward], EdgeKind.HOST)
