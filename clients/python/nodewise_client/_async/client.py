"""The client for asyncio."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Self

import nodewise_values as values
from nodewise_client._access import TokenSource, from_environment
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
from nodewise_client._async.calls import AsyncCalls
from nodewise_client._async.ingest import AsyncIngestWriter
from nodewise_client._async.seam import Many, RpcError, collect, each, sleep
from nodewise_client._connection import DEFAULT_MAX_RECEIVE_BYTES, STREAM_TIMEOUT_S, Connection, HealthStatus
from nodewise_client._errors import NodewiseError
from nodewise_client._ingest_core import BATCH_ROWS, LINGER_S, MAX_UNACKNOWLEDGED, IngestCore
from nodewise_client._pages import whole_profile
from nodewise_client._requests import message_of, new_id, stream_request, with_id
from nodewise_client._resume import Restarts, ResumePolicy
from nodewise_values.wire import from_own_message


class AsyncClient(AsyncCalls):
    """A connection to a Nodewise server, for asyncio. It may be made anywhere and is used within one event loop.

    Args:
        target: `host:port`, or any name that gRPC resolves. Nothing is sent before the first call.
        timeout_s: deadline of every call that is given none of its own; None = 10 s, or 60 s where much may be computed
            or stored, as the SDKs of all languages have it.
        token: sent with every call as `authorization: Bearer ...`; a function is asked for it each time, such as
            `TokenFile(path)`. Over plain text whoever is on the way reads it.
        tls: True = TLS with the system's root certificates; bytes = with these (PEM); False = plain text.
        tls_certificate, tls_key: the client's own certificate with its chain, and its key (PEM), where the server asks
            for one.
        retry: whether idempotent calls are tried again where the server is not there or going away.
        max_receive_bytes: largest message that is accepted from the server.
        user_agent: the caller's own name, such as `my-scheduler/1.2`, before the client's in the header of that name.
    """

    def __init__(
        self,
        target: str,
        *,
        timeout_s: float | None = None,
        token: TokenSource | None = None,
        tls: bool | bytes = False,
        tls_certificate: bytes | None = None,
        tls_key: bytes | None = None,
        retry: bool = True,
        max_receive_bytes: int = DEFAULT_MAX_RECEIVE_BYTES,
        user_agent: str | None = None,
    ) -> None:
        super().__init__(
            Connection(
                target=target,
                timeout_s=timeout_s,
                token=token,
                tls=tls,
                tls_certificate=tls_certificate,
                tls_key=tls_key,
                retry=retry,
                max_receive_bytes=max_receive_bytes,
                user_agent=user_agent,
            )
        )

    @classmethod
    def from_environment(cls, target: str | None = None, **options: Any) -> Self:
        """A client as the environment says; options stand above it.

        NODEWISE_SERVER where no target is given; NODEWISE_TOKEN or NODEWISE_TOKEN_FILE; NODEWISE_TLS_CA (a file of root
        certificates, or `system`), NODEWISE_TLS_CERT and NODEWISE_TLS_KEY.
        """
        return cls(target or os.environ.get("NODEWISE_SERVER", ""), **{**from_environment(), **options})

    # --- predictions -----------------------------------------------------------------------------------------------

    async def predict(self, request: values.PredictRequest, *, timeout_s: float | None = None) -> PredictResult:
        """Predict one job, stored or given inline, on configurations that were never run, and recommend one."""
        return predict_result(await self._request_reply(request, timeout_s))

    async def batch_predict(
        self, request: values.BatchPredictRequest, *, timeout_s: float | None = None
    ) -> BatchPredictResult:
        """Predict many jobs. A job that cannot be answered carries its error; the others are answered."""
        return batch_result(await self._unary(request, values.BatchPredictResponse, timeout_s))

    async def stream_predict(
        self,
        requests: Many[values.PredictRequest | values.BatchPredictRequest | values.StreamPredictRequest],
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

        call = self._rpc.methods["StreamPredict"](messages(), timeout=timeout_s, metadata=self._connection.metadata)
        try:
            async for message in call:
                yield stream_answer(message)
        except RpcError as failure:
            raise self._error_of(failure, "StreamPredict") from failure
        finally:
            call.cancel()
        if failures:
            raise failures[0]

    async def suggest_measurements(
        self, request: values.SuggestMeasurementsRequest, *, timeout_s: float | None = None
    ) -> values.SuggestMeasurementsResponse:
        """Which of some configurations to measure next, best first, by what each would teach and by its cost."""
        return await self._unary(request, values.SuggestMeasurementsResponse, timeout_s)

    async def list_estimators(self, *, timeout_s: float | None = None) -> values.ListEstimatorsResponse:
        """The estimators that can be asked."""
        return await self._list_all(values.ListEstimatorsRequest(), values.ListEstimatorsResponse, timeout_s)

    async def list_devices(self, *, timeout_s: float | None = None) -> values.ListDevicesResponse:
        """The devices that the server's catalog knows, with the names that they go by."""
        return await self._list_all(values.ListDevicesRequest(), values.ListDevicesResponse, timeout_s)

    async def list_plugins(
        self, kind: values.PluginKind | None = None, *, timeout_s: float | None = None
    ) -> values.ListPluginsResponse:
        """The plugins that are loaded, of one kind or all, and those that could not be."""
        return await self._list_all(values.ListPluginsRequest(kind=kind), values.ListPluginsResponse, timeout_s)

    # --- profiles --------------------------------------------------------------------------------------------------

    async def append_profile(
        self, request: values.AppendProfileRequest, *, timeout_s: float | None = None
    ) -> values.Profile:
        """Append to a profile in one call and commit. The same `request_id` again changes nothing."""
        reply = await self._unary(with_id(request), values.AppendProfileResponse, timeout_s)
        return reply.profile or values.Profile()

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
            lambda feed: self._rpc.methods["IngestProfile"](feed, metadata=self._connection.metadata),
            explain=lambda failure: self._error_of(failure, "IngestProfile"),
            policy=policy,
            acknowledge_timeout_s=self._connection.timeout_of("IngestProfile"),
        )

    async def ingest_batch(
        self, request: values.IngestBatchRequest, *, timeout_s: float | None = None
    ) -> values.IngestState:
        """Add one batch to a session, or ask how far it is; `ingest` does so for all that a program records."""
        reply = await self._unary(request, values.IngestBatchResponse, timeout_s)
        return reply.state or values.IngestState()

    async def get_profile(
        self, request: values.GetProfileRequest | str, *, timeout_s: float | None = None
    ) -> values.Profile:
        """Read a profile as it is or was, by its name; pages of observations are fetched and put together."""
        asked = values.GetProfileRequest(profile_id=request) if isinstance(request, str) else request
        pages = await collect(self._pages(asked, values.GetProfileResponse, timeout_s))
        return whole_profile([page.profile or values.Profile() for page in pages])

    async def list_profiles(
        self, request: values.ListProfilesRequest | None = None, *, timeout_s: float | None = None
    ) -> AsyncIterator[values.Profile]:
        """The profiles by name, without their content; pages are fetched as they are needed."""
        asked = request or values.ListProfilesRequest()
        async for page in self._pages(asked, values.ListProfilesResponse, timeout_s):
            for profile in page.profiles:
                yield profile

    async def watch_profiles(
        self,
        request: values.WatchProfilesRequest | None = None,
        *,
        resume: ResumePolicy | None = None,
        timeout_s: float | None = None,
    ) -> AsyncIterator[values.WatchProfilesResponse]:
        """Tell of profiles as they are and then of every change, for as long as it is read.

        Where the server goes away the watch begins anew: all profiles are told again, and `caught_up` once more.
        `timeout_s` is for all of it; None = no end.
        """
        message = message_of(request or values.WatchProfilesRequest())
        end = None if timeout_s is None else time.monotonic() + timeout_s
        restarts = Restarts(resume or ResumePolicy())
        while True:
            left_s = None if end is None else max(0.0, end - time.monotonic())
            stream = self._rpc.methods["WatchProfiles"](message, timeout=left_s, metadata=self._connection.metadata)
            error: NodewiseError | None = None
            try:
                async for event in stream:
                    restarts.record_reply()
                    yield from_own_message(event, values.WatchProfilesResponse)
            except RpcError as failure:
                error = self._error_of(failure, "WatchProfiles")
            finally:
                stream.cancel()
            if self._closed or not self._connection.retry or (end is not None and time.monotonic() >= end):
                if error is not None:
                    raise error
                return
            await sleep(restarts.pause_s(error))

    async def delete_profile(
        self, request: values.DeleteProfileRequest | str, *, etag: str = "", timeout_s: float | None = None
    ) -> values.Profile | None:
        """Delete a profile if its etag is this; "*" = whatever it is. Until `purge_time` it can return.

        None = there was none, where the request allows that.
        """
        asked = values.DeleteProfileRequest(profile_id=request, etag=etag) if isinstance(request, str) else request
        return (await self._unary(asked, values.DeleteProfileResponse, timeout_s)).profile

    async def undelete_profile(
        self, request: values.UndeleteProfileRequest | str, *, timeout_s: float | None = None
    ) -> values.Profile:
        """Bring a deleted profile back as it was."""
        asked = values.UndeleteProfileRequest(profile_id=request) if isinstance(request, str) else request
        return (await self._unary(asked, values.UndeleteProfileResponse, timeout_s)).profile or values.Profile()

    async def list_usage(self, *, timeout_s: float | None = None) -> values.ListUsageResponse:
        """What namespaces store in which the caller has profiles, beside their quotas; of all pages."""
        return await self._list_all(values.ListUsageRequest(), values.ListUsageResponse, timeout_s)

    async def retract_evidence(
        self, request: values.RetractEvidenceRequest, *, timeout_s: float | None = None
    ) -> values.Profile:
        """Take observations, timed phases, facts or traces out of a profile; they stay in its history."""
        reply = await self._unary(with_id(request), values.RetractEvidenceResponse, timeout_s)
        return reply.profile or values.Profile()

    # --- schedules and backtests -----------------------------------------------------------------------------------

    async def schedule(
        self, request: values.ScheduleRequest, *, timeout_s: float | None = None
    ) -> values.ScheduleResponse:
        """Share a cluster among jobs. Pure: give `policy_state` of the last reply, and `now` to repeat a decision."""
        asked = request if request.now is not None else replace(request, now=datetime.now(UTC))
        return await self._unary(asked, values.ScheduleResponse, timeout_s)

    async def simulate(
        self,
        request: values.SimulateRequest,
        *,
        on_progress: Callable[[values.SimulationProgress], None] | None = None,
        timeout_s: float = STREAM_TIMEOUT_S,
    ) -> SimulationAnswer:
        """Tell what a policy would have done to jobs that arrive over time; `on_progress` hears how far it is."""
        return await self._answer(request, on_progress, simulation_answer, timeout_s)

    async def estimate_completion(
        self, request: values.EstimateCompletionRequest, *, timeout_s: float | None = None
    ) -> values.EstimateCompletionResponse:
        """Time, cost and risk of a job on offers of machines that can be taken away, and the offer to take."""
        return await self._unary(request, values.EstimateCompletionResponse, timeout_s)

    async def list_policies(self, *, timeout_s: float | None = None) -> values.ListPoliciesResponse:
        """The policies that can be asked, with their parameters."""
        return await self._list_all(values.ListPoliciesRequest(), values.ListPoliciesResponse, timeout_s)

    async def backtest(
        self,
        request: values.BacktestRequest,
        *,
        on_progress: Callable[[values.BacktestProgress], None] | None = None,
        timeout_s: float = STREAM_TIMEOUT_S,
    ) -> values.BacktestResult:
        """Fit estimators to a table's train rows and score them on its test rows; `on_progress` hears how far it is."""
        return await self._answer(request, on_progress, backtest_answer, timeout_s)

    # --- plans and traces ------------------------------------------------------------------------------------------

    async def plan(
        self,
        request: values.PlanRequest,
        *,
        on_progress: Callable[[values.PlanProgress], None] | None = None,
        timeout_s: float = STREAM_TIMEOUT_S,
    ) -> PlanAnswer:
        """Find the best configuration within constraints; `on_progress` hears the best so far."""
        return await self._answer(request, on_progress, plan_answer, timeout_s)

    async def replay(
        self,
        request: values.ReplayRequest,
        *,
        on_progress: Callable[[values.DiagnosisProgress], None] | None = None,
        timeout_s: float = STREAM_TIMEOUT_S,
    ) -> ReplayAnswer:
        """Predict steps of a recorded job from its other steps, as they were or changed."""
        return await self._answer(request, on_progress, replay_answer, timeout_s)

    async def diagnose(
        self,
        request: values.DiagnoseRequest,
        *,
        on_progress: Callable[[values.DiagnosisProgress], None] | None = None,
        timeout_s: float = STREAM_TIMEOUT_S,
    ) -> DiagnosisAnswer:
        """Find what bounds a recorded job's steps, who is waited for, and what would shorten them most."""
        return await self._answer(request, on_progress, diagnosis_answer, timeout_s)

    async def report_steps(
        self, request: values.ReportStepsRequest, *, timeout_s: float | None = None
    ) -> values.ReportStepsResponse:
        """Send times of steps of a job that runs; the reply says what its recorders are asked to record."""
        return await self._unary(request, values.ReportStepsResponse, timeout_s)

    # --- sharing a device -----------------------------------------------------------------------------------------

    async def predict_sharing(
        self, request: values.PredictSharingRequest, *, timeout_s: float | None = None
    ) -> values.PredictSharingResponse:
        """What jobs keep of their solo speed on one device, set by set, and whether sharing is worth it."""
        return await self._unary(request, values.PredictSharingResponse, timeout_s)

    # --- generations of plugins ------------------------------------------------------------------------------------

    async def list_generations(
        self, request: values.ListGenerationsRequest | None = None, *, timeout_s: float | None = None
    ) -> values.ListGenerationsResponse:
        """Sets of plugins that are served together, the newest first, and who serves whom; a page of them."""
        asked = request or values.ListGenerationsRequest()
        return await self._unary(asked, values.ListGenerationsResponse, timeout_s)

    async def reload(
        self, request: values.ReloadRequest | None = None, *, timeout_s: float | None = None
    ) -> values.ReloadResponse:
        """Let another generation take over, once it was tried: the one that waits, is named, or is installed by now."""
        return await self._unary(request or values.ReloadRequest(), values.ReloadResponse, timeout_s)

    async def set_canary(
        self, request: values.SetCanaryRequest, *, timeout_s: float | None = None
    ) -> values.SetCanaryResponse:
        """Let a generation answer a share of the jobs, once it was tried."""
        return await self._unary(request, values.SetCanaryResponse, timeout_s)

    async def promote(self, *, timeout_s: float | None = None) -> values.PromoteResponse:
        """Let the canary answer all jobs."""
        return await self._unary(values.PromoteRequest(), values.PromoteResponse, timeout_s)

    async def rollback(self, *, timeout_s: float | None = None) -> values.RollbackResponse:
        """End the canary; without one, return to the generation that was stable before."""
        return await self._unary(values.RollbackRequest(), values.RollbackResponse, timeout_s)

    async def create_token(
        self, request: values.CreateTokenRequest, *, timeout_s: float | None = None
    ) -> values.CreateTokenResponse:
        """Make a bearer token. Its text, `bearer_token`, is told here alone."""
        return await self._unary(request, values.CreateTokenResponse, timeout_s)

    async def list_tokens(
        self, request: values.ListTokensRequest | None = None, *, timeout_s: float | None = None
    ) -> values.ListTokensResponse:
        """All tokens, without their texts."""
        return await self._list_all(request or values.ListTokensRequest(), values.ListTokensResponse, timeout_s)

    async def revoke_token(self, token_id: str, *, timeout_s: float | None = None) -> values.RevokeTokenResponse:
        """End a token for good."""
        request = values.RevokeTokenRequest(token_id=token_id)
        return await self._unary(request, values.RevokeTokenResponse, timeout_s)

    async def list_plugin_states(self, *, timeout_s: float | None = None) -> values.ListPluginStatesResponse:
        """How the plugins of every track fare in the process that answers."""
        return await self._unary(values.ListPluginStatesRequest(), values.ListPluginStatesResponse, timeout_s)

    # --- what was learned ------------------------------------------------------------------------------------------

    async def list_priors(
        self, request: values.ListPriorsRequest | None = None, *, timeout_s: float | None = None
    ) -> values.ListPriorsResponse:
        """What was learned from the store's jobs, namespace by namespace, and what it changed; a page of them."""
        return await self._unary(request or values.ListPriorsRequest(), values.ListPriorsResponse, timeout_s)

    async def set_prior(
        self, request: values.SetPriorRequest, *, timeout_s: float | None = None
    ) -> values.SetPriorResponse:
        """Pin what a namespace learned, let it learn again, or return it to what it learned before."""
        return await self._unary(request, values.SetPriorResponse, timeout_s)

    # --- the server ------------------------------------------------------------------------------------------------

    async def health(self, service: str = "", *, timeout_s: float | None = None) -> HealthStatus:
        """What the server says of itself, or of one service, e.g. "nodewise.v1.PredictionService" (grpc.health.v1)."""
        return await self._call("Health/Check", self._rpc.health, service, timeout_s)
