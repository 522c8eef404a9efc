"""What might cost time: groups of nodes, and what they would take without the fault or altogether."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np

from nodewise.plugin import Floats, Ints
from nodewise_diagnosis.likeness import Likeness
from nodewise_diagnosis.recurring import Exchange, explained_ns
from nodewise_diagnosis.roles import Role, Roles
from nodewise_diagnosis.stopwatch import NS, Edit, Stopwatch
from nodewise_replay.graph.graph import NodeKind

__all__ = ["AVOIDABLE", "Candidate", "Tier", "candidates"]

_MOST_OUTLIERS: Final = 20
_MOST_NAMES: Final = 40
"""Most names of one kind that are tried: those that take most."""

_LIKE_SHARE: Final = 0.5
"""Ranks that are late in the same step by at least this share of the latest are late together."""


_EXPLAINED_WITHIN: Final = 1.25
"""Exchanges of one kind lie that close to what their sizes explain, without anything being wrong with them."""


AVOIDABLE: Final = 0.1
"""What should not be there at all is a fault, and bounds the job, from this share of the step on."""

_NEARLY_ALL: Final = 0.9
"""What is on one rank with at least this share of its time is told as that rank's."""


class Tier(IntEnum):
    """How a bottleneck is told, the more certain that it can go the earlier."""

    FAULT = 0
    """Takes longer than its like (another rank, another step, another exchange of its size), or is loading alone."""
    OVERHEAD = 1
    """Takes part of the step without computing anything."""
    WORK = 2
    """The computation itself."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Candidate:
    """Something that may cost time.

    Attributes
    ----------
    removed : Edit
        Without it.
    reduced_share : float
        Share of it that a remedy can hope to take away; what is ranked by, beside faults.
    seconds : float
        What it takes in a step, on the rank where it takes most.
    """

    kind: str
    what: str
    rank: int
    tier: Tier
    seconds: float
    removed: Edit
    reduced: Edit
    reduced_share: float
    why: str


class _Maker:
    def __init__(self, watch: Stopwatch, roles: Roles, likeness: Likeness, exchanges: Sequence[Exchange]) -> None:
        self._watch, self._graph, self._roles = watch, watch.graph, roles
        self._likeness, self._exchanges = likeness, exchanges
        self._wanted = np.isin(self._graph.step, watch.steps)
        self._own = np.isin(roles.role, (Role.HOST, Role.COMPUTE, Role.COPY)) & self._wanted
        self._duration = self._graph.duration_ns.astype(np.float64)
        self._loading = (roles.role == Role.LOADING) & self._wanted
        self._column = np.searchsorted(np.array(self._graph.ranks), np.maximum(self._graph.rank, 0))

    # --- faults

    def slow_ranks(self) -> Iterator[Candidate]:
        """Ranks whose work, loading or part in exchanges takes longer than the other ranks'."""
        if len(self._graph.ranks) < 2:
            return
        beyond = self._likeness.beyond_ranks_ns
        communication = (self._roles.role == Role.COMMUNICATION) & self._wanted
        for rank in self._graph.ranks:
            of_rank = (self._graph.rank == rank) & self._likeness.compared
            for kind, chosen in (("rank", self._own), ("loader", self._loading), ("link", communication)):
                nodes = np.flatnonzero(of_rank & chosen)
                excess = beyond[nodes]
                total, took = float(excess.sum()), float(self._duration[nodes].sum())
                if total <= 0 or took <= 0:
                    continue
                ratio = took / max(took - total, 1.0)
                most = self._main_name(nodes, excess)
                what = {
                    "rank": f"rank {rank} is slower than the others",
                    "loader": f"rank {rank} waits for its batches longer than the others: {most}",
                    "link": f"rank {rank} exchanges more slowly than the others: {most}",
                }[kind]
                yield self._fault(
                    kind, what, rank, nodes, excess,
                    f"takes {ratio:.2f} times as long as the median of the other ranks, most of it in {most}",
                )  # fmt: skip

    def slow_exchanges(self) -> Iterator[Candidate]:
        """Collectives that take longer than their size explains.

        Where ranks are missing nobody can tell waiting from transfer, so that nothing can be said.
        """
        if len(self._graph.ranks) < self._graph.world_size:
            return
        for exchange in self._exchanges:
            expected = explained_ns(exchange, self._exchanges)
            if expected is None or exchange.usual_ns <= _EXPLAINED_WITHIN * expected:
                continue
            excess = self._duration[exchange.nodes] * (1 - expected / exchange.usual_ns)
            yield self._fault(
                "collective", exchange.label, -1, exchange.nodes, excess,
                f"takes {exchange.usual_ns / max(expected, 1.0):.2f} times the {expected * NS * 1e3:.3f} ms that its "
                "size explains, by the other exchanges of its kind",
            )  # fmt: skip

    def outliers(self) -> Iterator[Candidate]:
        """What took much longer in one step than in the others."""
        graph, beyond = self._graph, self._likeness.beyond_steps_ns
        nodes = np.flatnonzero(self._wanted & (beyond > 0))
        if not len(nodes) or len(self._watch.steps) < 3:
            return
        group = (graph.step[nodes].astype(np.int64) * len(graph.names) + graph.name[nodes]) * len(
            Role
        ) + self._roles.role[nodes]
        _, first, place = np.unique(group, return_index=True, return_inverse=True)
        table = np.zeros((len(first), len(graph.ranks)))
        np.add.at(table, (place, self._column[nodes]), beyond[nodes])
        for index in np.argsort(-table.max(axis=1), kind="stable")[:_MOST_OUTLIERS]:
            late = np.flatnonzero(table[index] >= _LIKE_SHARE * table[index].max())
            chosen = nodes[(place == index) & np.isin(self._column[nodes], late)]
            node = nodes[first[index]]
            number = int(graph.steps.number[graph.step[node]])
            rank = graph.ranks[int(late[0])] if len(late) == 1 else -1
            loading = self._roles.role[node] == Role.LOADING
            who = f"of rank {rank}" if rank >= 0 else "of several ranks"
            yield self._fault(
                "loader" if loading else "outlier",
                f"{'a late batch' if loading else _short(graph.names[graph.name[node]])} {who} in step {number}",
                rank, chosen, beyond[chosen],
                f"{_short(graph.names[graph.name[node]])} took {table[index].max() * NS * 1e3:.3f} ms longer than in "
                "the other steps",
            )  # fmt: skip

    def late_begins(self) -> Iterator[Candidate]:
        """Ranks that begin the first step of the recording late: why was not recorded."""
        graph = self._graph
        if len(graph.ranks) < 2 or self._watch.steps[0] != 0:
            return
        begins = graph.steps.begin_ns[0]
        for column, rank in enumerate(graph.ranks):
            late = float(begins[column] - np.median(np.delete(begins, column)))
            if late <= 0:
                continue
            shift = np.zeros(len(graph.ranks), dtype=np.int64)
            shift[column] = -round(late)
            yield Candidate(
                kind="late_begin",
                what=f"rank {rank} begins the first recorded step late",
                rank=rank,
                tier=Tier.OVERHEAD,
                seconds=late * NS,
                removed=Edit(begin_shift_ns=shift),
                reduced=Edit(begin_shift_ns=shift),
                reduced_share=1.0,
                why=f"{late * NS * 1e3:.3f} ms after the median of the others; what held it back was not recorded",
            )

    # --- overheads and work

    def loading(self) -> Iterator[Candidate]:
        """Getting batches, on all ranks: a fault where most ranks do it for a good part of the step."""
        nodes = np.flatnonzero(self._loading)
        if not len(nodes):
            return
        per_rank = np.bincount(self._column[nodes], weights=self._duration[nodes], minlength=len(self._graph.ranks))
        usual = float(np.sort(per_rank)[(len(per_rank) - 1) // 2]) / len(self._watch.steps)
        tier = Tier.FAULT if usual >= AVOIDABLE * self._watch.step_ns() else Tier.OVERHEAD
        what = f"getting batches: {self._main_name(nodes, self._duration[nodes])}"
        yield self._whole("loader", what, nodes, tier, 1.0, "workers that load ahead take it off the step")

    def exchanges(self) -> Iterator[Candidate]:
        """Whole collectives; half of one is within reach: half the bytes, or twice the link."""
        for exchange in self._exchanges:
            yield self._whole(
                "collective", exchange.label, exchange.nodes, Tier.OVERHEAD, 0.5,
                "its transfer alone; what ranks wait for each other is told of the ranks"
                if len(self._graph.ranks) >= self._graph.world_size
                else "as recorded: not all ranks are there, so that it holds waiting for others",
            )  # fmt: skip

    def host(self) -> Iterator[Candidate]:
        """The host's work between launches, where a device does the computing."""
        if not self._roles.device:
            return
        nodes = np.flatnonzero(self._own & (self._roles.role == Role.HOST))
        if len(nodes):
            yield self._whole(
                "host", "the host's work between launches", nodes, Tier.OVERHEAD, 0.5,
                "operators, calls and interpreter; captured graphs or compiled steps take it away",
            )  # fmt: skip

    def copies(self) -> Iterator[Candidate]:
        """Copies and fills, by name."""
        nodes = np.flatnonzero(self._wanted & (self._roles.role == Role.COPY))
        for name, chosen in self._by_name(nodes):
            yield self._whole("copy", name, chosen, Tier.OVERHEAD, 1.0, "moves data and computes nothing")

    def synchronisations(self) -> Iterator[Candidate]:
        """Calls in which the host waits for its device, by name."""
        graph, edges = self._graph, np.flatnonzero(self._watch.sync_edges())
        targets = graph.target[edges]
        edges = edges[self._wanted[targets]]
        for name in np.unique(graph.name[graph.target[edges]]):
            chosen = edges[graph.name[graph.target[edges]] == name]
            waited = np.maximum(graph.end_ns[graph.source[chosen]] - graph.begin_ns[graph.target[chosen]], 0)
            removed = Edit(lag_ns=self._watch.without_edges(chosen))
            yield Candidate(
                kind="synchronisation",
                what=_short(graph.names[name]),
                rank=-1,
                tier=Tier.OVERHEAD,
                seconds=float(waited.sum()) * NS / len(self._watch.steps) / len(graph.ranks),
                removed=removed,
                reduced=removed,
                reduced_share=1.0,
                why="the host waits for its device, and the device then for the host",
            )

    def work(self) -> Iterator[Candidate]:
        """Kernels, or the operators of a job without devices, by name."""
        nodes = np.flatnonzero(self._own & (self._roles.role == Role.COMPUTE))
        for name, chosen in self._by_name(nodes):
            kind = "kernel" if self._graph.kind[chosen[0]] == NodeKind.KERNEL else "operator"
            yield self._whole(kind, name, chosen, Tier.WORK, 0.1, "")

    # --- parts

    def _fault(self, kind: str, what: str, rank: int, nodes: Ints, excess: Floats, why: str) -> Candidate:
        duration = self._graph.duration_ns.copy()
        duration[nodes] = np.maximum(np.rint(self._duration[nodes] - excess), 0).astype(np.int64)
        removed = Edit(duration_ns=duration)
        return Candidate(
            kind=kind, what=what, rank=rank, tier=Tier.FAULT, seconds=self._per_step(nodes, excess), removed=removed,
            reduced=removed, reduced_share=1.0, why=why,
        )  # fmt: skip

    def _whole(self, kind: str, what: str, nodes: Ints, tier: Tier, share: float, why: str) -> Candidate:
        removed, reduced = self._graph.duration_ns.copy(), self._graph.duration_ns.copy()
        removed[nodes] = 0
        reduced[nodes] = np.rint((1 - share) * self._duration[nodes]).astype(np.int64)
        return Candidate(
            kind=kind, what=what, rank=self._only_rank(nodes), tier=tier,
            seconds=self._per_step(nodes, self._duration[nodes]),
            removed=Edit(duration_ns=removed), reduced=Edit(duration_ns=reduced), reduced_share=share, why=why,
        )  # fmt: skip

    def _per_step(self, nodes: Ints, time_ns: Floats) -> float:
        """Mean per step, on the rank where it is most; shared transfers count for all."""
        per_rank = np.zeros(len(self._graph.ranks))
        shared = self._graph.rank[nodes] < 0
        np.add.at(per_rank, self._column[nodes[~shared]], time_ns[~shared])
        return max(float(per_rank.max() + time_ns[shared].sum()), 0.0) * NS / len(self._watch.steps)

    def _only_rank(self, nodes: Ints) -> int:
        """The rank on which nearly all of it happens; -1 = several."""
        if len(self._graph.ranks) < 2:
            return -1
        per_rank = np.bincount(
            self._column[nodes], weights=np.where(self._graph.rank[nodes] < 0, 0.0, self._duration[nodes]),
            minlength=len(self._graph.ranks),
        )  # fmt: skip
        most = int(per_rank.argmax())
        shared = float(self._duration[nodes].sum() - per_rank.sum())
        return self._graph.ranks[most] if per_rank[most] > _NEARLY_ALL * (per_rank.sum() + shared) else -1

    def _by_name(self, nodes: Ints) -> Iterator[tuple[str, Ints]]:
        graph = self._graph
        totals = np.bincount(graph.name[nodes], weights=self._duration[nodes], minlength=len(graph.names))
        for name in np.argsort(-totals, kind="stable")[:_MOST_NAMES]:
            if totals[name] <= 0:
                return
            yield _short(graph.names[name]), nodes[graph.name[nodes] == name]

    def _main_name(self, nodes: Ints, weights: Floats) -> str:
        totals = np.bincount(self._graph.name[nodes], weights=weights, minlength=1)
        name = self._graph.names[int(totals.argmax())]
        if name.startswith("ProfilerStep") or name == "(gap)":
            return "host time between events"
        return _short(name)


def _short(name: str) -> str:
    return name if len(name) <= 120 else name[:117] + "..."


def candidates(
    watch: Stopwatch, roles: Roles, likeness: Likeness, exchanges: Sequence[Exchange]
) -> Iterator[Candidate]:
    """Everything that might cost time, what is likely to matter most first: each is made when it is asked for."""
    maker = _Maker(watch, roles, likeness, exchanges)
    for make in (
        maker.outliers, maker.slow_ranks, maker.slow_exchanges, maker.late_begins, maker.loading, maker.host,
        maker.exchanges, maker.synchronisations, maker.copies, maker.work,
    ):  # fmt: skip
        yield from make()
