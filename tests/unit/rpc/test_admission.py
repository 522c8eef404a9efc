"""Which calls are at work, which wait, and which are refused."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodewise.rpc.admission import AdmissionQueue, OverloadedError, Permit


class Clock:
    """A clock that only the test moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 1_000.0
        monkeypatch.setattr("nodewise.rpc.admission.time", SimpleNamespace(monotonic=lambda: self.now_s))


async def settle() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


async def ask(queue: AdmissionQueue, caller: str, calls: int = 1, **stated: float) -> list[asyncio.Task[Permit]]:
    tasks = [asyncio.create_task(queue.acquire(caller, **stated)) for _ in range(calls)]
    await settle()
    return tasks


async def cancel(tasks: list[asyncio.Task[Permit]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def slow_queue(clock: Clock, *, wait_s: float, interval_s: float = 0.1, most: int = 1024) -> AdmissionQueue:
    """A queue of one permit, held, that gave one each ``interval_s`` and in which nothing waits."""
    queue = AdmissionQueue(1, wait_s, most)
    permit = queue.take()
    for _ in range(200):
        (task,) = await ask(queue, "before")
        clock.now_s += interval_s
        permit.release()
        permit = await task
    return queue


async def test_a_free_permit_is_taken_at_once_and_released_once() -> None:
    queue = AdmissionQueue(2, 0.2)
    first, second = await queue.acquire("a"), await queue.acquire("a")
    assert queue.free == 0
    first.release()
    first.release()
    assert (queue.free, first.is_released, second.is_released) == (1, True, False)


async def test_the_time_that_calls_wait_is_counted_also_of_those_that_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, queue = Clock(monkeypatch), AdmissionQueue(1, 60.0)
    permit = await queue.acquire("a")
    clock.now_s += 5.0
    assert queue.waited_s == 0.0
    first, leaves = await ask(queue, "a", 2)
    clock.now_s += 2.0
    permit.release()
    await first
    clock.now_s += 1.0
    await cancel([leaves])
    assert queue.waited_s == 2.0 + 3.0


async def test_callers_take_turns_however_much_one_asks() -> None:
    queue = AdmissionQueue(1, 0.2)
    held, served = queue.take(), list[str]()

    async def call(caller: str) -> None:
        permit = await queue.acquire(caller)
        served.append(caller)
        permit.release()

    calls = [asyncio.create_task(call(caller)) for caller in ("greedy",) * 20 + ("modest", "modest")]
    await settle()
    held.release()
    await asyncio.gather(*calls)
    assert served[:5] == ["greedy", "modest", "greedy", "modest", "greedy"]
    assert (queue.free, queue.waiting) == (1, 0)


async def test_a_call_that_would_wait_too_long_is_refused_with_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = await slow_queue(Clock(monkeypatch), wait_s=0.35)
    waiting = await ask(queue, "a", 3)
    with pytest.raises(OverloadedError) as refused:
        await queue.acquire("a")
    assert refused.value.wait_s == pytest.approx(0.4)
    assert queue.waiting == 3
    await cancel(waiting)


async def test_a_caller_with_nothing_waiting_is_admitted_beside_one_with_much(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = await slow_queue(Clock(monkeypatch), wait_s=0.35)
    waiting = await ask(queue, "greedy", 3) + await ask(queue, "modest")
    assert not any(each.done() for each in waiting)
    await cancel(waiting)


async def test_a_call_that_has_no_time_to_wait_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = await slow_queue(Clock(monkeypatch), wait_s=10.0)
    waiting = await ask(queue, "a", 2)
    with pytest.raises(OverloadedError):
        await queue.acquire("b", 0.7)  # a quarter of it is less than the 0.2 s that it would wait
    waiting += await ask(queue, "b", remaining_s=0.9)
    assert not waiting[-1].done()
    await cancel(waiting)


async def test_as_many_calls_as_permits_wait_however_slow_work_is(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = await slow_queue(Clock(monkeypatch), wait_s=0.001)
    waiting = await ask(queue, "a")
    assert not waiting[0].done()
    await cancel(waiting)


async def test_in_a_full_queue_a_caller_has_no_more_than_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = await slow_queue(Clock(monkeypatch), wait_s=100.0, most=4)
    waiting = await ask(queue, "greedy", 4)
    with pytest.raises(OverloadedError):
        await queue.acquire("greedy")
    waiting += await ask(queue, "modest")
    assert queue.waiting == 5
    await cancel(waiting)


async def test_a_message_of_a_stream_is_never_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = await slow_queue(Clock(monkeypatch), wait_s=0.15)
    waiting = await ask(queue, "a", 2, never_refuse=True)
    assert queue.waiting == 2
    await cancel(waiting)


class Calls:
    """Calls that ask, end, or are cancelled while they wait or just as they are admitted."""

    def __init__(self) -> None:
        self.queue = AdmissionQueue(3, 1.0)
        self.calls: list[asyncio.Task[Permit]] = []

    @property
    def held(self) -> list[Permit]:
        permits = [each.result() for each in self.calls if each.done() and not each.cancelled()]
        return [each for each in permits if not each.is_released]

    async def act(self, action: str, number: int) -> None:
        if action == "ask":
            self.calls.append(asyncio.create_task(self.queue.acquire(f"{number % 3}")))
        elif action == "cancel" and self.calls:
            self.calls[number % len(self.calls)].cancel()
        elif action == "end" and self.held:
            self.held[number % len(self.held)].release()
        elif action == "settle":
            await settle()

    async def end(self) -> None:
        while self.held or not all(each.done() for each in self.calls):
            for permit in self.held:
                permit.release()
            await settle()


@given(st.lists(st.tuples(st.sampled_from(["ask", "ask", "cancel", "end", "settle"]), st.integers(0, 7)), max_size=60))
def test_no_permit_is_lost_or_doubled(actions: list[tuple[str, int]]) -> None:
    async def work() -> None:
        calls = Calls()
        for action, number in actions:
            await calls.act(action, number)
            assert len(calls.held) <= 3
            assert not (calls.queue.free and calls.queue.waiting)
        await calls.end()
        assert (calls.queue.free, calls.queue.waiting) == (3, 0)

    asyncio.run(work())
