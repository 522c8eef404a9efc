"""Cores that this process may use, and keeping to one of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["cores", "pin", "unpinned"]

_unpinned: frozenset[int] | None = None
"""Cores before the process was pinned; None = it is not."""


def cores() -> list[int]:
    """Numbers of those that the calling thread may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def pin(core: int) -> None:
    """Keep the calling thread to a core, and with it all threads and processes that it starts from now on."""
    global _unpinned  # noqa: PLW0603  # a fact of the process, as the mask is
    if hasattr(os, "sched_setaffinity"):
        _unpinned = frozenset(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {core})


@contextmanager
def unpinned() -> Iterator[None]:
    """Processes that the calling thread starts in the block may use all cores that this one could at first."""
    if _unpinned is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, _unpinned)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
