"""The client for asyncio."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final, Self, TypeVar, cast

from google.protobuf.message import Message

from nodewise_client._answers import (
    BatchPredictResult,
    DiagnosisAnswer,
    PlanAnswer,
    PredictResult,
    ReplayAnswer,
    SimulationAnswer,
    StreamAnswer,
    backtest_answer,
    batch_result,
    diagnosis_answer,
    plan_answer,
    predict_result,
    replay_answer,
    simulation_answer,
    stream_answer,
)
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
from nodewise_client._connection import DEFAULT_MAX_RECEIVE_BYTES, STREAM_TIMEOUT_S, Connection, HealthStatus
from nodewise_client._errors import Code, FailedCall, InternalError, NodewiseError, from_call
from nodewise_client._ingest_core import BATCH_ROWS, LINGER_S, MAX_UNACKNOWLEDGED, IngestCore
from nodewise_client._pages import joined, whole_profile
from nodewise_client._requests import message_of, new_id, stream_request, with_id
from nodewise_client._resume import Restarts, ResumePolicy, restart_pause_s
from nodewise_values import (
    AppendProfileRequest,
    AppendProfileResponse,
    BacktestProgress,
    BacktestRequest,
    BacktestResult,
    BatchPredictRequest,
    BatchPredictResponse,
    DeleteProfileRequest,
    DeleteProfileResponse,
    DiagnoseRequest,
    DiagnosisProgress,
    GetProfileRequest,
    GetProfileResponse,
    IngestBatchRequest,
    IngestBatchResponse,
    IngestState,
    ListDevicesRequest,
    ListDevicesResponse,
    ListEstimatorsRequest,
    ListEstimatorsResponse,
    ListPluginsRequest,
    ListPluginsResponse,
    ListPoliciesRequest,
    ListPoliciesResponse,
    ListProfilesRequest,
    ListProfilesResponse,
    PlanProgress,
    PlanRequest,
    PluginKind,
    PredictRequest,
    PredictResponse,
    Profile,
    ReplayRequest,
    RetractEvidenceRequest,
    RetractEvidenceResponse,
    ScheduleRequest,
    ScheduleResponse,
    SimulateRequest,
    SimulationProgress,
    StreamPredictRequest,
    StreamPredictResponse,
    SuggestMeasurementsRequest,
    SuggestMeasurementsResponse,
    UndeleteProfileRequest,
    UndeleteProfileResponse,
    WatchProfilesRequest,
    WatchProfilesResponse,
)
from nodewise_values.value import Value
from nodewise_values.wire import from_message

Progress = TypeVar("Progress", bound=Value)
Result = TypeVar("Result")
Reply = TypeVar("Reply", bound=Value)
Answered = TypeVar("Answered")
Event = TypeVar("Event", bound=Message)


class AsyncClient:
    """A connection to a Nodewise server, for asyncio. It may be made anywhere and is used within one event loop.

    Args:
        target: `host:port`, or any name that gRPC resolves. Nothing is sent before the first call.
        timeout_s: deadline of every call that is given none of its own; None = 10 s, or 60 s where much may be computed
            or stored, as the SDKs of all languages have it.
        token: sent with every call as `authorization: Bearer ...`.
        tls: True = TLS with the system's root certificates; bytes = with these (PEM); False = plain text.
        retry: whether idempotent calls are tried again where the server is not there or going away.
        max_receive_bytes: largest message that is accepted from the server.
    """

    def __init__(
        self,
        target: str,
        *,
        timeout_s: float | None = None,
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

    async def predict(self, request: PredictRequest, *, timeout_s: float | None = None) -> PredictResult:
        """Predict one job, stored or given inline, on configurations that were never run, and recommend one."""
        return predict_result(
            await self._unary("Predict", self._rpc.prediction.Predict, request, PredictResponse, timeout_s)
        )

    async def batch_predict(
        self, request: BatchPredictRequest, *, timeout_s: float | None = None
    ) -> BatchPredictResult:
        """Predict many jobs. A job that cannot be answered carries its error; the others are answered."""
        call = self._rpc.prediction.BatchPredict
        return batch_result(await self._unary("BatchPredict", call, request, BatchPredictResponse, timeout_s))

    async def stream_predict(
        self,
        requests: Many[PredictRequest | BatchPredictRequest | StreamPredictRequest],
        *,
        timeout_s: float = STREAM_TIMEOUT_S,
    ) -> AsyncIterator[StreamAnswer]:
        """Ask over one stream: requests are read as the server takes them, answers come as they are ready.

        What has no `question_id` is numbered from 1. `timeout_s` is for the whole stream. An error of one question ends
        that question, not the stream.
        """
        failures: list[Exception] = []

        async def messages() -> AsyncIterator[Any]:
            # gRPC reads this beside the answers and would only log what goes wrong here.
            number = 0  # counted by hand: what is awaited cannot be enumerated
            try:
                async for request in each(requests):
                    number += 1
                    yield message_of(stream_request(request, number))
            except Exception as failure:  # noqa: BLE001  # the caller's own; raised again where the answers are read
                failures.append(failure)

        predict = self._rpc.prediction.StreamPredict
        call = predict(messages(), timeout=timeout_s, metadata=self._connection.metadata)
        try:
            async for message in call:
                yield stream_answer(from_message(message, StreamPredictResponse))
        except RpcError as failure:
            raise self._explained(failure, "StreamPredict") from failure
        finally:
            call.cancel()
        if failures:
            raise failures[0]

    async def suggest_measurements(
        self, request: SuggestMeasurementsRequest, *, timeout_s: float | None = None
    ) -> SuggestMeasurementsResponse:
        """Which of some configurations to measure next, best first, by what each would teach and by its cost."""
        call = self._rpc.prediction.SuggestMeasurements
        return await self._unary("SuggestMeasurements", call, request, SuggestMeasurementsResponse, timeout_s)

    async def list_estimators(self, *, timeout_s: float | None = None) -> ListEstimatorsResponse:
        """The estimators that can be asked."""
        call = self._rpc.prediction.ListEstimators
        pages = self._pages("ListEstimators", call, ListEstimatorsRequest(), ListEstimatorsResponse, timeout_s)
        return joined(await collected(pages))

    async def list_devices(self, *, timeout_s: float | None = None) -> ListDevicesResponse:
        """The devices that the server's catalog knows, with the names that they go by."""
        call = self._rpc.prediction.ListDevices
        pages = self._pages("ListDevices", call, ListDevicesRequest(), ListDevicesResponse, timeout_s)
        return joined(await collected(pages))

    async def list_plugins(
        self, kind: PluginKind | None = None, *, timeout_s: float | None = None
    ) -> ListPluginsResponse:
        """The plugins that are loaded, of one kind or all, and those that could not be."""
        call = self._rpc.prediction.ListPlugins
        pages = self._pages("ListPlugins", call, ListPluginsRequest(kind=kind), ListPluginsResponse, timeout_s)
        return joined(await collected(pages))

    # --- profiles --------------------------------------------------------------------------------------------------

    async def append_profile(self, request: AppendProfileRequest, *, timeout_s: float | None = None) -> Profile:
        """Append to a profile in one call and commit. The same `request_id` again changes nothing."""
        call = self._rpc.profile.AppendProfile
        reply = await self._unary("AppendProfile", call, with_id(request), AppendProfileResponse, timeout_s)
        return reply.profile or Profile()

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
            acknowledge_timeout_s=self._connection.timeout_of("IngestProfile"),
        )

    async def ingest_batch(self, request: IngestBatchRequest, *, timeout_s: float | None = None) -> IngestState:
        """Add one batch to a session, or ask how far it is; `ingest` does so for all that a program records."""
        reply = await self._unary("IngestBatch", self._rpc.profile.IngestBatch, request, IngestBatchResponse, timeout_s)
        return reply.state or IngestState()

    async def get_profile(self, request: GetProfileRequest | str, *, timeout_s: float | None = None) -> Profile:
        """Read a profile as it is or was, by its name; pages of observations are fetched and put together."""
        asked = GetProfileRequest(profile_id=request) if isinstance(request, str) else request
        call = self._rpc.profile.GetProfile
        pages = await collected(self._pages("GetProfile", call, asked, GetProfileResponse, timeout_s))
        return whole_profile([page.profile or Profile() for page in pages])

    async def list_profiles(
        self, request: ListProfilesRequest | None = None, *, timeout_s: float | None = None
    ) -> AsyncIterator[Profile]:
        """The profiles by name, without their content; pages are fetched as they are needed."""
        call, asked = self._rpc.profile.ListProfiles, request or ListProfilesRequest()
        async for page in self._pages("ListProfiles", call, asked, ListProfilesResponse, timeout_s):
            for profile in page.profiles:
                yield profile

    async def watch_profiles(
        self,
        request: WatchProfilesRequest | None = None,
        *,
        resume: ResumePolicy | None = None,
        timeout_s: float | None = None,
    ) -> AsyncIterator[WatchProfilesResponse]:
        """Tell of profiles as they are and then of every change, for as long as it is read.

        Where the server goes away the watch begins anew: all profiles are told again, and `caught_up` once more.
        `timeout_s` is for all of it; None = no end.
        """
        message = message_of(request or WatchProfilesRequest())
        end = None if timeout_s is None else time.monotonic() + timeout_s
        restarts = Restarts(resume or ResumePolicy())
        while True:
            left_s = None if end is None else max(0.0, end - time.monotonic())
            stream = self._rpc.profile.WatchProfiles(message, timeout=left_s, metadata=self._connection.metadata)
            error: NodewiseError | None = None
            try:
                async for event in stream:
                    restarts.heard()
                    yield from_message(event, WatchProfilesResponse)
            except RpcError as failure:
                error = self._explained(failure, "WatchProfiles")
                over = self._closed or not self._connection.retry or (end is not None and time.monotonic() >= end)
                if over:
                    raise error from failure
            finally:
                stream.cancel()
            await sleep(restarts.pause_s(error))

    async def delete_profile(
        self, request: DeleteProfileRequest | str, *, etag: str = "", timeout_s: float | None = None
    ) -> Profile | None:
        """Delete a profile if its etag is this; "*" = whatever it is. Until `purge_time` it can return.

        None = there was none, where the request allows that.
        """
        asked = DeleteProfileRequest(profile_id=request, etag=etag) if isinstance(request, str) else request
        call = self._rpc.profile.DeleteProfile
        return (await self._unary("DeleteProfile", call, asked, DeleteProfileResponse, timeout_s)).profile

    async def undelete_profile(
        self, request: UndeleteProfileRequest | str, *, timeout_s: float | None = None
    ) -> Profile:
        """Bring a deleted profile back as it was."""
        asked = UndeleteProfileRequest(profile_id=request) if isinstance(request, str) else request
        call = self._rpc.profile.UndeleteProfile
        return (
            await self._unary("UndeleteProfile", call, asked, UndeleteProfileResponse, timeout_s)
        ).profile or Profile()

    async def retract_evidence(self, request: RetractEvidenceRequest, *, timeout_s: float | None = None) -> Profile:
        """Take observations, timed phases, facts or traces out of a profile; they stay in its history."""
        call = self._rpc.profile.RetractEvidence
        reply = await self._unary("RetractEvidence", call, with_id(request), RetractEvidenceResponse, timeout_s)
        return reply.profile or Profile()

    # --- schedules and backtests -----------------------------------------------------------------------------------

    async def schedule(self, request: ScheduleRequest, *, timeout_s: float | None = None) -> ScheduleResponse:
        """Share a cluster among jobs. Pure: give `policy_state` of the last reply, and `now` to repeat a decision."""
        asked = request if request.now is not None else replace(request, now=datetime.now(UTC))
        return await self._unary("Schedule", self._rpc.schedule.Schedule, asked, ScheduleResponse, timeout_s)

    async def simulate(
        self,
        request: SimulateRequest,
        *,
        on_progress: Callable[[SimulationProgress], None] | None = None,
        timeout_s: float = STREAM_TIMEOUT_S,
    ) -> SimulationAnswer:
        """Tell what a policy would have done to jobs that arrive over time; `on_progress` hears how far it is."""
        call = self._rpc.simulation.Simulate
        told = (SimulationProgress, on_progress)
        return await self._answer("Simulate", call, request, told, simulation_answer, timeout_s)

    async def list_policies(self, *, timeout_s: float | None = None) -> ListPoliciesResponse:
        """The policies that can be asked, with their parameters."""
        call = self._rpc.schedule.ListPolicies
        pages = self._pages("ListPolicies", call, ListPoliciesRequest(), ListPoliciesResponse, timeout_s)
        return joined(await collected(pages))

    async def backtest(
        self,
        request: BacktestRequest,
        *,
        on_progress: Callable[[BacktestProgress], None] | None = None,
        timeout_s: float = STREAM_TIMEOUT_S,
    ) -> BacktestResult:
        """Fit estimators to a table's train rows and score them on its test rows; `on_progress` hears how far it is."""
        call = self._rpc.evaluation.Backtest
        return await self._answer(
            "Backtest", call, request, (BacktestProgress, on_progress), backtest_answer, timeout_s
        )

    # --- plans and traces ------------------------------------------------------------------------------------------

    async def plan(
        self,
        request: PlanRequest,
        *,
        on_progress: Callable[[PlanProgress], None] | None = None,
        timeout_s: float = STREAM_TIMEOUT_S,
    ) -> PlanAnswer:
        """Find the best configuration within constraints; `on_progress` hears the best so far."""
        call = self._rpc.plan.Plan
        return await self._answer("Plan", call, request, (PlanProgress, on_progress), plan_answer, timeout_s)

    async def replay(
        self,
        request: ReplayRequest,
        *,
        on_progress: Callable[[DiagnosisProgress], None] | None = None,
        timeout_s: float = STREAM_TIMEOUT_S,
    ) -> ReplayAnswer:
        """Predict steps of a recorded job from its other steps, as they were or changed."""
        call = self._rpc.diagnosis.Replay
        return await self._answer("Replay", call, request, (DiagnosisProgress, on_progress), replay_answer, timeout_s)

    async def diagnose(
        self,
        request: DiagnoseRequest,
        *,
        on_progress: Callable[[DiagnosisProgress], None] | None = None,
        timeout_s: float = STREAM_TIMEOUT_S,
    ) -> DiagnosisAnswer:
        """Find what bounds a recorded job's steps, who is waited for, and what would shorten them most."""
        call = self._rpc.diagnosis.Diagnose
        told = (DiagnosisProgress, on_progress)
        return await self._answer("Diagnose", call, request, told, diagnosis_answer, timeout_s)

    # --- the server ------------------------------------------------------------------------------------------------

    async def health(self, service: str = "", *, timeout_s: float | None = None) -> HealthStatus:
        """What the server says of itself, or of one service, e.g. "nodewise.v1.PredictionService" (grpc.health.v1)."""
        return await self._called("Health/Check", self._rpc.health, service, timeout_s)

    # --- within ----------------------------------------------------------------------------------------------------

    @property
    def _rpc(self) -> Services:
        # Nothing may reach a closed channel: gRPC would make a method on it, and break the process's memory.
        if self._closed:
            raise RuntimeError("the client is closed")
        return self._services

    async def _unary(
        self, method: str, call: UnaryCall[Any, Any], request: Value, kind: type[Reply], timeout_s: float | None
    ) -> Reply:
        return from_message(await self._called(method, call, message_of(request), timeout_s), kind)

    async def _called(
        self, method: str, call: UnaryCall[Any, Answered], request: Any, timeout_s: float | None
    ) -> Answered:
        timeout_s = self._connection.timeout_of(method) if timeout_s is None else timeout_s
        try:
            return await call(request, timeout=timeout_s, metadata=self._connection.metadata)
        except RpcError as failure:
            raise self._explained(failure, method) from failure

    async def _pages(
        self, method: str, call: UnaryCall[Any, Any], request: Value, kind: type[Reply], timeout_s: float | None
    ) -> AsyncIterator[Reply]:
        """Yield the pages of a listing, each as it is asked for."""
        message = message_of(request)
        while True:
            page = await self._called(method, call, message, timeout_s)
            yield from_message(page, kind)
            if not page.next_page_token:
                return
            message.page_token = page.next_page_token

    async def _answer(
        self,
        method: str,
        call: StreamCall[Any, Event],
        request: Value,
        told: tuple[type[Progress], Callable[[Progress], None] | None],
        result: Callable[[Sequence[Event]], Result],
        timeout_s: float,
    ) -> Result:
        """What a stream of progress ends with. It changes nothing: where it was cut, it is begun again, a few times."""
        kind, on_progress = told
        message = message_of(request)
        end = time.monotonic() + timeout_s
        attempt = 1
        while True:
            events: list[Event] = []
            heard = False
            stream = call(message, timeout=max(0.0, end - time.monotonic()), metadata=self._connection.metadata)
            try:
                async for event in stream:
                    heard = True
                    if not event.HasField("progress"):
                        events.append(event)
                    elif on_progress is not None:
                        on_progress(from_message(cast(Any, event).progress, kind))
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
