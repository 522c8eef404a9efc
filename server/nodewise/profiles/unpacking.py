"""The stream of a stored trace for a reader: unpacked while it is read, bounded, and ended at the deadline."""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, BinaryIO, Final

from nodewise.domain.errors import NodewiseError, Reason

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

__all__ = ["TraceStream"]

GZIP_MAGIC: Final = b"\x1f\x8b"
_GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS
"""zlib's value for data with a gzip header and trailer."""
_PACKED_BYTES: Final = 256 << 10
"""Bytes per read from the store."""
_RESCUED_BYTES: Final = 64
"""Bytes of a damaged piece that are tried at a time."""


class TraceStream(io.RawIOBase):
    """A trace unpacked: gzip of one or several members, or plain.

    A packed file that is damaged or ends early ends there, which :attr:`problem` then states: the bytes before are
    a truncated trace. An error that must end the reading is raised at every further read, and is :attr:`failure`, for
    a reader that ignores errors.

    Parameters
    ----------
    source : file
        The bytes as stored; closed with this.
    max_bytes : int
        Most unpacked bytes.
    check : callable
        Called with the bytes read from the store so far; an exception of it ends the reading.
    """

    def __init__(self, source: BinaryIO, max_bytes: int, check: Callable[[int], None]) -> None:
        self._source = source
        self._max_bytes = max_bytes
        self._check = check
        self._taken_bytes = 0
        self._given_bytes = 0
        self._has_ended = False
        self.problem = ""
        self.failure: NodewiseError | None = None
        self._has_begun = False
        self._input = b""
        self._unpacker: zlib._Decompress | None = None

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """The next bytes; 0 at the end."""
        if self.failure is not None:
            raise self.failure
        view = memoryview(buffer).cast("B")
        try:
            data = self._next(len(view))
        except NodewiseError as error:
            self.failure = error
            raise
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Close the stored file too."""
        self._source.close()
        super().close()

    def _more(self) -> bytes:
        self._check(self._taken_bytes)
        data = self._source.read(_PACKED_BYTES)
        self._taken_bytes += len(data)
        return data

    def _next(self, most: int) -> bytes:
        if not self._has_begun:
            self._has_begun, self._input = True, self._more()
            if self._input.startswith(GZIP_MAGIC):
                self._unpacker = zlib.decompressobj(_GZIP_WINDOW)
        data = self._plain(most) if self._unpacker is None else self._unpack(most)
        self._given_bytes += len(data)
        if self._given_bytes > self._max_bytes:
            raise NodewiseError(
                Reason.LIMIT_EXCEEDED,
                f"a trace may unpack to at most {self._max_bytes} bytes; record fewer steps at a time",
                {"limit_bytes": str(self._max_bytes)},
            )
        return data

    def _plain(self, most: int) -> bytes:
        data = self._input or self._more()
        self._input = data[most:]
        return data[:most]

    def _unpack(self, most: int) -> bytes:
        while not self._has_ended:
            assert self._unpacker is not None
            if self._unpacker.eof:
                self._input = self._unpacker.unused_data.lstrip(b"\0") or self._more().lstrip(b"\0")
                if not self._input:
                    self._has_ended = True
                    break
                self._unpacker = zlib.decompressobj(_GZIP_WINDOW)
            # The rest of the last piece may fill this call without another piece.
            piece = self._unpacker.unconsumed_tail or self._input or self._more()
            self._input = b""
            if not piece:
                self._end(f"the packed file ends early, after {self._taken_bytes} bytes")
                break
            before = self._unpacker.copy()
            try:
                data = self._unpacker.decompress(piece, most)
            except zlib.error:
                self._end(f"the packed file is damaged before byte {self._taken_bytes}")
                return _rescue(before, piece, most)
            if data:
                return data
        return b""

    def _end(self, problem: str) -> None:
        self._has_ended = True
        self.problem = problem


def _rescue(unpacker: zlib._Decompress, piece: bytes, most: int) -> bytes:
    """The unpacked bytes of a piece before its damaged position."""
    data = b""
    for begin in range(0, len(piece), _RESCUED_BYTES):
        try:
            data += unpacker.decompress(piece[begin : begin + _RESCUED_BYTES])
        except zlib.error:
            break
    return data[:most]
