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
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.estimators.warm_up import warm_up
from nodewise.estimation.lessons.priors import learned_from
from nodewise.hosting.registry import Registry
from nodewise.plugin import Catalogue
from nodewise.profiles.reader import ProfileReader
from nodewise.profiles.reading import TraceLoader
from nodewise.profiles.store import ProfileStore
from nodewise.profiles.writer import StoreWriter
from nodewise.rpc.calls import Method, generic_handler, run_in
from nodewise.rpc.diagnoses import Diagnoses
from nodewise.rpc.evaluations import Evaluations
from nodewise.rpc.plans import Plans
from nodewise.rpc.predictions import Predictions
from nodewise.rpc.profiles import Profiles
from nodewise.rpc.schedules import Schedules
from nodewise.rpc.simulations import SIMULATIONS_AT_ONCE, Simulations
from nodewise.rpc.sources import ProfileSources
from nodewise.runtime.learning import Learning
from nodewise.runtime.scoring import Scoring
from nodewise.runtime.settings import Settings
from nodewise_protos.v1 import (
    diagnosis_service_pb2,
    evaluation_service_pb2,
    plan_service_pb2,
    prediction_service_pb2,
    profile_service_pb2,
    schedule_service_pb2,
)

__all__ = ["Application", "PortInUseError"]

_log = structlog.get_logger(__name__)

THREADS_END_S: Final = 2.0
"""Patience with threads at the end, after every call in flight has had its grace."""
RECEIVED_BYTES: Final = 16 * 1024 * 1024
"""Largest message taken from a client: ten thousand observations of every column, or four trace chunks."""

_SERVICES: Final = (
    "nodewise.v1.PredictionService",
    "nodewise.v1.ProfileService",
    "nodewise.v1.ScheduleService",
    "nodewise.v1.PlanService",
    "nodewise.v1.DiagnosisService",
    "nodewise.v1.EvaluationService",
)


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
    """

    def __init__(self, settings: Settings, registry: Registry, store: ProfileStore, catalogue: Catalogue) -> None:
        self._settings = settings
        self._store = store
        # Apart, so that a plugin that never returns keeps no profile from being read, a fit ahead no answer, a
        # simulation of a job no model's, and one of a policy none of these.
        self._reads = ThreadPoolExecutor(settings.threads, thread_name_prefix="nodewise-reads")
        self._work = ThreadPoolExecutor(settings.threads, thread_name_prefix="nodewise-work")
        self._simulations = ThreadPoolExecutor(settings.threads, thread_name_prefix="nodewise-simulations")
        self._policies = ThreadPoolExecutor(SIMULATIONS_AT_ONCE, thread_name_prefix="nodewise-policies")
        self._ahead = ThreadPoolExecutor(1, thread_name_prefix="nodewise-ahead")
        self._lessons = ThreadPoolExecutor(1, thread_name_prefix="nodewise-lessons")
        self._waiting_ahead: set[str] = set()
        self._writer = StoreWriter(store)
        self._reader = ProfileReader(store)
        self._limits = settings.limits.limits()
        self._traces = TraceLoader(store.traces, registry.trace_readers, self._limits.trace_unpacked_bytes)
        self._engine = Answers(
            registry,
            catalogue=catalogue,
            # What shipped estimators bring with them; what the store teaches is learned beside the way of requests.
            priors=learned_from(_inline(registry), ()).priors,
            max_workers=self._limits.max_workers,
            traces=self._traces.traces_of,
        )
        self._learning = Learning(self._engine, store, self._lessons, settings.learn_interval_s)
        self._learner: asyncio.Task[None] | None = None
        self.scoring = Scoring(self._engine, store) if settings.scoring else None
        """What compares predictions with what arrives; None = switched off."""
        self._health = health.aio.HealthServicer()
        self._server: grpc.aio.Server | None = None

    async def warm_up(self) -> None:
        """Let estimators compile or load what their first answers would wait for."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._work, warm_up, self._engine.registry.estimators)

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
                ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
            ]
        )
        server.add_generic_rpc_handlers(tuple(self._handlers()))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        if self._settings.reflection:
            names = (*_SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME)
            reflection.enable_server_reflection(names, server)
        try:
            port = server.add_insecure_port(listen)
        except RuntimeError:
            port = 0
        if not port:
            raise PortInUseError(f"cannot listen on {listen}: the port is in use or the address is not this machine's")
        await server.start()
        self._server = server
        self._learner = asyncio.get_running_loop().create_task(self._learning.run())
        if self.scoring is not None:
            self.scoring.start()
        await self._announce(health_pb2.HealthCheckResponse.SERVING)
        return port

    async def stop(self) -> bool:
        """Drain: tell health, wait for balancers, let calls in flight finish, write what is queued, close the store.

        Returns whether every thread has ended; one that a plugin holds would keep the process from exiting.
        """
        if self._learner is not None:
            self._learner.cancel()
        await self._health.enter_graceful_shutdown()
        if self._settings.drain_delay_s:
            await asyncio.sleep(self._settings.drain_delay_s)
        if self.scoring is not None:
            self.scoring.stop()
        if self._server is not None:
            await self._server.stop(self._settings.grace_s)
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self._writer.close)
        ended = await loop.run_in_executor(None, self._ended)
        self._store.close()
        _log.info("stopped", threads_left=not ended)
        return ended

    def _ended(self) -> bool:
        """Wait a moment for the threads."""

        def end() -> None:
            for pool in (self._lessons, self._ahead, self._policies, self._simulations, self._work, self._reads):
                pool.shutdown(wait=True, cancel_futures=True)
            if self.scoring is not None:
                self.scoring.join()

        ending = threading.Thread(target=end, daemon=True)
        ending.start()
        ending.join(THREADS_END_S)
        return not ending.is_alive()

    async def _announce(self, status: Any) -> None:
        for name in ("", *_SERVICES):
            await self._health.set(name, status)
        for name in self._engine.registry.estimators:
            await self._health.set(f"estimator/{name}", status)

    def _handlers(self) -> list[grpc.GenericRpcHandler]:
        sources = ProfileSources(self._reader, self._limits, self._reads)
        scores = partial(run_in, self._reads, self._store.scores.scores)
        predictions = Predictions(self._engine, sources, self._limits, self._work, scores, self._simulations)
        profiles = Profiles(self._store, self._writer, self._reader, self._limits, self._reads, self._committed)
        schedules = Schedules(self._engine, sources, self._limits, self._work, self._settings.default_policy)
        simulations = Simulations(self._engine, sources, self._limits, self._simulations, self._settings.default_policy)
        plans = Plans(self._engine, sources, self._limits, self._simulations)
        diagnoses = Diagnoses(self._engine.registry, self._traces, sources, self._simulations)
        evaluations = Evaluations(self._engine, self._limits, self._work)
        method = partial(
            Method, default_deadline_s=self._settings.default_deadline_s, reply_bytes=self._limits.reply_bytes
        )
        forever = partial(method, default_deadline_s=None)
        prediction, profile = prediction_service_pb2, profile_service_pb2
        schedule, evaluation = schedule_service_pb2, evaluation_service_pb2
        services: dict[str, dict[str, Method]] = {
            "nodewise.v1.PredictionService": {
                "Predict": method(behaviour=predictions.predict, request=prediction.PredictRequest),
                "BatchPredict": method(behaviour=predictions.batch_predict, request=prediction.BatchPredictRequest),
                "StreamPredict": forever(
                    behaviour=predictions.stream_predict,
                    request=prediction.StreamPredictRequest,
                    streams_in=True,
                    streams_out=True,
                ),
                "SuggestMeasurements": method(
                    behaviour=predictions.suggest_measurements, request=prediction.SuggestMeasurementsRequest
                ),
                "ListEstimators": method(
                    behaviour=predictions.list_estimators, request=prediction.ListEstimatorsRequest
                ),
            },
            "nodewise.v1.ProfileService": {
                "IngestProfile": forever(
                    behaviour=profiles.ingest_profile,
                    request=profile.IngestProfileRequest,
                    streams_in=True,
                    streams_out=True,
                ),
                "AppendProfile": method(behaviour=profiles.append_profile, request=profile.AppendProfileRequest),
                "RetractObservations": method(
                    behaviour=profiles.retract_observations, request=profile.RetractObservationsRequest
                ),
                "GetProfile": method(
                    behaviour=profiles.get_profile, request=profile.GetProfileRequest, reply_bytes=RECEIVED_BYTES
                ),
                "ListProfiles": method(behaviour=profiles.list_profiles, request=profile.ListProfilesRequest),
                "DeleteProfile": method(behaviour=profiles.delete_profile, request=profile.DeleteProfileRequest),
            },
            "nodewise.v1.ScheduleService": {
                "Schedule": method(behaviour=schedules.schedule, request=schedule.ScheduleRequest),
                "Simulate": method(behaviour=simulations.simulate, request=schedule.SimulateRequest, streams_out=True),
                "ListPolicies": method(behaviour=schedules.list_policies, request=schedule.ListPoliciesRequest),
            },
            "nodewise.v1.PlanService": {
                "Plan": method(behaviour=plans.plan, request=plan_service_pb2.PlanRequest, streams_out=True),
            },
            "nodewise.v1.DiagnosisService": {
                "Replay": method(
                    behaviour=diagnoses.replay,
                    request=diagnosis_service_pb2.ReplayRequest,
                    streams_out=True,
                ),
                "Diagnose": method(
                    behaviour=diagnoses.diagnose,
                    request=diagnosis_service_pb2.DiagnoseRequest,
                    streams_out=True,
                ),
                "ListDiagnosers": method(
                    behaviour=diagnoses.list_diagnosers, request=diagnosis_service_pb2.ListDiagnosersRequest
                ),
            },
            "nodewise.v1.EvaluationService": {
                "Backtest": method(
                    behaviour=evaluations.backtest,
                    request=evaluation.BacktestRequest,
                    streams_out=True,
                    default_deadline_s=None,
                    reply_bytes=RECEIVED_BYTES,
                ),
            },
        }
        return [generic_handler(name, methods) for name, methods in services.items()]

    def _committed(self, profile_id: str) -> None:
        """A profile moved: score what arrived, and fit it so that the next question finds the model."""
        if self.scoring is not None:
            self.scoring.notify()
        if profile_id not in self._waiting_ahead:  # one fit serves all commits that came before it
            self._waiting_ahead.add(profile_id)
            self._ahead.submit(_guarded, partial(self._fit, profile_id))

    def _fit(self, profile_id: str) -> None:
        self._waiting_ahead.discard(profile_id)
        self._engine.fit_ahead(self._reader.get(profile_id))


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
