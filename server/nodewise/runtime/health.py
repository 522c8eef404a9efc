"""Health of services and estimators, for load balancers and operators."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import Any, Final

import grpc
import structlog
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from nodewise.domain.errors import NodewiseError
from nodewise.hosting.breaker import Breaker
from nodewise.profiles.store import ProfileStore
from nodewise.rpc.services import SERVICES
from nodewise.runtime.generations.traffic_router import Tracks, names_of

__all__ = ["Health"]

_log = structlog.get_logger(__name__)

SERVING: Final = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING: Final = health_pb2.HealthCheckResponse.NOT_SERVING
STORE: Final = "store"
"""Name of the store's own entry."""
TRACES: Final = "traces"
"""Name of the traces' own entry: traces may be unavailable while the store is available."""
NEEDING_STORE: Final = frozenset({"nodewise.v1.ProfileService"})
"""Services that need the store. Others still answer about profiles in questions and about cached ones. The server as a
whole stays SERVING: a shared store that is unavailable must not remove all workers from a load balancer at once."""
UNKNOWN: Final = health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
LOOK_S: Final = 0.5
"""Seconds between two checks of the store."""


class Health:
    """The health service of one worker. Use it from the event loop's thread only."""

    def __init__(self) -> None:
        self._servicer = health.aio.HealthServicer()
        self._estimators: set[str] = set()
        self._ends: list[Callable[[], None]] = []
        self._store = SERVING
        self.store_cause = ""
        """Why the store does not answer; empty = it answers."""
        self._traces = SERVING

    def offer(self, server: grpc.aio.Server) -> None:
        """Answer health checks, before the start."""
        health_pb2_grpc.add_HealthServicer_to_server(self._servicer, server)

    async def is_serving(self) -> bool:
        """Whether load balancers may send calls to this worker."""
        response = await self._servicer.Check(health_pb2.HealthCheckRequest(), None)
        return bool(response.status == SERVING)

    async def checks(self) -> dict[str, str]:
        """The checks of readiness by name, each "ok" or its fault."""
        return {
            "serving": "ok" if await self.is_serving() else "the server is starting or draining and takes no calls",
            "store": self.store_cause or "ok",
            "estimators": "ok" if self._estimators else "no estimator is loaded",
        }

    async def follow(self, tracks: Tracks) -> None:
        """Report the services and the estimators of these generations from now on."""
        for end in self._ends:
            end()
        records = {
            name: each for registry in reversed(tracks.registries) for name, each in registry.estimators.items()
        }  # the stable track's record where both tracks have the estimator
        breakers = {name: each.breaker for name, each in records.items() if each.breaker is not None}
        self._ends = self._listen(breakers)
        for name in ("", *SERVICES):
            await self._servicer.set(name, self._store if name in NEEDING_STORE else SERVING)
        await self._servicer.set(STORE, self._store)
        await self._servicer.set(TRACES, self._traces)
        names = names_of(tracks)
        for name in names:
            breaker = breakers.get(name)
            await self._tell(name, SERVING if breaker is None or breaker.is_closed else NOT_SERVING)
        for name in self._estimators - names:
            await self._tell(name, UNKNOWN)
        self._estimators = names

    async def watch(self, store: ProfileStore, looks: Executor) -> None:
        """Check the store and its traces repeatedly, and publish the result; until cancelled.

        Every worker checks and reports for itself.

        Parameters
        ----------
        looks : Executor
            A thread of its own: a check may take seconds while another process holds a lock.
        """
        loop, before, since_s = asyncio.get_running_loop(), "", time.monotonic()
        while True:
            cause = await loop.run_in_executor(looks, _cause, store)
            if cause != before:
                about = {"before": before, "after_s": round(time.monotonic() - since_s, 3)}
                before, since_s = cause, time.monotonic()
                if cause:
                    _log.error("store_unavailable", cause=cause, **about)
                else:
                    _log.info("store_available", **about)
                self.store_cause, self._store = cause, NOT_SERVING if cause else SERVING
                for name in (STORE, *sorted(NEEDING_STORE)):
                    await self._servicer.set(name, self._store)
            self._traces = NOT_SERVING if await loop.run_in_executor(looks, store.traces.check) else SERVING
            await self._servicer.set(TRACES, self._traces)
            await asyncio.sleep(LOOK_S)

    async def drain(self) -> None:
        """Report NOT_SERVING, so that load balancers send no more calls."""
        await self._servicer.enter_graceful_shutdown()

    async def _tell(self, estimator: str, status: Any) -> None:
        await self._servicer.set(f"estimator/{estimator}", status)

    def _listen(self, breakers: Mapping[str, Breaker]) -> list[Callable[[], None]]:
        """Publish changes of breakers as they happen; returns functions that stop it."""
        loop = asyncio.get_running_loop()

        def listener(name: str) -> Callable[[bool], None]:
            def on_change(is_closed: bool) -> None:  # noqa: FBT001  # as breakers call it
                asyncio.run_coroutine_threadsafe(self._tell(name, SERVING if is_closed else NOT_SERVING), loop)

            return on_change

        return [breaker.listen(listener(name)) for name, breaker in breakers.items()]


def _cause(store: ProfileStore) -> str:
    """Why the store does not answer; empty = it answers."""
    try:
        store.check()
    except NodewiseError as error:
        return error.metadata.get("cause") or "unknown"
    except Exception:  # noqa: BLE001 - a store from a plugin may raise anything, and is unavailable then
        _log.exception("store_check_failed")
        return "unknown"
    return ""
