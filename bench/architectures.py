"""Ten thousand architectures in one BatchPredict, end to end: beside a bare server, and beside jobs of their own."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import numpy as np
from processes import HERE, Server
from results import Result

from nodewise_protos.v1 import configuration_pb2, profile_pb2, workload_pb2
from nodewise_protos.v1 import prediction_service_pb2 as pb

ARCHITECTURES = 10_000
JOBS = 1_000
CALLS = 15
METHOD = "/nodewise.v1.PredictionService/BatchPredict"
FAMILIES = ("ResNet", "Shake-Shake")
ONE_K80 = configuration_pb2.Configurations(nodes=[1], workers=[1], device_names=["K80"], batch_per_worker_samples=[128])


def facts() -> tuple[list[float], list[int]]:
    """FLOPs per sample as large as those of the runs that teach, and families."""
    draw = np.random.default_rng(1)
    flops = np.exp(draw.uniform(np.log(7e8), np.log(2e10), ARCHITECTURES))
    return flops.tolist(), draw.integers(0, len(FAMILIES), ARCHITECTURES).tolist()


def one_call() -> pb.BatchPredictRequest:
    flops, families = facts()
    return pb.BatchPredictRequest(
        architectures=workload_pb2.Architectures(
            flops_per_sample=flops, family_names=FAMILIES, family_indexes=families
        ),
        configurations=ONE_K80,
    )


def jobs_of_their_own(first: int) -> pb.BatchPredictRequest:
    """Some of the architectures, each as a job of a batch."""
    flops, families = facts()
    jobs = [
        pb.BatchJob(
            profile=profile_pb2.ProfileSource(
                content=profile_pb2.ProfileContent(
                    workload=workload_pb2.Workload(flops_per_sample=each, family=FAMILIES[family])
                )
            )
        )
        for each, family in zip(flops[first : first + JOBS], families[first : first + JOBS], strict=True)
    ]
    return pb.BatchPredictRequest(jobs=jobs, configurations=ONE_K80)


def called(target: str, request: pb.BatchPredictRequest, calls: int) -> tuple[list[float], pb.BatchPredictResponse]:
    """Seconds of each call, from the message to the answer as a message, and the last answer."""
    seconds = []
    with grpc.insecure_channel(target) as channel:
        ask: Callable[..., pb.BatchPredictResponse] = channel.unary_unary(
            METHOD,
            request_serializer=pb.BatchPredictRequest.SerializeToString,
            response_deserializer=pb.BatchPredictResponse.FromString,
        )
        for _ in range(calls):
            started = time.perf_counter()
            reply = ask(request, timeout=60)
            seconds.append(time.perf_counter() - started)
    return seconds, reply


def run() -> Iterator[Result]:
    """The first call of a fresh server beside the second that it may take; the median of later ones beside others."""
    request = one_call()
    with Server("-m", "nodewise", "serve", "--listen", "127.0.0.1:0", "--store", "memory:") as ours:
        (first_s, *_), reply = called(ours.target, request, 1)
        if len(reply.rankings[0].architecture_indexes) != ARCHITECTURES:
            raise RuntimeError("not every architecture was answered")
        seconds = statistics.median(called(ours.target, request, CALLS)[0])
        singly = [called(ours.target, jobs_of_their_own(first), 1)[0][0] for first in (0, JOBS, 2 * JOBS)]
        of_jobs_s = statistics.median(singly) * ARCHITECTURES / JOBS
    with tempfile.TemporaryDirectory() as folder:
        template = Path(folder) / "reply"
        template.write_bytes(reply.SerializeToString())
        with Server(str(HERE / "bare_server.py"), "", str(template)) as bare:
            bare_s = statistics.median(called(bare.target, request, CALLS)[0])
    yield Result("batch_predict_10000_architectures_first_call_beside_1_s", first_s, "s", 1.0)
    yield Result("batch_predict_10000_architectures_beside_bare_server", seconds, "s", bare_s)
    yield Result("batch_predict_10000_architectures_beside_jobs_of_their_own", seconds, "s", of_jobs_s)
