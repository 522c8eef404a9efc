"""Timelines and exchanges on the wire: cut into messages, so that none exceeds what a client takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, Final

from nodewise.domain.replay import ReplayedCollective, Timeline
from nodewise.mapper.mapping import to_message
from nodewise_protos.v1beta1 import diagnosis_service_pb2 as pb

__all__ = ["write_collectives", "write_timeline"]

PIECE_ROWS: Final = 32_768
"""Events of a message: of eight columns of at most ten bytes each it has at most 2.6 MB."""
PIECE_TEXT_BYTES: Final = 1 << 20
"""Words of a message."""
_WORDS: Final = ("names", "lanes", "kinds", "parts")
PIECE_RANKS: Final = 65_536
"""Ranks of all exchanges of a message, which take at most 26 bytes each."""
PIECE_EXCHANGES: Final = 8_192


def write_timeline(timeline: Timeline, *, recorded: bool) -> Iterator[pb.TimelinePiece]:
    """A timeline in pieces: first the words, then the events."""
    for kind in _WORDS:
        for words in _cut(getattr(timeline, kind)):
            piece = pb.TimelinePiece(recorded=recorded)
            getattr(piece, kind).extend(words)
            yield piece
    for begin in range(0, len(timeline), PIECE_ROWS):
        rows = slice(begin, begin + PIECE_ROWS)
        said: dict[str, Any] = dict.fromkeys(_WORDS, ())
        yield to_message(timeline, pb.TimelinePiece, only=rows, recorded=recorded, **said)


def _cut(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """Words in order, so many at a time as fit."""
    begin, size = 0, 0
    for place, word in enumerate(words):
        taken = len(word.encode()) + 4
        if size and size + taken > PIECE_TEXT_BYTES:
            yield words[begin:place]
            begin, size = place, 0
        size += taken
    if size:
        yield words[begin:]


def write_collectives(collectives: Sequence[ReplayedCollective]) -> Iterator[pb.ReplayedCollectives]:
    """Exchanges in pieces, in their order."""
    kept: list[ReplayedCollective] = []
    ranks, text = 0, 0
    for found in collectives:
        more = len(found.ranks) + len(found.late_ranks)
        words = len(found.name.encode()) + len(found.kind.encode()) + len(found.group.encode())
        full = len(kept) >= PIECE_EXCHANGES or ranks + more > PIECE_RANKS or text + words > PIECE_TEXT_BYTES
        if kept and full:
            yield _columns(kept)
            kept, ranks, text = [], 0, 0
        kept.append(found)
        ranks, text = ranks + more, text + words
    if kept:
        yield _columns(kept)


def _columns(found: Sequence[ReplayedCollective]) -> pb.ReplayedCollectives:
    return pb.ReplayedCollectives(
        step_ordinals=[each.step for each in found],
        names=[each.name for each in found],
        kinds=[each.kind for each in found],
        bytes=[max(each.bytes, 0) for each in found],
        groups=[each.group for each in found],
        transfer_seconds=[each.transfer_s for each in found],
        end_spread_seconds=[each.end_spread_s for each in found],
        margin_seconds=[each.margin_s for each in found],
        rank_offsets=accumulate((len(each.ranks) for each in found), initial=0),
        rank_numbers=[rank for each in found for rank in each.ranks],
        arrival_seconds=[arrival for each in found for arrival in each.arrival_s],
        wait_seconds=[wait for each in found for wait in each.wait_s],
        late_rank_offsets=accumulate((len(each.late_ranks) for each in found), initial=0),
        late_ranks=[rank for each in found for rank in each.late_ranks],
    )
