"""The server between: a port of its own for each run of a scenario, that counts attempts and injects faults.

It speaks gRPC in raw bytes, so that it knows no message but those that a fault is about.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self

import grpc
from google.rpc import status_pb2

from nodewise_conformance.contract import FILLED, Method, message_of, methods
from nodewise_conformance.newer import as_newer, as_released
from nodewise_conformance.scenarios import Fault, Scenario, filled_in
from nodewise_conformance.servers import RealServer
from nodewise_conformance.statuses import DETAILS_KEY, PUSHBACK_KEY, planted, status_of
from nodewise_protos.v1 import profile_service_pb2 as profiles

__all__ = ["Attempt", "Between", "Upstream"]

UNLIMITED: Final = (("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1))
_GONE: Final[Mapping[str, Any]] = {"code": "UNAVAILABLE", "message": "cut by the conformance"}
_OWN_KEYS: Final = ("user-agent", "content-type", "te", "grpc-", ":")
_INGEST: Final = "nodewise.v1.ProfileService/IngestProfile"
_INGEST_BATCH: Final = "nodewise.v1.ProfileService/IngestBatch"
Context = grpc.aio.ServicerContext[bytes, bytes]


@dataclass
class Attempt:
    """What arrived of one attempt, and what was answered."""

    method: Method
    metadata: Mapping[str, str]
    deadline_seconds: float | None
    at: float = field(default_factory=time.monotonic)
    requests: list[bytes] = field(default_factory=list)
    replies: list[bytes] = field(default_factory=list)
    status: status_pb2.Status | None = None
    """How it failed. None = it did not, or the caller ended it."""
    ended_by_caller: bool = False
    over_rest: bool = False
    """Whether path and query were part of the request."""


class Upstream:
    """The way to a real server, one channel for all."""

    def __init__(self, server: RealServer) -> None:
        self.server: Final = server
        self.there: Final = asyncio.Event()
        self.there.set()
        options = [*UNLIMITED, ("grpc.enable_retries", 0), ("grpc.initial_reconnect_backoff_ms", 100)]
        options += [("grpc.max_reconnect_backoff_ms", 500), ("grpc.use_local_subchannel_pool", 1)]
        self.channel: Final = grpc.aio.insecure_channel(server.target, options)
        self._restarts: Final[set[asyncio.Task[None]]] = set()

    def restart(self, how: str) -> None:
        """Start to restart the server; calls meanwhile wait until it serves again."""
        if how == "kill":
            self.there.clear()
        task = asyncio.create_task(self._restart(how))
        self._restarts.add(task)
        task.add_done_callback(self._restarts.discard)

    async def _restart(self, how: str) -> None:
        await asyncio.to_thread(self.server.restart_killed if how == "kill" else self.server.rolling_restart)
        self.there.set()

    async def close(self) -> None:
        """End the channel, once restarts are over."""
        if self._restarts:
            await asyncio.gather(*self._restarts)
        await self.channel.close()


class Between(grpc.GenericRpcHandler):
    """One run of a scenario: where its client calls."""

    def __init__(self, scenario: Scenario, places: Mapping[str, str], upstream: Upstream, plant: str | None) -> None:
        self.attempts: Final[list[Attempt]] = []
        self.target = ""
        self._scenario: Final = scenario
        self._places: Final = places
        self._upstream: Final = upstream
        self._plant: Final = plant
        self._to_lose: Final = set(scenario.lose_acknowledgements_of)
        self._restart_at: Final = set(scenario.restart_at_batches)
        self._server: Final = grpc.aio.server(options=[*UNLIMITED, ("grpc.so_reuseport", 0)])

    async def __aenter__(self) -> Self:
        self._server.add_generic_rpc_handlers((self,))
        self.target = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        await self._server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.stop(0)

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """The handler of a method; None = the contract does not have it."""
        method = methods().get(handler_call_details.method.removeprefix("/"))
        if method is None:
            return None

        async def handle(requests: AsyncIterator[bytes], context: Context) -> None:
            await self._handle(method, requests, context)

        # A unary call is a stream of one message either way on the wire.
        return grpc.stream_stream_rpc_method_handler(handle)

    async def _handle(self, method: Method, requests: AsyncIterator[bytes], context: Context) -> None:
        metadata = {key: str(value) for key, value in context.invocation_metadata() or ()}
        attempt = Attempt(method, metadata, context.time_remaining())
        fault = self._scenario.fault_of(len(self.attempts))
        self.attempts.append(attempt)
        try:
            await self._answer(attempt, fault, requests, context)
        except asyncio.CancelledError:
            attempt.ended_by_caller = True
            raise

    async def _answer(self, attempt: Attempt, fault: Fault, requests: AsyncIterator[bytes], context: Context) -> None:
        await asyncio.sleep(fault.delay_seconds)
        if fault.hang:
            await self._drained(attempt, requests)
            await asyncio.Event().wait()
        if self._plant == "lost-acknowledgement" and attempt.method.name in (_INGEST, _INGEST_BATCH):
            await self._acknowledge_and_forget(attempt, requests, context)
        elif fault.reply is not None:
            await self._reply(attempt, fault, fault.reply, requests, context)
        elif fault.status is not None and fault.cut_after_replies is None and not fault.drop_reply:
            await self._drained(attempt, requests)
            await self._fail(attempt, context, status_of(fault.status), fault.status.get("pushback_ms"))
        else:
            await self._forward(attempt, fault, requests, context)

    async def _reply(
        self, attempt: Attempt, fault: Fault, replies: Sequence[Any], requests: AsyncIterator[bytes], context: Context
    ) -> None:
        """Answer what the scenario says, after the request, or one reply to each of many."""
        asked = aiter(requests)
        for reply in replies:
            data = await anext(asked, None)
            attempt.requests += [] if data is None else [data]
            message = message_of(attempt.method.reply, filled_in(reply, self._places), variant=fault.variant)
            if reply == FILLED and "next_page_token" in attempt.method.reply.fields_by_name:
                message.next_page_token = ""
            await self._tell(attempt, fault, context, message.SerializeToString())
            if fault.cut_after_replies is not None and len(attempt.replies) >= fault.cut_after_replies:
                await self._fail(attempt, context, status_of(fault.status or _GONE))
        async for data in asked:
            attempt.requests.append(data)

    async def _drained(self, attempt: Attempt, requests: AsyncIterator[bytes]) -> None:
        """Take the request of a call that sends one."""
        if not attempt.method.client_streaming:
            async for data in requests:
                attempt.requests.append(data)

    async def _forward(self, attempt: Attempt, fault: Fault, requests: AsyncIterator[bytes], context: Context) -> None:
        await self._upstream.there.wait()
        numbers: list[int] = []
        method = attempt.method
        call = await self._called(attempt, fault, requests, numbers, context.time_remaining())
        reply_count = 0
        try:
            async for data in call:
                reply_count += 1
                if self._loses(method, numbers, reply_count):
                    await self._fail(attempt, context, status_of(_GONE))
                if not fault.drop_reply:
                    await self._tell(attempt, fault, context, data)
                if fault.restart_server and reply_count == 1:
                    self._upstream.restart(fault.restart_server)
                if fault.cut_after_replies is not None and reply_count >= fault.cut_after_replies:
                    await self._fail(attempt, context, status_of(fault.status or _GONE))
        except grpc.aio.AioRpcError as error:
            trailers = {key: value for key, value in error.trailing_metadata() or ()}  # noqa: C416  # pairs of gRPC's own type
            details = trailers.get(DETAILS_KEY)
            status = status_pb2.Status.FromString(details if isinstance(details, bytes) else b"")
            status.code, status.message = error.code().value[0], error.details() or ""
            pushback = trailers.get(PUSHBACK_KEY)
            await self._fail(attempt, context, status, None if pushback is None else int(pushback))
        finally:
            call.cancel()
        if fault.drop_reply:
            await self._fail(attempt, context, status_of(fault.status or _GONE))

    async def _called(
        self,
        attempt: Attempt,
        fault: Fault,
        requests: AsyncIterator[bytes],
        numbers: list[int],
        timeout_s: float | None,
    ) -> Any:
        """The same call at the real server."""
        metadata = [pair for pair in attempt.metadata.items() if not pair[0].startswith(_OWN_KEYS)]
        channel, path = self._upstream.channel, attempt.method.path
        requests_sent = self._sent(attempt, fault, requests, numbers)
        multi: Any = channel.stream_stream(path) if attempt.method.client_streaming else channel.unary_stream(path)
        # grpc.aio loses the status of a stream that ends under a write (grpc/grpc#36066): one request is no stream.
        asked = requests_sent if attempt.method.client_streaming else b"".join([data async for data in requests_sent])
        return multi(asked, metadata=metadata, timeout=timeout_s)

    async def _sent(
        self, attempt: Attempt, fault: Fault, requests: AsyncIterator[bytes], numbers: list[int]
    ) -> AsyncIterator[bytes]:
        """Yield what goes to the real server; notes the number of the batch in each message, 0 = none."""
        async for data in requests:
            attempt.requests.append(data)
            number = _batch_number(attempt.method, data)
            numbers.append(number)
            if number in self._restart_at:
                self._restart_at.discard(number)
                self._upstream.restart("kill")
            yield as_released(attempt.method.request, data) if fault.add_unknown == {"released": True} else data

    def _loses(self, method: Method, numbers: Sequence[int], reply_count: int) -> bool:
        """Whether this reply acknowledges a batch whose acknowledgement is to be lost, once."""
        if method.name not in (_INGEST, _INGEST_BATCH) or reply_count > len(numbers):
            return False
        number = numbers[reply_count - 1]
        is_lost = number in self._to_lose
        self._to_lose.discard(number)
        return is_lost

    async def _tell(self, attempt: Attempt, fault: Fault, context: Context, data: bytes) -> None:
        if fault.delay_between_replies_seconds and attempt.replies:
            await asyncio.sleep(fault.delay_between_replies_seconds)
        if fault.add_unknown == {"released": True}:
            data = as_released(attempt.method.reply, data)
        elif fault.add_unknown is not None:
            data = as_newer(attempt.method.read_reply(data), fault.add_unknown)
        attempt.replies.append(data)
        await context.write(data)

    async def _fail(
        self, attempt: Attempt, context: Context, status: status_pb2.Status, pushback_ms: int | None = None
    ) -> None:
        status_sent = planted(status, self._plant)
        attempt.status = status_sent
        trailers: list[tuple[str, str | bytes]] = []
        if status_sent.details:
            trailers.append((DETAILS_KEY, status_sent.SerializeToString()))
        if pushback_ms is not None:
            trailers.append((PUSHBACK_KEY, str(pushback_ms)))
        code = next(each for each in grpc.StatusCode if each.value[0] == status_sent.code)
        await context.abort(code, status_sent.message, tuple(trailers))

    async def _acknowledge_and_forget(self, attempt: Attempt, requests: AsyncIterator[bytes], context: Context) -> None:
        """Acknowledge every batch and keep none: what no server may ever do."""
        durable = committed = 0
        async for data in requests:
            attempt.requests.append(data)
            stream = attempt.method.name == _INGEST
            kind: Any = profiles.IngestProfileRequest if stream else profiles.IngestBatchRequest
            batch = kind.FromString(data).batch
            durable = max(durable, batch.sequence_number)
            committed = durable if batch.commit else committed
            state = profiles.IngestState(
                durable_sequence_number=durable, committed_sequence_number=committed, revision=1 if committed else 0
            )
            reply = (profiles.IngestProfileResponse if stream else profiles.IngestBatchResponse)(state=state)
            await self._tell(attempt, Fault(), context, reply.SerializeToString())


def _batch_number(method: Method, data: bytes) -> int:
    if method.name == _INGEST:
        return profiles.IngestProfileRequest.FromString(data).batch.sequence_number
    if method.name == _INGEST_BATCH:
        return profiles.IngestBatchRequest.FromString(data).batch.sequence_number
    return 0
