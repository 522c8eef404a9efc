"""Health: which services and estimators answer calls, for balancers and for people."""

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
"""The entry of the store itself."""
TRACES: Final = "traces"
"""The entry of where traces are kept, if that may be away while the store is well: what needs none goes on."""
NEEDING_STORE: Final = frozenset({"nodewise.v1.ProfileService"})
"""Services that are nothing without it. Others go on about profiles in questions, and about those that were read; a
store that all workers share must not take all of them out of a balancer at once, so the whole stays SERVING too."""
UNKNOWN: Final = health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
LOOK_S: Final = 0.5
"""Between two looks at the store."""


class Health:
    """The health service of one worker, which follows the estimators. Belongs to the event loop's thread."""

    def __init__(self) -> None:
        self._servicer = health.aio.HealthServicer()
        self._estimators: set[str] = set()
        self._ends: list[Callable[[], None]] = []
        self._store = SERVING
        self.store_cause = ""
        """Why the store does not answer; empty: it does."""
        self._traces = SERVING

    def offer(self, server: grpc.aio.Server) -> None:
        """Answer health checks, before the start."""
        health_pb2_grpc.add_HealthServicer_to_server(self._servicer, server)

    async def is_serving(self) -> bool:
        """Whether calls are to come here."""
        response = await self._servicer.Check(health_pb2.HealthCheckRequest(), None)
        return bool(response.status == SERVING)

    async def checks(self) -> dict[str, str]:
        """The checks of readiness by name, each "ok" or its fault."""
        return {
            "serving": "ok" if await self.is_serving() else "the server does not take calls, or drains",
            "store": self.store_cause or "ok",
            "estimators": "ok" if self._estimators else "none is loaded",
        }

    async def follow(self, tracks: Tracks) -> None:
        """Tell of these from now on: the services, and the estimators, but those that are left alone."""
        for end in self._ends:
            end()
        records = {
            name: each for registry in reversed(tracks.registries) for name, each in registry.estimators.items()
        }  # of the stable track where both have one
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

        Other workers have their own view, and tell it themselves.

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
                    _log.error("store_unwell", cause=cause, **about)
                else:
                    _log.info("store_well", **about)
                self.store_cause, self._store = cause, NOT_SERVING if cause else SERVING
                for name in (STORE, *sorted(NEEDING_STORE)):
                    await self._servicer.set(name, self._store)
            self._traces = NOT_SERVING if await loop.run_in_executor(looks, store.traces.check) else SERVING
            await self._servicer.set(TRACES, self._traces)
            await asyncio.sleep(LOOK_S)

    async def drain(self) -> None:
        """Tell balancers that nothing is to come here any more."""
        await self._servicer.enter_graceful_shutdown()

    async def _tell(self, estimator: str, status: Any) -> None:
        await self._servicer.set(f"estimator/{estimator}", status)

    def _listen(self, breakers: Mapping[str, Breaker]) -> list[Callable[[], None]]:
        """Publish changes of breakers as they happen; returns functions that end that."""
        loop = asyncio.get_running_loop()

        def listener(name: str) -> Callable[[bool], None]:
            def on_change(is_closed: bool) -> None:  # noqa: FBT001  # as breakers tell it
                asyncio.run_coroutine_threadsafe(self._tell(name, SERVING if is_closed else NOT_SERVING), loop)

            return on_change

        return [breaker.listen(listener(name)) for name, breaker in breakers.items()]


def _cause(store: ProfileStore) -> str:
    """Why the store does not answer; empty: it does."""
    try:
        store.check()
    except NodewiseError as error:
        return error.metadata.get("cause") or "unknown"
    except Exception:  # noqa: BLE001 - a store of others may raise anything, and is not well then
        _log.exception("store_check_failed")
        return "unknown"
    return ""
