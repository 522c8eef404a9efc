"""A lane under loads below and above what can be done, on one processor of a clock that only work moves."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from nodewise.rpc.lanes import REFUSAL_S, Lane, Turn
from nodewise.rpc.overload import OverloadedError

COST_S = 0.014
CAPACITY_PER_S = 1.0 / COST_S
STINT_S = 0.002
SECONDS = 12.0
CALLERS = 10


@dataclass(slots=True, eq=False)
class Work:
    """A call at work."""

    due_s: float
    caller: int
    turn: Turn
    left_s: float


@dataclass(slots=True)
class Served:
    """What came of a load."""

    latencies_s: list[float] = field(default_factory=list)
    answered: list[int] = field(default_factory=list)
    refused: int = 0

    @property
    def goodput(self) -> float:
        return len(self.latencies_s) / SECONDS / CAPACITY_PER_S

    @property
    def p99_s(self) -> float:
        return sorted(self.latencies_s)[int(0.99 * len(self.latencies_s))]


class Server:
    """Calls that share the loop in stints, and arrive whatever becomes of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, cost_s: float = COST_S) -> None:
        self.now_s = 1_000.0
        self.cost_s = cost_s
        monkeypatch.setattr("nodewise.rpc.lanes.time", SimpleNamespace(monotonic=lambda: self.now_s))
        monkeypatch.setattr("nodewise.rpc.lanes.thread_time", lambda: self.now_s)
        monkeypatch.setattr("nodewise.rpc.breath.thread_time", lambda: self.now_s)
        self.lane = Lane("questions", 4, 0.5, lambda: asyncio.sleep(0))
        self.working: list[Work] = []
        self.found = Served()

    async def serve(self, arrivals: Sequence[tuple[float, int]], callers: int) -> Served:
        """Arrivals, by seconds from now and caller."""
        began_s, coming = self.now_s, sorted(arrivals, reverse=True)
        self.found.answered = [0] * callers
        calls, at = set[asyncio.Task[None]](), 0
        while coming or self.working or self.lane.waiting:
            while coming and began_s + coming[-1][0] <= self.now_s:
                due_s, caller = coming.pop()
                if self.lane.overloaded and self.lane.refusal(f"{caller}", 5.0) is not None:
                    self._refused()
                    continue
                calls.add(task := asyncio.create_task(self._call(began_s + due_s, caller)))
                task.add_done_callback(calls.discard)
                await asyncio.sleep(0)
            for _ in range(6):
                await asyncio.sleep(0)
            if self.working:
                at = (at + 1) % len(self.working)
                self._work(self.working[at])
            elif coming and not self.lane.waiting:
                self.now_s = max(self.now_s, began_s + coming[-1][0])
        return self.found

    async def _call(self, due_s: float, caller: int) -> None:
        try:
            turn = await self.lane.turn(f"{caller}", 5.0)
        except OverloadedError:
            self._refused()
        else:
            self.working.append(Work(due_s, caller, turn, self.cost_s))

    def _refused(self) -> None:
        self.found.refused += 1
        self.now_s += REFUSAL_S

    def _work(self, work: Work) -> None:
        stint_s = min(STINT_S, work.left_s)
        work.left_s -= stint_s
        self.now_s += stint_s
        if work.left_s <= 1e-9:
            self.working.remove(work)
            work.turn.over()
            self.found.latencies_s.append(self.now_s - work.due_s)
            self.found.answered[work.caller] += 1


def arriving(per_s: Sequence[float]) -> list[tuple[float, int]]:
    """Calls of some callers at random times."""
    draw, found = random.Random(1), list[tuple[float, int]]()
    for caller, rate in enumerate(per_s):
        due_s = 0.0
        while (due_s := due_s + draw.expovariate(rate)) < SECONDS:
            found.append((due_s, caller))
    return found


async def loaded(monkeypatch: pytest.MonkeyPatch, load: float) -> Served:
    return await Server(monkeypatch).serve(arriving([load * CAPACITY_PER_S / CALLERS] * CALLERS), CALLERS)


async def test_who_is_admitted_is_answered_soon_however_much_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    below = await loaded(monkeypatch, 0.8)
    assert below.refused == 0
    for load, goodput in ((2.0, 0.95), (5.0, 0.9), (20.0, 0.75)):
        above = await loaded(monkeypatch, load)
        assert above.goodput >= goodput, load
        assert above.p99_s <= 2.0 * below.p99_s, load
        assert min(above.answered) >= 0.5 * max(above.answered), load


async def test_one_who_asks_too_much_costs_the_others_little(monkeypatch: pytest.MonkeyPatch) -> None:
    modest = [0.7 * CAPACITY_PER_S / (CALLERS - 1)] * (CALLERS - 1)
    alone = await Server(monkeypatch).serve(arriving(modest), CALLERS)
    beside = await Server(monkeypatch).serve(arriving([*modest, 5.0 * CAPACITY_PER_S]), CALLERS)
    assert sum(beside.answered[:-1]) >= 0.9 * sum(alone.answered)


@pytest.mark.parametrize("connections", [4, 64])
async def test_a_burst_that_drains_is_served(monkeypatch: pytest.MonkeyPatch, connections: int) -> None:
    """64 callers at once, eight milliseconds each; again and again, as callers in a closed loop come back."""
    server = Server(monkeypatch, cost_s=0.008)
    spread = [(each * 0.64 + number * 0.001, number % connections) for each in range(4) for number in range(64)]
    assert (await server.serve(spread, connections)).refused == 0
