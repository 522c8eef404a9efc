"""Trace readers: one format each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO, Protocol, runtime_checkable

from nodewise.domain.trace import Trace, TraceSource

__all__ = ["TraceReader"]


@runtime_checkable
class TraceReader(Protocol):
    """Reads one format of traces."""

    def recognises(self, head: bytes, source: TraceSource) -> bool:
        """Whether a file that starts so is of this format. Packed files are unpacked before."""
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
