"""Timelines and exchanges, gathered from the pieces in which they come."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

from nodewise_protos.v1 import diagnosis_service_pb2 as wire


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Events as columns. `lane`, `name` and `kind` are indexes into `lanes`, `names` and `kinds`."""

    rank: Sequence[int]
    lane: Sequence[int]
    name: Sequence[int]
    kind: Sequence[int]
    """Empty = not known."""
    begin_ns: Sequence[int]
    """Since the first step began; below 0 = before."""
    duration_ns: Sequence[int]
    waiting_ns: Sequence[int]
    """Of an exchange: how long it waits for others first. Empty = nothing waits, or it is not known."""
    lanes: Sequence[str]
    names: Sequence[str]
    kinds: Sequence[str]

    def __len__(self) -> int:
        return len(self.begin_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedCollective:
    """One exchange of a step, its transfer told from waiting."""

    step: int
    name: str
    kind: str
    bytes: int | None
    """That a rank puts in; None = not known."""
    group: str
    transfer_s: float
    end_spread_s: float
    ranks: tuple[int, ...]
    arrival_s: tuple[float, ...]
    """By rank, since the first arrival."""
    wait_s: tuple[float, ...]
    """By rank."""
    late_ranks: tuple[int, ...]
    """All that arrived within the clock's uncertainty of the last."""
    margin_s: float
    """Lead of the last rank over the next that is not late with it."""


def _whole_numbers() -> array[int]:
    return array("q")


@dataclass(slots=True)
class _Columns:
    """A timeline that grows."""

    rank: array[int] = field(default_factory=_whole_numbers)
    lane: array[int] = field(default_factory=_whole_numbers)
    name: array[int] = field(default_factory=_whole_numbers)
    kind: array[int] = field(default_factory=_whole_numbers)
    begin_ns: array[int] = field(default_factory=_whole_numbers)
    duration_ns: array[int] = field(default_factory=_whole_numbers)
    waiting_ns: array[int] = field(default_factory=_whole_numbers)
    lanes: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)

    def add(self, piece: wire.TimelinePiece) -> None:
        """Append a piece."""
        self.lanes.extend(piece.lanes)
        self.names.extend(piece.names)
        self.kinds.extend(piece.kinds)
        self.rank.extend(piece.rank_numbers)
        self.lane.extend(piece.lane_indexes)
        self.name.extend(piece.name_indexes)
        self.kind.extend(piece.kind_indexes)
        self.begin_ns.extend(piece.begin_nanoseconds)
        self.duration_ns.extend(piece.duration_nanoseconds)
        self.waiting_ns.extend(piece.waiting_nanoseconds)

    def timeline(self) -> Timeline:
        """All of it."""
        return Timeline(
            rank=self.rank,
            lane=self.lane,
            name=self.name,
            kind=self.kind,
            begin_ns=self.begin_ns,
            duration_ns=self.duration_ns,
            waiting_ns=self.waiting_ns,
            lanes=tuple(self.lanes),
            names=tuple(self.names),
            kinds=tuple(self.kinds),
        )


class Pieces:
    """What came before a result."""

    def __init__(self) -> None:
        self._executed: _Columns | None = None
        self._recorded: _Columns | None = None
        self._collectives: list[ReplayedCollective] = []

    def add_timeline(self, piece: wire.TimelinePiece) -> None:
        """Append to a timeline."""
        if piece.recorded:
            self._recorded = self._recorded or _Columns()
            self._recorded.add(piece)
        else:
            self._executed = self._executed or _Columns()
            self._executed.add(piece)

    def add_collectives(self, message: wire.ReplayedCollectives) -> None:
        """Append exchanges."""
        offsets, late_offsets = message.rank_offsets, message.late_rank_offsets
        for row, name in enumerate(message.names):
            ranks = slice(offsets[row], offsets[row + 1])
            self._collectives.append(
                ReplayedCollective(
                    step=message.step_ordinals[row],
                    name=name,
                    kind=message.kinds[row],
                    bytes=None if message.bytes[row] < 0 else message.bytes[row],
                    group=message.groups[row],
                    transfer_s=message.transfer_seconds[row],
                    end_spread_s=message.end_spread_seconds[row],
                    ranks=tuple(message.rank_numbers[ranks]),
                    arrival_s=tuple(message.arrival_seconds[ranks]),
                    wait_s=tuple(message.wait_seconds[ranks]),
                    late_ranks=tuple(message.late_ranks[late_offsets[row] : late_offsets[row + 1]]),
                    margin_s=message.margin_seconds[row],
                )
            )

    @property
    def executed(self) -> Timeline | None:
        """The timeline as executed."""
        return None if self._executed is None else self._executed.timeline()

    @property
    def recorded(self) -> Timeline | None:
        """The timeline as recorded."""
        return None if self._recorded is None else self._recorded.timeline()

    @property
    def collectives(self) -> tuple[ReplayedCollective, ...]:
        """The exchanges."""
        return tuple(self._collectives)
