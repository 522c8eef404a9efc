"""Runs scenarios: every column has its own executables, each of which runs one scenario after the other."""

from __future__ import annotations

import asyncio
import itertools
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from google.protobuf import json_format

from nodewise_conformance.between import Between
from nodewise_conformance.checks import complaints
from nodewise_conformance.contract import message_of, methods
from nodewise_conformance.executables import BrokenExecutableError, Executable
from nodewise_conformance.http_between import HttpBetween
from nodewise_conformance.languages import Column
from nodewise_conformance.scenarios import Scenario, filled_in
from nodewise_conformance.servers import free_port
from nodewise_conformance.stage import Stage

__all__ = ["Results", "Run", "run_each"]

SETTLE_S: Final = 5.0
"""How long a call that its caller ended may take to end at the server."""


_RUNS: Final = itertools.count(1)
"""Numbers that make the names of each run its own."""

Run = tuple[Scenario, str | None]
"""A scenario, and the regression that is planted while it runs; None = none is."""


@dataclass
class Results:
    """What became of each scenario in each column."""

    columns: list[str] = field(default_factory=list)
    complaints: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    """By name of scenario and of column; empty list = as it should be."""
    seconds: dict[tuple[str, str], float] = field(default_factory=dict)
    """How long each took."""

    @property
    def red(self) -> dict[tuple[str, str], list[str]]:
        """Those that are not as they should be."""
        return {key: complaints for key, complaints in self.complaints.items() if complaints}


class _Lane:
    """One executable of a column and the scenarios that it is given."""

    def __init__(self, column: Column, number: int, stage: Stage, logs: Path) -> None:
        self.column: Final = column
        self._slug: Final = f"{column.slug}-{number}"
        self._stage: Final = stage
        self._executable: Final = Executable(column, logs / f"{self._slug}.log")

    async def run(self, scenario: Scenario, plant: str | None) -> list[str]:
        """Run a scenario; returns what is wrong."""
        async with self._stage.turn(scenario.method):
            return await self._run(scenario, plant)

    async def _run(self, scenario: Scenario, plant: str | None) -> list[str]:
        number = next(_RUNS)
        places = {**self._stage.places, "run": f"{self._slug}-{number}", "digits": f"{number:06}"}
        upstream = await self._stage.upstream("plain" if scenario.server == "nobody" else scenario.server)
        places |= {name: value for name, value in self._stage.places.items() if name not in places}
        try:
            problems = await self._stage.steps(scenario.setup, upstream, places)
            if problems:
                return problems
            kind = Between if self.column.over == "grpc" else HttpBetween
            async with kind(scenario, places, upstream, plant) as between:
                target = upstream.server.target if scenario.direct else between.target
                if scenario.server == "nobody":
                    target = f"127.0.0.1:{free_port()}"
                problems += await self._asked(scenario, places, target, between)
            problems += await self._stage.steps(scenario.after, upstream, places)
        except BrokenExecutableError as error:
            problems = [str(error)]
        finally:
            if scenario.server == "own":
                await self._stage.ended(upstream)
        return problems

    async def close(self) -> list[str]:
        """End the executable; it must end by itself when its input does."""
        status = await self._executable.stop()
        return [] if status in {0, None} else [f"the executable ended with {status}"]

    async def _asked(
        self, scenario: Scenario, places: Mapping[str, str], target: str, between: Between | HttpBetween
    ) -> list[str]:
        call: Mapping[str, Any] = filled_in(scenario.call, places)
        expect: Mapping[str, Any] = filled_in(scenario.expect, places)
        line = _sent(scenario, call)
        answer: Mapping[str, Any] = {}
        early: list[str] = []
        for _ in range(scenario.repeat):
            answer = await self._executable.ask({"target": target, **line})
            if answer.get("code") != expect.get("code", "OK"):
                early = [f"one of {scenario.repeat} calls ended with {answer.get('code')}"] * (scenario.repeat > 1)
        expected_count = expect.get("ended_by_caller", 0)
        for _ in range(int(SETTLE_S / 0.02)):
            if sum(attempt.ended_by_caller for attempt in between.attempts) >= expected_count:
                break
            await asyncio.sleep(0.02)
        return early + complaints(scenario, call, expect, answer, between.attempts)


def _sent(scenario: Scenario, call: Mapping[str, Any]) -> Mapping[str, Any]:
    """The line in, its requests as canonical proto JSON."""
    if "requests" not in call:
        return call
    descriptor = methods()[scenario.method].request
    messages = [message_of(descriptor, each) for each in call["requests"]]
    return {**call, "requests": [json_format.MessageToDict(each) for each in messages]}


async def run_each(
    columns: Sequence[Column],
    runs: Sequence[Run],
    stage: Stage,
    *,
    lanes: int = 2,
    told: Callable[[str], None] = lambda _: None,
) -> Mapping[str | None, Results]:
    """Results by what was planted, of the same executables: starting these takes longer than most scenarios.

    Parameters
    ----------
    told : callable
        Told what is wrong in the runs of the first kind.
    """
    results = {plant: _nothing(columns) for _, plant in runs}
    with tempfile.TemporaryDirectory(prefix="nodewise-conformance-") as logs:
        async with asyncio.TaskGroup() as group:
            for column in columns:
                waiting: asyncio.Queue[Run] = asyncio.Queue()
                for run in runs:
                    if column.over in run[0].faces:
                        waiting.put_nowait(run)
                for number in range(min(lanes, waiting.qsize())):
                    lane = _Lane(column, number, stage, Path(logs))
                    group.create_task(_work(lane, waiting, results, told))
    return results


def _nothing(columns: Sequence[Column]) -> Results:
    return Results([column.name for column in columns])


async def _work(
    lane: _Lane, waiting: asyncio.Queue[Run], results: Mapping[str | None, Results], told: Callable[[str], None]
) -> None:
    name, first = lane.column.name, next(iter(results))
    endings: list[str] = []
    try:
        while not waiting.empty():
            scenario, plant = waiting.get_nowait()
            start_s = time.monotonic()
            problems = await lane.run(scenario, plant)
            results[plant].complaints[scenario.name, name] = problems
            results[plant].seconds[scenario.name, name] = time.monotonic() - start_s
            for each in problems if plant == first else ():
                told(f"{name}: {scenario.name}: {each}")
    finally:
        endings = await lane.close()
    for each in endings:
        results[first].complaints["the executable ends with its input", name] = [each]
        told(f"{name}: {each}")
