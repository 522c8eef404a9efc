"""Processes: what they inherit, how they end, what ends with them, and how soon another is started."""

from __future__ import annotations

import ast
import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from patience import PATIENCE_S, wait_until
from serving import ended, name_of

from nodewise.processes.backoff import FORGIVEN_PER_S, LONGEST_DELAY_S, Backoff
from nodewise.processes.channel import AsyncChannel, Channel
from nodewise.processes.process import Process, status_text
from nodewise.processes.spawning import allowed_environment, spawn, spawn_connected


@contextmanager
def started(function: str, **more: Any) -> Iterator[tuple[Process, Channel]]:
    process, connection = spawn_connected(f"started_functions:{function}", name="a-test", **more)
    channel = Channel(connection.detach())
    try:
        yield process, channel
    finally:
        process.kill()
        assert process.wait(PATIENCE_S) is not None
        channel.close()


def test_a_process_has_its_own_group_few_variables_and_the_descriptors_it_was_given() -> None:
    environment = allowed_environment(["ONE_MORE"], ANOTHER="1")
    with started("tell", environment=environment, nice=3) as (process, channel):
        pid, group, session, nice, _, ignores, variables, descriptors = ast.literal_eval(channel.receive().decode())
        assert (pid, group) == (process.pid, process.pid)
        assert session == os.getsid(0)
        assert nice == os.nice(0) + 3
        assert ignores
        assert set(variables) - {"LC_CTYPE"} <= set(environment)  # Python itself states it where nobody does
        assert "ANOTHER" in variables
        assert descriptors == 4  # the standard ones and its end of the pair
        assert name_of(pid) == "a-test"
    with started("tell", own_session=True) as (process, channel):
        assert ast.literal_eval(channel.receive().decode())[2] == process.pid


def test_a_killed_process_takes_what_it_started_with_it() -> None:
    with started("tell") as (process, channel):
        sleeper = ast.literal_eval(channel.receive().decode())[4]
        assert process.wait(0.0) is None
        os.kill(process.pid, signal.SIGKILL)  # by somebody else
        assert process.wait(PATIENCE_S) == -signal.SIGKILL
        assert process.status == -signal.SIGKILL
        wait_until(lambda: ended(sleeper))
        process.send(signal.SIGTERM)
        process.kill()


def test_a_process_ends_with_the_one_that_started_it() -> None:
    with started("start_another") as (process, channel):
        below = int(channel.receive())
        assert not ended(below)
        os.kill(process.pid, signal.SIGKILL)
        wait_until(lambda: ended(below))


async def test_messages_of_any_size_go_both_ways_until_one_end_closes() -> None:
    with started("echo") as (process, channel):
        other = await AsyncChannel.of(channel.duplicate())
        channel.close()
        for message in (b"", b"x", bytes(3_000_000)):
            sending = asyncio.create_task(other.send(message))
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.0):
                    await other.receive()  # a receiver that gives up loses nothing
            assert await other.receive() == message
            await sending
        other.close()
        assert await process.wait_for_end() == 3


async def test_a_process_is_asked_to_end_before_it_is_killed() -> None:
    with started("echo") as (process, _):
        waiting = asyncio.create_task(process.wait_for_end())
        assert await process.stop(PATIENCE_S) == -signal.SIGTERM
        assert await waiting == -signal.SIGTERM
    with started("ignore_sigterm") as (process, channel):
        await asyncio.to_thread(channel.receive)
        assert await process.stop(0.01) == -signal.SIGKILL


@pytest.mark.parametrize(("wanted", "status"), [(1 << 20, 0), (1 << 30, 1)])
def test_memory_is_limited_beyond_what_a_process_has(wanted: int, status: int) -> None:
    process = spawn("started_functions:allocate", 256 << 20, wanted, name="a-test", stderr=-3)
    assert process.wait(PATIENCE_S) == status


def test_a_status_is_told_in_words() -> None:
    assert [status_text(each) for each in (3, -signal.SIGSEGV, -250)] == ["exit status 3", "SIGSEGV", "signal 250"]


# --- when to start again

SERVED_S = st.floats(0.0, 100.0)


@given(st.lists(st.floats(1.0 / FORGIVEN_PER_S, 1e6), max_size=200))
def test_what_serves_in_between_is_started_at_once_for_ever(served_s: list[float]) -> None:
    backoff = Backoff(2)
    for each in served_s:
        assert backoff.record_death(each) == 0.0
        assert not backoff.is_spent


@given(st.integers(1, 20))
def test_a_budget_is_spent_by_as_many_deaths_without_service_and_delays_double(budget: int) -> None:
    backoff, delays_s = Backoff(budget), []
    for number in range(1, budget + 1):
        assert not backoff.is_spent
        delays_s.append(backoff.record_death(0.0))
        assert backoff.is_spent is (number == budget)
    assert delays_s == ([0.0] + [min(LONGEST_DELAY_S, 0.5 * 2.0**power) for power in range(budget)])[:budget]


@given(st.lists(SERVED_S, min_size=1), st.floats(0.0, 100.0))
def test_longer_service_never_makes_a_delay_longer(served_s: list[float], more_s: float) -> None:
    short, longer = Backoff(8), Backoff(8)
    for each in served_s:
        assert 0.0 <= longer.record_death(each + more_s) <= short.record_death(each) <= LONGEST_DELAY_S
        assert short.is_spent or not longer.is_spent
