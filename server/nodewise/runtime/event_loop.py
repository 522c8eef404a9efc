"""The event loop of a worker, and how long other work may stop it."""

from __future__ import annotations

import asyncio
import gc
import sys
from typing import Final

__all__ = ["limit_pauses", "new_event_loop"]

COLLECT_EVERY: Final = (10_000, 5, 2_000)
"""Allocations between collections of the youngest objects, and such collections between those of older ones.

A collection stops all threads: one of the first two generations visits 60,000 objects at most, for about 10 to 20 ms.
"""
SWITCH_S: Final = 0.0005
"""Seconds that a thread may compute while the event loop waits for the interpreter.

A model's compiled functions release the interpreter for shorter times, and each release restarts the wait.
"""


def new_event_loop() -> asyncio.AbstractEventLoop:
    """A loop of uvloop where it exists (a tenth less CPU per call), else of asyncio."""
    try:
        import uvloop  # noqa: PLC0415  # not on Windows
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def limit_pauses() -> None:
    """Switch threads sooner, collect garbage less often, and never visit objects that exist before the first call.

    Reference counts free nearly all objects of a call. Caches hold tens of thousands of small objects, and each full
    collection would visit them all.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_EVERY)
    sys.setswitchinterval(SWITCH_S)
