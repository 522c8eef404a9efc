"""A loader in a process of its own: calls at fixed times whatever becomes of them, or one after the other."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import grpc
from google.rpc import error_details_pb2, status_pb2

from nodewise.runtime.event_loop import new_event_loop

__all__ = ["DEADLINE_S", "Loader", "Outcomes", "prefer"]

DEADLINE_S: Final = 5.0
"""Of every call."""
OPTIONS: Final = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]
Request = Callable[[int], bytes]


@dataclass(slots=True)
class Outcomes:
    """What became of one caller's calls.

    Attributes
    ----------
    ended : Counter
        Calls by ``OK``, or code and reason.
    in_time : int
        Answers that came while the load lasted.
    latencies_s, refused_s : list
        Of answers and of all else, from when a call was due.
    late_s : float
        Most that a call was made after it was due: above some milliseconds the loader is what was measured.
    """

    ended: Counter[str] = field(default_factory=Counter)
    in_time: int = 0
    latencies_s: list[float] = field(default_factory=list)
    refused_s: list[float] = field(default_factory=list)
    late_s: float = 0.0


def prefer() -> None:
    """Let this process, and all that it starts, have the cores before all others of the machine.

    Not by a real-time class: there a thread that computes keeps its core for 100 ms from the thread that reads sockets.
    """
    os.setpriority(os.PRIO_PROCESS, 0, -20)
    # Where sessions are scheduled as groups, the priority of a process counts only within its session.
    with suppress(FileNotFoundError):
        Path("/proc/self/autogroup").write_text("-20", encoding="ascii")


class Loader:
    """Calls from another process, on another core than the server's where there is one.

    Parameters
    ----------
    path : str
        Method.
    request : callable
        A module's function: the bytes of a call, by its number.
    pinned : bool
        To the cores but the first, which servers are pinned to.
    """

    def __init__(self, target: str, path: str, request: Request, *, pinned: bool = True) -> None:
        cores = sorted(os.sched_getaffinity(0))
        if pinned and len(cores) > 1:
            del cores[0]
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_main, args=(theirs, target, path, request, cores))
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid
        theirs.close()
        self._pipe.recv()

    def begin_open(self, per_s: Sequence[float], seconds: float, seed: int) -> None:
        """Callers, each over a connection of its own, at so many calls a second. The loader says when it begins."""
        self._pipe.send((_open, per_s, seconds, seed))
        self._pipe.recv()

    def begin_closed(self, callers: int, seconds: float, think_s: float = 0.0) -> None:
        """Callers that each think for a time of this mean, exponentially distributed, ask, and wait for the answer.

        Each has a connection of its own. The loader says when it begins.
        """
        self._pipe.send((_closed, callers, seconds, think_s))
        self._pipe.recv()

    def ended(self, within_s: float) -> bool:
        """Whether the load is over; waits for so long."""
        return self._pipe.poll(within_s)

    def outcomes(self) -> list[Outcomes]:
        """Of each caller, once no call is under way."""
        while not isinstance(found := self._pipe.recv(), list):
            pass  # the load was over, answers were still awaited
        return found

    def __enter__(self) -> Loader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pipe.close()
        self._process.join(timeout=30)


def _main(pipe: Any, target: str, path: str, request: Request, cores: list[int]) -> None:
    os.sched_setaffinity(0, cores)
    pipe.send("ready")
    with asyncio.Runner(loop_factory=new_event_loop) as runner, suppress(EOFError):
        while True:
            load, *arguments = pipe.recv()
            pipe.send(runner.run(load(pipe, target, path, request, *arguments)))


async def _methods(target: str, path: str, callers: int) -> tuple[list[Any], list[Any]]:
    channels = [grpc.aio.insecure_channel(target, options=[*OPTIONS, ("n", place)]) for place in range(callers)]
    await asyncio.gather(*(channel.channel_ready() for channel in channels))
    return channels, [channel.unary_unary(path) for channel in channels]


async def _one(method: Any, data: bytes, due_s: float, end_s: float, found: Outcomes) -> None:
    try:
        await method(data, timeout=DEADLINE_S)
    except grpc.aio.AioRpcError as error:
        found.ended[_reason(error)] += 1
        found.refused_s.append(time.perf_counter() - due_s)
        return
    now_s = time.perf_counter()
    found.ended["OK"] += 1
    found.latencies_s.append(now_s - due_s)
    found.in_time += now_s <= end_s


async def _open(
    pipe: Any, target: str, path: str, request: Request, per_s: Sequence[float], seconds: float, seed: int
) -> list[Outcomes]:
    channels, methods = await _methods(target, path, len(per_s))
    calls = set[asyncio.Task[None]]()
    pipe.send("begins")
    began_s = time.perf_counter()
    end_s = began_s + seconds

    async def caller(place: int) -> Outcomes:
        draw, found, number = random.Random(seed * 1000 + place), Outcomes(), 0
        due_s = began_s
        while (due_s := due_s + draw.expovariate(per_s[place])) < end_s:
            wait_s = due_s - time.perf_counter()
            found.late_s = max(found.late_s, -wait_s)
            if wait_s > 0:
                await asyncio.sleep(wait_s)
            data = request((seed * 100 + place) * 1_000_000 + number)
            calls.add(task := asyncio.create_task(_one(methods[place], data, due_s, end_s, found)))
            task.add_done_callback(calls.discard)
            number += 1
        return found

    outcomes = await asyncio.gather(*(caller(place) for place in range(len(per_s))))
    await asyncio.sleep(end_s - time.perf_counter())
    pipe.send("over")
    while calls:
        await asyncio.wait(calls)
    for channel in channels:
        await channel.close()
    return outcomes


async def _closed(
    pipe: Any, target: str, path: str, request: Request, callers: int, seconds: float, think_s: float
) -> list[Outcomes]:
    channels, methods = await _methods(target, path, callers)
    pipe.send("begins")
    end_s = time.perf_counter() + seconds
    seed = time.monotonic_ns() % 1_000_000_000

    async def caller(place: int) -> Outcomes:
        draw, found, number = random.Random(seed + place), Outcomes(), 0
        while True:
            if think_s:
                await asyncio.sleep(draw.expovariate(1.0 / think_s))
            if (due_s := time.perf_counter()) >= end_s:
                return found
            data = request((seed * 100 + place) * 1_000_000 + number)
            await _one(methods[place], data, due_s, end_s, found)
            number += 1
        return found

    outcomes = await asyncio.gather(*(caller(place) for place in range(callers)))
    pipe.send("over")
    for channel in channels:
        await channel.close()
    return outcomes


def _reason(error: grpc.aio.AioRpcError) -> str:
    """Code and reason; a refusal without both is untyped."""
    reason, retry = "", ""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            for detail in status_pb2.Status.FromString(value).details:
                info = error_details_pb2.ErrorInfo()
                if detail.Unpack(info):
                    reason = info.reason
                retry = retry or "+retry" * detail.Is(error_details_pb2.RetryInfo.DESCRIPTOR)
    return f"{error.code().name} {reason}{retry}".strip()
