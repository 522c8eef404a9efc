"""A server with canned behaviour on a real loopback socket, and one face over both clients."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message_factory import GetMessageClass
from google.rpc import error_details_pb2, status_pb2
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_status import rpc_status

from nodewise_client import AsyncClient, Client
from nodewise_protos.v1 import prediction_service_pb2, profile_service_pb2, schedule_service_pb2
from nodewise_protos.v1beta1 import (
    admin_service_pb2,
    completion_service_pb2,
    diagnosis_service_pb2,
    evaluation_service_pb2,
    plan_service_pb2,
    sharing_service_pb2,
    simulation_service_pb2,
)

SERVICES = tuple(
    service
    for module in (
        prediction_service_pb2,
        profile_service_pb2,
        schedule_service_pb2,
        completion_service_pb2,
        diagnosis_service_pb2,
        evaluation_service_pb2,
        plan_service_pb2,
        sharing_service_pb2,
        admin_service_pb2,
        simulation_service_pb2,
    )
    for service in module.DESCRIPTOR.services_by_name.values()
)


def status_of(
    code: grpc.StatusCode,
    message: str,
    *,
    reason: str = "",
    domain: str = "nodewise",
    metadata: dict[str, str] | None = None,
    violations: dict[str, str] | None = None,
    retry_delay_s: float | None = None,
) -> status_pb2.Status:
    status = status_pb2.Status(code=code.value[0], message=message)
    details: list[Any] = []
    if reason:
        details.append(error_details_pb2.ErrorInfo(reason=reason, domain=domain, metadata=metadata or {}))
    if violations:
        bad = error_details_pb2.BadRequest()
        for field, description in violations.items():
            bad.field_violations.add(field=field, description=description)
        details.append(bad)
    if retry_delay_s is not None:
        retry = error_details_pb2.RetryInfo()
        retry.retry_delay.FromNanoseconds(int(retry_delay_s * 1e9))
        details.append(retry)
    for detail in details:
        packed = AnyMessage()
        packed.Pack(detail)
        status.details.append(packed)
    return status


class Cut:
    """How a stream ends: after how many batches, whether the last is stored and answered, and with which status."""

    def __init__(
        self,
        batches: int,
        code: grpc.StatusCode = grpc.StatusCode.UNAVAILABLE,
        *,
        stored: bool = True,
        told: bool = True,
    ) -> None:
        self.batches, self.code, self.stored, self.told = batches, code, stored, told

    def __repr__(self) -> str:
        return f"Cut({self.batches}, {self.code.name}, stored={self.stored}, told={self.told})"


class Session:
    """What a session has stored, and what it saw."""

    def __init__(self) -> None:
        self.batches: list[Any] = []
        self.committed = 0
        self.revision = 0
        self.received: list[list[int]] = []

    def store(self, batch: Any) -> str | None:
        if batch.sequence_number <= len(self.batches):
            return None if self.batches[batch.sequence_number - 1] == batch else "BATCH_CONFLICT"
        if batch.sequence_number != len(self.batches) + 1:
            return "BATCH_OUT_OF_ORDER"
        self.batches.append(batch)
        if batch.commit:
            self.committed = batch.sequence_number
            self.revision += 1
        return None

    @property
    def rates(self) -> list[float]:
        return [rate for batch in self.batches for rate in batch.observations.steps_per_second]

    def reply(self) -> profile_service_pb2.IngestProfileResponse:
        counted = sum(len(batch.observations.steps_per_second) for batch in self.batches[: self.committed])
        return profile_service_pb2.IngestProfileResponse(
            state={
                "durable_sequence_number": len(self.batches),
                "committed_sequence_number": self.committed,
                "revision": self.revision,
                "observations_count": counted,
            }
        )


class FakeServer:
    """Answers what a test has put in; counts and keeps what it was asked."""

    def __init__(self) -> None:
        self.requests: dict[str, list[Any]] = defaultdict(list)
        self.metadata: dict[str, str] = {}
        self.remaining_s: float | None = None
        self.answers: dict[str, deque[Any]] = defaultdict(deque)
        self.sessions: dict[str, Session] = defaultdict(Session)
        self.cuts: deque[Cut] = deque()
        self.hold = threading.Event()
        self.health = health.HealthServicer()
        self.health.set("", health_pb2.HealthCheckResponse.SERVING)
        self.port = 0
        self._server: grpc.Server | None = None
        self.start()

    @property
    def target(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        self._server = grpc.server(ThreadPoolExecutor(16))
        self._server.add_generic_rpc_handlers(tuple(_handlers(self, service) for service in SERVICES))
        health_pb2_grpc.add_HealthServicer_to_server(self.health, self._server)
        self.port = self._server.add_insecure_port(f"127.0.0.1:{self.port}")
        self._server.start()

    def stop(self) -> None:
        self.hold.set()
        if self._server is not None:
            self._server.stop(None).wait()
            self._server = None

    def answer(self, method: str, *answers: Any) -> None:
        """Queue answers of a method: messages, statuses or codes to fail with, or functions of the request.

        A stream's answer is a list of messages; a code in it is where it is cut.
        """
        self.answers[method].extend(answers)

    def handle(self, method: str, request: Any, context: grpc.ServicerContext, default: Any) -> Any:
        self.requests[method].append(request)
        self.metadata = dict(context.invocation_metadata())
        self.remaining_s = context.time_remaining()
        queued = self.answers[method]
        answer = queued.popleft() if queued else default
        if isinstance(answer, grpc.StatusCode):
            context.abort(answer, "injected")
        if isinstance(answer, status_pb2.Status):
            context.abort_with_status(rpc_status.to_status(answer))
        return answer(request) if callable(answer) else answer


def _handlers(fake: FakeServer, service: Any) -> grpc.GenericRpcHandler:
    """All methods of a service: replies without content, unless a test has put in others."""
    return grpc.method_handlers_generic_handler(
        service.full_name, {method.name: _handler(fake, method) for method in service.methods}
    )


def _handler(fake: FakeServer, method: Any) -> grpc.RpcMethodHandler:
    kinds = [GetMessageClass(each) for each in (method.input_type, method.output_type)]
    codecs = (kinds[0].FromString, kinds[1].SerializeToString)

    def unary(request: Any, context: Any) -> Any:
        return fake.handle(method.name, request, context, kinds[1]())

    def stream(request: Any, context: Any) -> Iterator[Any]:
        for message in fake.handle(method.name, request, context, []):
            if isinstance(message, grpc.StatusCode):
                context.abort(message, "cut")
            yield message

    if method.client_streaming:
        both = _ingest if method.name == "IngestProfile" else _stream_predict
        return grpc.stream_stream_rpc_method_handler(partial(both, fake), *codecs)
    if method.server_streaming:
        return grpc.unary_stream_rpc_method_handler(stream, *codecs)
    return grpc.unary_unary_rpc_method_handler(unary, *codecs)


def _stream_predict(fake: FakeServer, requests: Iterator[Any], context: Any) -> Iterator[Any]:
    for request in requests:
        default = prediction_service_pb2.StreamPredictResponse(question_id=request.question_id, predict={})
        yield fake.handle("StreamPredict", request, context, default)


def _ingest(fake: FakeServer, requests: Iterator[Any], context: Any) -> Iterator[Any]:
    opening = next(requests)
    fake.handle("IngestProfile", opening, context, None)
    session = fake.sessions[opening.open.session_id]
    numbers: list[int] = []
    session.received.append(numbers)
    cut = fake.cuts.popleft() if fake.cuts else None
    if cut is not None and cut.batches < 0:
        context.abort(cut.code, "cut before the session was open")
    yield session.reply()
    if cut is not None and cut.batches == 0:
        _end(cut, context)
        return
    for request in requests:
        batch = request.batch
        numbers.append(batch.sequence_number)
        last = cut is not None and len(numbers) == cut.batches
        reason = None
        if not last or cut.stored:
            reason = session.store(batch)
        if not reason and not last:
            fake.handle("Batch", batch, context, None)
        if reason:
            context.abort_with_status(
                rpc_status.to_status(status_of(grpc.StatusCode.FAILED_PRECONDITION, reason, reason=reason))
            )
        if not last or (cut.told and cut.stored):
            yield session.reply()
        if last:
            _end(cut, context)
            return


def _end(cut: Cut, context: Any) -> None:
    if cut.code is not grpc.StatusCode.OK:
        context.abort(cut.code, "cut")


class Face:
    """Calls either client the same way: what is awaited or iterated there comes back as a value here."""

    def __init__(self, client: Client | AsyncClient, runner: asyncio.Runner | None) -> None:
        self._client, self._runner = client, runner

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)
        if not callable(method):
            return method

        def call(*args: Any, **keywords: Any) -> Any:
            return self._value(method(*args, **keywords))

        return call

    @contextmanager
    def ingest(self, *args: Any, **keywords: Any) -> Iterator[Any]:
        writer = self._client.ingest(*args, **keywords)
        if self._runner is None:
            with writer:
                yield writer
            return
        self._runner.run(writer.__aenter__())
        try:
            yield Face(writer, self._runner)
        except BaseException as error:
            self._runner.run(writer.__aexit__(type(error), error, error.__traceback__))
            raise
        self._runner.run(writer.__aexit__(None, None, None))

    def _value(self, found: Any) -> Any:
        if self._runner is not None:
            if isinstance(found, AsyncIterator):

                async def collect() -> list[Any]:
                    return [item async for item in found]

                return self._runner.run(collect())
            if asyncio.iscoroutine(found):
                return self._runner.run(found)
        return list(found) if isinstance(found, Iterator) else found
