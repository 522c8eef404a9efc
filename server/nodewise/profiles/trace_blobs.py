"""Where finished traces are kept when that is no directory: objects under names, somewhere else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import BinaryIO, Protocol

__all__ = ["BlobsAwayError", "SupportsRead", "TraceBlobs"]


class SupportsRead(Protocol):
    """What is read from where it stands."""

    def read(self, size: int = -1, /) -> bytes:
        """The next bytes; -1 = all that are left."""


class BlobsAwayError(Exception):
    """The storage does not answer, or refuses this service; the text is for the log alone."""


class TraceBlobs(Protocol):
    """Objects under names of letters, digits, ``-`` and ``/``. Safe from many threads and processes; may block.

    An object appears as a whole or not at all, and an object of a name is not written anew with other content. Every
    method raises BlobsAwayError where the storage does not do what is asked.
    """

    def put(self, name: str, source: SupportsRead, size_bytes: int) -> None:
        """Keep all that is left of a source; durable when this returns."""

    def fetch(self, name: str, into: BinaryIO) -> bool:
        """Write an object to a file; False = there is none."""

    def size_bytes(self, name: str, *, soon: bool = False) -> int | None:
        """Of an object; None = there is none.

        ``soon``: whoever waits holds others up, so this gives up within seconds, and at once where that was so lately.
        """

    def listed(self, prefix: str) -> Iterator[tuple[str, float]]:
        """Names of objects, and when each was written, in seconds since 1970."""

    def abandon(self, before_s: float) -> None:
        """Forget uploads that began before a time and never ended."""

    def remove(self, names: Iterable[str], *, soon: bool = False) -> None:
        """Delete objects, those that there are; ``soon`` as above."""
