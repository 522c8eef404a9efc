"""Division of a rank's step into named parts that add up to it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Floats, Ints, ReplayedCollective, StepPart
from nodewise_diagnosis.case import Case
from nodewise_diagnosis.functions import Calls, ClaimedSpans
from nodewise_diagnosis.roles import Role
from nodewise_diagnosis.vocabulary import (
    ALLOCATION,
    COPY_CALL,
    ELEMENTWISE,
    GARBAGE,
    MATRIX,
    SYNCHRONISATION,
)
from nodewise_replay.building.call_names import BLOCKING_COPY
from nodewise_replay.graph.graph import EdgeKind, NodeKind

__all__ = ["HOST_PARTS", "MATRIX_PART", "MEMORY_BOUND_PART", "Accounting", "PartName", "account_steps", "loading_name"]

_LONG_NS: Final = 1_000_000
"""A launch takes some microseconds, and the interpreter between two operators some tens: a host that launches nothing
for a millisecond does other work."""

_BRIEF_NS: Final = 100_000
"""The interpreter between two operators takes up to some tens of microseconds: shorter gaps get no name, except in
steps of which they are a hundredth."""
_BRIEF_SHARE: Final = 0.01

_MOST_NAMED: Final = 8
"""Most named parts of one kind; the rest of the kind is one more part."""

HOST_PARTS: Final = frozenset(
    {
        "startup", "synchronisation", "blocking_copy", "allocation", "host_computation", "preprocessing",
        "garbage_collection", "python", "launch", "unexplained",
    }
)  # fmt: skip
"""Kinds of parts in which a device waits for its host."""

PartName: TypeAlias = tuple[str, str]
"""Kind and name of a part; an empty name = all parts of the kind."""

_Key = tuple[str, str, int]
"""Kind, name, and the rank that is waited for (-1 = none)."""

MATRIX_PART: Final = ("computation", "matrix products, convolutions, attention")
MEMORY_BOUND_PART: Final = ("computation", "kernels bound by memory")

_FAR_NS: Final = 2**61


class _Ledger:
    """Time of a rank's steps that no part has claimed yet. The first claim has priority."""

    def __init__(self, begin_ns: Ints, end_ns: Ints) -> None:
        # What is outside of the steps counts as used from the start.
        self._begin = np.concatenate(([-_FAR_NS], end_ns))
        self._end = np.concatenate((begin_ns, [_FAR_NS]))
        self.parts: dict[_Key, float] = defaultdict(float)

    def claim(self, begin_ns: Ints, end_ns: Ints, label: Ints, keys: list[_Key]) -> None:
        """Claim the free time in some spans; of overlapping spans, the one that begins first gets it."""
        order = np.argsort(begin_ns, kind="stable")
        begin, end, label = begin_ns[order], end_ns[order], label[order]
        reach = np.maximum.accumulate(np.concatenate(([-_FAR_NS], end)))[:-1]
        begin = np.minimum(np.maximum(begin, reach), end)
        free = (end - begin) - (self._taken_before(end) - self._taken_before(begin))
        for number, time_ns in enumerate(np.bincount(label, weights=free, minlength=len(keys)).tolist()):
            if time_ns > 0:
                self.parts[keys[number]] += time_ns
        self._begin, self._end = _join(np.concatenate((self._begin, begin)), np.concatenate((self._end, end)))

    def gaps(self) -> tuple[Ints, Ints]:
        """Begins and ends of the free time."""
        begin, end = self._end[:-1], self._begin[1:]
        return begin[end > begin], end[end > begin]

    def _taken_before(self, time_ns: Ints) -> Ints:
        total = np.concatenate(([0], np.cumsum(self._end[1:] - self._begin[1:])))  # without the endless first one
        at = np.searchsorted(self._begin, time_ns, "right") - 1
        whole = total[np.maximum(at - 1, 0)]
        first = at <= 0
        inside = np.minimum(time_ns, self._end[at]) - self._begin[at]
        # Before the end of the endless first span, claimed time counts backwards from there.
        taken: Ints = np.where(first, np.minimum(time_ns - self._end[0], 0), whole + inside)
        return taken


def _join(begin: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Spans that touch or overlap as one."""
    order = np.argsort(begin, kind="stable")
    begin, end = begin[order], end[order]
    reach = np.maximum.accumulate(end)
    fresh = np.concatenate(([True], begin[1:] > reach[:-1]))
    first = np.flatnonzero(fresh)
    return begin[first], reach[np.append(first[1:], len(begin)) - 1]


@dataclass(frozen=True, slots=True, eq=False)
class Accounting:
    """Parts of the steps.

    Attributes
    ----------
    parts : list, by rank
        The longest first; they add up to the rank's mean step.
    nodes : mapping of (kind, what) to (n,) int
        For parts in which a device waits for its host: the host's nodes that it waits for, of all ranks.
    members : mapping of (kind, what) to (n,) int
        For all parts, the nodes whose time they are, whole or in part. Waiting is part of its exchange.
    """

    parts: list[tuple[StepPart, ...]]
    nodes: Mapping[tuple[str, str], Ints]
    members: Mapping[tuple[str, str], Ints]

    def held_of_s(self, acts_on: Collection[PartName]) -> float:
        """Time of some parts, or of all of a kind (``name`` ""), in a step of the rank where it is longest."""
        return max(
            sum(part.seconds for part in parts if {(part.kind, ""), (part.kind, part.what)} & set(acts_on))
            for parts in self.parts
        )

    def held_s(self, kinds: Collection[str], what: str = "") -> float:
        """Time of parts of some kinds (and one name) in a step of the rank where it is longest."""
        return max(
            sum(part.seconds for part in parts if part.kind in kinds and what in {"", part.what})
            for parts in self.parts
        )


def account_steps(case: Case, collectives: Mapping[int, ReplayedCollective]) -> Accounting:
    """Divide the mean step of every rank.

    A moment is computation where anything computes or copies; else exchange, or the wait for one, where one is in
    progress; else loading where the host gets a batch. The rest is idle time. In it the device waits for its host until
    the call begins that launches its next work: that time is divided by the activity of the launching thread.

    Parameters
    ----------
    collectives : mapping of transfer node to ReplayedCollective
        Gives the rank that was last.
    """
    job = _Job(case, collectives)
    parts = [job.parts(column) for column in range(len(case.graph.ranks))]
    nodes = {key: np.unique(np.concatenate(found)) for key, found in job.nodes.items()}
    return Accounting(parts, nodes, {key: np.concatenate(found) for key, found in job.members.items()} | nodes)


class _Job:
    def __init__(self, case: Case, collectives: Mapping[int, ReplayedCollective]) -> None:
        self._case, self._graph, self._role = case, case.graph, case.roles.role
        self._busy = self._graph.end_ns - self._graph.duration_ns
        self._collectives = collectives
        self.nodes: dict[tuple[str, str], list[Ints]] = defaultdict(list)
        self.members: dict[tuple[str, str], list[Ints]] = defaultdict(list)
        for one in case.exchanges:
            self.members["transfer", one.label].append(one.nodes)
        self._label = {int(node): one.label for one in case.exchanges for node in one.transfers}
        graph = self._graph
        self._launch_source = np.full(len(graph), -1, dtype=np.int64)
        launches = np.flatnonzero(graph.edge_kind == EdgeKind.LAUNCH)
        self._launch_source[graph.target[launches]] = graph.source[launches]
        self._named = {
            kind: graph.match_names(pattern)
            for kind, pattern in (
                ("synchronisation", SYNCHRONISATION),
                ("allocation", ALLOCATION),
                ("blocking_copy", BLOCKING_COPY),
            )
        }
        self._work_key = [
            (*MATRIX_PART, -1),
            (*MEMORY_BOUND_PART, -1),
            ("computation", "other kernels", -1),
            ("computation", "operators", -1),
            ("computation", "copies and fills", -1),
        ]
        matrix, elementwise = graph.match_names(MATRIX), graph.match_names(ELEMENTWISE)
        self._work = np.where(matrix, 0, np.where(elementwise, 1, 2))
        self._work[graph.kind == NodeKind.OPERATOR] = 3
        self._work[self._role == Role.COPY] = 4

    def parts(self, column: int) -> tuple[StepPart, ...]:
        case, graph = self._case, self._graph
        begin, end = case.watch.windows_ns(column)
        ledger = _Ledger(begin, end)
        mine = (graph.rank == graph.ranks[column]) & (graph.duration_ns > 0)
        works = np.flatnonzero(mine & ((self._role == Role.COMPUTE) | (self._role == Role.COPY)))
        works = works[np.argsort(self._work[works], kind="stable")]
        for number, key in enumerate(self._work_key):
            nodes = works[self._work[works] == number]
            self.members[key[:2]].append(nodes)
            ledger.claim(self._busy[nodes], graph.end_ns[nodes], np.zeros(len(nodes), dtype=np.int64), [key])
        self._exchanges(ledger, column, mine)
        loading = np.flatnonzero(mine & (self._role == Role.LOADING))
        names, label = np.unique(graph.name[loading], return_inverse=True)
        keys = [("loading", loading_name(graph.names[name]), -1) for name in names.tolist()]
        ledger.claim(self._busy[loading], graph.end_ns[loading], label, keys)
        for number, key in enumerate(keys):
            self.members[key[:2]].append(loading[label == number])
        idle = _Idle(case, column, self._launch_source, self._named, ledger.parts, self.nodes)
        idle.divide(*ledger.gaps(), begin)
        return _step_parts(ledger.parts, len(case.watch.steps))

    def _exchanges(self, ledger: _Ledger, column: int, mine: NDArray[np.bool_]) -> None:
        """Transfers and the waits for them, each with the rank that was last."""
        graph, rows = self._graph, self._graph.collectives
        own = np.flatnonzero(rows.rank == graph.ranks[column])
        transfer = rows.transfer[own]
        arrived, left = graph.end_ns[rows.arrival[own]], graph.end_ns[rows.departure[own]]
        begin_ns = np.minimum(np.maximum(self._busy[transfer], arrived), left)
        hosts = np.flatnonzero(
            mine & (self._role == Role.COMMUNICATION) & (graph.kind != NodeKind.DEPARTURE) & (graph.rank >= 0)
        )
        keys: list[_Key] = []
        number: dict[_Key, int] = {}
        waits = [number.setdefault(self._wait_key(node), len(number)) for node in transfer.tolist()]
        passes = [
            number.setdefault(("transfer", self._label.get(node, "exchange"), -1), len(number))
            for node in (*transfer.tolist(), *self._case.roles.exchange[hosts].tolist())
        ]
        keys = list(number)
        ledger.claim(
            np.concatenate((arrived, begin_ns, self._busy[hosts])),
            np.concatenate((begin_ns, left, graph.end_ns[hosts])),
            np.array([*waits, *passes], dtype=np.int64),
            keys,
        )

    def _wait_key(self, transfer: int) -> _Key:
        collective = self._collectives.get(transfer)
        late = collective.late_ranks if collective is not None else ()
        return "waiting", self._label.get(transfer, "exchange"), late[0] if len(late) == 1 else -1


class _Idle:
    """Divides the idle time of a rank's device, or of a host that computes itself."""

    def __init__(
        self,
        case: Case,
        column: int,
        launch_source: Ints,
        named: Mapping[str, NDArray[np.bool_]],
        parts: dict[_Key, float],
        nodes: dict[tuple[str, str], list[Ints]],
    ) -> None:
        self._case, self._graph, self._named, self._parts, self._nodes = case, case.graph, named, parts, nodes
        self._launch_source = launch_source
        self._rank = case.graph.ranks[column]
        self._main = case.main_lane(column)
        graph = self._graph
        self._hosts = np.flatnonzero((graph.rank == self._rank) & (graph.kind <= NodeKind.CALL))
        work = np.flatnonzero(
            (graph.rank == self._rank)
            & np.isin(graph.kind, (NodeKind.KERNEL, NodeKind.COPY, NodeKind.FILL, NodeKind.ARRIVAL))
        )
        begins = graph.end_ns[work] - graph.duration_ns[work]
        self._work, self._work_begin = work[np.argsort(begins, kind="stable")], np.sort(begins)
        of_rank = graph, case.traces[self._rank], case.clocks.clocks[column]
        self._spans = [Calls.functions(*of_rank), Calls.events(*of_rank)]
        self._named_copy = graph.match_names(COPY_CALL)
        self._of_lane: dict[tuple[int, int], Calls] = {}

    def divide(self, begin_ns: Ints, end_ns: Ints, step_begin_ns: Ints) -> None:
        """Give every gap its parts."""
        if not len(begin_ns):
            return
        graph, main = self._graph, self._main
        source = self._launch_before(end_ns)
        launch_end_ns = np.where(source >= 0, graph.end_ns[source], _FAR_NS)
        host_end = np.clip(launch_end_ns, begin_ns, end_ns)
        lane = np.where((source >= 0) & (host_end > begin_ns), graph.lane[source], main)
        self._latencies(begin_ns, host_end, end_ns, launch_end_ns, source)
        step_index = np.searchsorted(step_begin_ns, begin_ns, "right") - 1
        begins = step_begin_ns[np.maximum(step_index, 0)]
        is_first = np.searchsorted(self._work_begin, begin_ns) == np.searchsorted(self._work_begin, begins)
        host_first = host_end > begin_ns
        for number in np.unique(lane[host_first]).tolist():
            gaps = np.flatnonzero(host_first & (lane == number))
            self._on_lane(begin_ns[gaps], host_end[gaps], number, is_first[gaps])

    def _launch_before(self, end_ns: Ints) -> Ints:
        """The piece of host time before the call that launches the next work after each gap; -1 = none, not known."""
        none = np.full(len(end_ns), -1, dtype=np.int64)
        if not len(self._work) or not self._case.roles.device:
            return none
        at = np.searchsorted(self._work_begin, end_ns, "left")
        return np.where(at < len(self._work), self._launch_source[self._work[np.minimum(at, len(self._work) - 1)]], -1)

    def _latencies(self, begin: Ints, host_end: Ints, end: Ints, launch_end_ns: Ints, source: Ints) -> None:
        """Time from the launching call on: the call itself and latency; for work launched before, a dependency."""
        graph, rest = self._graph, end - host_end
        late = rest >= _LONG_NS
        queued = launch_end_ns <= begin
        self._add("dependency", "work launched earlier waits for other work", rest[queued])
        self._add("launch", _LAUNCHES, rest[~queued & ~late])
        for gap in np.flatnonzero(~queued & late).tolist():
            call = int(source[gap]) + 1
            name = _short(graph.names[graph.name[call]])
            inside = min(int(graph.end_ns[call]), int(end[gap])) - int(host_end[gap])
            blocks = graph.kind[call] == NodeKind.CALL and 2 * inside >= rest[gap]
            key = ("startup", name) if blocks else ("dependency", f"work launched by {name}")
            self._add(*key, rest[gap], np.array([call]))

    def _on_lane(self, begin: Ints, end: Ints, lane: int, is_first: NDArray[np.bool_]) -> None:
        """Divide gaps by the pieces of the thread that is waited for; where it waits itself, by the main thread's."""
        graph, pieces = self._graph, self._hosts[self._graph.lane[self._hosts] == lane]
        low = np.searchsorted(graph.end_ns[pieces], begin, "right")
        count = np.maximum(np.searchsorted(graph.begin_ns[pieces], end, "left") - low, 0)
        gap = np.repeat(np.arange(len(begin)), count)
        place = np.repeat(low - np.concatenate(([0], np.cumsum(count)[:-1])), count) + np.arange(int(count.sum()))
        node = pieces[place]
        since, until = np.maximum(graph.begin_ns[node], begin[gap]), np.minimum(graph.end_ns[node], end[gap])
        time = np.maximum(until - since, 0)
        outside = (end - begin) - np.bincount(gap, weights=time, minlength=len(begin))
        if lane != self._main:
            waits = (graph.event[node] < 0) & (time > 0)
            self._on_lane(since[waits], until[waits], self._main, is_first[gap[waits]])
            time = np.where(waits, 0, time)
        long = (end - begin)[gap] >= _LONG_NS
        call = graph.kind[node] == NodeKind.CALL
        piece_long = graph.end_ns[node] - graph.begin_ns[node] >= _LONG_NS
        left = np.ones(len(node), dtype=np.bool_)
        for kind, named in self._named.items():
            self._by_name(kind, node, time, left & call & named[node])
            left &= ~(call & named[node])
        slow_call = left & call & long & piece_long
        copies = slow_call & self._named_copy[node]
        self._by_name("blocking_copy", node, time, copies)
        left &= ~copies
        slow_call &= ~copies
        self._by_name("startup", node, time, slow_call)
        slow_operator = left & (graph.kind[node] == NodeKind.OPERATOR) & long & piece_long
        self._by_name("host_computation", node, time, slow_operator)
        left &= ~slow_call & ~slow_operator
        left, time = self._functions(gap, node, time, left, left & ~long, lane, is_first)
        # Time after a wait for the device is caused by it: the host could not run ahead.
        draining = self._draining_calls(begin, pieces, low)
        after = left & ~long & (draining[gap] >= 0)
        self._by_name("synchronisation", draining[gap], time, after)
        short = left & ~long & ~after
        gaps = graph.kind[node] == NodeKind.GAP
        self._add("launch", "interpreter time between operators", time[short & gaps], node[short & gaps])
        self._add("launch", _LAUNCHES, time[short & ~gaps], node[short & ~gaps])
        rest = np.flatnonzero(left & long)  # gaps ascend
        unnamed_ns = np.bincount(gap[rest], weights=time[rest], minlength=len(begin)) + outside
        for number in np.flatnonzero(unnamed_ns > 0).tolist():
            first, last = np.searchsorted(gap[rest], (number, number + 1))
            mine = np.arange(*np.searchsorted(gap, (number, number + 1)))
            claimed_rows = mine[~(left & long)[mine]]
            spans = ClaimedSpans(since[claimed_rows], until[claimed_rows])
            parts = self._explain(int(begin[number]), int(end[number]), spans, lane, is_first=bool(is_first[number]))
            for key, took in parts.items():
                self._add(*key, np.array(took), node[rest[first:last]])

    def _functions(
        self,
        gap: Ints,
        node: Ints,
        time: Ints,
        left: NDArray[np.bool_],
        mask: NDArray[np.bool_],
        lane: int,
        is_first: NDArray[np.bool_],
    ) -> tuple[NDArray[np.bool_], Floats]:
        """Name short time between operators by the functions that spend it; return the rest, and its time.

        Later time in the gap is theirs too, as far as it would have passed while the device was still busy.
        """
        calls, spent_ns = self._calls_of(0, lane), time.astype(np.float64)
        took = self._graph.duration_ns[node]
        brief_ns = min(_BRIEF_NS, _BRIEF_SHARE * self._case.base_ns)
        pieces = np.flatnonzero(mask & (self._graph.kind[node] == NodeKind.GAP) & (took >= brief_ns) & (time > 0))
        for number in pieces.tolist() if len(calls) else ():
            piece = int(node[number])
            first, last = int(self._graph.begin_ns[piece]), int(self._graph.end_ns[piece])
            own = calls.own(first, last)
            if not own:
                continue
            # What is in the gap is divided as the whole piece is.
            share = float(time[number]) / (last - first)
            rest = np.arange(number, np.searchsorted(gap, gap[number], "right"))
            rest = rest[(mask & left)[rest]]
            named_ns = share * sum(own.values())
            spent_ns[number] -= named_ns
            hidden_ns = min(
                float(last - first - time[number]) * sum(own.values()) / (last - first), spent_ns[rest].sum()
            )
            if hidden_ns > 0:
                spent_ns[rest] *= 1 - hidden_ns / spent_ns[rest].sum()
            for name, inside in own.items():
                key = _function(name, is_first=bool(is_first[gap[number]]))
                self._add(*key, np.array((named_ns + hidden_ns) * inside / sum(own.values())), node[[number]])
            left[number] = spent_ns[number] > 0
        return left, spent_ns

    def _by_name(self, kind: str, node: Ints, time: Ints | Floats, mask: NDArray[np.bool_]) -> None:
        graph = self._graph
        names = graph.name[node[mask]]
        totals = np.bincount(names, weights=time[mask], minlength=1)
        for name in np.flatnonzero(totals).tolist():
            self._add(kind, _short(graph.names[name]), totals[name], node[mask][names == name])

    def _add(self, kind: str, what: str, time: Ints | Floats, node: Ints | None = None) -> None:
        self._parts[kind, what, -1] += float(np.sum(time))
        if node is not None and len(node):
            self._nodes[kind, what].append(node)

    def _draining_calls(self, begin: Ints, pieces: Ints, low: Ints) -> Ints:
        """The call that waited for the device when each gap began; -1 = none."""
        graph = self._graph
        if not len(pieces):
            return np.full(len(begin), -1, dtype=np.int64)
        node = pieces[np.minimum(low, len(pieces) - 1)]
        waits = (graph.kind[node] == NodeKind.CALL) & (graph.begin_ns[node] < begin) & (graph.end_ns[node] >= begin)
        # A call that waits for the device, whatever its name, is shorter by that in the graph.
        waits &= graph.end_ns[node] - graph.begin_ns[node] > graph.duration_ns[node] + 1_000
        return np.where(waits, node, -1)

    def _explain(
        self, begin: int, end: int, spans: ClaimedSpans, lane: int, *, is_first: bool
    ) -> dict[tuple[str, str], float]:
        """The rest of a gap, ns, by the functions that spent it.

        The rest belongs to the innermost call of a function, else event, that takes nearly all of the gap.
        """
        rest = float(end - begin) - float(spans.before(np.array(end)) - spans.before(np.array(begin)))
        parts: dict[tuple[str, str], float] = defaultdict(float)
        for name, inside in self._calls_of(0, lane).own(begin, end, spans).items():
            parts[_function(name, is_first=is_first)] += inside
            rest -= inside
        if rest > 0:
            around = (self._calls_of(which, lane).around(begin, end) for which in range(len(self._spans)))
            name = next((name for name in around if name), "")
            key = _function(name, is_first=is_first) if name else ("unexplained", "host activity that was not recorded")
            parts[key] += rest
        return parts

    def _calls_of(self, which: int, lane: int) -> Calls:
        """Functions (0) or events (1) of a thread."""
        if (which, lane) not in self._of_lane:
            self._of_lane[which, lane] = self._spans[which].of_lane(lane)
        return self._of_lane[which, lane]


def _function(name: str, *, is_first: bool) -> tuple[str, str]:
    """Kind and name of a part that a function takes."""
    kind = "preprocessing" if is_first else "python"
    return "garbage_collection" if GARBAGE.search(name) else kind, _short(name)


_LAUNCHES: Final = "operators and their launches"


def _step_parts(parts: Mapping[_Key, float], steps: int) -> tuple[StepPart, ...]:
    """Parts in seconds of a mean step, the longest first; the small ones of a kind are one."""
    seconds_by_part: dict[_Key, float] = defaultdict(float)
    count_by_kind: dict[str, int] = defaultdict(int)
    for (kind, what, rank), time_ns in sorted(parts.items(), key=lambda part: (-part[1], part[0])):
        count_by_kind[kind] += 1
        seconds_by_part[(kind, what, rank) if count_by_kind[kind] <= _MOST_NAMED else (kind, "others", -1)] += (
            time_ns * 1e-9 / steps
        )
    step_parts = [
        StepPart(kind=kind, what=what, seconds=seconds, waits_for_rank=rank)
        for (kind, what, rank), seconds in seconds_by_part.items()
        if seconds > 0
    ]
    return tuple(sorted(step_parts, key=lambda part: -part.seconds))


def loading_name(name: str) -> str:
    """A name to search for: the mark of a step, or time outside of all events, has none."""
    return "host time between events" if name == "(gap)" or name.startswith("ProfilerStep") else _short(name)


def _short(name: str) -> str:
    return name if len(name) <= 120 else name[:117] + "..."
