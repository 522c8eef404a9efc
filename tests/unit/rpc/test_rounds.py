"""What is read once for all calls that the event loop takes up in one round."""

from __future__ import annotations

import asyncio

import pytest

from nodewise.rpc.rounds import OncePerRound
from nodewise.runtime.event_loop import new_event_loop


class Counter:
    """How often it was read."""

    def __init__(self) -> None:
        self.reads = 0

    def __call__(self) -> int:
        self.reads += 1
        return self.reads


def test_calls_of_one_round_share_a_reading_and_the_next_round_reads_anew() -> None:
    once = OncePerRound(Counter())

    async def call() -> int:
        return once()

    async def rounds() -> list[int]:
        first = await asyncio.gather(*(call() for _ in range(3)))
        return [*first, *await asyncio.gather(*(call() for _ in range(3)))]

    assert asyncio.run(rounds()) == [1, 1, 1, 2, 2, 2]


def test_what_becomes_ready_after_a_reading_is_given_another() -> None:
    """Whatever a call does for another to begin, the other one reads what was there by then."""
    now = [0]
    once = OncePerRound(lambda: now[0])

    async def asks(ready: asyncio.Future[None]) -> int:
        await ready
        return once()

    async def rounds() -> int:
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        asking = asyncio.ensure_future(asks(ready))
        await asyncio.sleep(0)
        assert once() == 0
        now[0] = 1  # committed, and acknowledged by what comes next
        ready.set_result(None)
        return await asking

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        assert runner.run(rounds()) == 1


def test_a_reading_that_fails_fails_again_or_not_by_itself() -> None:
    answers = iter([OSError("gone"), 5])

    def read() -> int:
        found = next(answers)
        if isinstance(found, OSError):
            raise found
        return found

    once = OncePerRound(read)

    async def call() -> int:
        with pytest.raises(OSError, match="gone"):
            once()
        return once()

    assert asyncio.run(call()) == 5


def test_without_a_loop_it_is_read_each_time() -> None:
    once = OncePerRound(Counter())
    assert [once(), once()] == [1, 2]
