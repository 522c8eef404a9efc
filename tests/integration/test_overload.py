"""More is asked than can be done: what is refused says so, shares are fair, and it is over when the load is."""

from __future__ import annotations

import asyncio
from collections import Counter

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2
from patience import PATIENCE_S
from serving import ServerProcess, inline, workers

from nodewise_protos.v1 import prediction_service_pb2 as pb

pytestmark = pytest.mark.long

BATCH = "/nodewise.v1.PredictionService/BatchPredict"
OPTIONS = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]
REQUEST = pb.BatchPredictRequest(
    jobs=[pb.BatchJob(profile=inline(), configurations=workers(*range(1 + job % 8, 17 + job % 8))) for job in range(60)]
).SerializeToString()


def named(error: grpc.aio.AioRpcError) -> tuple[str, str, bool, bool]:
    """Code, reason, whether it says when to come back, for people and for gRPC."""
    trailers = dict(error.trailing_metadata() or ())
    info, reason, delay = error_details_pb2.ErrorInfo(), "", False
    for detail in status_pb2.Status.FromString(trailers.get("grpc-status-details-bin", b"")).details:
        if detail.Unpack(info):
            reason = info.reason
        delay |= detail.Is(error_details_pb2.RetryInfo.DESCRIPTOR)
    return error.code().name, reason, delay, "grpc-retry-pushback-ms" in trailers


async def flood(target: str, calls: int) -> Counter[object]:
    """So many calls at once over one connection."""
    outcomes: Counter[object] = Counter()

    async def one(method: grpc.aio.UnaryUnaryMultiCallable) -> None:
        try:
            await method(REQUEST, timeout=PATIENCE_S)
        except grpc.aio.AioRpcError as error:
            outcomes[named(error)] += 1
        else:
            outcomes["OK"] += 1

    async with grpc.aio.insecure_channel(target, options=OPTIONS) as channel:
        method = channel.unary_unary(BATCH)
        await method(REQUEST, timeout=PATIENCE_S)
        await asyncio.gather(*(one(method) for _ in range(calls)))
        await method(REQUEST, timeout=PATIENCE_S)  # it is over when the load is
    return outcomes


async def steadily(target: str, calls: int) -> int:
    """How often a caller is refused that waits for each answer before it asks the next, until it has so many."""
    answered = refused = 0
    async with grpc.aio.insecure_channel(target, options=OPTIONS) as channel, asyncio.timeout(PATIENCE_S):
        method = channel.unary_unary(BATCH)
        while answered < calls:
            try:
                await method(REQUEST, timeout=PATIENCE_S)
            except grpc.aio.AioRpcError as error:
                if error.code() is not grpc.StatusCode.RESOURCE_EXHAUSTED:
                    raise
                # A machine that stands still for a moment makes it wait for too long, too.
                refused += 1
                await asyncio.sleep(int(dict(error.trailing_metadata() or ())["grpc-retry-pushback-ms"]) / 1e3)
            else:
                answered += 1
    return refused


async def headers_alone(target: str, calls: int) -> list[grpc.aio.StreamUnaryCall]:
    """Calls that send no message, among others that make them wait for their turn; they wait on."""
    channel = grpc.aio.insecure_channel(target, options=OPTIONS)
    silent: list[grpc.aio.StreamUnaryCall] = []
    pressing = asyncio.ensure_future(flood(target, 200))
    method = channel.stream_unary(BATCH)
    while not pressing.done():
        if len(silent) < calls:
            silent.append(method())
        await asyncio.sleep(0.002)
    await pressing
    return silent


async def test_a_flood_is_refused_with_a_reason_and_others_are_served() -> None:
    with ServerProcess("--store", "memory:", environment={"NODEWISE_QUEUE_WAIT_S": "0.15"}) as server:
        outcomes, alone = await asyncio.gather(flood(server.target, 400), steadily(server.target, 10))
    refused = ("RESOURCE_EXHAUSTED", "OVERLOADED", True, True)
    assert set(outcomes) == {"OK", refused}
    assert outcomes["OK"] + outcomes[refused] == 400
    assert alone / (10 + alone) < outcomes[refused] / 400


async def test_calls_that_send_no_message_hold_no_turn() -> None:
    with ServerProcess("--store", "memory:") as server:
        silent = await headers_alone(server.target, 40)
        assert sum(not each.done() for each in silent) > 4  # more than there are turns
        await steadily(server.target, 10)
        assert (await flood(server.target, 50))["OK"]
        for each in silent:
            each.cancel()
