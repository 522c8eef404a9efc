"""The first answer of a server that has just started, beside the median of later ones about jobs as new to it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

import grpc
from processes import Server
from results import Result
from rpc import CONFIGURATIONS, PREDICT, profile

from nodewise_protos.v1 import configuration_pb2, profile_pb2
from nodewise_protos.v1 import prediction_service_pb2 as pb

STARTS = 3
LATER = 20


def question(number: int) -> bytes:
    """About a job that nobody asked about before."""
    content = profile()
    content.phase_timings.compute_seconds[0] *= 1.0 + 0.01 * number
    return pb.PredictRequest(
        profile=profile_pb2.ProfileSource(content=content),
        configurations=configuration_pb2.Configurations(workers=range(1, CONFIGURATIONS + 1)),
    ).SerializeToString()


def answer_s(call: grpc.UnaryUnaryMultiCallable, number: int) -> float:
    started = time.perf_counter()
    call(question(number))
    return time.perf_counter() - started


def run() -> Iterator[Result]:
    """Kernels are loaded, or compiled, before the server listens: an earlier start has left them on disk."""
    first: list[float] = []
    later: list[float] = []
    for _ in range(STARTS):
        with (
            Server("-m", "nodewise", "serve", "--listen", "127.0.0.1:0", "--store", "memory:") as server,
            grpc.insecure_channel(server.target) as channel,
        ):
            grpc.channel_ready_future(channel).result(timeout=10)
            call = channel.unary_unary(PREDICT)
            first.append(answer_s(call, 0))
            later += [answer_s(call, number) for number in range(1, LATER + 1)]
    yield Result("first_answer_after_start", 1e3 * max(first), "ms", 1e3 * statistics.median(later))
