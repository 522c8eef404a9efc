"""The event loop is everybody's: work of many small parts lets others have it between them."""

from __future__ import annotations

import asyncio
import time

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.rpc.calls import Call
from nodewise.rpc.classes import STINT_S

__all__ = ["Stint"]


class Stint:
    """Lets other calls have the event loop every few milliseconds, and ends a call whose time is over.

    A call whose caller went ends there too: nobody learns of it while the loop is held.
    """

    def __init__(self, call: Call) -> None:
        self._call = call
        self._ends_s = time.monotonic() + STINT_S

    async def over(self, done: str) -> None:
        """Yield if the stint is over; ``done`` says how far the work is.

        Raises
        ------
        NodewiseError
            DEADLINE_EXCEEDED.
        """
        if time.monotonic() <= self._ends_s:
            return
        if self._call.remaining_s() <= 0:
            raise NodewiseError(Reason.DEADLINE_EXCEEDED, f"the call's time was over: {done}", {"progress": done})
        if self._call.admission is None:
            await asyncio.sleep(0)
        else:
            await self._call.admission.accept_arrivals()
        self._ends_s = time.monotonic() + STINT_S
