"""The event loop of a worker, and its garbage collection."""

from __future__ import annotations

import asyncio
import gc
from typing import Final

__all__ = ["new_event_loop", "settle_garbage"]

COLLECT_EVERY: Final = (10_000, 5, 2_000)
"""Allocations between collections of the youngest objects, and such collections between those of older ones.

A collection stops all threads: that of the first two generations visits 50,000 objects at most, which takes about 10 ms.
"""


def new_event_loop() -> asyncio.AbstractEventLoop:
    """A loop of uvloop where it exists (a tenth less CPU per call), else of asyncio."""
    try:
        import uvloop  # noqa: PLC0415  # not on Windows
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def settle_garbage() -> None:
    """Collect garbage less often, and never visit objects that exist before the first call.

    Reference counts free nearly all objects of a call. Caches hold tens of thousands of small objects, and each full
    collection would visit them all.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_EVERY)
