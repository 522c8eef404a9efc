"""Long calls beside short ones: latency of cached predictions while a plan is searched, and how soon work ends.

The server runs on all cores, with one process for long calls. ``worked_after_cancelling`` is what all of the server's
processes used of a processor after a caller's cancellation: time that others do not take on a busy machine counts for
nothing. Of a process that was killed it is what was seen before.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import grpc
import loader
import long_requests as asked
import numpy as np
from processes import Server
from results import Result
from rpc import PREDICT, requests, store_profiles
from traces import written

from nodewise.runtime.event_loop import new_event_loop
from nodewise_client import Client
from nodewise_protos.v1 import configuration_pb2, profile_pb2
from nodewise_protos.v1beta1 import diagnosis_service_pb2

CAPACITY_CALLS = 6_000
SECONDS = 8.0
WINDOWS = 3
BEFORE_S = 0.4
"""Of a processor that a call has had when it is cancelled."""
BEFORE_SHORT_S = 0.02
"""The same of calls that take less than a tenth of a second."""
QUIET_S = 0.5
"""A server that has used no processor for so long has ended its work."""
STILL_S = 0.0005
"""Of a processor between two looks: what a server does that nobody asks."""
ALLOWED_S = 0.05


def long_calls(channel: grpc.Channel) -> dict[str, Callable[[], Any]]:
    """Calls that run for longer than they are let."""
    traced = profile_pb2.ProfileSource(profile_id="traced")
    told: dict[str, tuple[str, Any]] = {
        "plan": ("PlanService/Plan", asked.plan()),
        "simulate": ("SimulationService/Simulate", asked.simulation()),
        "backtest": ("EvaluationService/Backtest", asked.backtest()),
        "replay": ("DiagnosisService/Replay", diagnosis_service_pb2.ReplayRequest(profile=traced, timeline=True)),
        "diagnose": ("DiagnosisService/Diagnose", diagnosis_service_pb2.DiagnoseRequest(profile=traced)),
    }

    def stream_of(path: str, request: bytes) -> Callable[[], Any]:
        return lambda: channel.unary_stream(f"/nodewise.v1beta1.{path}")(request)

    found = {name: stream_of(path, request.SerializeToString()) for name, (path, request) in told.items()}
    alone = {
        "predict_fits": ("v1.PredictionService/Predict", asked.predict_fits),
        "predict_simulated": ("v1.PredictionService/Predict", asked.predict_simulated),
        "predict_hosted": ("v1.PredictionService/Predict", asked.predict_hosted),
        "suggest": ("v1.PredictionService/SuggestMeasurements", asked.suggestion),
        "batch": ("v1.PredictionService/BatchPredict", asked.fits),
        "batch_simulated": ("v1.PredictionService/BatchPredict", asked.simulated),
        "schedule": ("v1.ScheduleService/Schedule", asked.schedule),
        "completion": ("v1beta1.CompletionService/EstimateCompletion", asked.completion),
        "sharing": ("v1beta1.SharingService/PredictSharing", asked.sharing),
    }

    def single(path: str, made: Callable[[], Any]) -> Callable[[], Any]:
        return lambda: channel.unary_unary(f"/nodewise.{path}").future(made().SerializeToString())

    def stream() -> Any:
        sent = [each.SerializeToString() for each in asked.stream()]
        return channel.stream_stream("/nodewise.v1.PredictionService/StreamPredict")(iter(sent))

    return found | {name: single(path, made) for name, (path, made) in alone.items()} | {"stream": stream}


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


def worked_s(server: Server, start: Callable[[], Any], after_s: float) -> float:
    """Seconds of a processor that are used after a cancellation, which comes after so many."""
    before = cpu_ns(server.pid)
    call = start()
    while grown_s(before, cpu_ns(server.pid)) < after_s:
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
    request, over = asked.plan().SerializeToString(), threading.Event()
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
    """Have the process started, as the first long call does, and compiled code loaded, which is one long step."""
    few = asked.suggestion()
    few.configurations.CopyFrom(configuration_pb2.Configurations(workers=[1, 2, 4]))
    few.max_suggestions = 1
    channel.unary_unary("/nodewise.v1.PredictionService/SuggestMeasurements")(few.SerializeToString())
    channel.unary_unary(PREDICT)(asked.predict_of(asked.simulated(workers=2)).SerializeToString())


def run() -> Iterator[Result]:
    questions = requests()
    with tempfile.TemporaryDirectory() as folder:
        trace = written(Path(folder, "trace.json.gz"), steps=10, operators=20_000)
        command = ("-m", "nodewise", "serve", "--listen", "127.0.0.1:0", "--store", f"sqlite:{folder}/bench.db")
        asked.plant(Path(folder, "site"))
        with patch.dict(os.environ, PYTHONPATH=f"{folder}/site"):
            started = Server(*command, pinned=False)
        with started as server, grpc.insecure_channel(server.target) as channel:
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
                    after_s = BEFORE_SHORT_S if name == "predict_fits" else BEFORE_S
                    took_s.append(worked_s(server, start, after_s))
                yield Result(f"{name}_worked_after_cancelling", 1e3 * max(took_s), "ms", 1e3 * ALLOWED_S)
