"""Trace readers: one format each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO, Protocol, runtime_checkable

from nodewise.domain.trace import Trace, TraceSource

__all__ = ["TraceReader"]


@runtime_checkable
class TraceReader(Protocol):
    """Reads one format of traces."""

    def recognises(self, head: bytes, source: TraceSource) -> float:
        """How surely a file that starts so is of this format, 0 to 1. Packed files are unpacked before.

        0 = it is not; up to 0.2, it may be, as every file of a more general form; 0.8 to 0.9, it has marks that this
        format alone has; 1 = the sender's mapping says so. Of all readers the surest reads the file.
        """
        ...

    def read(self, stream: BinaryIO, source: TraceSource) -> Sequence[Trace]:
        """Read a file, as a stream: one trace per rank in it, at least one. Strips paths, host and user names.

        What cannot be made sense of is left out and counted in the trace's report; nothing vanishes silently.

        Raises
        ------
        NodewiseError
            INVALID_FIELD, saying where the stream stops making sense, if nothing usable is left.
        """
        ...
