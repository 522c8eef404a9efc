"""Trace readers: one format each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, BinaryIO, Protocol, runtime_checkable

if TYPE_CHECKING:
    from nodewise.domain.trace import Trace, TraceSource

__all__ = ["TraceReader"]


@runtime_checkable
class TraceReader(Protocol):
    """Reads one format of traces."""

    def recognises(self, head: bytes, source: TraceSource) -> float:
        """How certain it is that a file with this head has this format, 0 to 1. Compressed files are unpacked before.

        0 = it does not; up to 0.2 = it may, like every file of a more general form; 0.8 to 0.9 = it has marks of this
        format alone; 1 = the sender's mapping says so. The reader with the highest value reads the file.
        """
        ...

    def read(self, stream: BinaryIO, source: TraceSource) -> Sequence[Trace]:
        """Read a file, as a stream: one trace per rank in it, at least one. Removes paths, host names and user names.

        Content that cannot be read is omitted and counted in the trace's report.

        Raises
        ------
        NodewiseError
            INVALID_FIELD, with the place where the stream becomes unreadable, if no usable content is left.
        """
        ...
