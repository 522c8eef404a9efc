"""Strangers are refused before anything of theirs is read, and hold no permit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.principal import Principal
from nodewise.ports.limits import Limits
from nodewise.rpc.access import RULES, Guard, names_in
from nodewise.rpc.calls import Method
from nodewise.rpc.classes import QUESTIONS_AT_WORK, Admission
from nodewise.rpc.intake import RECEIVED_BYTES, InFlight, Intake
from nodewise.rpc.routes import Router, make_router
from nodewise_protos.v1 import prediction_service_pb2 as pb


class Nobody:
    epoch = 0

    def known_principal(self, metadata: object) -> None:
        return None

    async def principal(self, context: object) -> Principal:
        raise NodewiseError(Reason.UNAUTHENTICATED, "who are you?", {"cause": "none"})


class Context:
    code: grpc.StatusCode | None = None

    def invocation_metadata(self) -> tuple[Any, ...]:
        return ()

    def peer(self) -> str:
        return "ipv4:127.0.0.1:1"

    def time_remaining(self) -> float:
        return 1.0

    async def abort(self, code: grpc.StatusCode, *_: object) -> None:
        self.code = code
        raise grpc.aio.AbortError


class Details(grpc.HandlerCallDetails):
    def __init__(self, method: str) -> None:
        self.method = method


def router(name: str, admission: Admission, *, streams: bool) -> Router:
    async def behaviour(*_: object) -> bytes:
        raise AssertionError("nobody should be asked")

    method, limits = f"nodewise.v1.PredictionService.{name}", Limits()
    made = Method(
        behaviour=behaviour,
        request=pb.PredictRequest,
        intake=Intake(pb.PredictRequest, RECEIVED_BYTES, limits, InFlight(limits.bytes_in_flight)),
        admission=admission,
        guard=Guard(method, RULES[method], Nobody(), names_in(pb.PredictRequest.DESCRIPTOR)),
        queue=admission.questions,
        streams_out=streams,
        known=lambda _: b"known",
    )
    return make_router("service", {name: made})


async def asked(handler: Any, request: Any, context: Context) -> None:
    if handler.response_streaming:
        await anext((handler.stream_stream or handler.unary_stream)(request, context))
    else:
        await (handler.stream_unary or handler.unary_unary)(request, context)


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("waits", [False, True])
def test_a_stranger_is_refused_before_the_message_is_read(streams: bool, waits: bool) -> None:
    async def unread() -> AsyncIterator[Any]:
        raise AssertionError("nothing should be read")
        yield

    async def work() -> None:
        admission, context = Admission(1.0, 1), Context()
        permits = [admission.questions.take() for _ in range(QUESTIONS_AT_WORK if waits else 0)]
        handler: Any = router("Predict", admission, streams=streams).service(Details("/service/Predict"))
        assert handler.request_streaming == waits
        request = unread() if waits else handler.request_deserializer(b"")
        with pytest.raises(grpc.aio.AbortError):
            await asked(handler, request, context)
        assert context.code is grpc.StatusCode.UNAUTHENTICATED
        for permit in permits:
            permit.release()
        assert admission.questions.free == QUESTIONS_AT_WORK

    asyncio.run(work())
