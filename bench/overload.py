"""Overload: calls at fixed times whatever becomes of them, from a process of their own, against a server on one core.

``python bench/overload.py [--kind batch|fit|simulate] [--seconds 60] [--loads 0.8,1,2,5,20] [--callers 10] [--first]``.
Goodput is told as a share of what the server answers, before and after each load, when a few callers always wait: by
the clock, and by the server's CPU, which others who use the machine change less. A call of each kind takes about ten
milliseconds of CPU: a batch of many jobs in the event loop, a question about a profile that nobody saw before in a
thread, a simulation in the pool.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import grpc
import rpc
from open_loop import DEADLINE_S, Loader, Outcomes, prefer
from processes import Server
from results import Result

from nodewise_protos.v1 import configuration_pb2, objective_pb2, options_pb2, profile_pb2
from nodewise_protos.v1 import prediction_service_pb2 as pb

HEALTH: Final = "/grpc.health.v1.Health/Check"
LOADS: Final = (0.8, 1.0, 2.0, 5.0, 20.0)
CALLERS: Final = 10
SECONDS: Final = 6.0
CAPACITY_S: Final = 2.0
CLOSED_CALLERS: Final = 4
WARM_UP_S: Final = 120.0
WARM_UPS: Final = 3
"""Times that callers wait for each answer, before capacity is told: at first it grows by half from one to the next."""
BATCH_JOBS: Final = 200
SIMULATED_STEPS: Final = 200


@cache
def _batch() -> bytes:
    return pb.BatchPredictRequest(
        jobs=[
            pb.BatchJob(
                profile=profile_pb2.ProfileSource(profile_id=f"job-{number % 8}"),
                configurations=configuration_pb2.Configurations(workers=range(1 + number % 16, 17 + number % 16)),
            )
            for number in range(BATCH_JOBS)
        ],
        objective=objective_pb2.Objective(knee=objective_pb2.Knee()),
    ).SerializeToString()


def batch(number: int) -> bytes:
    """Many jobs, which the event loop answers."""
    return _batch()


def fit(number: int) -> bytes:
    """A profile that was never seen, so that models are fitted to it first."""
    draw = random.Random(number)
    content = rpc.profile()
    content.phase_timings.compute_seconds[0] *= draw.uniform(0.5, 2.0)
    counts = (1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 20)
    rows, alike = content.observations, len(counts)
    rows.configurations.CopyFrom(
        configuration_pb2.Configurations(
            nodes=counts,
            workers=counts,
            parameter_servers=[1] * alike,
            sync_modes=[1] * alike,
            batch_per_worker_samples=[32] * alike,
        )
    )
    rows.steps_per_second.extend(count**0.8 * draw.uniform(0.95, 1.05) for count in counts)
    rows.steps_counts.extend([100] * alike)
    return pb.PredictRequest(
        profile=profile_pb2.ProfileSource(content=content),
        configurations=configuration_pb2.Configurations(workers=range(1, 17)),
        objective=objective_pb2.Objective(knee=objective_pb2.Knee()),
    ).SerializeToString()


def simulate(number: int) -> bytes:
    """Steps of a job in simulated time, by the pool."""
    return pb.PredictRequest(
        profile=profile_pb2.ProfileSource(profile_id=f"job-{number % 8}"),
        configurations=configuration_pb2.Configurations(workers=range(1, 9)),
        options=options_pb2.PredictOptions(
            model=options_pb2.ModelOptions(seed=number % 2_000_000_000),
            fidelity=options_pb2.FIDELITY_SIMULATE,
            simulated_steps_count=SIMULATED_STEPS,
        ),
    ).SerializeToString()


@dataclass(frozen=True, slots=True)
class Kind:
    """Calls to measure with."""

    path: str
    request: Callable[[int], bytes]


KINDS: Final = {
    "batch": Kind("/nodewise.v1.PredictionService/BatchPredict", batch),
    "fit": Kind("/nodewise.v1.PredictionService/Predict", fit),
    "simulate": Kind("/nodewise.v1.PredictionService/Predict", simulate),
}


@dataclass(frozen=True, slots=True)
class Load:
    """What became of a load.

    Attributes
    ----------
    callers : list of Outcomes
    seconds, cpu_s : float
        How long it lasted, and CPU of the server meanwhile.
    health : Counter
        What was said every quarter of a second; -1 = nothing within a second.
    """

    callers: list[Outcomes]
    seconds: float
    cpu_s: float
    health: Counter[int]

    @property
    def per_s(self) -> float:
        """Answers in time, a second."""
        return sum(each.in_time for each in self.callers) / self.seconds

    @property
    def per_cpu_s(self) -> float:
        """Answers in time, a second of the server's CPU."""
        return sum(each.in_time for each in self.callers) / self.cpu_s

    @property
    def latencies_s(self) -> list[float]:
        return [each for caller in self.callers for each in caller.latencies_s]


class Bench:
    """A server and its loader."""

    def __init__(self, server: Server, loader: Loader, kind: Kind) -> None:
        self.server = server
        self._loader = loader
        self._kind = kind

    def warm_up(self) -> None:
        """Start what serves the first call of a kind, such as a process of the pool."""
        with grpc.insecure_channel(self.server.target) as channel:
            channel.unary_unary(self._kind.path)(self._kind.request(0), timeout=WARM_UP_S)
        for _ in range(WARM_UPS):
            self.closed()

    def closed(self, seconds: float = CAPACITY_S) -> Load:
        """Callers that wait for each answer: capacity."""
        self._loader.begin_closed(CLOSED_CALLERS, seconds)
        return self._load()

    def offered(self, per_s: Sequence[float], seconds: float, seed: int) -> Load:
        """Callers that wait for nothing."""
        self._loader.begin_open(per_s, seconds, seed)
        return self._load()

    def _load(self) -> Load:
        cpu_s, began_s, health = self.server.cpu_s(), time.perf_counter(), Counter[int]()
        with grpc.insecure_channel(self.server.target, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
            check = channel.unary_unary(HEALTH)
            while not self._loader.ended(0.25):
                try:
                    health[check(b"", timeout=1.0)[1]] += 1
                except grpc.RpcError:
                    health[-1] += 1
            cpu_s, seconds = self.server.cpu_s() - cpu_s, time.perf_counter() - began_s
        return Load(self._loader.outcomes(), seconds, cpu_s, health)

    def recovery_s(self, usual_s: float) -> float:
        """Seconds after a load until three answers in a row take no longer than they usually do."""
        began_s, good = time.perf_counter(), 0
        with grpc.insecure_channel(self.server.target, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
            method = channel.unary_unary(self._kind.path)
            while good < 3 and time.perf_counter() - began_s < 30:
                called_s = time.perf_counter()
                try:
                    method(self._kind.request(time.monotonic_ns()), timeout=DEADLINE_S)
                except grpc.RpcError:
                    good = 0
                else:
                    good = good + 1 if time.perf_counter() - called_s < 2 * usual_s else 0
        return time.perf_counter() - began_s


def quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


def rss_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def measured(kind: str, seconds: float, loads: Sequence[float], callers: int) -> Iterator[dict[str, Any]]:
    """One line for each load, and one for a greedy caller among ten."""
    asked = KINDS[kind]
    with tempfile.TemporaryDirectory() as folder:
        command = ("-m", "nodewise", "serve", "--listen", "127.0.0.1:0", "--store", f"sqlite:{folder}/bench.db")
        with Server(*command, refuses=True) as server, Loader(server.target, asked.path, asked.request) as loader:
            rpc.store_profiles(server.target)
            bench = Bench(server, loader, asked)
            bench.warm_up()
            before = bench.closed()
            usual_s = statistics.median(before.latencies_s) / CLOSED_CALLERS
            yield {"kind": kind, "name": "capacity", "per_s": round(before.per_s, 1)} | {
                "cpu_ms_a_call": round(1e3 / before.per_cpu_s, 2)
            }
            for load in loads:
                began_mb = rss_mb(server.pid)
                rates = [load * before.per_s / callers] * callers
                found = bench.offered(rates, seconds, int(load * 10))
                recovered_s = bench.recovery_s(usual_s)
                after = bench.closed()
                yield (
                    {"kind": kind, "name": f"{load:g} x capacity"}
                    | _line(found, before, after)
                    | {
                        "recovery_s": round(recovered_s, 3),
                        "rss_growth_mb": round(rss_mb(server.pid) - began_mb, 1),
                    }
                )
                before = after
            yield {"kind": kind, "name": "one greedy caller among ten"} | _greedy(bench, before.per_s, seconds, callers)


def _line(found: Load, before: Load, after: Load) -> dict[str, Any]:
    ended = sum((each.ended for each in found.callers), Counter[str]())
    refused_s = [each for caller in found.callers for each in caller.refused_s]
    return {
        "capacity": [round(before.per_s, 1), round(after.per_s, 1)],
        "goodput": round(2 * found.per_s / (before.per_s + after.per_s), 3),
        "goodput_by_cpu": round(2 * found.per_cpu_s / (before.per_cpu_s + after.per_cpu_s), 3),
        "server_cores": round(found.cpu_s / found.seconds, 2),
        "p50_ms": round(quantile(found.latencies_s, 0.5) * 1e3, 1),
        "p99_ms": round(quantile(found.latencies_s, 0.99) * 1e3, 1),
        "refused_p50_ms": round(quantile(refused_s, 0.5) * 1e3, 1),
        "refused_p99_ms": round(quantile(refused_s, 0.99) * 1e3, 1),
        "ended": dict(ended),
        "health": dict(found.health),
        "loader_late_ms": round(max(each.late_s for each in found.callers) * 1e3, 1),
    }


def _greedy(bench: Bench, most_per_s: float, seconds: float, callers: int) -> dict[str, Any]:
    """Nine callers that together ask for 0.7 of capacity: alone, and beside one that asks for five times as much."""
    modest = [0.7 * most_per_s / (callers - 1)] * (callers - 1)
    alone = bench.offered(modest, seconds, 1)
    beside = bench.offered([*modest, 5 * most_per_s], seconds, 1)
    served = [sum(each.ended["OK"] for each in load.callers[: callers - 1]) for load in (alone, beside)]
    asked = [sum(each.ended.total() for each in load.callers[: callers - 1]) for load in (alone, beside)]
    theirs_s = [
        [each for caller in load.callers[: callers - 1] for each in caller.latencies_s] for load in (alone, beside)
    ]
    return {
        "others_asked": asked,
        "others_served": served,
        "kept": round(served[1] / served[0], 3) if served[0] else None,
        "others_p99_ms": [round(quantile(each, 0.99) * 1e3, 1) for each in theirs_s],
        "greedy": dict(beside.callers[-1].ended),
    }


def run() -> Iterator[Result]:
    """The short form: goodput at five times the capacity, and beside a greedy caller."""
    for line in measured("batch", SECONDS, (5.0,), CALLERS):
        if "goodput" in line:
            yield Result("overload_5x_goodput_by_cpu", line["goodput_by_cpu"], "of capacity", 1.0)
        if "kept" in line:
            alone, beside = line["others_served"]
            yield Result("overload_others_beside_a_greedy_caller", beside, "calls", alone)


def main() -> int:
    """The long form."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=list(KINDS), default="batch")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--loads", default=",".join(map(str, LOADS)))
    parser.add_argument("--callers", type=int, default=CALLERS)
    parser.add_argument("--first", action="store_true", help="before all else on the machine, where that is allowed")
    given = parser.parse_args()
    if given.first:
        prefer()
    loads = [float(each) for each in given.loads.split(",") if each]
    for line in measured(given.kind, given.seconds, loads, given.callers):
        print(json.dumps(line), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
