"""Work of many parts in the event loop: others have their turn, and who went is not worked for."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

import pytest

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.rpc.calls import Call, Stint
from nodewise.rpc.classes import STINT_S


async def parts(call: Call, done: list[int]) -> None:
    """Each part is longer than a stint."""
    stint = Stint(call)
    for number in range(100):
        ends_s = time.monotonic() + 1.1 * STINT_S
        while time.monotonic() < ends_s:
            pass
        done.append(number)
        await stint.over(f"{len(done)} of 100")


async def test_work_of_many_parts_lets_others_have_the_loop() -> None:
    done: list[int] = []
    work = asyncio.ensure_future(parts(Call("", None), done))
    await asyncio.sleep(0)
    work.cancel()  # as gRPC does once the caller is gone, if only it learns of it
    with suppress(asyncio.CancelledError):
        await work
    assert done == [0]


async def test_work_whose_time_is_over_ends_and_says_how_far_it_came() -> None:
    done: list[int] = []
    with pytest.raises(NodewiseError) as caught:
        await parts(Call("", time.monotonic()), done)
    assert (caught.value.reason, caught.value.metadata["progress"]) == (Reason.DEADLINE_EXCEEDED, "1 of 100")
