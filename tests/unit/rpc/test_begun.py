"""Coroutines that are begun before anybody waits for them: they go on as if they had been awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from nodewise.rpc.begun import Begun


async def waited(*steps: Callable[[], Awaitable[object]], done: list[str]) -> int:
    for number, step in enumerate(steps):
        await step()
        done.append(str(number))
    return len(steps)


def test_what_does_not_wait_has_ended() -> None:
    done: list[str] = []
    begun = Begun(waited(done=done))
    assert (begun.ended, begun.answer, done) == (True, 0, [])


def test_what_it_raises_before_it_waits_is_raised_at_once() -> None:
    async def failing() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        Begun(failing())


def test_what_waits_goes_on_when_it_is_awaited() -> None:
    async def asked() -> None:
        loop, done = asyncio.get_running_loop(), []
        future: asyncio.Future[None] = loop.create_future()
        # The next round of the loop is waited for by nothing, a future by itself.
        begun = Begun(waited(lambda: asyncio.sleep(0), lambda: future, lambda: asyncio.sleep(0), done=done))
        assert not begun.ended
        loop.call_soon(future.set_result, None)
        assert await begun == 3
        assert done == ["0", "1", "2"]

    asyncio.run(asked())


def test_what_it_raises_later_reaches_who_awaits_it() -> None:
    async def asked() -> None:
        async def failing() -> None:
            await asyncio.sleep(0)
            raise ValueError("later")

        with pytest.raises(ValueError, match="later"):
            await Begun(failing())

    asyncio.run(asked())


@pytest.mark.parametrize("swallowed", [False, True])
def test_a_cancellation_is_the_coroutines(swallowed: bool) -> None:
    async def asked() -> list[str]:
        seen: list[str] = []

        async def holding() -> None:
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                await asyncio.sleep(0)  # tidies up, which takes a round
                seen.append("tidied")
                if not swallowed:
                    raise

        async def awaiting() -> None:
            await Begun(holding())
            seen.append("went on")

        task = asyncio.create_task(awaiting())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled() is not swallowed
        return seen

    assert asyncio.run(asked()) == ["tidied", *(["went on"] if swallowed else [])]


def test_its_time_may_be_over() -> None:
    async def asked() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.0):
                await Begun(waited(lambda: asyncio.get_running_loop().create_future(), done=[]))

    asyncio.run(asked())
