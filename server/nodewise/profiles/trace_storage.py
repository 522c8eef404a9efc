"""Traces and their pieces as objects elsewhere: their names, and whether the storage answers."""

from __future__ import annotations

import hashlib
import io
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import takewhile
from typing import BinaryIO, Final

import structlog

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.profiles.trace_blobs import BlobsAwayError, SupportsRead, TraceBlobs
from nodewise.profiles.traces import Piece

__all__ = ["GARBAGE_S", "TraceStorage", "unavailable"]

GARBAGE_S: Final = 86_400.0
"""Age from which what nothing refers to is deleted: whoever wrote it for a batch has long stored that or given up."""
_HELD_S: Final = 3600.0
"""For so long it is believed that an object is there which this process wrote or saw: much less than garbage lives."""
_MOST_HELD: Final = 65_536
_ASKED_S: Final = 30.0
_ASKED_AWAY_S: Final = 5.0
"""Between two looks whether the storage answers, while it does and while it does not."""

_log = structlog.get_logger(__name__)


def unavailable(why: str) -> NodewiseError:
    """What a caller is told who needs the storage."""
    return NodewiseError(Reason.STORE_UNAVAILABLE, why)


class TraceStorage:
    """Objects ``blobs/<sha256>`` for good, ``staged/<folder>/<sha256 of a chunk>-<any>`` while traces arrive.

    Every method raises NodewiseError STORE_UNAVAILABLE where the storage does not do what is asked.

    Attributes
    ----------
    problem : str
        Why the storage did not do what was last asked; empty = it did.
    """

    def __init__(self, blobs: TraceBlobs) -> None:
        self._blobs = blobs
        self._held: OrderedDict[str, float] = OrderedDict()
        self._lock = threading.Lock()
        self._asked_s = time.monotonic()
        self._closing = False
        self.problem = ""

    def close(self) -> None:
        """End what takes long."""
        self._closing = True

    def check(self) -> str:
        """The problem now: the storage is asked now and then where nobody else did, and often while it is away."""
        with suppress(NodewiseError):
            if time.monotonic() > self._asked_s + (_ASKED_AWAY_S if self.problem else _ASKED_S):
                self.size_bytes("0" * 64, soon=True)
        return self.problem

    # --- traces

    def size_bytes(self, content_sha256: str, *, soon: bool = False) -> int | None:
        """Of a trace; None = there is none. ``soon`` as :class:`TraceBlobs` says."""
        with self._answering():
            return self._blobs.size_bytes(_object(content_sha256), soon=soon)

    def holds(self, content_sha256: str) -> bool:
        """Whether a trace was there lately, as this process knows."""
        with self._lock:
            return self._held.get(content_sha256, float("-inf")) > time.monotonic() - _HELD_S

    def doubt(self, content_sha256: str) -> None:
        """A trace may be there no more."""
        with self._lock:
            self._held.pop(content_sha256, None)

    def put(self, content_sha256: str, source: SupportsRead, size_bytes: int) -> None:
        """Keep a trace."""
        with self._answering():
            self._blobs.put(_object(content_sha256), source, size_bytes)

    def fetch(self, content_sha256: str, into: BinaryIO) -> bool:
        """Write a trace to a file; False = there is none."""
        with self._answering():
            return self._blobs.fetch(_object(content_sha256), into)

    def remove(self, names: Iterable[str]) -> None:
        """Delete traces, in a hurry."""
        names = list(names)
        for name in names:
            self.doubt(name)
        with self._answering():
            self._blobs.remove(map(_object, names), soon=True)

    def finished(self) -> list[tuple[str, float]]:
        """The hashes of all traces, and when each was written."""
        with self._answering():
            return [(name.rpartition("/")[2], written_s) for name, written_s in self._listed("blobs/")]

    # --- pieces

    def put_piece(self, folder: str, sha256: str, data: bytes) -> None:
        """Keep a chunk, unless this process did so lately."""
        key = f"{folder}/{sha256}"
        if not self.holds(key):
            with self._answering():  # by a name of its own, so that nobody who tidies up means this one
                self._blobs.put(f"staged/{key}-{uuid.uuid4().hex[:8]}", io.BytesIO(data), len(data))
            self.hold(key)

    def hold(self, key: str) -> None:
        """Remember that something is there."""
        with self._lock:
            self._held[key] = time.monotonic()
            self._held.move_to_end(key)
            if len(self._held) > _MOST_HELD:
                self._held.popitem(last=False)

    def gathered(self, folder: str, pieces: Iterable[Piece]) -> Iterator[bytes]:
        """The bytes of a trace from its pieces, each once."""
        with self._answering():
            there = [name for name, _ in self._blobs.listed(f"staged/{folder}/")]
        found = {name.rpartition("/")[2].partition("-")[0]: name for name in there}
        size = 0
        for piece in pieces:
            data = io.BytesIO()
            name = found.get(piece.sha256)
            with self._answering():
                held = name is not None and self._blobs.fetch(name, data)
            content = data.getvalue()
            if not held or hashlib.sha256(content).hexdigest() != piece.sha256:
                _log.error("trace_piece_lost", piece=piece.sha256, found=held)
                raise unavailable("a part of the trace that was stored is gone; send it in another session")
            new = content[max(0, size - piece.offset_bytes) :]
            size += len(new)
            yield new

    def drop_pieces(self, folder: str) -> None:
        """Delete the pieces of a trace that is whole."""
        with self._answering():
            self._blobs.remove([name for name, _ in self._blobs.listed(f"staged/{folder}/")])

    def sweep(self, before_s: float, unfinished: Callable[[], set[str]]) -> list[str]:
        """Delete pieces of no unfinished trace that are older; returns the hashes of traces that are older."""
        with self._answering():
            self._blobs.abandon(before_s)
            if pieces := [name for name, written_s in self._listed("staged/") if written_s < before_s]:
                kept = unfinished()
                self._blobs.remove([name for name in pieces if name.split("/")[1] not in kept])
        return [name for name, written_s in self.finished() if written_s < before_s]

    def _listed(self, prefix: str) -> Iterator[tuple[str, float]]:
        return takewhile(lambda _: not self._closing, self._blobs.listed(prefix))

    @contextmanager
    def _answering(self) -> Iterator[None]:
        try:
            yield
        except BlobsAwayError as error:
            with self._lock:
                self._asked_s = time.monotonic()
                if not self.problem:
                    _log.error("traces_away", text=str(error))
                self.problem = str(error)
            raise unavailable("the storage of traces cannot be read or written now; retry later") from None
        with self._lock:
            self._asked_s = time.monotonic()
            if self.problem:
                _log.info("traces_back")
            self.problem = ""


def _object(content_sha256: str) -> str:
    return f"blobs/{content_sha256}"
