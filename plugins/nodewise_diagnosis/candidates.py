"""Possible bottlenecks: groups of nodes, and their durations without the fault, or without the nodes altogether."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from math import inf, log, sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Floats, Ints
from nodewise_diagnosis.accounting import Accounting, loading_name
from nodewise_diagnosis.case import Case
from nodewise_diagnosis.recurring import explained_ns
from nodewise_diagnosis.roles import Role
from nodewise_diagnosis.stopwatch import NS, Edit
from nodewise_diagnosis.vocabulary import families
from nodewise_replay.graph.graph import NodeKind

__all__ = ["AVOIDABLE", "LAUNCH_PARTS", "Candidate", "Tier", "candidates", "launch_nodes"]

_MOST_OUTLIERS: Final = 20
_MOST_NAMES: Final = 40
"""Most names of one kind that are tried: those that take longest."""

_LIKE_SHARE: Final = 0.5
"""Ranks that are late in the same step by at least this share of the latest are late together."""


_SURELY: Final = 3.0
"""One rank is always last by chance. Independent deviations add up to the root of the sum of their squares; a real
difference in a rank's work adds up to more than three such deviations."""

_OF_MEDIAN_DEVIATION: Final = 1.4826
"""Standard deviation over median absolute deviation of a normal distribution."""

_EXPLAINED_WITHIN: Final = 1.25
"""Exchanges of one kind within this factor of the time that their sizes explain have no fault."""


AVOIDABLE: Final = 0.1
"""From this share of the step on, what every job could avoid is a fault, and bounds the job."""

_NEARLY_ALL: Final = 0.9
"""A fault with at least this share of its time on one rank is reported as that rank's."""


NAMED_PARTS: Final = {
    "startup": "one-time start-up",
    "blocking_copy": "a copy that blocks the host",
    "allocation": "device memory is allocated or freed",
    "host_computation": "the host computes",
    "preprocessing": "the host prepares the step before it launches anything",
    "garbage_collection": "the interpreter collects garbage",
    "python": "the host runs other code",
    "unexplained": "host activity was not recorded: record stacks (with_stack=True)",
}
"""Kinds of parts in which a device waits for its host, except for launches, in words."""

LAUNCH_PARTS: Final = frozenset({"launch", "synchronisation"})
"""Kinds of parts that shorter launches shorten: launches follow a wait for the device too."""


def launch_nodes(role: NDArray[np.integer], accounting: Accounting) -> NDArray[np.bool_]:
    """The host's nodes, without those of named parts."""
    mask: NDArray[np.bool_] = np.equal(role, Role.HOST)
    for (kind, _), nodes in accounting.nodes.items():
        if kind in NAMED_PARTS:
            mask[nodes] = False
    return mask


class Tier(IntEnum):
    """Order in which bottlenecks are reported: the more certain that they can be removed, the earlier."""

    FAULT = 0
    """Takes longer than comparable ones (another rank, step, or exchange of its size), or is loading only."""
    OVERHEAD = 1
    """Takes part of the step without computing anything."""
    WORK = 2
    """The computation itself."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Candidate:
    """A possible bottleneck.

    Attributes
    ----------
    removed : Edit
        The step without it.
    reduced, reduced_share : Edit or None, float
        The step without the share of it that a remedy can be expected to remove, by which overheads are ranked. None =
        all.
    seconds : float
        Its time in a step, on the rank where that is longest.
    holds_s : float
        Its time in the accounting, at most: the step cannot gain more.
    alone : tuple of Edit or None
        The job without all other candidates, and that job without this one too: the step gains at most the difference
        of these two.
    common : bool
        For waits of a device for its host: whether every job has some.
    """

    kind: str
    what: str
    rank: int
    tier: Tier
    seconds: float
    removed: Edit
    reduced: Edit | None = None
    reduced_share: float = 1.0
    why: str
    holds_s: float = inf
    alone: tuple[Edit, Edit] | None = None
    common: bool = False

    @property
    def stands_out(self) -> bool:
        """Whether a job without faults would not have it."""
        return self.tier == Tier.FAULT or (self.kind == "host" and not self.common)


class _Maker:
    def __init__(self, case: Case, accounting: Accounting) -> None:
        self._accounting = accounting
        self._case, self._watch, self._graph = case, case.watch, case.graph
        self._duration = self._graph.duration_ns.astype(np.float64)
        self._column = self._graph.column
        self._late_loaders: list[int] = []
        wanted = np.isin(self._graph.step, case.watch.steps)
        self._role = np.where(wanted, case.roles.role, -1)

    # --- faults

    def slow_ranks(self) -> Iterator[Candidate]:
        """Ranks whose work, loading or part in exchanges takes longer than on the other ranks."""
        if len(self._graph.ranks) < 2:
            return
        beyond, compared = self._case.likeness.beyond_ranks_ns, self._case.likeness.compared
        own = (Role.HOST, Role.COMPUTE, Role.COPY)
        for rank in self._graph.ranks:
            of_rank = (self._graph.rank == rank) & compared
            for kind, roles in (("rank", own), ("loader", (Role.LOADING,)), ("link", (Role.COMMUNICATION,))):
                nodes = np.flatnonzero(of_rank & np.isin(self._role, roles))
                excess = beyond[nodes]
                total, took = float(excess.sum()), float(self._duration[nodes].sum())
                if total <= 0 or took <= 0 or self._by_chance(nodes):
                    continue
                ratio = took / max(took - total, 1.0)
                most = self._main_name(nodes, excess)
                what = {
                    "rank": f"rank {rank} is slower than the others",
                    "loader": f"rank {rank} waits for its batches longer than the others: {most}",
                    "link": f"rank {rank} exchanges more slowly than the others: {most}",
                }[kind]
                if kind == "loader":
                    self._late_loaders.append(rank)
                yield self._fault(
                    kind, what, rank, nodes, excess,
                    f"takes {ratio:.2f} times as long as the median of the other ranks, most of it in {most}",
                )  # fmt: skip

    def _by_chance(self, nodes: Ints) -> bool:
        """Whether a rank's excess over the others varies so much between steps that its mean may be chance."""
        steps = self._watch.steps
        if len(steps) < 3:
            # Places that take less than elsewhere show how much places differ by chance.
            excess = self._case.likeness.beyond_ranks_ns[nodes]
            return float(excess.sum()) < _SURELY * sqrt(2 * float((np.minimum(excess, 0.0) ** 2).sum()))
        likeness = self._case.likeness
        excess = likeness.beyond_ranks_ns[nodes] + likeness.beyond_ranks_in_step_ns[nodes]
        row = np.searchsorted(steps, self._graph.step[nodes])
        of_step = np.bincount(row, weights=excess, minlength=len(steps))
        # The median, as single late steps are reported as such.
        centre = float(np.median(of_step))
        deviation = _OF_MEDIAN_DEVIATION * float(np.median(np.abs(of_step - centre)))
        return centre < _SURELY * deviation / sqrt(len(steps))

    def slow_exchanges(self) -> Iterator[Candidate]:
        """Collectives that take longer than their size explains.

        Where ranks are missing, waiting and transfer cannot be separated: there are no such candidates.
        """
        for exchange in self._case.exchanges if self._case.whole else ():
            expected_ns = explained_ns(exchange, self._case.exchanges)
            if expected_ns is None or exchange.usual_ns <= _EXPLAINED_WITHIN * expected_ns:
                continue
            excess = self._duration[exchange.nodes] * (1 - expected_ns / exchange.usual_ns)
            yield self._fault(
                "collective", exchange.label, -1, exchange.nodes, excess,
                f"takes {exchange.usual_ns / max(expected_ns, 1.0):.2f} times the {expected_ns * NS * 1e3:.3f} ms that "
                "its size explains, by the other exchanges of its kind",
            )  # fmt: skip

    def outliers(self) -> Iterator[Candidate]:
        """Nodes that took much longer in one step, or in some, than in the others."""
        graph, beyond, steps = self._graph, self._case.likeness.beyond_steps_ns, self._watch.steps
        nodes = np.flatnonzero((self._role >= 0) & (self._column < len(graph.ranks)))
        if not len(nodes) or len(steps) < 3:
            return
        # Steps in which the same place is late are one fault: with only one of them fixed, the others would remain
        # noise.
        name_keys = families(graph.names)[graph.name[nodes]] * len(Role) + self._role[nodes]
        _, first, place = np.unique(name_keys, return_index=True, return_inverse=True)
        row, column = np.searchsorted(steps, graph.step[nodes]), self._column[nodes]
        table = np.zeros((len(first), len(steps), len(graph.ranks)))
        np.add.at(table, (place, row, column), beyond[nodes])
        most = table.max(axis=(1, 2))
        for index in np.argsort(-most, kind="stable")[:_MOST_OUTLIERS].tolist():
            if most[index] <= 0:
                return
            late = table[index] >= _LIKE_SHARE * most[index]
            # The largest of many random deviations is several deviations off. Only positive ones count: where half of
            # the steps are late, the others are early.
            upwards = np.maximum(table[index][~late], 0.0)
            deviation = sqrt(2 * float((upwards**2).mean())) if len(upwards) else 0.0
            if most[index] <= max(_SURELY, sqrt(2 * log(table.size))) * deviation:
                continue
            in_steps, of_ranks = np.flatnonzero(late.any(axis=1)), np.flatnonzero(late.any(axis=0))
            if 2 * len(in_steps) > len(steps):
                continue
            outlier_nodes = nodes[(place == index) & late[row, column]]
            rank = graph.ranks[int(of_ranks[0])] if len(of_ranks) == 1 else -1
            who = f"of rank {rank}" if rank >= 0 else "of several ranks"
            name = loading_name(graph.names[graph.name[nodes[first[index]]]])
            loading = self._role[nodes[first[index]]] == Role.LOADING
            numbers = ", ".join(str(number) for number in graph.steps.number[steps[in_steps]].tolist())
            many = len(in_steps) > 1
            batch = "late batches" if many else "a late batch"
            what = f"{batch if loading else name} {who} in step{'s' if many else ''} {numbers}"
            longer = f"{name} took {most[index] * NS * 1e3:.3f} ms longer than in the other steps"
            yield self._fault(
                "loader" if loading else "outlier", what, rank, outlier_nodes, beyond[outlier_nodes], longer
            )

    def imbalance(self) -> Iterator[Candidate]:
        """Computation that takes longer on some rank in most steps, but on another rank each time.

        A rank that is slower in all steps is that rank's fault; a slow place in few steps is an outlier.
        """
        graph, steps, ranks = self._graph, self._watch.steps, len(self._graph.ranks)
        excess = self._case.likeness.beyond_ranks_in_step_ns
        nodes = np.flatnonzero((self._role == Role.COMPUTE) & self._case.likeness.compared)
        if ranks < 2 or not len(nodes):
            return
        row, column = np.searchsorted(steps, graph.step[nodes]), self._column[nodes]
        table, chance = np.zeros((2, len(steps), ranks))
        np.add.at(table, (row, column), excess[nodes])
        np.add.at(chance, (row, column), excess[nodes] ** 2)
        latest, at = table.max(axis=1), table.argmax(axis=1)
        by_chance = np.sqrt(chance[np.arange(len(steps)), at])
        if np.median(latest) < _LIKE_SHARE * latest.max() or len(np.unique(at)) < 2:
            return
        if np.median(latest - _SURELY * by_chance) <= 0:
            return
        slow_nodes = nodes[table[row, column] > 0]
        what = "the ranks' computation is unbalanced, and the slowest rank changes from step to step"
        yield self._fault(
            "imbalance", what, -1, slow_nodes, excess[slow_nodes],
            f"the slowest rank computes {float(latest.mean()) * NS * 1e3:.3f} ms longer than the median of the "
            "others, and it is another rank in each step: batches differ in work",
        )  # fmt: skip

    def late_begins(self) -> Iterator[Candidate]:
        """Ranks that begin the first step of the recording late: the cause was not recorded."""
        late_ns = self._case.late_begins_ns()
        for column, late in enumerate(() if late_ns is None else late_ns.tolist()):
            if late <= 0:
                continue
            rank, shift = self._graph.ranks[column], np.zeros(len(self._graph.ranks), dtype=np.int64)
            shift[column] = -round(late)
            yield Candidate(
                kind="late_begin",
                what=f"rank {rank} begins the first recorded step late",
                rank=rank,
                tier=Tier.OVERHEAD,
                seconds=late * NS,
                removed=Edit(begin_shift_ns=shift),
                why=f"{late * NS * 1e3:.3f} ms after the median of the others; the cause was not recorded",
            )

    # --- overheads and work

    def loading(self) -> Iterator[Candidate]:
        """Loading of batches, on all ranks: a fault where most ranks spend a large part of the step on it."""
        nodes = np.flatnonzero(self._role == Role.LOADING)
        if not len(nodes):
            return
        # Waiting beyond that of other ranks is reported for the rank itself.
        excess = np.maximum(self._case.likeness.beyond_ranks_ns[nodes], 0.0)
        excess[~np.isin(self._graph.rank[nodes], self._late_loaders)] = 0.0
        common = self._duration[nodes] - excess
        per_rank = np.bincount(self._column[nodes], weights=common, minlength=len(self._graph.ranks))
        usual = float(np.sort(per_rank)[(len(per_rank) - 1) // 2]) / len(self._watch.steps)
        tier = Tier.FAULT if usual >= AVOIDABLE * self._watch.step_ns() else Tier.OVERHEAD
        what = f"loading batches: {self._main_name(nodes, self._duration[nodes])}"
        candidate = self._whole("loader", what, nodes, tier, 1.0, "loader workers that prefetch take it off the step")
        edit = self._with(nodes, excess)
        yield replace(candidate, seconds=self._per_step(nodes, common), removed=edit, reduced=edit)

    def exchanges(self) -> Iterator[Candidate]:
        """Whole collectives; half of one can be saved: half the bytes, or twice the link."""
        why = (
            "its transfer time alone; waiting for late ranks is listed under these ranks"
            if self._case.whole
            else "as recorded: some ranks were not recorded, so it includes waiting for other ranks"
        )
        for exchange in self._case.exchanges:
            yield self._whole("collective", exchange.label, exchange.nodes, Tier.OVERHEAD, 0.5, why)

    def host(self) -> Iterator[Candidate]:
        """Waits of a device for its host: by name except for launches, then the work between launches."""
        if not self._case.roles.device:
            return
        accounting = self._accounting
        for (kind, what), nodes in accounting.nodes.items():
            if kind in NAMED_PARTS and len(nodes) and accounting.held_s({kind}, what) > 0:
                candidate_of_part = self._whole(
                    "host", what, nodes, Tier.OVERHEAD, 1.0, f"{NAMED_PARTS[kind]}, and the device idles"
                )
                yield replace(candidate_of_part, holds_s=accounting.held_s({kind}, what), common=kind == "unexplained")
        nodes = np.flatnonzero(launch_nodes(self._role, accounting))
        if len(nodes):
            why = "operators, calls and interpreter; CUDA graphs or compiled steps avoid it"
            candidate = self._whole("host", "the host's work between launches", nodes, Tier.OVERHEAD, 0.5, why)
            yield replace(candidate, holds_s=accounting.held_s(LAUNCH_PARTS), common=True)

    def copies(self) -> Iterator[Candidate]:
        """Copies and fills, by name."""
        for name, copy_nodes in self._by_name(np.flatnonzero(self._role == Role.COPY)):
            yield self._whole("copy", name, copy_nodes, Tier.OVERHEAD, 1.0, "it moves data and computes nothing")

    def synchronisations(self) -> Iterator[Candidate]:
        """Calls in which the host waits for its device, by name."""
        graph, edges = self._graph, np.flatnonzero(self._watch.sync_edges())
        edges = edges[self._role[graph.target[edges]] >= 0]
        source, target = graph.source[edges], graph.target[edges]
        waited_ns = np.maximum(graph.end_ns[source] - graph.begin_ns[target], 0)
        # Without this wait the host would hide other work that the device waits for, which is reported by its own name.
        others = np.where(self._role == Role.LOADING, 0, graph.duration_ns)
        for (kind, _), nodes in self._accounting.nodes.items():
            if kind in NAMED_PARTS:
                others[nodes] = 0
        for name in np.unique(graph.name[target]):
            of_name = graph.name[target] == name
            lag = self._watch.without_edges(edges[of_name])
            yield Candidate(
                kind="synchronisation",
                what=_short(graph.names[name]),
                rank=-1,
                tier=Tier.OVERHEAD,
                seconds=float(waited_ns[of_name].sum()) * NS / len(self._watch.steps) / len(graph.ranks),
                removed=Edit(lag_ns=lag),
                alone=(Edit(duration_ns=others), Edit(duration_ns=others, lag_ns=lag)),
                why="the host waits for the device, and afterwards the device waits for the host",
                holds_s=self._accounting.held_s(LAUNCH_PARTS),
            )

    def work(self) -> Iterator[Candidate]:
        """Kernels, or the operators of a job without devices, by name."""
        for name, work_nodes in self._by_name(np.flatnonzero(self._role == Role.COMPUTE)):
            kind = "kernel" if self._graph.kind[work_nodes[0]] == NodeKind.KERNEL else "operator"
            yield self._whole(kind, name, work_nodes, Tier.WORK, 0.1, "")

    # --- parts

    def _fault(self, kind: str, what: str, rank: int, nodes: Ints, excess: Floats, why: str) -> Candidate:
        removed = self._with(nodes, np.maximum(self._duration[nodes] - excess, 0))
        seconds = self._per_step(nodes, excess)
        return Candidate(kind=kind, what=what, rank=rank, tier=Tier.FAULT, seconds=seconds, removed=removed, why=why)

    def _whole(self, kind: str, what: str, nodes: Ints, tier: Tier, share: float, why: str) -> Candidate:
        duration = self._duration[nodes]
        return Candidate(
            kind=kind,
            what=what,
            rank=self._only_rank(nodes),
            tier=tier,
            seconds=self._per_step(nodes, duration),
            removed=self._with(nodes, np.zeros(len(nodes))),
            reduced=self._with(nodes, (1 - share) * duration),
            reduced_share=share,
            why=why,
        )

    def _with(self, nodes: Ints, duration_ns: Floats) -> Edit:
        """The recorded durations, except those of some nodes."""
        edited_ns = self._graph.duration_ns.copy()
        edited_ns[nodes] = np.rint(duration_ns).astype(np.int64)
        return Edit(duration_ns=edited_ns)

    def _per_step(self, nodes: Ints, time_ns: Floats) -> float:
        """Mean seconds per step, on the rank where they are most; shared transfers count for all."""
        *per_rank, shared = self._by_rank(nodes, time_ns)
        return max(max(per_rank) + shared, 0.0) * NS / len(self._watch.steps)

    def _by_rank(self, nodes: Ints, time_ns: Floats) -> list[float]:
        """Sums by rank, and that of nodes that ranks share."""
        ranks = len(self._graph.ranks)
        sums: list[float] = np.bincount(self._column[nodes], weights=time_ns, minlength=ranks + 1).tolist()
        return sums

    def _only_rank(self, nodes: Ints) -> int:
        """The rank on which nearly all of it happens; -1 = several."""
        if len(self._graph.ranks) < 2:
            return -1
        *per_rank, shared = self._by_rank(nodes, self._duration[nodes])
        most = max(per_rank)
        return self._graph.ranks[per_rank.index(most)] if most > _NEARLY_ALL * (sum(per_rank) + shared) else -1

    def _by_name(self, nodes: Ints) -> Iterator[tuple[str, Ints]]:
        graph = self._graph
        totals = np.bincount(graph.name[nodes], weights=self._duration[nodes], minlength=len(graph.names))
        for name in np.argsort(-totals, kind="stable")[:_MOST_NAMES]:
            if totals[name] <= 0:
                return
            yield _short(graph.names[name]), nodes[graph.name[nodes] == name]

    def _main_name(self, nodes: Ints, weights: Floats) -> str:
        totals = np.bincount(self._graph.name[nodes], weights=weights, minlength=1)
        return loading_name(self._graph.names[int(totals.argmax())])


def _short(name: str) -> str:
    return name if len(name) <= 120 else name[:117] + "..."


def candidates(case: Case, accounting: Accounting) -> Iterator[Candidate]:
    """All possible bottlenecks, the most important first: each is made when it is needed."""
    maker = _Maker(case, accounting)
    for make in (
        maker.outliers, maker.slow_ranks, maker.imbalance, maker.slow_exchanges, maker.late_begins, maker.loading,
        maker.host, maker.exchanges, maker.synchronisations, maker.copies, maker.work,
    ):  # fmt: skip
        yield from make()
