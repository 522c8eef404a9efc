"""The client for asyncio."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

import nodewise_values as values
from nodewise_client._access import TokenSource, from_environment
from nodewise_client._answers import (
    BatchPredictResult,
    PredictResult,
    StreamAnswer,
    backtest_answer,
    batch_result,
    predict_result,
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

if TYPE_CHECKING:  # most programs use one kind of long answer or none, and importing all takes a tenth of a second
    from nodewise_client._long_answers import DiagnosisAnswer, PlanAnswer, ReplayAnswer, SimulationAnswer


class AsyncClient(AsyncCalls):
    """A connection to a Nodewise server, for asyncio. It may be made anywhere and is used within one event loop.

    Args:
        target: `host:port`, or any name that gRPC resolves. Nothing is sent before the first call.
        timeout_s: deadline in seconds of calls without one of their own; None = 10 s, or 60 s for methods that compute
            or store much, as in the clients of all languages.
        token: sent with every call as `authorization: Bearer ...`; a function, such as `TokenFile(path)`, is called for
            it each time. Over plain text, others on the network can read it.
        tls: True = TLS with the system's root certificates; bytes = with these (PEM); False = plain text.
        tls_certificate, tls_key: the client's own certificate with its chain, and its key (PEM), if the server requires
            one.
        retry: whether idempotent calls are retried while the server is unavailable or shuts down.
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
        """A client with the options in the environment; arguments override them.

        NODEWISE_SERVER if no target is given; NODEWISE_TOKEN (a token, or @FILE) or NODEWISE_TOKEN_FILE;
        NODEWISE_TLS_CA (a file of root certificates, or `system`), NODEWISE_TLS_CERT and NODEWISE_TLS_KEY.
        """
        return cls(target or os.environ.get("NODEWISE_SERVER", ""), **{**from_environment(), **options})

    # --- predictions -----------------------------------------------------------------------------------------------

    async def predict(self, request: values.PredictRequest, *, timeout_s: float | None = None) -> PredictResult:
        """Predict one job, stored or given inline, on configurations that never ran, and recommend one."""
        return predict_result(await self._request_reply(request, timeout_s))

    async def batch_predict(
        self, request: values.BatchPredictRequest, *, timeout_s: float | None = None
    ) -> BatchPredictResult:
        """Predict many jobs. A job that cannot be answered has an error; the others are answered."""
        return batch_result(await self._unary(request, values.BatchPredictResponse, timeout_s))

    async def stream_predict(
        self,
        requests: Many[values.PredictRequest | values.BatchPredictRequest | values.StreamPredictRequest],
        *,
        timeout_s: float = STREAM_TIMEOUT_S,
    ) -> AsyncIterator[StreamAnswer]:
        """Predict over one stream: requests are read as the server accepts them, answers arrive as they are ready.

        Questions without a `question_id` are numbered from 1. `timeout_s` covers the whole stream. An error of one
        question ends that question, not the stream.
        """
        failures: list[Exception] = []

        async def messages() -> AsyncIterator[Any]:
            # gRPC reads this while answers arrive, and would only log an error raised here.
            number = 0  # counted by hand: an async iterator cannot be enumerated
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
        """Suggest which configurations to measure next, best first, by the expected gain and the cost of each."""
        return await self._unary(request, values.SuggestMeasurementsResponse, timeout_s)

    async def list_estimators(self, *, timeout_s: float | None = None) -> values.ListEstimatorsResponse:
        """List the estimators of the server."""
        return await self._list_all(values.ListEstimatorsRequest(), values.ListEstimatorsResponse, timeout_s)

    async def list_devices(self, *, timeout_s: float | None = None) -> values.ListDevicesResponse:
        """List the devices in the server's catalogue, with all their names."""
        return await self._list_all(values.ListDevicesRequest(), values.ListDevicesResponse, timeout_s)

    async def list_plugins(
        self, kind: values.PluginKind | None = None, *, timeout_s: float | None = None
    ) -> values.ListPluginsResponse:
        """List the loaded plugins, of one kind or all, and those that could not be loaded."""
        return await self._list_all(values.ListPluginsRequest(kind=kind), values.ListPluginsResponse, timeout_s)

    # --- profiles --------------------------------------------------------------------------------------------------

    async def append_profile(
        self, request: values.AppendProfileRequest, *, timeout_s: float | None = None
    ) -> values.Profile:
        """Append to a profile in one call and commit. Repeating a `request_id` changes nothing."""
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
        """A writer that streams into a profile and survives restarts of the server. Use it in an `async with` block.

        To resume a session of an earlier process after `durable_sequence_number`, give its `session_id`.
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
        """Add one batch to a session, or read its state; `ingest` does so for everything that a program records."""
        reply = await self._unary(request, values.IngestBatchResponse, timeout_s)
        return reply.state or values.IngestState()

    async def get_profile(
        self, request: values.GetProfileRequest | str, *, timeout_s: float | None = None
    ) -> values.Profile:
        """Read the current or an earlier revision of a profile by its name; all pages of observations are joined."""
        message = values.GetProfileRequest(profile_id=request) if isinstance(request, str) else request
        pages = await collect(self._pages(message, values.GetProfileResponse, timeout_s))
        return whole_profile([page.profile or values.Profile() for page in pages])

    async def list_profiles(
        self, request: values.ListProfilesRequest | None = None, *, timeout_s: float | None = None
    ) -> AsyncIterator[values.Profile]:
        """List profiles by name, without their content; pages are fetched as they are needed."""
        message = request or values.ListProfilesRequest()
        async for page in self._pages(message, values.ListProfilesResponse, timeout_s):
            for profile in page.profiles:
                yield profile

    async def watch_profiles(
        self,
        request: values.WatchProfilesRequest | None = None,
        *,
        resume: ResumePolicy | None = None,
        timeout_s: float | None = None,
    ) -> AsyncIterator[values.WatchProfilesResponse]:
        """Report all profiles and then every change, for as long as the caller reads.

        If the connection is lost, the watch starts again: it reports all profiles again, and `caught_up` once more.
        `timeout_s` covers the whole watch; None = no limit.
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
            if self._is_closed or not self._connection.retry or (end is not None and time.monotonic() >= end):
                if error is not None:
                    raise error
                return
            await sleep(restarts.pause_s(error))

    async def delete_profile(
        self, request: values.DeleteProfileRequest | str, *, etag: str = "", timeout_s: float | None = None
    ) -> values.Profile | None:
        """Delete a profile if it has this etag; "*" = any. Until `purge_time` it can be restored.

        Returns None if there was none and the request allows that.
        """
        message = values.DeleteProfileRequest(profile_id=request, etag=etag) if isinstance(request, str) else request
        return (await self._unary(message, values.DeleteProfileResponse, timeout_s)).profile

    async def undelete_profile(
        self, request: values.UndeleteProfileRequest | str, *, timeout_s: float | None = None
    ) -> values.Profile:
        """Restore a deleted profile."""
        message = values.UndeleteProfileRequest(profile_id=request) if isinstance(request, str) else request
        return (await self._unary(message, values.UndeleteProfileResponse, timeout_s)).profile or values.Profile()

    async def list_usage(self, *, timeout_s: float | None = None) -> values.ListUsageResponse:
        """List what the namespaces of the caller's profiles store, and their quotas, from all pages."""
        return await self._list_all(values.ListUsageRequest(), values.ListUsageResponse, timeout_s)

    async def retract_evidence(
        self, request: values.RetractEvidenceRequest, *, timeout_s: float | None = None
    ) -> values.Profile:
        """Remove observations, timed phases, facts or traces from a profile; they stay in its history."""
        reply = await self._unary(with_id(request), values.RetractEvidenceResponse, timeout_s)
        return reply.profile or values.Profile()

    # --- schedules and backtests -----------------------------------------------------------------------------------

    async def schedule(
        self, request: values.ScheduleRequest, *, timeout_s: float | None = None
    ) -> values.ScheduleResponse:
        """Share a cluster among jobs. Stateless: pass the last `policy_state`, and `now` to repeat a decision."""
        message = request if request.now is not None else replace(request, now=datetime.now(UTC))
        return await self._unary(message, values.ScheduleResponse, timeout_s)

    async def simulate(
        self,
        request: values.SimulateRequest,
        *,
        on_progress: Callable[[values.SimulationProgress], None] | None = None,
        timeout_s: float = STREAM_TIMEOUT_S,
    ) -> SimulationAnswer:
        """Simulate how a policy schedules jobs that arrive over time; `on_progress` is called with the progress."""
        from nodewise_client._long_answers import simulation_answer  # noqa: PLC0415  # see above

        return await self._answer(request, on_progress, simulation_answer, timeout_s)

    async def estimate_completion(
        self, request: values.EstimateCompletionRequest, *, timeout_s: float | None = None
    ) -> values.EstimateCompletionResponse:
        """Estimate time, cost and risk of a job on offers of preemptible machines, and recommend an offer."""
        return await self._unary(request, values.EstimateCompletionResponse, timeout_s)

    async def estimate_run(
        self, request: values.EstimateRunRequest, *, timeout_s: float | None = None
    ) -> values.EstimateRunResponse:
        """Estimate a run before its start: memory, time, cost and chance with failures, energy and emissions."""
        return await self._unary(request, values.EstimateRunResponse, timeout_s)

    async def list_policies(self, *, timeout_s: float | None = None) -> values.ListPoliciesResponse:
        """List the policies of the server, with their parameters."""
        return await self._list_all(values.ListPoliciesRequest(), values.ListPoliciesResponse, timeout_s)

    async def backtest(
        self,
        request: values.BacktestRequest,
        *,
        on_progress: Callable[[values.BacktestProgress], None] | None = None,
        timeout_s: float = STREAM_TIMEOUT_S,
    ) -> values.BacktestResult:
        """Fit estimators to a table's train rows and score them on its test rows; `on_progress` gets the progress."""
        return await self._answer(request, on_progress, backtest_answer, timeout_s)

    # --- plans and traces ------------------------------------------------------------------------------------------

    async def plan(
        self,
        request: values.PlanRequest,
        *,
        on_progress: Callable[[values.PlanProgress], None] | None = None,
        timeout_s: float = STREAM_TIMEOUT_S,
    ) -> PlanAnswer:
        """Find the best configuration within constraints; `on_progress` is called with the best so far."""
        from nodewise_client._long_answers import plan_answer  # noqa: PLC0415  # see above

        return await self._answer(request, on_progress, plan_answer, timeout_s)

    async def replay(
        self,
        request: values.ReplayRequest,
        *,
        on_progress: Callable[[values.DiagnosisProgress], None] | None = None,
        timeout_s: float = STREAM_TIMEOUT_S,
    ) -> ReplayAnswer:
        """Predict steps of a recorded job from its other steps, unchanged or with changes."""
        from nodewise_client._long_answers import replay_answer  # noqa: PLC0415  # see above

        return await self._answer(request, on_progress, replay_answer, timeout_s)

    async def diagnose(
        self,
        request: values.DiagnoseRequest,
        *,
        on_progress: Callable[[values.DiagnosisProgress], None] | None = None,
        timeout_s: float = STREAM_TIMEOUT_S,
    ) -> DiagnosisAnswer:
        """Find what bounds the steps of a recorded job, which ranks the others wait for, and what would help most."""
        from nodewise_client._long_answers import diagnosis_answer  # noqa: PLC0415  # see above

        return await self._answer(request, on_progress, diagnosis_answer, timeout_s)

    async def report_steps(
        self, request: values.ReportStepsRequest, *, timeout_s: float | None = None
    ) -> values.ReportStepsResponse:
        """Send step times of a running job; the reply holds requests to record."""
        return await self._unary(request, values.ReportStepsResponse, timeout_s)

    # --- sharing a device -----------------------------------------------------------------------------------------

    async def predict_sharing(
        self, request: values.PredictSharingRequest, *, timeout_s: float | None = None
    ) -> values.PredictSharingResponse:
        """Predict which share of its solo speed each job keeps on a shared device, and whether sharing is worth it."""
        return await self._unary(request, values.PredictSharingResponse, timeout_s)

    # --- generations of plugins ------------------------------------------------------------------------------------

    async def list_generations(
        self, request: values.ListGenerationsRequest | None = None, *, timeout_s: float | None = None
    ) -> values.ListGenerationsResponse:
        """Return a page of the generations of plugins, the newest first, and which jobs each serves."""
        message = request or values.ListGenerationsRequest()
        return await self._unary(message, values.ListGenerationsResponse, timeout_s)

    async def reload(
        self, request: values.ReloadRequest | None = None, *, timeout_s: float | None = None
    ) -> values.ReloadResponse:
        """Activate a generation after a trial: the pending one, the named one, or what is installed now."""
        return await self._unary(request or values.ReloadRequest(), values.ReloadResponse, timeout_s)

    async def set_canary(
        self, request: values.SetCanaryRequest, *, timeout_s: float | None = None
    ) -> values.SetCanaryResponse:
        """Let a generation answer a share of the jobs, after a trial."""
        return await self._unary(request, values.SetCanaryResponse, timeout_s)

    async def promote(self, *, timeout_s: float | None = None) -> values.PromoteResponse:
        """Let the canary answer all jobs."""
        return await self._unary(values.PromoteRequest(), values.PromoteResponse, timeout_s)

    async def rollback(self, *, timeout_s: float | None = None) -> values.RollbackResponse:
        """End the canary; without one, return to the previous stable generation."""
        return await self._unary(values.RollbackRequest(), values.RollbackResponse, timeout_s)

    async def create_token(
        self, request: values.CreateTokenRequest, *, timeout_s: float | None = None
    ) -> values.CreateTokenResponse:
        """Create a bearer token. Only this reply has its text, `bearer_token`."""
        return await self._unary(request, values.CreateTokenResponse, timeout_s)

    async def list_tokens(
        self, request: values.ListTokensRequest | None = None, *, timeout_s: float | None = None
    ) -> values.ListTokensResponse:
        """List all tokens, without their texts."""
        return await self._list_all(request or values.ListTokensRequest(), values.ListTokensResponse, timeout_s)

    async def revoke_token(self, token_id: str, *, timeout_s: float | None = None) -> values.RevokeTokenResponse:
        """Revoke a token for good."""
        request = values.RevokeTokenRequest(token_id=token_id)
        return await self._unary(request, values.RevokeTokenResponse, timeout_s)

    async def list_plugin_states(self, *, timeout_s: float | None = None) -> values.ListPluginStatesResponse:
        """Return the state of the plugins of every track in the process that answers."""
        return await self._unary(values.ListPluginStatesRequest(), values.ListPluginStatesResponse, timeout_s)

    # --- what was learned ------------------------------------------------------------------------------------------

    async def list_priors(
        self, request: values.ListPriorsRequest | None = None, *, timeout_s: float | None = None
    ) -> values.ListPriorsResponse:
        """Return a page of what each namespace learned from its jobs, and what that changed."""
        return await self._unary(request or values.ListPriorsRequest(), values.ListPriorsResponse, timeout_s)

    async def set_prior(
        self, request: values.SetPriorRequest, *, timeout_s: float | None = None
    ) -> values.SetPriorResponse:
        """Pin what a namespace learned, let it learn again, or roll it back to what it learned before."""
        return await self._unary(request, values.SetPriorResponse, timeout_s)

    # --- the server ------------------------------------------------------------------------------------------------

    async def health(self, service: str = "", *, timeout_s: float | None = None) -> HealthStatus:
        """Return the health of the server, or of one service such as "nodewise.v1.PredictionService"."""
        return await self._call("Health/Check", self._rpc.health, service, timeout_s)
