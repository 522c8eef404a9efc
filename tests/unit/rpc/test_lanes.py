"""Who gets a turn, who waits, and who is told that it would take too long."""

from __future__ import annotations

import asyncio
import math
import time
from types import SimpleNamespace

import pytest

from nodewise.rpc.lanes import Lane, Turn
from nodewise.rpc.overload import LONGEST_DELAY_S, OverloadedError


async def breath() -> None:
    await asyncio.sleep(0)


def lane(wait_s: float = 0.2, turns: int = 1) -> Lane:
    return Lane("questions", turns, wait_s, breath)


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def waiting(to: Lane, caller: str, calls: int) -> list[asyncio.Task[Turn]]:
    tasks = [asyncio.create_task(to.turn(caller)) for _ in range(calls)]
    await settle()
    return tasks


def paced(to: Lane, pace_s: float) -> Lane:
    for _ in range(200):
        to.pace.learn(pace_s)
    return to


async def test_turns_that_are_free_are_taken_at_once() -> None:
    asked = lane(turns=2)
    first, second = await asked.turn("a"), await asked.turn("a")
    assert asked.pressed
    first.over()
    first.over()
    assert asked.free == 1
    second.over()
    assert asked.free == 2


async def test_callers_take_turns_however_much_one_asks() -> None:
    asked = paced(lane(), 0.001)
    held = await asked.turn("x")
    greedy = await waiting(asked, "greedy", 20)
    (modest,) = await waiting(asked, "modest", 1)
    held.over()
    served: list[str] = []
    while not modest.done():
        await settle()
        for name, tasks in (("greedy", greedy), ("modest", [modest])):
            for task in [each for each in tasks if each.done()]:
                served.append(name)
                if name == "greedy":
                    tasks.remove(task)
                task.result().over()
    assert len(served) <= 3
    for task in greedy:
        task.cancel()


async def test_callers_who_come_anew_all_the_time_starve_nobody_and_are_forgotten() -> None:
    asked = paced(lane(wait_s=10.0), 0.001)
    held = await asked.turn("x")
    old = await waiting(asked, "old", 3)
    served = 0
    tasks = [task for number in range(8) for task in await waiting(asked, f"new {number}", 1)]
    held.over()
    for number in range(8, 400):
        await settle()
        for task in [each for each in (*tasks, *old) if each.done()]:
            served += 1
            (old if task in old else tasks).remove(task)
            task.result().over()
            tasks += await waiting(asked, f"new {number}.{served}", 1)
        if not old:
            break
    assert not old
    assert served <= 60
    assert len(asked._callers) <= 60  # what it knows is what it holds
    for task in tasks:
        task.cancel()


async def test_callers_are_charged_by_what_their_turns_took(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 0.0
    monkeypatch.setattr("nodewise.rpc.lanes.time.monotonic", lambda: now_s)
    asked = paced(lane(wait_s=1e6), 0.01)
    held = await asked.turn("x")
    tasks = {"long": await waiting(asked, "long", 60), "short": await waiting(asked, "short", 60)}
    taken_s = {"long": 0.0, "short": 0.0}
    held.over()
    while tasks["short"] and tasks["long"]:
        await settle()
        for name, each_s in (("long", 0.05), ("short", 0.002)):
            for task in [each for each in tasks[name] if each.done()]:
                tasks[name].remove(task)
                now_s += each_s
                taken_s[name] += each_s
                task.result().over()
    assert taken_s["long"] <= taken_s["short"] + 0.1
    for task in (*tasks["long"], *tasks["short"]):
        task.cancel()


async def test_a_call_that_would_wait_too_long_is_refused_with_the_wait() -> None:
    asked = paced(lane(wait_s=0.5), 0.1)
    held = await asked.turn("x")
    tasks = await waiting(asked, "a", 5)
    with pytest.raises(OverloadedError) as refused:
        await asked.turn("a")
    assert refused.value.wait_s > 0.49
    assert refused.value.waiting == 5
    held.over()
    for task in tasks:
        task.cancel()


async def test_waits_are_counted_in_what_calls_cost() -> None:
    asked = lane(wait_s=10.0)
    for _ in range(200):
        asked.pace.learn(0.1, 0.05)  # this machine takes twice as long as it should
    held = await asked.turn("x")
    tasks = [asyncio.create_task(asked.turn("a", cost_s=cost_s)) for cost_s in (1.0, 0.5, 0.25, 0.25)]
    await settle()
    assert asked.expected_wait_s == pytest.approx(4.0, rel=1e-3)
    with pytest.raises(OverloadedError) as refused:
        await asked.turn("a", 5.0, 0.75)
    assert refused.value.wait_s == pytest.approx(5.5, rel=1e-3)
    held.over()
    for task in tasks:
        task.cancel()


async def test_after_a_refusal_the_queue_stays_short_until_who_was_refused_had_to_come_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = paced(lane(wait_s=2.0), 0.1)

    async def taken() -> int:
        """How many of many calls wait."""
        calls = await waiting(asked, "a", 40)
        refused = sum(isinstance(each.exception(), OverloadedError) for each in calls if each.done())
        for each in calls:
            each.cancel()
        await settle()
        return len(calls) - refused

    held = await asked.turn("x")
    (kept,) = await waiting(asked, "b", 1)
    assert await taken() > 15
    assert await taken() <= 8
    held.over()
    (await kept).over()
    await settle()
    held = await asked.turn("x")
    assert await taken() <= 8, "it ran empty, but who was refused may still come back"
    later_s = time.monotonic() + LONGEST_DELAY_S
    monkeypatch.setattr("nodewise.rpc.lanes.time", SimpleNamespace(monotonic=lambda: later_s))
    assert await taken() > 15
    held.over()


async def test_a_lane_that_is_idle_is_not_overloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = time.monotonic()
    monkeypatch.setattr("nodewise.rpc.lanes.time", SimpleNamespace(monotonic=lambda: now_s))
    asked = paced(lane(wait_s=0.2), 0.1)
    held = await asked.turn("x")
    calls = await waiting(asked, "a", 10)
    assert asked.overloaded
    for each in calls:
        each.cancel()
    await settle()
    held.over()
    for _ in range(10):
        now_s += 0.05
        asked.taken().over()
    assert not asked.overloaded


async def test_who_was_given_little_lately_is_let_in_by_who_was_given_much(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 1_000.0
    monkeypatch.setattr("nodewise.rpc.lanes.time", SimpleNamespace(monotonic=lambda: now_s))
    asked = paced(lane(wait_s=2.0), 0.1)
    held = await asked.turn("x")
    modest, greedy = await waiting(asked, "modest", 1), await waiting(asked, "greedy", 40)
    assert asked.overloaded
    for number in range(12):
        now_s += 0.1
        held.over()
        await settle()
        given = next(each for each in (*modest, *greedy) if each.done() and each.exception() is None)
        (modest if given in modest else greedy).remove(given)
        held = given.result()
        greedy += await waiting(asked, "greedy", 3)
        if number == 0:
            assert not modest
    modest = await waiting(asked, "modest", 3)
    assert not any(each.done() for each in modest), "none is refused"
    for each in (*modest, *greedy):
        each.cancel()


async def test_who_would_be_refused_is_told_so_before_asking_for_a_turn() -> None:
    asked = paced(lane(wait_s=2.0), 0.1)
    held = await asked.turn("x")
    assert asked.refusal("a", math.inf) is None
    calls = await waiting(asked, "a", 40)
    told = asked.refusal("a", math.inf)
    assert told is not None
    assert told.wait_s > 0.4
    assert asked.refusal("b", math.inf) is None, "another is let in, in stead of one of who has many"
    for each in calls:
        each.cancel()
    held.over()


async def test_the_pace_of_turns_that_begin_together_is_that_of_their_work(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 1_000.0
    monkeypatch.setattr("nodewise.rpc.lanes.time", SimpleNamespace(monotonic=lambda: now_s))
    asked = lane(turns=4, wait_s=1_000.0)
    held = [await asked.turn("x") for _ in range(4)]
    calls = await waiting(asked, "a", 80)
    for _ in range(20):
        now_s += 0.4
        for turn in held:
            turn.over()
        await settle()
        held, calls = [await each for each in calls[:4]], calls[4:]
    assert asked.pace.turn_s == pytest.approx(0.1, rel=0.02)


async def test_a_lane_may_take_so_many_and_no_more() -> None:
    asked = Lane("pool", 1, 20.0, None, 6)
    held = await asked.turn("x")
    calls = await waiting(asked, "a", 7)
    assert isinstance(calls[6].exception(), OverloadedError)
    held.over()
    for each in calls[:6]:
        (await each).over()
    assert asked.free == 1


async def test_a_call_whose_time_is_over_before_its_turn_is_refused() -> None:
    asked = paced(lane(wait_s=10.0), 0.1)
    held = await asked.turn("x")
    tasks = await waiting(asked, "a", 5)
    with pytest.raises(OverloadedError):
        await asked.turn("a", 0.3)
    held.over()
    for task in tasks:
        task.cancel()


async def test_who_has_nothing_waiting_gets_the_place_of_the_newest_of_who_has_most() -> None:
    asked = paced(lane(wait_s=0.5), 0.1)
    held = await asked.turn("x")
    greedy = await waiting(asked, "greedy", 5)
    modest = await waiting(asked, "modest", 1)
    assert isinstance(greedy[-1].exception(), OverloadedError)
    assert asked.waiting == 5
    held.over()
    for task in (*greedy[:-1], *modest):
        task.cancel()


async def test_a_stream_waits_and_is_never_refused() -> None:
    asked = paced(lane(wait_s=0.1), 0.1)

    async def use(*, patient: bool) -> None:
        (await asked.turn("a", patient=patient)).over()

    held = await asked.turn("x")
    calls = [asyncio.create_task(use(patient=False)) for _ in range(4)]
    await settle()
    streams = [asyncio.create_task(use(patient=True)) for _ in range(8)]
    await settle()
    held.over()
    await asyncio.gather(*calls, *streams)
    assert asked.free == 1
    assert asked.waiting == 0


async def test_callers_that_go_leave_no_turn_behind() -> None:
    asked = lane()
    held = await asked.turn("x")
    tasks = await waiting(asked, "a", 3)
    for task in tasks:
        task.cancel()
    await settle()
    held.over()
    await settle()
    assert asked.free == 1
    assert asked.waiting == 0
    (await asked.turn("b")).over()


class Clock:
    """Seconds of the wall and of the loop's thread."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall_s = self.cpu_s = 1_000.0
        monkeypatch.setattr("nodewise.rpc.lanes.time", SimpleNamespace(monotonic=lambda: self.wall_s))
        monkeypatch.setattr("nodewise.rpc.lanes.thread_time", lambda: self.cpu_s)
        monkeypatch.setattr("nodewise.rpc.breath.thread_time", lambda: self.cpu_s)

    def passes(self, wall_s: float, cpu_s: float) -> None:
        self.wall_s += wall_s
        self.cpu_s += cpu_s


async def test_a_turn_that_had_to_wait_for_a_core_has_not_worked_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, asked = Clock(monkeypatch), lane(turns=4)
    turn = asked.taken()
    clock.passes(wall_s=0.02, cpu_s=0.001)
    turn.over()
    assert not asked.pressed
    turn = asked.taken()
    clock.passes(wall_s=0.02, cpu_s=0.02)
    turn.over()
    assert asked.pressed


async def test_behind_one_that_waits_for_a_breath_quick_calls_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, asked = Clock(monkeypatch), paced(lane(turns=2), 0.0005)
    outlier = asked.taken()
    clock.passes(wall_s=0.003, cpu_s=0.003)
    outlier.over()

    async def reading() -> Turn:
        turn = await asked.turn("a")
        turn.read(begins=True)
        return turn

    calls = [asyncio.create_task(reading()) for _ in range(3)]
    await settle()
    assert (asked.free, asked.waiting) == (0, 1)
    assert not asked.pressed, "nobody is at work: two wait for their messages, and one for them"
    for each in calls:
        (await each).over()
    assert (asked.free, asked.reading, asked.waiting) == (2, 0, 0)


async def test_calls_that_are_not_quick_wait_behind_others(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, asked = Clock(monkeypatch), paced(lane(turns=1), 0.01)
    outlier = asked.taken()
    clock.passes(wall_s=0.01, cpu_s=0.01)
    outlier.over()
    first, second = await waiting(asked, "a", 2)
    first.result().read(begins=True)
    assert asked.pressed
    first.result().over()
    await settle()
    second.result().over()


async def test_quick_calls_wait_too_where_the_loop_does_not_keep_up(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, lag_s = Clock(monkeypatch), 0.0
    asked = Lane("questions", 2, 0.2, breath, unseen_s=lambda: lag_s)
    for _ in range(5):
        turn = asked.taken()
        clock.passes(wall_s=0.001, cpu_s=0.001)
        turn.over()
    assert not asked.pressed
    lag_s = 0.3
    for _ in range(3):
        turn = asked.taken()
        clock.passes(wall_s=0.001, cpu_s=0.001)
        turn.over()
    assert asked.pressed


async def test_what_others_do_while_a_message_is_read_is_not_this_calls_work(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, asked = Clock(monkeypatch), lane(turns=2)
    turn = asked.taken()
    turn.read(begins=True)
    clock.passes(wall_s=0.01, cpu_s=0.01)
    turn.read(begins=False)
    clock.passes(wall_s=0.001, cpu_s=0.001)
    turn.over()
    assert not asked.pressed
