"""Timelines and exchanges, gathered from the pieces in which they come."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from nodewise_client._rows import Part, Row, Rows
from nodewise_protos.v1beta1 import diagnosis_service_pb2 as wire
from nodewise_values import ReplayedCollectives, TimelinePiece
from nodewise_values.wire import from_own_message

_WORDS: Final = ("names", "lanes", "kinds", "parts")
"""Dictionaries that grow with every piece; all other columns are numbers, of which there may be millions."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Timeline(TimelinePiece):
    """All events as columns: ranks as numbers, the others as indexes into `lanes`, `names`, `kinds` and `parts`."""

    def __len__(self) -> int:
        return len(self.begin_nanoseconds)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        ranks = len(set(self.rank_numbers))
        return f"Timeline({len(self)} events in {len(self.lanes)} lanes of {ranks} ranks, recorded={self.recorded})"


class ReplayedCollective(Row):
    """One exchange of a step, by the names of `ReplayedCollectives`: its transfer apart from waiting."""

    __slots__ = ()

    if TYPE_CHECKING:
        step_ordinal: int
        name: str
        kind: str
        bytes: float | None
        """That a rank puts in; None = not known."""
        group: str
        transfer_seconds: float
        end_spread_seconds: float
        margin_seconds: float
        """Lead of the last rank over the next that is not late with it."""
        rank_numbers: tuple[int, ...]
        arrival_seconds: tuple[float, ...]
        """By rank, since the first arrival."""
        wait_seconds: tuple[float, ...]
        """By rank."""
        late_ranks: tuple[int, ...]
        """All that arrived within the clock's uncertainty of the last."""

    @classmethod
    def _column(cls, part: Part, column: str) -> Sequence[Any]:
        if column in _OFFSETS_BY_COLUMN:
            entries, offsets = getattr(part.columns, column), getattr(part.columns, _OFFSETS_BY_COLUMN[column])
            return [tuple(entries[begin:end]) for begin, end in pairwise(offsets)]
        values = super()._column(part, column)
        return [each or None for each in values] if column == "bytes" else values


_OFFSETS_BY_COLUMN: Final = {
    "rank_numbers": "rank_offsets",
    "arrival_seconds": "rank_offsets",
    "wait_seconds": "rank_offsets",
    "late_ranks": "late_rank_offsets",
}


def gather_timelines(events: Iterable[wire.ReplayResponse] | Iterable[wire.DiagnoseResponse]) -> dict[str, Any]:
    """The exchanges and timelines that came before a result."""
    pieces: dict[bool, list[wire.TimelinePiece]] = {}
    collectives: list[ReplayedCollective] = []
    for event in events:
        if event.HasField("timeline"):
            pieces.setdefault(event.timeline.recorded, []).append(event.timeline)
        elif event.HasField("collectives"):
            columns = from_own_message(event.collectives, ReplayedCollectives)
            collectives.extend(Rows(ReplayedCollective, columns, 0, len(columns.names)))
    return {
        "collectives": tuple(collectives),
        "timeline": _whole(pieces.get(False, ())),
        "recorded": _whole(pieces.get(True, ())),
    }


def _whole(pieces: Iterable[wire.TimelinePiece]) -> Timeline | None:
    pieces = tuple(pieces)
    if not pieces:
        return None
    columns: dict[str, Any] = {"recorded": pieces[0].recorded}
    for each in fields(TimelinePiece):
        if each.name in _WORDS:
            columns[each.name] = tuple(word for piece in pieces for word in getattr(piece, each.name))
        elif each.name not in columns:
            # Not as a tuple: a number in an array takes 8 bytes, an object 40.
            columns[each.name] = array("q")
            for piece in pieces:
                columns[each.name].extend(getattr(piece, each.name))
    return Timeline(**columns)
