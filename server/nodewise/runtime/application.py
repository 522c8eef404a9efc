"""The application: every room wired together behind one gRPC server."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, Final

import grpc
import structlog
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from nodewise.domain.errors import NodewiseError
from nodewise.estimation.lessons.priors import learned_from
from nodewise.hosting.registry import Registry
from nodewise.plugin import Catalogue
from nodewise.ports.cache import CacheSpace
from nodewise.profiles.reader import ProfileReader
from nodewise.profiles.store import ProfileStore
from nodewise.profiles.writer import StoreWriter
from nodewise.rpc.accepting import accept_more
from nodewise.rpc.answering import Answering
from nodewise.rpc.architectures import ArchitectureBatches
from nodewise.rpc.batches import Batches
from nodewise.rpc.calls import run_in
from nodewise.rpc.completions import Completions
from nodewise.rpc.diagnoses import Diagnoses
from nodewise.rpc.doors import Door
from nodewise.rpc.evaluations import Evaluations
from nodewise.rpc.gate import Gate
from nodewise.rpc.intake import RECEIVED_BYTES
from nodewise.rpc.listing import Listing
from nodewise.rpc.plans import Plans
from nodewise.rpc.predictions import Predictions
from nodewise.rpc.profiles import Profiles
from nodewise.rpc.schedules import Schedules
from nodewise.rpc.services import SERVICES, handlers
from nodewise.rpc.sharing import Sharing
from nodewise.rpc.simulations import Simulations
from nodewise.rpc.sources import ProfileSources
from nodewise.rpc.streams import Streams
from nodewise.runtime.compute.pool import ComputePool, Hand
from nodewise.runtime.compute.processes import ProcessHand
from nodewise.runtime.compute.threads import ThreadHand
from nodewise.runtime.learning import Learning
from nodewise.runtime.scoring import Scoring
from nodewise.runtime.settings import Settings
from nodewise.runtime.workshops import opened, workshop_of

__all__ = ["Application", "PortInUseError"]

_log = structlog.get_logger(__name__)

PENDING_CALLS: Final = 100_000
"""Calls that may wait in gRPC until the loop takes them: more than arrive while it is held up for seconds."""
THREADS_END_S: Final = 2.0
"""Patience with threads at the end, after every call in flight has had its grace."""
THREAD_HANDS: Final = 2
"""Long calls at a time where they run in threads: these share one interpreter, more at once would end no sooner."""


class PortInUseError(Exception):
    """The address to listen on cannot be had; the text names it."""


class Application:
    """One worker: its rooms, its server and their life.

    Parameters
    ----------
    settings : Settings
        Of the operator.
    registry : Registry
        Plugins as loaded.
    store : ProfileStore
        Closed by :meth:`stop`.
    catalogue : Catalogue
        Devices and links.
    processes : int
        For long calls, with the plugins that are installed; 0 = threads of this process, with its registry.
    """

    def __init__(
        self, settings: Settings, registry: Registry, store: ProfileStore, catalogue: Catalogue, processes: int = 0
    ) -> None:
        self._settings = settings
        self._store = store
        # Apart, so that a plugin that never returns keeps no profile from being read, a fit ahead no answer, and a
        # simulation of a job no model's.
        self._reads = ThreadPoolExecutor(settings.threads, thread_name_prefix="nodewise-reads")
        self._work = ThreadPoolExecutor(settings.threads, thread_name_prefix="nodewise-work")
        self._simulations = ThreadPoolExecutor(settings.threads, thread_name_prefix="nodewise-simulations")
        self._ahead = ThreadPoolExecutor(1, thread_name_prefix="nodewise-ahead")
        self._lessons = ThreadPoolExecutor(1, thread_name_prefix="nodewise-lessons")
        self._homes = {
            host.distribution: ThreadPoolExecutor(settings.threads, thread_name_prefix="nodewise-hosted")
            for host in registry.hosts
        }
        self._waiting_ahead: set[str] = set()
        self._writer = StoreWriter(store)
        space = CacheSpace(settings.cache_bytes)
        self._reader = ProfileReader(store, space)
        # What shipped estimators bring with them; what the store teaches is learned beside the way of requests.
        priors = learned_from(_inline(registry), ()).priors
        workshop = workshop_of(
            settings, registry, catalogue, store.traces, priors=priors, ahead=self._soon, space=space
        )
        self._answers, self._limits = workshop.answers, workshop.limits
        self._profiles = Profiles(store, self._writer, self._reader, self._limits, self._reads, self._committed)

        def hand() -> Hand:
            if not processes:
                return ThreadHand(workshop)
            opening = partial(opened, settings, store.traces.root, registry.listings)
            return ProcessHand(opening, lambda: workshop.answers.lessons)

        self._compute = ComputePool(hand, processes or THREAD_HANDS)
        self._learning = Learning(self._answers, store, self._lessons, settings.learn_interval_s)
        self._learner: asyncio.Task[None] | None = None
        self.scoring = Scoring(self._answers, store) if settings.scoring else None
        """What compares predictions with what arrives; None = switched off."""
        self._health = health.aio.HealthServicer()
        self._server: grpc.aio.Server | None = None

    async def start(self, listen: str, *, share_port: bool = False) -> int:
        """Serve; returns the port.

        Parameters
        ----------
        listen : str
            HOST:PORT, port 0 = any.
        share_port : bool
            Whether other workers listen on the same port.

        Raises
        ------
        PortInUseError
            If the address cannot be had.
        """
        server = grpc.aio.server(
            options=[
                # gRPC shares ports by default: two servers on one port would each get half the calls.
                ("grpc.so_reuseport", int(share_port)),
                ("grpc.max_receive_message_length", RECEIVED_BYTES),
                ("grpc.max_send_message_length", -1),
                # The gate refuses, and says why; gRPC's own queue would by a bare CANCELLED.
                ("grpc.server.max_pending_requests", PENDING_CALLS),
                ("grpc.server.max_pending_requests_hard_limit", PENDING_CALLS),
                ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
            ]
        )
        doors = self._handlers()
        server.add_generic_rpc_handlers(tuple(doors))
        for door in doors:
            server.add_registered_method_handlers(door.service_name, door.registered())
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        if self._settings.reflection:
            names = (*SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME)
            reflection.enable_server_reflection(names, server)
        try:
            port = server.add_insecure_port(listen)
        except RuntimeError:
            port = 0
        if not port:
            raise PortInUseError(f"cannot listen on {listen}: the port is in use or the address is not this machine's")
        await server.start()
        for door in doors:
            accept_more(server, door.service, door.paths)
        self._server = server
        self._learner = asyncio.get_running_loop().create_task(self._learning.run())
        if self.scoring is not None:
            self.scoring.start()
        await self._announce(health_pb2.HealthCheckResponse.SERVING)
        self._watch_breakers()
        return port

    async def stop(self, *, at_once: bool = False) -> bool:
        """Drain: tell health, wait for balancers, let calls in flight finish, write what is queued, close the store.

        Parameters
        ----------
        at_once : bool
            Whether to let the port go without waiting for balancers.

        Returns whether every thread has ended; one that a plugin holds would keep the process from exiting.
        """
        if self._learner is not None:
            self._learner.cancel()
        await self._health.enter_graceful_shutdown()
        if self._settings.drain_delay_s and not at_once:
            await asyncio.sleep(self._settings.drain_delay_s)
        if self.scoring is not None:
            self.scoring.stop()
        self._profiles.end_watches()
        if self._server is not None:
            await self._server.stop(self._settings.grace_s)
        await self._compute.close()
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self._writer.close)
        ended = await loop.run_in_executor(None, self._ended)
        self._store.close()
        self._answers.registry.close()
        _log.info("stopped", threads_left=not ended)
        return ended

    def _ended(self) -> bool:
        """Wait a moment for the threads."""

        def end() -> None:
            own = (self._lessons, self._ahead, self._simulations, self._work, self._reads)
            for pool in (*own, *self._homes.values()):
                pool.shutdown(wait=True, cancel_futures=True)
            if self.scoring is not None:
                self.scoring.join()

        ending = threading.Thread(target=end, daemon=True)
        ending.start()
        ending.join(THREADS_END_S)
        return not ending.is_alive()

    async def _announce(self, status: Any) -> None:
        for name in ("", *SERVICES):
            await self._health.set(name, status)
        for name in self._answers.registry.estimators:
            await self._health.set(f"estimator/{name}", status)

    def _watch_breakers(self) -> None:
        """Let health say of an estimator that is left alone that it does not serve, and when it is back."""
        loop = asyncio.get_running_loop()
        serving, not_serving = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING

        def listener(name: str) -> Callable[[bool], None]:
            async def announce(status: Any) -> None:
                await self._health.set(f"estimator/{name}", status)

            def changed(closed: bool) -> None:  # noqa: FBT001  # as breakers tell it
                asyncio.run_coroutine_threadsafe(announce(serving if closed else not_serving), loop)

            return changed

        for name, loaded in self._answers.registry.estimators.items():
            if loaded.breaker is not None:
                loaded.breaker.listen(listener(name))

    def _handlers(self) -> list[Door]:
        sources = ProfileSources(self._reader, self._limits, self._reads)
        scores = partial(run_in, self._reads, self._store.scores.scores)
        policy = self._settings.default_policy
        behaviours = (
            *self._predicting(sources),
            Listing(self._answers, scores),
            self._profiles,
            Schedules(self._answers, sources, self._limits, self._work, policy, self._homes),
            Simulations(self._answers, sources, self._limits, self._compute, policy),
            Completions(self._answers, sources, self._compute),
            Plans(self._answers, sources, self._limits, self._compute),
            Diagnoses(sources, self._compute),
            Evaluations(self._compute),
            Sharing(self._answers, sources, self._limits, self._compute),
        )
        gate = Gate(self._settings.queue_wait_s, self._settings.threads)
        return handlers(behaviours, self._settings.default_deadline_s, self._limits, gate)

    def _predicting(self, sources: ProfileSources) -> tuple[object, ...]:
        """Behaviours that predict."""
        answering = Answering(self._answers, self._work, self._simulations, self._homes)
        architectures = ArchitectureBatches(self._answers, sources, self._limits, self._work, self._compute)
        predictions = Predictions(answering, sources, self._limits, self._compute)
        batches = Batches(answering, architectures, sources, self._limits)
        return predictions, batches, Streams(predictions.predict, batches.batch_predict, self._limits.reply_bytes)

    def _committed(self, profile_id: str) -> None:
        """A profile moved: score what arrived, and fit it so that the next question finds the model."""
        if self.scoring is not None:
            self.scoring.notify()
        if profile_id not in self._waiting_ahead:  # one fit serves all commits that came before it
            self._waiting_ahead.add(profile_id)
            self._soon(partial(self._fit, profile_id))

    def _soon(self, work: Callable[[], None]) -> None:
        """Do work that no call waits for, beside those that do."""
        self._ahead.submit(_guarded, work)

    def _fit(self, profile_id: str) -> None:
        self._waiting_ahead.discard(profile_id)
        self._answers.fit_ahead(self._reader.get(profile_id))


def _guarded(work: Callable[[], None]) -> None:
    """Work that nobody waits for: what it raises is logged, the question that needs it will say it to its asker."""
    try:
        work()
    except NodewiseError as error:
        _log.debug("fit_ahead_refused", reason=str(error.reason), message=error.message)
    except Exception:  # noqa: BLE001  # nobody waits for it; the next question meets the same fault and reports it
        _log.warning("fit_ahead_failed", exc_info=True)


def _inline(registry: Registry) -> Registry:
    """The estimators that run in the caller's thread: nobody else's is waited for before the first call."""
    inline = {name: loaded for name, loaded in registry.estimators.items() if loaded.mode == "inline"}
    return replace(registry, estimators=MappingProxyType(inline))
