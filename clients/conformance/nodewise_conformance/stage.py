"""What scenarios run on: real servers by kind, started when first needed, and the runner's own calls of them."""

from __future__ import annotations

import asyncio
import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Self

import grpc

from nodewise_conformance.between import Upstream
from nodewise_conformance.certificates import Authority
from nodewise_conformance.checks import compared
from nodewise_conformance.contract import json_of, message_of, methods
from nodewise_conformance.scenarios import Step, filled_in
from nodewise_conformance.servers import NODEWISE, PATIENCE_S, RealServer

__all__ = ["Stage"]

_HEAVY: Final = frozenset(
    {
        *("Simulate", "Plan", "Replay", "Diagnose", "Backtest"),
        *("EstimateCompletion", "EstimateRun", "PredictSharing", "SuggestMeasurements"),
    }
)
"""Methods that take a turn in the server's pool, or long in its threads."""
_HEAVY_RUNS: Final = 3
"""Fewer than a server lets wait whatever they take."""
_BY_TURNS: Final = frozenset({"Reload", "SetCanary", "Promote", "Rollback"})
"""Methods that a server refuses while one of them is at work (GENERATION_BUSY)."""
_SETTINGS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "plain": {},
        "own": {},
        "tokens": {"NODEWISE_AUTHENTICATION": "tokens"},
        "quota": {"NODEWISE_QUOTAS__PROFILES": "1"},
    }
)
_DURABLE: Final = frozenset({"own", "tokens"})


class Stage:
    """The servers of one run of the conformance."""

    def __init__(self) -> None:
        self._folder: Final = tempfile.TemporaryDirectory(prefix="nodewise-conformance-")
        self._upstreams: Final[dict[str, asyncio.Task[Upstream]]] = {}
        self._authority: Final = Authority()
        self._heavy: Final = asyncio.Semaphore(_HEAVY_RUNS)
        self._generations: Final = asyncio.Semaphore(1)
        self.places: Final[dict[str, str]] = {}
        """Names that scenarios may use: paths of certificates, the token of an admin."""
        self._write_certificates()

    def turn(self, method: str) -> AbstractAsyncContextManager[object]:
        """Held while a scenario of the method runs, so that no other column's is why it is refused."""
        name = method.rpartition("/")[2]
        if name in _HEAVY:  # a server refuses what would wait too long for its pool
            return self._heavy
        return self._generations if name in _BY_TURNS else nullcontext()

    async def upstream(self, kind: str) -> Upstream:
        """The shared server of a kind; one of its own for `own`, which the caller closes."""
        if kind == "own":
            return await self._started(kind)
        if kind not in self._upstreams:
            self._upstreams[kind] = asyncio.create_task(self._started(kind))
        return await self._upstreams[kind]

    async def close(self) -> None:
        """End all shared servers."""
        for task in self._upstreams.values():
            if task.cancelled() or (task.done() and task.exception() is not None):
                continue  # reported where it was required
            await self.ended(await task)
        self._folder.cleanup()

    async def ended(self, upstream: Upstream) -> None:
        """End one server and the way to it."""
        await upstream.close()
        await asyncio.to_thread(upstream.server.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def steps(self, steps: Sequence[Step], upstream: Upstream, places: dict[str, str]) -> list[str]:
        """Make the runner's own calls; returns what their replies should not have been."""
        problems: list[str] = []
        for step in steps:
            for number in range(step.repeat):
                here = {**places, "number": str(number)}
                reply = await self._call(step, upstream, here)
                if "failed" in reply and step.expect is None:
                    return [f"the runner's own {step.method} ended with {reply}"]
                for name, path in (step.save or {}).items():
                    value: Any = reply
                    for part in path.split("."):
                        value = value[int(part)] if part.isdigit() else value[part]
                    places[name] = str(value)
                if step.expect is not None:
                    short = step.method.rpartition("/")[2]
                    problems += compared(filled_in(step.expect, here), reply, f"afterwards {short}")
        return problems

    async def _call(self, step: Step, upstream: Upstream, places: Mapping[str, str]) -> Any:
        await upstream.there.wait()
        method = methods()[step.method]
        request = message_of(method.request, filled_in(step.request, places))
        call: Any = upstream.channel.unary_unary(method.path)
        metadata = [("authorization", f"Bearer {self.places['admin_token']}")] if "admin_token" in self.places else []
        for attempt in range(10):
            try:
                data = await call(
                    request.SerializeToString(), metadata=metadata, timeout=PATIENCE_S, wait_for_ready=True
                )
            except grpc.aio.AioRpcError as error:
                if error.code() is grpc.StatusCode.UNAVAILABLE and attempt < 9:
                    await asyncio.sleep(0.2)
                    continue
                return {"failed": error.code().name, "message": error.details()}
            return json_of(method.read_reply(data))
        raise AssertionError

    async def _started(self, kind: str) -> Upstream:
        if kind in {"tls", "mtls"}:
            settings = {
                "NODEWISE_TLS__CERTIFICATE": self.places["certificate"],
                "NODEWISE_TLS__KEY": self.places["key"],
            }
            if kind == "mtls":
                settings["NODEWISE_TLS__CLIENT_AUTHORITIES"] = self.places["ca"]
            server = RealServer(settings)
        else:
            server = RealServer(_SETTINGS[kind], durable=kind in _DURABLE)
        if kind == "tokens":
            self.places["admin_token"] = await asyncio.to_thread(_admin_token, server)
        await asyncio.to_thread(server.start)
        return Upstream(server)

    def _write_certificates(self) -> None:
        folder = Path(self._folder.name)
        files = {"ca": self._authority.pem}
        files["certificate"], files["key"] = self._authority.signed("server")
        files["client_certificate"], files["client_key"] = self._authority.signed("client")
        files["other_ca"] = Authority().pem
        for name, data in files.items():
            path = folder / f"{name}.pem"
            path.write_bytes(data)
            self.places[name] = str(path)


def _admin_token(server: RealServer) -> str:
    """A token that may do everything, made in the store before the server runs."""
    command = [NODEWISE, "tokens", "create", "--role", "admin", "--store", server.store, "--json"]
    process = subprocess.run(command, capture_output=True, text=True, check=True, cwd=server.folder)
    return str(json.loads(process.stdout)["bearer_token"])
