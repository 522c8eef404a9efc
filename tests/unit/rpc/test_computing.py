"""Calls that compute in threads: one at a time, a long one keeps no other waiting, and none is refused in between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from threading import Event
from types import SimpleNamespace
from typing import Any, cast

import pytest

from nodewise.rpc.calls import Call, computed_in
from nodewise.rpc.classes import Admission

PATIENCE_S = 60.0


class Named(SimpleNamespace):
    """What a call needs of gRPC: where it comes from."""

    def peer(self) -> str:
        return str(self.name)


def call_of(admission: Admission, caller: str) -> Call:
    return Call("id", None, cast("Any", Named(name=caller)), admission=admission)


@pytest.fixture
def executor() -> Iterator[Executor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No computation is long, however busy the machine is."""
    monkeypatch.setattr("nodewise.rpc.calls.COMPUTING_S", 10 * PATIENCE_S)


@pytest.fixture
def go(executor: Executor) -> Iterator[Event]:  # it ends before these threads do
    """Lets computations end, at the latest when the test does."""
    event = Event()
    yield event
    event.set()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            if condition():
                return
            await asyncio.sleep(0.001)


async def test_one_call_computes_at_a_time(executor: Executor, go: Event) -> None:
    admission, order = Admission(0.5, 1), list[str]()
    first = asyncio.create_task(computed_in(executor, call_of(admission, "a"), go.wait))
    await until(lambda: admission.computing.free == 0)
    second = asyncio.create_task(computed_in(executor, (call := call_of(admission, "b")), order.append, "b"))
    await until(lambda: admission.computing.waiting == 1)
    assert not order
    go.set()
    await first
    # The first call still has its permit: it may compute more, until it ends.
    assert not order
    second.cancel()
    call.step_aside()


async def test_a_long_computation_keeps_no_other_waiting(
    executor: Executor, go: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nodewise.rpc.calls.COMPUTING_S", 0.01)
    admission = Admission(0.5, 1)
    long = asyncio.create_task(computed_in(executor, call_of(admission, "a"), go.wait))
    await asyncio.sleep(0)  # it takes the only permit
    async with asyncio.timeout(PATIENCE_S):
        assert await computed_in(executor, call_of(admission, "b"), lambda: "done") == "done"
    assert not long.done()
    go.set()
    assert await long


async def test_a_call_of_many_computations_gives_way_between_them_and_is_not_refused(executor: Executor) -> None:
    admission, order = Admission(1e-9, 1), list[str]()  # nobody may wait, but for as many calls as are at work
    batch, other = call_of(admission, "batch"), call_of(admission, "other")
    await computed_in(executor, batch, order.append, "batch")
    waiting = asyncio.create_task(computed_in(executor, other, order.append, "other"))
    await until(lambda: admission.computing.waiting == 1)
    second = asyncio.create_task(computed_in(executor, batch, order.append, "batch again"))
    await waiting
    other.step_aside()
    await second
    batch.step_aside()
    assert order == ["batch", "other", "batch again"]
    assert admission.computing.free == 1
