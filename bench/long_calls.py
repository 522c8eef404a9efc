"""Long calls beside short ones: latency of cached predictions while a plan is searched, and how soon work ends.

The server runs on all cores, with one process for long calls. ``ended_after_cancelling`` is the time from a caller's
cancellation to the last moment at which the process of the pool used a processor.
"""

from __future__ import annotations

import asyncio
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import loader
import numpy as np
from processes import Server
from results import Result
from rpc import PREDICT, profile, requests, store_profiles
from traces import written

from nodewise.runtime.event_loop import new_event_loop
from nodewise_cli.inputs.documents import read_value
from nodewise_client import Client
from nodewise_protos.v1 import configuration_pb2, prediction_service_pb2, profile_pb2
from nodewise_protos.v1beta1 import (
    diagnosis_service_pb2,
    evaluation_service_pb2,
    plan_service_pb2,
    simulation_pb2,
    simulation_service_pb2,
)
from nodewise_values import PlanRequest
from nodewise_values.wire import to_message

SPEC = Path(__file__).parent.parent / "examples" / "plan_22b_64_devices.json"
CAPACITY_CALLS = 6_000
SECONDS = 8.0
WINDOWS = 3
BEFORE_S = 0.4
"""Work that runs when it is cancelled."""
QUIET_S = 0.5
"""A process that has used no processor for so long has ended its work."""
ALLOWED_S = 0.1


def plan() -> plan_service_pb2.PlanRequest:
    return to_message(replace(read_value(SPEC, PlanRequest), exhaustive=True))


def simulation() -> simulation_service_pb2.SimulateRequest:
    request = simulation_service_pb2.SimulateRequest(policy="fifo", repetitions_count=1000)
    request.cluster.pools.add(name="p", device_name="V100", available_devices=[8])
    rows = simulation_pb2.SimulationCurveRows(
        pool_indexes=[0, 0, 0], devices_counts=[1, 2, 4], samples_per_second=[10, 19, 35]
    )
    request.curves.add(rows=rows)
    request.jobs.CopyFrom(
        simulation_pb2.SimulationJobs(
            count=100_000, arrival_seconds=range(100_000), work_samples=[50], curve_indexes=[0], requested_devices=[1]
        )
    )
    return request


def backtest() -> evaluation_service_pb2.BacktestRequest:
    """Two thousand jobs of eight rows."""
    jobs, rows = 2_000, 8
    draw = np.random.default_rng(0)
    counts = np.tile(2 ** np.arange(rows), jobs)
    table = evaluation_service_pb2.MeasurementTable(
        job_names=[f"job-{number}" for number in range(jobs)],
        job_indexes=np.repeat(np.arange(jobs), rows).tolist(),
        configurations=configuration_pb2.Configurations(
            nodes=counts.tolist(),
            workers=counts.tolist(),
            parameter_servers=[1],
            sync_modes=[configuration_pb2.SYNC_MODE_ASYNC],
            batch_per_worker_samples=[32],
        ),
        steps_per_second=(counts / (1.0 + 0.02 * counts) * draw.lognormal(0.0, 0.02, len(counts))).tolist(),
        train=np.tile(np.arange(rows) < rows // 2, jobs).tolist(),
    )
    return evaluation_service_pb2.BacktestRequest(table=table)


def suggestion() -> prediction_service_pb2.SuggestMeasurementsRequest:
    return prediction_service_pb2.SuggestMeasurementsRequest(
        profile=profile_pb2.ProfileSource(content=profile()),
        configurations=configuration_pb2.Configurations(workers=range(1, 1025)),
        max_suggestions=3,
    )


def long_calls(channel: grpc.Channel) -> dict[str, Callable[[], Any]]:
    """Calls that run for longer than they are let."""
    traced = profile_pb2.ProfileSource(profile_id="traced")
    asked: dict[str, tuple[str, Any]] = {
        "plan": ("PlanService/Plan", plan()),
        "simulate": ("SimulationService/Simulate", simulation()),
        "backtest": ("EvaluationService/Backtest", backtest()),
        "replay": ("DiagnosisService/Replay", diagnosis_service_pb2.ReplayRequest(profile=traced, timeline=True)),
        "diagnose": ("DiagnosisService/Diagnose", diagnosis_service_pb2.DiagnoseRequest(profile=traced)),
    }

    def streamed(path: str, request: bytes) -> Callable[[], Any]:
        return lambda: channel.unary_stream(f"/nodewise.v1beta1.{path}")(request)

    found = {name: streamed(path, request.SerializeToString()) for name, (path, request) in asked.items()}
    request = suggestion().SerializeToString()
    found["suggest"] = lambda: channel.unary_unary("/nodewise.v1.PredictionService/SuggestMeasurements").future(request)
    return found


def pool_process(server: Server) -> int:
    """The process that does the long calls: the child of the server with the most memory."""
    children = Path(f"/proc/{server.pid}/task/{server.pid}").parent.glob("*/children")
    pids = [int(pid) for each in children for pid in each.read_text().split()]
    return max(pids, key=lambda pid: int(Path(f"/proc/{pid}/statm").read_text().split()[1]))


def cpu_ns(pid: int) -> int | None:
    """Time of a process's main thread on a processor; None = it is gone."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])
    except (FileNotFoundError, ProcessLookupError):
        return None


def ended_s(server: Server, start: Callable[[], Any]) -> float:
    """Seconds from a cancellation to the last use of a processor."""
    pid = pool_process(server)
    before = cpu_ns(pid) or 0
    call = start()
    while (cpu_ns(pid) or 0) - before < BEFORE_S * 1e9:
        if call.done():
            raise SystemExit(f"a call ended before it was cancelled: {call.code()}: {call.details()}")
        time.sleep(0.005)
    cancelled_s = last_s = time.perf_counter()
    call.cancel()
    used = cpu_ns(pid)
    while time.perf_counter() - last_s < QUIET_S:
        time.sleep(0.002)
        now = cpu_ns(pid)
        if now != used:
            used, last_s = now, time.perf_counter()
        if now is None:
            break
    return last_s - cancelled_s


@contextmanager
def planning(target: str) -> Iterator[None]:
    """One heavy plan after the other."""
    request, over = plan().SerializeToString(), threading.Event()
    with grpc.insecure_channel(target, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
        search = channel.unary_stream("/nodewise.v1beta1.PlanService/Plan")

        def work() -> None:
            while not over.is_set():
                for _ in search(request):
                    if over.is_set():
                        break

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def p99_s(target: str, questions: list[bytes], per_s: float) -> float:
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        latencies = runner.run(loader.open_loop(target, PREDICT, questions, per_s, SECONDS))
    return float(np.percentile(latencies, 99))


def capacity_per_s(target: str, questions: list[bytes]) -> float:
    started = time.perf_counter()
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(loader.unary(target, PREDICT, questions, CAPACITY_CALLS))
    return CAPACITY_CALLS / (time.perf_counter() - started)


def warm(channel: grpc.Channel) -> None:
    """Have the process started, as the first long call does."""
    few = suggestion()
    few.configurations.CopyFrom(configuration_pb2.Configurations(workers=[1, 2, 4]))
    few.max_suggestions = 1
    channel.unary_unary("/nodewise.v1.PredictionService/SuggestMeasurements")(few.SerializeToString())


def run() -> Iterator[Result]:
    questions = requests()
    with tempfile.TemporaryDirectory() as folder:
        trace = written(Path(folder, "trace.json.gz"), steps=10, operators=20_000)
        command = ("-m", "nodewise", "serve", "--listen", "127.0.0.1:0", "--store", f"sqlite:{folder}/bench.db")
        with Server(*command, pinned=False) as server, grpc.insecure_channel(server.target) as channel:
            store_profiles(server.target)
            warm(channel)
            per_s = 0.1 * capacity_per_s(server.target, questions)
            alone, beside = [], []
            for _ in range(WINDOWS):
                alone.append(p99_s(server.target, questions, per_s))
                with planning(server.target):
                    beside.append(p99_s(server.target, questions, per_s))
            yield Result("predict_p99_while_a_plan_is_searched", 1e3 * min(beside), "ms", 1e3 * min(alone))
            with (
                Client(server.target, timeout_s=120) as client,
                client.ingest("traced") as to,
                trace.open("rb") as file,
            ):
                to.trace(file, trace_id="t", trace_format="auto", rank=0, world_size=1)
            for name, start in long_calls(channel).items():
                took_s = []
                for _ in range(WINDOWS):
                    warm(channel)
                    took_s.append(ended_s(server, start))
                yield Result(f"{name}_ended_after_cancelling", 1e3 * max(took_s), "ms", 1e3 * ALLOWED_S)
