"""The client for asyncio."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Final, Protocol, Self, TypeVar, cast

from google.protobuf.message import Message

from nodewise_client._async.ingest import AsyncIngestWriter
from nodewise_client._async.seam import (
    Failure,
    Many,
    RpcError,
    Services,
    StreamCall,
    UnaryCall,
    collected,
    each,
    sleep,
)
from nodewise_client._backtests import (
    BacktestProgress,
    BacktestResult,
    MeasurementTable,
    backtest_progress,
    backtest_result,
)
from nodewise_client._configurations import Configurations, NodeRange, WorkerRange
from nodewise_client._connection import DEFAULT_MAX_RECEIVE_BYTES, STREAM_TIMEOUT_S, Connection
from nodewise_client._diagnoses import (
    DiagnosisProgress,
    DiagnosisResult,
    ReplayChange,
    ReplayResult,
    diagnose_request,
    diagnosis_progress,
    diagnosis_result,
    replay_request,
    replay_result,
)
from nodewise_client._enums import HealthStatus
from nodewise_client._errors import Code, FailedCall, InternalError, NodewiseError, from_call
from nodewise_client._evidence import ProfileContent
from nodewise_client._ingest_core import BATCH_ROWS, LINGER_S, MAX_UNACKNOWLEDGED, IngestCore
from nodewise_client._listings import (
    DiagnoserList,
    EstimatorList,
    PolicyList,
    diagnoser_list,
    estimator_list,
    policy_list,
)
from nodewise_client._objectives import Objective, Rule
from nodewise_client._plans import (
    PlanConstraints,
    PlanProgress,
    PlanResult,
    plan_progress,
    plan_request,
    plan_result,
)
from nodewise_client._predictions import (
    BatchPredictResult,
    PredictResult,
    StreamAnswer,
    batch_result,
    predict_result,
    stream_answer,
)
from nodewise_client._profiles import Profile, profile_from_wire
from nodewise_client._questions import (
    BatchJob,
    BatchQuestion,
    PredictOptions,
    Question,
    batch_request,
    predict_request,
    stream_request,
)
from nodewise_client._requests import append_request, backtest_request, new_id, retract_request, schedule_request
from nodewise_client._resume import ResumePolicy, restart_pause_s
from nodewise_client._schedules import Cluster, NodePool, QueueQuota, ScheduleJob, ScheduleResult, schedule_result
from nodewise_client._simulation_questions import (
    PredictedCurve,
    SimulationJobs,
    SimulationSettings,
    ThroughputCurve,
    simulate_request,
)
from nodewise_client._simulations import (
    SimulationProgress,
    SimulationResult,
    simulation_answer,
    simulation_progress,
)
from nodewise_client._suggestions import SuggestResult, suggest_request, suggest_result
from nodewise_protos.v1 import (
    diagnosis_service_pb2,
    plan_service_pb2,
    prediction_service_pb2,
    profile_service_pb2,
    schedule_service_pb2,
)

Request = TypeVar("Request")
Reply = TypeVar("Reply")
Progress = TypeVar("Progress")
Result = TypeVar("Result")


class _PagedRequest(Protocol):
    page_token: str


class _Page(Protocol):
    next_page_token: str


Listing = TypeVar("Listing", bound=_PagedRequest)
Page = TypeVar("Page", bound=_Page)
Event = TypeVar("Event", bound=Message)


class AsyncClient:
    """A connection to a Nodewise server, for asyncio. It may be made anywhere and is used within one event loop.

    Args:
        target: `host:port`, or any name that gRPC resolves. Nothing is sent before the first call.
        timeout_s: deadline of every call that is given none of its own.
        token: sent with every call as `authorization: Bearer ...`.
        tls: True = TLS with the system's root certificates; bytes = with these (PEM); False = plain text.
        retry: whether idempotent calls are tried again where the server is not there or going away.
        max_receive_bytes: largest message that is accepted from the server.
    """

    def __init__(
        self,
        target: str,
        *,
        timeout_s: float = 10.0,
        token: str | None = None,
        tls: bool | bytes = False,
        retry: bool = True,
        max_receive_bytes: int = DEFAULT_MAX_RECEIVE_BYTES,
    ) -> None:
        self._connection: Final = Connection(
            target=target, timeout_s=timeout_s, token=token, tls=tls, retry=retry, max_receive_bytes=max_receive_bytes
        )
        self._services: Final = Services(self._connection)
        self._closed = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._connection.target!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End every call and the connection. Ingest writers are to be left before."""
        self._closed = True
        await self._services.close()

    # --- predictions -----------------------------------------------------------------------------------------------

    async def predict(
        self,
        profile: str | ProfileContent,
        *,
        configurations: Configurations | None = None,
        ranges: Iterable[NodeRange | WorkerRange] = (),
        objective: Objective | Rule | None = None,
        options: PredictOptions | None = None,
        minimum_revision: int = 0,
        timeout_s: float | None = None,
    ) -> PredictResult:
        """Predict one job, stored or given inline, on configurations that were never run, and recommend one."""
        question = Question(
            profile=profile,
            configurations=configurations,
            ranges=ranges,
            objective=objective,
            options=options,
            minimum_revision=minimum_revision,
        )
        return predict_result(
            await self._unary("Predict", self._rpc.prediction.Predict, predict_request(question), timeout_s)
        )

    async def batch_predict(
        self,
        jobs: Iterable[BatchJob | str],
        *,
        configurations: Configurations | None = None,
        ranges: Iterable[NodeRange | WorkerRange] = (),
        objective: Objective | Rule | None = None,
        options: PredictOptions | None = None,
        timeout_s: float | None = None,
    ) -> BatchPredictResult:
        """Predict many jobs. A job that cannot be answered carries its error; the others are answered."""
        question = BatchQuestion(
            jobs=jobs, configurations=configurations, ranges=ranges, objective=objective, options=options
        )
        request = batch_request(question)
        return batch_result(await self._unary("BatchPredict", self._rpc.prediction.BatchPredict, request, timeout_s))

    async def stream_predict(
        self, questions: Many[Question | BatchQuestion], *, timeout_s: float = STREAM_TIMEOUT_S
    ) -> AsyncIterator[StreamAnswer]:
        """Ask over one stream: questions are read as the server takes them, answers come as they are ready.

        `timeout_s` is for the whole stream. An error of one question ends that question, not the stream.
        """
        failures: list[Exception] = []

        async def requests() -> AsyncIterator[prediction_service_pb2.StreamPredictRequest]:
            # gRPC reads this beside the answers and would only log what goes wrong here.
            number = 0  # counted by hand: what is awaited cannot be enumerated
            try:
                async for question in each(questions):
                    number += 1
                    yield stream_request(question, number)
            except Exception as failure:  # noqa: BLE001  # the caller's own; raised again where the answers are read
                failures.append(failure)

        call = self._rpc.prediction.StreamPredict(requests(), timeout=timeout_s, metadata=self._connection.metadata)
        try:
            async for message in call:
                yield stream_answer(message)
        except RpcError as failure:
            raise self._explained(failure, "StreamPredict") from failure
        finally:
            call.cancel()
        if failures:
            raise failures[0]

    async def suggest_measurements(
        self,
        profile: str | ProfileContent,
        *,
        configurations: Configurations | None = None,
        ranges: Iterable[NodeRange | WorkerRange] = (),
        objective: Objective | Rule | None = None,
        count: int = 1,
        start_up_s: float = 0.0,
        run_steps: int = 100,
        options: PredictOptions | None = None,
        minimum_revision: int = 0,
        timeout_s: float | None = None,
    ) -> SuggestResult:
        """Which of some configurations to measure next, best first, by what each would teach and by its cost.

        `objective` is the decision that they should improve; None = highest throughput. `count` is 1 to 3. A run holds
        its nodes for `start_up_s` seconds and `run_steps` steps.
        """
        request = suggest_request(
            profile,
            configurations=configurations,
            ranges=ranges,
            objective=objective,
            count=count,
            start_up_s=start_up_s,
            run_steps=run_steps,
            options=options,
            minimum_revision=minimum_revision,
        )
        reply = await self._unary("SuggestMeasurements", self._rpc.prediction.SuggestMeasurements, request, timeout_s)
        return suggest_result(reply)

    async def list_estimators(self, *, timeout_s: float | None = None) -> EstimatorList:
        """The estimators that can be asked, and the plugins that could not be loaded."""
        pages = self._pages(
            "ListEstimators",
            self._rpc.prediction.ListEstimators,
            prediction_service_pb2.ListEstimatorsRequest(),
            timeout_s,
        )
        return estimator_list(await collected(pages))

    # --- profiles --------------------------------------------------------------------------------------------------

    async def append_profile(
        self,
        profile_id: str,
        *,
        content: ProfileContent,
        request_id: str | None = None,
        timeout_s: float | None = None,
    ) -> Profile:
        """Append to a profile in one call and commit. The same `request_id` again changes nothing."""
        request = append_request(profile_id, content, request_id)
        reply = await self._unary("AppendProfile", self._rpc.profile.AppendProfile, request, timeout_s)
        return profile_from_wire(reply.profile)

    def ingest(
        self,
        profile_id: str,
        *,
        session_id: str | None = None,
        resume: ResumePolicy | None = None,
        batch_rows: int = BATCH_ROWS,
        linger_s: float = LINGER_S,
        max_unacknowledged: int = MAX_UNACKNOWLEDGED,
    ) -> AsyncIngestWriter:
        """A writer that streams into a profile and outlives restarts of the server. Use it in an `async with` block.

        A session of an earlier process goes on after `durable_sequence_number` when its `session_id` is given again.
        """
        policy = resume or ResumePolicy()
        core = IngestCore(
            profile_id,
            session_id or new_id(),
            policy=policy,
            batch_rows=batch_rows,
            linger_s=linger_s,
            max_unacknowledged=max_unacknowledged,
        )
        return AsyncIngestWriter(
            core,
            lambda feed: self._rpc.profile.IngestProfile(feed, metadata=self._connection.metadata),
            explain=lambda failure: self._explained(failure, "IngestProfile"),
            policy=policy,
            acknowledge_timeout_s=self._connection.timeout_s,
        )

    async def get_profile(self, profile_id: str, *, timeout_s: float | None = None) -> Profile:
        """Read a profile with its content."""
        request = profile_service_pb2.GetProfileRequest(profile_id=profile_id)
        reply = await self._unary("GetProfile", self._rpc.profile.GetProfile, request, timeout_s)
        return profile_from_wire(reply.profile)

    async def list_profiles(
        self, *, name_prefix: str = "", page_size: int = 0, timeout_s: float | None = None
    ) -> AsyncIterator[Profile]:
        """The profiles by name, without their content; pages are fetched as they are needed."""
        request = profile_service_pb2.ListProfilesRequest(name_prefix=name_prefix, page_size=page_size)
        async for page in self._pages("ListProfiles", self._rpc.profile.ListProfiles, request, timeout_s):
            for profile in page.profiles:
                yield profile_from_wire(profile)

    async def delete_profile(self, profile_id: str, *, etag: str = "", timeout_s: float | None = None) -> None:
        """Delete a profile; with an etag only if it is still this one. Never retried: it could be gone by then."""
        request = profile_service_pb2.DeleteProfileRequest(profile_id=profile_id, etag=etag)
        await self._unary("DeleteProfile", self._rpc.profile.DeleteProfile, request, timeout_s)

    async def retract_observations(
        self,
        profile_id: str,
        *,
        numbers: Iterable[int],
        reason: str = "",
        request_id: str | None = None,
        timeout_s: float | None = None,
    ) -> Profile:
        """Take observations out of a profile by their numbers; they stay in its history."""
        request = retract_request(profile_id, numbers, reason, request_id)
        reply = await self._unary("RetractObservations", self._rpc.profile.RetractObservations, request, timeout_s)
        return profile_from_wire(reply.profile)

    # --- schedules and backtests -----------------------------------------------------------------------------------

    async def schedule(
        self,
        *,
        cluster: Cluster | Iterable[NodePool],
        jobs: Iterable[ScheduleJob],
        now: datetime | None = None,
        policy: str = "",
        policy_parameters: Mapping[str, float] | None = None,
        policy_state: bytes = b"",
        quotas: Iterable[QueueQuota] = (),
        options: PredictOptions | None = None,
        timeout_s: float | None = None,
    ) -> ScheduleResult:
        """Share a cluster among jobs. Pure: give `policy_state` of the last result, and `now` to repeat a decision."""
        request = schedule_request(
            cluster=cluster,
            jobs=jobs,
            now=now,
            policy=policy,
            policy_parameters=policy_parameters,
            policy_state=policy_state,
            quotas=quotas,
            options=options,
        )
        return schedule_result(await self._unary("Schedule", self._rpc.schedule.Schedule, request, timeout_s))

    async def simulate(
        self,
        *,
        cluster: Cluster | Iterable[NodePool],
        jobs: SimulationJobs,
        curves: Iterable[ThroughputCurve | PredictedCurve],
        policy: str = "",
        policy_parameters: Mapping[str, float] | None = None,
        quotas: Iterable[QueueQuota] = (),
        settings: SimulationSettings | None = None,
        repetitions: int = 1,
        keep_jobs: bool = False,
        keep_timeline: bool = False,
        options: PredictOptions | None = None,
        on_progress: Callable[[SimulationProgress], None] | None = None,
        timeout_s: float = STREAM_TIMEOUT_S,
    ) -> SimulationResult:
        """Tell what a policy would have done to jobs that arrive over time; `on_progress` hears how far it is.

        The result holds every finished job where `keep_jobs` is set, and who held what when where `keep_timeline` is.
        """
        request = simulate_request(
            cluster=cluster,
            jobs=jobs,
            curves=curves,
            policy=policy,
            policy_parameters=policy_parameters,
            quotas=quotas,
            settings=settings,
            repetitions=repetitions,
            keep_jobs=keep_jobs,
            keep_timeline=keep_timeline,
            options=options,
        )
        return await self._answer(
            "Simulate",
            self._rpc.schedule.Simulate,
            request,
            simulation_progress,
            simulation_answer,
            on_progress,
            timeout_s,
        )

    async def list_policies(self, *, timeout_s: float | None = None) -> PolicyList:
        """The policies that can be asked, and the plugins that could not be loaded."""
        pages = self._pages(
            "ListPolicies", self._rpc.schedule.ListPolicies, schedule_service_pb2.ListPoliciesRequest(), timeout_s
        )
        return policy_list(await collected(pages))

    async def backtest(
        self,
        table: MeasurementTable,
        *,
        estimators: Iterable[str] = ("auto",),
        calibration: MeasurementTable | None = None,
        on_progress: Callable[[BacktestProgress], None] | None = None,
        timeout_s: float = STREAM_TIMEOUT_S,
    ) -> BacktestResult:
        """Fit estimators to a table's train rows and score them on its test rows; `on_progress` hears how far it is."""
        request = backtest_request(table, estimators, calibration)
        return await self._answer(
            "Backtest",
            self._rpc.evaluation.Backtest,
            request,
            backtest_progress,
            backtest_result,
            on_progress,
            timeout_s,
        )

    # --- plans -----------------------------------------------------------------------------------------------------

    async def plan(
        self,
        profile: str | ProfileContent,
        constraints: PlanConstraints | plan_service_pb2.PlanConstraints,
        *,
        objective: Objective | Rule | None = None,
        options: PredictOptions | None = None,
        budget_s: float = 0.0,
        exhaustive: bool = False,
        frontier_points: int = 100,
        explain: bool = True,
        minimum_revision: int = 0,
        on_progress: Callable[[PlanProgress], None] | None = None,
        timeout_s: float = STREAM_TIMEOUT_S,
    ) -> PlanResult:
        """Find the best configuration within constraints (or those of a message); `on_progress` hears the best so far.

        `objective` None = highest throughput. After `budget_s` seconds (0 = as long as the call has) the best so far is
        the answer. `frontier_points` 0 leaves the frontier out.
        """
        request = plan_request(
            profile,
            constraints,
            objective=objective,
            options=options,
            budget_s=budget_s,
            exhaustive=exhaustive,
            frontier_points=frontier_points,
            explain=explain,
            minimum_revision=minimum_revision,
        )
        return await self._answer(
            "Plan", self._rpc.plan.Plan, request, plan_progress, plan_result, on_progress, timeout_s
        )

    # --- traces ----------------------------------------------------------------------------------------------------

    async def replay(
        self,
        profile: str | ProfileContent,
        *,
        fit_steps: Iterable[int] = (),
        test_steps: Iterable[int] = (),
        in_sample: bool = False,
        changes: Iterable[ReplayChange] = (),
        timeline: bool = False,
        traces: Iterable[str] = (),
        trace_mapping: Mapping[str, str] | None = None,
        diagnoser: str = "",
        budget_s: float = 0.0,
        minimum_revision: int = 0,
        on_progress: Callable[[DiagnosisProgress], None] | None = None,
        timeout_s: float = STREAM_TIMEOUT_S,
    ) -> ReplayResult:
        """Predict steps of a recorded job from its other steps, as they were or changed.

        Steps are ordinals in the traces, from 1; none fitted = all but the one tested, none tested = all. `traces` are
        hashes of those to use, none = all of the profile's. `timeline` asks for the executed events too.
        `trace_mapping` is for formats that do not say what is what.
        """
        request = replay_request(
            profile,
            fit_steps=fit_steps,
            test_steps=test_steps,
            in_sample=in_sample,
            changes=changes,
            timeline=timeline,
            traces=traces,
            trace_mapping=trace_mapping,
            diagnoser=diagnoser,
            budget_s=budget_s,
            minimum_revision=minimum_revision,
        )
        return await self._answer(
            "Replay",
            self._rpc.diagnosis.Replay,
            request,
            diagnosis_progress,
            replay_result,
            on_progress,
            timeout_s,
        )

    async def diagnose(
        self,
        profile: str | ProfileContent,
        *,
        steps: Iterable[int] = (),
        bottlenecks: int = 20,
        strategies: int = 20,
        largest_batch_factor: float = 1.0,
        timeline: bool = False,
        traces: Iterable[str] = (),
        trace_mapping: Mapping[str, str] | None = None,
        diagnoser: str = "",
        budget_s: float = 0.0,
        minimum_revision: int = 0,
        on_progress: Callable[[DiagnosisProgress], None] | None = None,
        timeout_s: float = STREAM_TIMEOUT_S,
    ) -> DiagnosisResult:
        """Find what bounds a recorded job's steps, who is waited for, and what would shorten them most.

        Without `steps` all but the first and the last, where there are more than three. After `budget_s` seconds (0 =
        as long as the call has) what was found so far is the answer. `strategies` 0 leaves them out.
        """
        request = diagnose_request(
            profile,
            steps=steps,
            bottlenecks=bottlenecks,
            strategies=strategies,
            largest_batch_factor=largest_batch_factor,
            timeline=timeline,
            traces=traces,
            trace_mapping=trace_mapping,
            diagnoser=diagnoser,
            budget_s=budget_s,
            minimum_revision=minimum_revision,
        )
        return await self._answer(
            "Diagnose",
            self._rpc.diagnosis.Diagnose,
            request,
            diagnosis_progress,
            diagnosis_result,
            on_progress,
            timeout_s,
        )

    async def list_diagnosers(self, *, timeout_s: float | None = None) -> DiagnoserList:
        """The diagnosers that can be asked, the formats that can be read, and the plugins that could not be loaded."""
        pages = self._pages(
            "ListDiagnosers",
            self._rpc.diagnosis.ListDiagnosers,
            diagnosis_service_pb2.ListDiagnosersRequest(),
            timeout_s,
        )
        return diagnoser_list(await collected(pages))

    # --- the server ------------------------------------------------------------------------------------------------

    async def health(self, service: str = "", *, timeout_s: float | None = None) -> HealthStatus:
        """What the server says of itself, or of one service, e.g. "nodewise.v1.PredictionService" (grpc.health.v1)."""
        return await self._unary("Health/Check", self._rpc.health, service, timeout_s)

    # --- within ----------------------------------------------------------------------------------------------------

    @property
    def _rpc(self) -> Services:
        # Nothing may reach a closed channel: gRPC would make a method on it, and break the process's memory.
        if self._closed:
            raise RuntimeError("the client is closed")
        return self._services

    async def _unary(
        self, method: str, call: UnaryCall[Request, Reply], request: Request, timeout_s: float | None
    ) -> Reply:
        timeout_s = self._connection.timeout_s if timeout_s is None else timeout_s
        try:
            return await call(request, timeout=timeout_s, metadata=self._connection.metadata)
        except RpcError as failure:
            raise self._explained(failure, method) from failure

    async def _pages(
        self, method: str, call: UnaryCall[Listing, Page], request: Listing, timeout_s: float | None
    ) -> AsyncIterator[Page]:
        """Yield the pages of a listing, each as it is asked for."""
        while True:
            page = await self._unary(method, call, request, timeout_s)
            yield page
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    async def _answer(
        self,
        method: str,
        call: StreamCall[Request, Event],
        request: Request,
        progress: Callable[[Event], Progress],
        result: Callable[[Sequence[Event]], Result],
        on_progress: Callable[[Progress], None] | None,
        timeout_s: float,
    ) -> Result:
        """What a stream of progress ends with. It changes nothing: where it was cut, it is begun again, a few times."""
        end = time.monotonic() + timeout_s
        attempt = 1
        while True:
            events: list[Event] = []
            heard = False
            stream = call(request, timeout=max(0.0, end - time.monotonic()), metadata=self._connection.metadata)
            try:
                async for event in stream:
                    heard = True
                    if not event.HasField("progress"):
                        events.append(event)
                    elif on_progress is not None:
                        on_progress(progress(event))
            except RpcError as failure:
                error = self._explained(failure, method)
                # gRPC itself tries again what was cut before its first message.
                again = heard and self._connection.retry
                pause_s = restart_pause_s(error, attempt, end - time.monotonic()) if again else None
                if pause_s is None:
                    raise error from failure
            else:
                if not events or not events[-1].HasField("result"):
                    raise InternalError(f"the server ended {method} without a result", code=Code.INTERNAL)
                return result(events)
            finally:
                stream.cancel()
            attempt += 1
            await sleep(pause_s)

    def _explained(self, failure: Failure, method: str) -> NodewiseError:
        return from_call(cast("FailedCall", failure), target=self._connection.target, method=method)
