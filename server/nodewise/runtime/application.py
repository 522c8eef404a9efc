"""The application of a worker: all packages behind one gRPC server."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, cast

import grpc
import structlog
from grpc_health.v1 import health

from nodewise.domain.errors import NodewiseError
from nodewise.domain.predictions import Notice
from nodewise.domain.profile import Profile
from nodewise.estimation.answer.answer_cache import AnswerCache
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.estimators.warm_up import warm_up, warm_up_aside
from nodewise.estimation.plausibility import doubts
from nodewise.ports.cache import CacheSpace
from nodewise.profiles.reader import ProfileReader
from nodewise.profiles.store import ProfileStore
from nodewise.profiles.writer import StoreWriter
from nodewise.rpc.audit import Audit
from nodewise.rpc.calls import run_in
from nodewise.rpc.classes import Admission
from nodewise.rpc.intake import RECEIVED_BYTES
from nodewise.rpc.profiles import Profiles
from nodewise.rpc.routes import Router
from nodewise.rpc.services import SERVICES, behaviours_by_name, handlers, refused_admin
from nodewise.rpc.sources import ProfileSources
from nodewise.rpc.streams import Streams
from nodewise.rpc.wire_predictions import write_basis
from nodewise.runtime.audit_log import AuditLog
from nodewise.runtime.compute.pool import ComputePool
from nodewise.runtime.compute.processes import ProcessRunner
from nodewise.runtime.compute.threads import ThreadRunner
from nodewise.runtime.connections import connection_options
from nodewise.runtime.generations.folder import plugins_folder_of
from nodewise.runtime.generations.lessons import carry_over_lessons, changed_estimators, inline_lessons
from nodewise.runtime.generations.serving_state import LoadedPlugins, ServingState, SharedResources, serving_state_of
from nodewise.runtime.generations.traffic_router import Tracks, TrafficRouter
from nodewise.runtime.health import Health
from nodewise.runtime.identity.administering import TokenAdministration, refused_tokens
from nodewise.runtime.identity.callers import callers_of
from nodewise.runtime.identity.reflecting import offer_reflection
from nodewise.runtime.identity.settings import is_loopback
from nodewise.runtime.identity.tls import ServerCertificates
from nodewise.runtime.learning.effects import Effects
from nodewise.runtime.learning.learning import Learning
from nodewise.runtime.learning.saved_lessons import SavedLessons
from nodewise.runtime.scoring import Scoring
from nodewise.runtime.settings import Settings
from nodewise.runtime.store_maintenance import StoreMaintenance
from nodewise.runtime.tracing import start_tracing
from nodewise_protos.v1 import profile_pb2

if TYPE_CHECKING:
    from nodewise.runtime.http_listening import HttpListener
    from nodewise.runtime.metrics import Metrics

__all__ = ["Application", "PortInUseError"]

_log = structlog.get_logger(__name__)

PENDING_CALLS: Final = 100_000
"""Calls that may wait in gRPC until the event loop takes them: more than arrive while it is blocked for seconds."""
THREADS_END_S: Final = 2.0
"""Seconds to wait for threads at the end, after the grace of the calls in flight."""
THREAD_RUNNERS: Final = 2
"""Concurrent long calls where they run in threads, which share one interpreter, so that more would end no sooner."""


class PortInUseError(Exception):
    """The server cannot listen on the address; the text names it."""


class Application:
    """The parts of one worker and its server, from start to stop.

    Parameters
    ----------
    settings : Settings
        Of the operator.
    loaded_plugins : LoadedPlugins
        Plugins and catalogue at the start; :meth:`switch` replaces them.
    store : ProfileStore
        Closed by :meth:`stop`.
    processes : int
        Processes for long calls, which load the installed plugins; 0 = threads of this process, with its registry.
    audit : AuditLog or None
        Log of administration, deletions and rejected callers.
    """

    def __init__(
        self,
        settings: Settings,
        loaded_plugins: LoadedPlugins,
        store: ProfileStore,
        processes: int = 0,
        audit: AuditLog | None = None,
    ) -> None:
        self._settings = settings
        self._audit = audit
        self._store = store
        self._limits = settings.limits
        self.callers = callers_of(settings, store)
        """Identifies callers; None = every caller may do everything."""
        # Separate pools: a plugin that never returns must not block reads of profiles, a fit ahead must not block
        # answers, and simulations must not block models.
        self._reads = ThreadPoolExecutor(settings.threads, thread_name_prefix="nodewise-reads")
        self._work = ThreadPoolExecutor(settings.threads, thread_name_prefix="nodewise-work")
        self._simulations = ThreadPoolExecutor(settings.threads, thread_name_prefix="nodewise-simulations")
        self._ahead = ThreadPoolExecutor(1, thread_name_prefix="nodewise-ahead")
        self._lessons = ThreadPoolExecutor(1, thread_name_prefix="nodewise-lessons")
        self._waiting_ahead: set[str] = set()
        self._stop_tracing: Callable[[], None] = lambda: None
        self._writer = StoreWriter(store)
        space = CacheSpace(settings.cache_bytes)
        self._reader = ProfileReader(store, space)
        self._profiles = Profiles(
            *(store, self._writer, self._reader, self._limits, self._reads, self._note_commit, self._doubts),
            quotas=settings.quotas,
        )
        runners = processes or THREAD_RUNNERS
        self._compute = ComputePool(ProcessRunner if processes else ThreadRunner, runners)
        self._resources = SharedResources(
            settings=settings,
            store=store,
            writer=self._writer,
            sources=ProfileSources(self._reader, self._limits, self._reads),
            pool=self._compute,
            work=self._work,
            simulations=self._simulations,
            reads=self._reads,
            answer_cache=AnswerCache.of(space),
            ahead=self._submit_ahead,
        )
        stable = serving_state_of(self._resources, loaded_plugins, inline_lessons(loaded_plugins.registry))
        self._router = TrafficRouter(Tracks(stable), self._retire)
        self._closing: set[asyncio.Future[None]] = set()
        folder = plugins_folder_of(settings)
        self.learning = Learning(
            stable.answers,
            store,
            self._lessons,
            settings.learn_interval_s,
            shared=settings.shared_namespaces,
            saved_lessons=SavedLessons(None if folder is None else folder.path / "lessons"),
            alone=settings.store == "memory:",
        )
        """Learns priors and calibrations from the store."""
        self._learning_task: asyncio.Task[None] | None = None
        self.effects = Effects() if settings.scoring else None
        """Effects of lessons on running scores."""
        self.scoring = Scoring(stable.answers, store, effects=self.effects) if settings.scoring else None
        """Compares predictions with new observations; None = off."""
        self._more_services: tuple[object, ...] = ()
        self._health = Health()
        self._watch_thread = ThreadPoolExecutor(1, thread_name_prefix="nodewise-store-watch")
        self._health_task: asyncio.Task[None] | None = None
        self._metrics: Metrics | None = None
        self._metrics_task: asyncio.Task[None] | None = None
        self._maintenance = StoreMaintenance(store, settings.retention.rules(), settings.store_inspect_interval_s)
        self._server: grpc.aio.Server | None = None
        self._http: HttpListener | None = None
        self.http_port = 0
        """Port for HTTP; 0 = none."""
        self._admission = Admission(settings.queue_wait_s, runners)

    @property
    def tracks(self) -> Tracks:
        """The generations that answer, and for which jobs."""
        return self._router.tracks

    def offer(self, *behaviours: object) -> None:
        """Add behaviours for further methods; call it before the start."""
        self._more_services = behaviours

    async def serving_state_of(
        self, loaded_plugins: LoadedPlugins, track: str = "", *, warm: bool = True
    ) -> ServingState:
        """Make a ServingState of other plugins, for trials and perhaps to take over; runs outside the event loop.

        Estimators that did not change keep their lessons; the others warm up, before this returns or in the background.
        """
        current = self.tracks.stable.answers
        return cast(
            "ServingState", await run_in(self._work, self._serving_state_of, loaded_plugins, current, track, warm)
        )

    def _serving_state_of(
        self,
        loaded_plugins: LoadedPlugins,
        current: Answers,
        track: str,
        warm: bool,  # noqa: FBT001  # a thread pool passes arguments by position
    ) -> ServingState:
        (warm_up if warm else warm_up_aside)(changed_estimators(loaded_plugins, current))
        return serving_state_of(self._resources, loaded_plugins, carry_over_lessons(loaded_plugins, current), track)

    async def switch(self, tracks: Tracks) -> None:
        """Let these generations answer all calls that begin from now on; calls in flight end with the old ones."""
        self._router.switch(tracks)
        self.learning.follow(*(each.answers for each in tracks.serving_states))
        if self.scoring is not None:
            self.scoring.follow(tracks.stable.answers)
        if self._server is not None:
            await self._health.follow(tracks)

    def _retire(self, serving_state: ServingState) -> None:
        """Close a retired state after its last call, outside the event loop."""
        leaving = asyncio.get_running_loop().run_in_executor(self._reads, self._close, serving_state)
        self._closing.add(leaving)
        leaving.add_done_callback(self._closing.discard)

    def _close(self, serving_state: ServingState) -> None:
        serving_state.close()
        origins = (each.answers.estimators.provenance.origins for each in self.tracks.serving_states)
        self._resources.answer_cache.drop_others(frozenset().union(*origins))
        write_basis.cache_clear()  # most of its entries name the closed generation

    async def start(self, listen: str, *, http: str = "", share_port: bool = False) -> int:
        """Serve; returns the port.

        Parameters
        ----------
        listen, http : str
            HOST:PORT, port 0 = any free port; an empty ``http`` = no HTTP.
        share_port : bool
            Whether other workers listen on the same port.

        Raises
        ------
        PortInUseError
            If the server cannot listen on the address.
        SettingsError
            If the certificates cannot be used.
        """
        with_spans, self._stop_tracing = start_tracing()
        server = grpc.aio.server(
            options=[
                # gRPC shares ports by default; two servers on one port would each get half the calls.
                ("grpc.so_reuseport", int(share_port)),
                ("grpc.max_receive_message_length", RECEIVED_BYTES),
                ("grpc.max_send_message_length", -1),
                # Admission refuses calls with a reason; gRPC's own queue would end them with CANCELLED and no reason.
                ("grpc.server.max_pending_requests", PENDING_CALLS),
                ("grpc.server.max_pending_requests_hard_limit", PENDING_CALLS),
                *connection_options(self._settings.connections),
            ],
        )
        if http:
            self._start_metrics()
        routers = self._handlers()
        server.add_generic_rpc_handlers(tuple(map(with_spans, routers)))
        self._health.offer(server)
        reflection = is_loopback(listen) if self._settings.reflection is None else self._settings.reflection
        if reflection:
            offer_reflection((*SERVICES, health.SERVICE_NAME), server, self.callers)
        if self.callers is not None:
            await self.callers.begin()
        credentials = ServerCertificates(self._settings.tls).credentials() if self._settings.tls.is_on else None
        try:
            port = server.add_secure_port(listen, credentials) if credentials else server.add_insecure_port(listen)
        except RuntimeError:
            port = 0
        if not port:
            raise PortInUseError(f"cannot listen on {listen}: the port is in use, or this machine lacks the address")
        if http:
            await self._listen_http(http, routers, share_port=share_port)
        await server.start()
        self._server = server
        self._learning_task = asyncio.get_running_loop().create_task(self.learning.run())
        if self.scoring is not None:
            self.scoring.start()
        self._maintenance.start()
        await self._health.follow(self.tracks)
        self._health_task = asyncio.get_running_loop().create_task(self._health.watch(self._store, self._watch_thread))
        if self._metrics is not None:
            self._metrics_task = asyncio.get_running_loop().create_task(self._metrics.run(self._watch_thread))
        return port

    def _start_metrics(self) -> None:
        """Record metrics from now on; only HTTP serves them."""
        from nodewise.runtime.metrics import Metrics  # noqa: PLC0415  # its import costs 20 ms

        space, store = self._resources.answer_cache.space, self._store
        about = (self._admission, self._writer, store, space, self._health, self.scoring, lambda: self.tracks)
        self._metrics = Metrics(*about)
        self._admission.observe = self._metrics.observe

    async def _listen_http(self, listen: str, routers: Sequence[Router], *, share_port: bool) -> None:
        """Serve HTTP as well. Raises PortInUseError, SettingsError."""
        from nodewise.runtime.console import console_pages  # noqa: PLC0415  # only servers with HTTP need it
        from nodewise.runtime.http_listening import HttpListener  # noqa: PLC0415  # the same
        from nodewise.runtime.probes import probes  # noqa: PLC0415  # the same

        pages = {**console_pages(), **probes(self._health)}
        if self._metrics is not None:
            pages["/metrics"] = self._metrics.page
        listener = HttpListener(self._settings, listen, routers, self._resources.answer_cache.space, pages)
        try:
            self.http_port = await listener.start(share_port=share_port)
        except OSError:
            raise PortInUseError(
                f"setting http: cannot listen on {listen}: the port is in use, or this machine lacks the address"
            ) from None
        self._http = listener

    async def stop(self, *, at_once: asyncio.Event | None = None) -> bool:
        """Drain: report NOT_SERVING, wait for load balancers, finish calls and queued writes, close the store.

        Parameters
        ----------
        at_once : Event or None
            When it is set, the wait for load balancers ends.

        Returns whether every thread has ended; a thread that a plugin blocks would keep the process from exiting.
        """
        for task in (self._learning_task, self._health_task, self._metrics_task):
            if task is not None:
                task.cancel()
        await self._health.drain()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._settings.drain_delay_s):
                await (at_once or asyncio.Event()).wait()
        if self.scoring is not None:
            self.scoring.stop()
        self._maintenance.stop()
        self._profiles.end_watches()
        stops = [] if self._http is None else [self._http.stop()]
        if self._server is not None:
            stops.append(self._server.stop(self._settings.grace_s))
        await asyncio.gather(*stops)
        if self.callers is not None:
            self.callers.end()
        for task in self._resources.tasks:
            task.cancel()
        await asyncio.gather(*self._resources.tasks, return_exceptions=True)
        await self._compute.close()
        if self._closing:
            await asyncio.wait(self._closing)
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self._writer.close)
        has_ended = await loop.run_in_executor(None, self._wait_for_threads)
        self._store.close()
        await loop.run_in_executor(None, self._stop_tracing)
        _log.info("stopped", threads_left=not has_ended)
        return has_ended

    def _wait_for_threads(self) -> bool:
        """Wait up to ``THREADS_END_S`` for all threads; returns whether they ended."""

        def end() -> None:
            for each in self.tracks.serving_states:  # first: threads that wait for a plugin host end with the host
                each.close()
            for pool in (self._lessons, self._ahead, self._simulations, self._work, self._reads, self._watch_thread):
                pool.shutdown(wait=True, cancel_futures=True)
            if self.scoring is not None:
                self.scoring.join()
            self._maintenance.join()

        ending = threading.Thread(target=end, daemon=True)
        ending.start()
        ending.join(THREADS_END_S)
        return not ending.is_alive()

    def _handlers(self) -> list[Router]:
        methods_by_generation = self._router.methods
        # Every question of a stream is routed on its own, so a stream can change generations between answers.
        known_one = self._router.known_prediction
        streams = Streams(
            methods_by_generation["predict"],
            methods_by_generation["batch_predict"],
            self._limits.reply_bytes,
            known_one,
        )
        services: tuple[object, ...] = (self._profiles, streams, *self._more_services)
        if self.callers is not None and self.callers.ledger is not None:
            services += (TokenAdministration(self.callers.ledger, self.callers),)
        behaviours = {**refused_admin(), **refused_tokens(), **methods_by_generation, **behaviours_by_name(services)}
        known_replies = {"predict": known_one, "stream_predict": streams.known_reply}
        return handlers(
            behaviours,
            self._settings.default_deadline_s,
            self._limits,
            self._admission,
            known_replies,
            self.callers,
            quotas=self._settings.quotas,
            audit=None if self._audit is None else Audit(self._audit.write),
        )

    def _doubts(self, profile: Profile) -> tuple[Notice, ...]:
        """Notices about doubtful observations of a profile."""
        return doubts(profile, self.tracks.stable.answers.estimators.catalogue)

    def _note_commit(self, profile_id: str) -> None:
        """After a commit: score the new observations, and fit models so that the next question need not wait."""
        if self.scoring is not None:
            self.scoring.notify()
        if profile_id not in self._waiting_ahead:  # one fit serves all commits before it
            self._waiting_ahead.add(profile_id)
            self._submit_ahead(partial(self._fit, profile_id))

    def _submit_ahead(self, work: Callable[[], None]) -> None:
        """Do work in the background that no call waits for."""
        self._ahead.submit(_run_and_log, work)

    def _fit(self, profile_id: str) -> None:
        self._waiting_ahead.discard(profile_id)
        serving_state = self.tracks.of(profile_pb2.ProfileSource(profile_id=profile_id))
        serving_state.answers.fit_ahead(self._reader.get(profile_id))


def _run_and_log(work: Callable[[], None]) -> None:
    """Do work that no caller waits for, and log its error; a call that needs the work will get the same error."""
    try:
        work()
    except NodewiseError as error:
        _log.debug("fit_ahead_refused", reason=str(error.reason), message=error.message)
    except Exception:  # noqa: BLE001  # no caller waits for it; the next call reports the same fault
        _log.warning("fit_ahead_failed", exc_info=True)
