"""Long calls beside short ones: latency of cached predictions while a plan is searched, and how soon work ends.

The server runs on all cores, with one process for long calls. ``worked_after_cancelling`` is what all of the server's
processes used of a processor after a caller's cancellation: time that others do not take on a busy machine counts for
nothing. Of a process that was killed it is what was seen before.
"""

from __future__ import annotations

import asyncio
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
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
from nodewise_protos.v1 import (
    configuration_pb2,
    options_pb2,
    prediction_service_pb2,
    profile_pb2,
    schedule_service_pb2,
)
from nodewise_protos.v1beta1 import (
    completion_service_pb2,
    diagnosis_service_pb2,
    evaluation_service_pb2,
    plan_service_pb2,
    sharing_service_pb2,
    simulation_pb2,
    simulation_service_pb2,
)
from nodewise_values import EstimateCompletionRequest, PlanRequest, PredictSharingRequest
from nodewise_values.wire import to_message

EXAMPLES = Path(__file__).parent.parent / "examples"
SPEC = EXAMPLES / "plan_22b_64_devices.json"
CAPACITY_CALLS = 6_000
SECONDS = 8.0
WINDOWS = 3
BEFORE_S = 0.4
"""Work that runs when it is cancelled."""
QUIET_S = 0.5
"""A server that has used no processor for so long has ended its work."""
STILL_S = 0.0005
"""Of a processor between two looks: what a server does that nobody asks."""
ALLOWED_S = 0.05


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


def simulated() -> prediction_service_pb2.BatchPredictRequest:
    """A job whose simulation takes ten seconds, in threads of the server."""
    return prediction_service_pb2.BatchPredictRequest(
        jobs=[prediction_service_pb2.BatchJob(profile=profile_pb2.ProfileSource(content=profile()))],
        configurations=configuration_pb2.Configurations(
            nodes=[1], workers=[60_000], parameter_servers=[1], sync_modes=[configuration_pb2.SYNC_MODE_SYNC]
        ),
        options=options_pb2.PredictOptions(
            model=options_pb2.ModelOptions(estimator="queueing"), fidelity=options_pb2.FIDELITY_SIMULATE
        ),
    )


def fits() -> prediction_service_pb2.BatchPredictRequest:
    """As many jobs as a call takes, none of them asked about before."""
    draw = np.random.default_rng()
    jobs = []
    for _ in range(4_096):
        content = profile()
        content.phase_timings.compute_seconds[0] *= float(draw.uniform(1.0, 2.0))
        jobs.append(prediction_service_pb2.BatchJob(profile=profile_pb2.ProfileSource(content=content)))
    return prediction_service_pb2.BatchPredictRequest(
        jobs=jobs, configurations=configuration_pb2.Configurations(workers=range(1, 17))
    )


def schedule() -> schedule_service_pb2.ScheduleRequest:
    """Thousands of jobs that nobody asked about before, on many counts."""
    request = schedule_service_pb2.ScheduleRequest(policy="efficiency-capped")
    request.now.FromSeconds(1_700_000_000)
    request.cluster.pools.add(name="p", device_name="V100", available_devices=[8] * 16)
    for number, job in enumerate(fits().jobs[:2_000]):
        request.jobs.add(job_id=f"{number}", profile=job.profile, remaining_samples=1e6)
    return request


def completion() -> completion_service_pb2.EstimateCompletionRequest:
    """The example's offers, each run a million times."""
    found = to_message(read_value(EXAMPLES / "spot.json", EstimateCompletionRequest))
    found.runs_count = 1_000_000
    return found


def sharing() -> sharing_service_pb2.PredictSharingRequest:
    """Hundreds of jobs in thousands of pairs, of which others are to be learned."""
    draw, names = np.random.default_rng(1), [f"job-{number}" for number in range(300)]
    request = to_message(read_value(EXAMPLES / "share.json", PredictSharingRequest))
    for part in ("jobs", "runs", "sets"):
        request.ClearField(part)
    for number, name in enumerate(names):
        request.jobs.add(name=name, model_name=name, step_seconds=0.1 + 0.001 * number)
    for _ in range(4_000):
        first, second = draw.choice(len(names), 2, replace=False)
        share, other = draw.uniform(0.3, 0.7, 2)
        request.runs.add(first_job=names[first], second_job=names[second], first_share=share, second_share=other)
    request.sets.add(job_names=names[:2])
    return request


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
    alone = {
        "suggest": ("v1.PredictionService/SuggestMeasurements", suggestion),
        "batch": ("v1.PredictionService/BatchPredict", fits),
        "batch_simulated": ("v1.PredictionService/BatchPredict", simulated),
        "schedule": ("v1.ScheduleService/Schedule", schedule),
        "completion": ("v1beta1.CompletionService/EstimateCompletion", completion),
        "sharing": ("v1beta1.SharingService/PredictSharing", sharing),
    }

    def single(path: str, made: Callable[[], Any]) -> Callable[[], Any]:
        return lambda: channel.unary_unary(f"/nodewise.{path}").future(made().SerializeToString())

    return found | {name: single(path, made) for name, (path, made) in alone.items()}


def processes(pid: int) -> Iterator[int]:
    """A process and all that it started."""
    yield pid
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in children.read_text().split():
                yield from processes(int(child))


def cpu_ns(pid: int) -> dict[int, int]:
    """Time of each thread of a process, and of all that it started, on a processor."""
    found = {}
    for process in processes(pid):
        for thread in Path(f"/proc/{process}/task").glob("*/schedstat"):
            with suppress(OSError):
                found[int(thread.parent.name)] = int(thread.read_text().split()[0])
    return found


def grown_s(before: dict[int, int], now: dict[int, int]) -> float:
    return 1e-9 * sum(used - before.get(thread, 0) for thread, used in now.items())


def worked_s(server: Server, start: Callable[[], Any]) -> float:
    """Seconds of a processor that are used after a cancellation."""
    before = cpu_ns(server.pid)
    call = start()
    while grown_s(before, cpu_ns(server.pid)) < BEFORE_S:
        if call.done():
            raise SystemExit(f"a call ended before it was cancelled: {call.code()}: {call.details()}")
        time.sleep(0.005)
    call.cancel()
    first = last = cpu_ns(server.pid)
    quiet_s, most_s = time.perf_counter(), 0.0
    while time.perf_counter() - quiet_s < QUIET_S:
        time.sleep(0.002)
        now = cpu_ns(server.pid)
        if grown_s(last, now) > STILL_S:
            quiet_s = time.perf_counter()
        last, most_s = now, max(most_s, grown_s(first, now))
    return most_s


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
                    took_s.append(worked_s(server, start))
                yield Result(f"{name}_worked_after_cancelling", 1e3 * max(took_s), "ms", 1e3 * ALLOWED_S)
