"""Asking planted plugins of each kind, as their own callers do."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import grpc
from google.protobuf.timestamp_pb2 import Timestamp
from planted_distributions import Fault
from serving import Failure, Stubs, inline, stored
from steady_callers import predict_request

from nodewise_protos.v1 import profile_pb2, schedule_pb2
from nodewise_protos.v1 import profile_service_pb2 as profiles
from nodewise_protos.v1 import schedule_service_pb2 as schedules
from nodewise_protos.v1beta1 import diagnosis_service_pb2 as diagnoses

TRACES: Final = Path(__file__).parents[2] / "examples" / "traces"
NOT_FOUND: Final = {
    "estimator": "ESTIMATOR_NOT_FOUND",
    "policy": "POLICY_NOT_FOUND",
    "reader": "INVALID_FIELD",
    "diagnoser": "DIAGNOSER_NOT_FOUND",
}
"""What callers of a plugin that could not be loaded learn, by kind."""


def ask(stubs: Stubs, fault: Fault, deadline_s: float, number: int = 0) -> Failure | None:
    """One call to a planted plugin that gets as far as its fault; None = it was answered.

    Parameters
    ----------
    number : int
        Calls of different numbers are about different jobs.
    """
    try:
        _ASKED[fault.kind](stubs, fault, deadline_s, number)
    except grpc.RpcError as error:
        return Failure(error)
    return None


def prepare(stubs: Stubs, deadline_s: float) -> None:
    """Store the traces that planted diagnosers are asked about."""
    names = sorted(TRACES.glob("*.json.gz"))
    chunks = [
        profile_pb2.TraceChunk(trace_id=path.name, format="auto", data=path.read_bytes(), last=True, rank=rank)
        for rank, path in enumerate(names)
    ]
    _ingest(stubs, "shipped-format", chunks, deadline_s)


def _estimator(stubs: Stubs, fault: Fault, deadline_s: float, number: int) -> None:
    stubs.prediction.Predict(predict_request(fault.name, number), timeout=deadline_s)


def _policy(stubs: Stubs, fault: Fault, deadline_s: float, number: int) -> None:
    job = schedule_pb2.ScheduleJob(job_id=f"job-{number}", profile=inline(), remaining_samples=10.0, max_devices=2)
    cluster = schedule_pb2.Cluster(pools=[schedule_pb2.NodePool(name="all", available_devices=[2, 2])])
    request = schedules.ScheduleRequest(now=Timestamp(seconds=1), cluster=cluster, jobs=[job], policy=fault.name)
    request.options.estimator = "queueing"
    stubs.schedule.Schedule(request, timeout=deadline_s)


def _reader(stubs: Stubs, fault: Fault, deadline_s: float, number: int) -> None:
    name = f"{fault.name}-{number}"
    # With its format named a reader reads; without, every reader is asked whether the file is its own.
    stated = "auto" if fault.method == "recognises" else fault.name
    data = b"a trace of nobody's format " * 10
    _ingest(stubs, name, [profile_pb2.TraceChunk(trace_id="t", format=stated, data=data, last=True)], deadline_s)
    list(stubs.diagnosis.Replay(diagnoses.ReplayRequest(profile=stored(name)), timeout=deadline_s))


def _diagnoser(stubs: Stubs, fault: Fault, deadline_s: float, number: int) -> None:
    profile = stored("shipped-format")
    if fault.method == "diagnose":
        list(
            stubs.diagnosis.Diagnose(
                diagnoses.DiagnoseRequest(profile=profile, diagnoser=fault.name), timeout=deadline_s
            )
        )
    else:
        list(stubs.diagnosis.Replay(diagnoses.ReplayRequest(profile=profile, diagnoser=fault.name), timeout=deadline_s))


_ASKED: Final = {"estimator": _estimator, "policy": _policy, "reader": _reader, "diagnoser": _diagnoser}


def _ingest(stubs: Stubs, profile_id: str, chunks: list[Any], deadline_s: float) -> None:
    batch = profiles.ProfileBatch(sequence_number=1, trace_chunks=chunks, commit=True)
    opened = profiles.OpenSession(profile_id=profile_id, session_id="s")
    messages = [profiles.IngestProfileRequest(open=opened), profiles.IngestProfileRequest(batch=batch)]
    list(stubs.profile.IngestProfile(iter(messages), timeout=deadline_s))
