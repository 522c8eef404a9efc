"""Restarts under load: every client reads and writes while a real server is restarted, again and again.

Workers are replaced one by one, as operators do it, while readers and writers go on: no reader may see an error. One
restart of KILL_EVERY kills the whole server and starts it again: sessions that have begun go on, readers wait, as
nobody is there to answer. At the end every profile must hold every observation once, in its order.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from nodewise_conformance.between import Upstream
from nodewise_conformance.contract import methods
from nodewise_conformance.executables import BrokenExecutableError, Executable
from nodewise_conformance.languages import Column
from nodewise_conformance.servers import PATIENCE_S, RealServer
from nodewise_protos.v1 import profile_service_pb2 as profiles

__all__ = ["Gate", "Load", "all_go_on", "read_on", "restart_under_load"]

KILL_EVERY: Final = 5
BATCHES: Final = 4
"""Of each ingest session."""
_ASYNC: Final = {"nodes": [1], "workers": [1], "parameterServers": [1], "syncModes": ["SYNC_MODE_ASYNC"]}
_PHASES: Final = {
    "configurations": _ASYNC,
    "downloadSeconds": [0.15876],
    "computeSeconds": [0.29659],
    "uploadSeconds": [0.16033],
    "updateSeconds": [0.005],
}
_QUESTION: Final = {"profile": {"content": {"phaseTimings": _PHASES}}, "configurations": {"workers": [1, 2, 4]}}
_READS: Final[Sequence[dict[str, Any]]] = (
    {"face": "rows", "method": "nodewise.v1.PredictionService/Predict", "requests": [_QUESTION]},
    {"face": "pages", "method": "nodewise.v1.PredictionService/ListDevices", "requests": [{}]},
)


@dataclass
class Load:
    """What one column did, and what went wrong."""

    column: Column
    reads: int = 0
    sessions: int = 0
    errors: list[str] = field(default_factory=list)
    written: list[float] = field(default_factory=list)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    """Set after every answer."""

    @property
    def profile_id(self) -> str:
        """Where it writes."""
        return f"restarts/{self.column.slug}"


class Gate:
    """Calls pass while it is open."""

    def __init__(self) -> None:
        self._open: Final = asyncio.Event()
        self._open.set()
        self._within = 0
        self._left: Final = asyncio.Condition()

    async def __aenter__(self) -> None:
        await self._open.wait()
        self._within += 1

    async def __aexit__(self, *_: object) -> None:
        async with self._left:
            self._within -= 1
            self._left.notify_all()

    def close(self) -> None:
        """Admit no more callers; those inside stay."""
        self._open.clear()

    async def empty(self) -> None:
        """Wait until no caller is inside."""
        async with self._left:
            await self._left.wait_for(lambda: not self._within)

    def open(self) -> None:
        """Let all pass."""
        self._open.set()


async def restart_under_load(
    columns: Sequence[Column], restarts: int, told: Callable[[str], None] = lambda _: None
) -> list[Load]:
    """Restart a server so many times under the load of all columns; returns what each of them did."""
    loads = [Load(column) for column in columns if column.over == "grpc"]
    over, reads, sessions = asyncio.Event(), Gate(), Gate()
    with tempfile.TemporaryDirectory(prefix="nodewise-conformance-") as logs, RealServer(durable=True) as server:
        async with asyncio.TaskGroup() as group:
            for load in loads:
                group.create_task(read_on(load, server.target, Path(logs), over, reads, _read))
                group.create_task(_write(load, server.target, Path(logs), over, sessions))
            try:
                for number in range(1, restarts + 1):
                    await all_go_on(loads)
                    start_s = time.monotonic()
                    await _restart(server, reads, sessions, kill=number % KILL_EVERY == 2)
                    took_s = time.monotonic() - start_s
                    told(f"restart {number} of {restarts} took {took_s:.1f} s: {_sums(loads)}")
                await all_go_on(loads)
            finally:
                over.set()
        upstream = Upstream(server)
        for load in loads:
            load.errors += await _kept(upstream, load)
        await upstream.close()
    return loads


async def _restart(server: RealServer, reads: Gate, sessions: Gate, *, kill: bool) -> None:
    if not kill:
        await asyncio.to_thread(server.rolling_restart)
        return
    # No session starts while no server runs, as opening one has a shorter time limit than resuming it; those that have
    # begun are cut wherever they are.
    reads.close()
    sessions.close()
    await reads.empty()
    await asyncio.to_thread(server.restart_killed)
    reads.open()
    sessions.open()


async def all_go_on(loads: Sequence[Load], *, writes: bool = True) -> None:
    """Wait until every reader and writer has had another answer, or has failed."""
    before = [(load.reads, load.sessions) for load in loads]
    async with asyncio.timeout(PATIENCE_S):
        for load, (reads, sessions) in zip(loads, before, strict=True):
            while not load.errors and (load.reads <= reads or (writes and load.sessions <= sessions)):
                await load.news.wait()
                load.news.clear()


def _read(number: int) -> dict[str, Any]:
    return _READS[number % len(_READS)]


async def read_on(
    load: Load, target: str, logs: Path, over: asyncio.Event, gate: Gate, question: Callable[[int], dict[str, Any]]
) -> None:
    """Ask a column's executable one question after the other until all is over."""
    executable = Executable(load.column, logs / f"{load.column.slug}-reads.log")
    try:
        while not over.is_set():
            async with gate:
                answer = await executable.ask({"target": target, **question(load.reads)})
            load.reads += 1
            load.news.set()
            if answer.get("code") != "OK":
                load.errors.append(f"a read ended with {answer.get('code')}: {str(answer.get('message'))[:200]}")
    except BrokenExecutableError as error:
        load.errors.append(str(error))
    finally:
        await executable.stop()


async def _write(load: Load, target: str, logs: Path, over: asyncio.Event, gate: Gate) -> None:
    executable = Executable(load.column, logs / f"{load.column.slug}-writes.log")
    try:
        while not over.is_set():
            first = len(load.written) + 1
            rates = [float(rate) for rate in range(first, first + BATCHES)]
            batches = [{"observations": {"configurations": _ASYNC, "stepsPerSecond": [rate]}} for rate in rates]
            session = {"profile_id": load.profile_id, "session_id": f"s{load.sessions + 1}", "batches": batches}
            line = {"target": target, "face": "ingest", "ingest": {**session, "commit": True}}
            async with gate:
                answer = await executable.ask(line)
            if answer.get("code") != "OK":
                load.errors.append(f"a session ended with {answer.get('code')}: {str(answer.get('message'))[:200]}")
                load.news.set()
                return
            load.sessions += 1
            load.written += rates
            load.news.set()
    except BrokenExecutableError as error:
        load.errors.append(str(error))
    finally:
        await executable.stop()


async def _kept(upstream: Upstream, load: Load) -> list[str]:
    """What the profile does not hold once, in order."""
    method = methods()["nodewise.v1.ProfileService/GetProfile"]
    request = profiles.GetProfileRequest(profile_id=load.profile_id)
    stored: list[float] = []
    while True:
        call: Any = upstream.channel.unary_unary(method.path)
        data = await call(request.SerializeToString(), timeout=PATIENCE_S, wait_for_ready=True)
        reply: Any = method.read_reply(data)
        stored += reply.profile.content.observations.steps_per_second
        if not reply.next_page_token:
            break
        request.page_token = reply.next_page_token
    if stored == load.written:
        return []
    lost_rates, more = sorted(set(load.written) - set(stored))[:5], len(stored) - len(set(stored))
    return [
        f"{len(load.written)} observations were acknowledged and {len(stored)} stored; lost {lost_rates}, twice {more}"
    ]


def _sums(loads: Sequence[Load]) -> str:
    return "; ".join(
        f"{load.column.name} {load.reads} reads, {load.sessions} sessions, {len(load.errors)} errors" for load in loads
    )
