"""The service's own capacity, predicted by Nodewise's queueing laws from one profiled worker, beside what is measured.

``python bench/capacity.py [--rounds 4] [--mixes cached,unasked,append] [--settings shares,cores]``: one JSON object a
line. Callers wait for each answer, think, and ask again, each over a connection of its own, which stays with a worker.
Two settings:

shares
    Each worker has a share of a core of its own (control groups), as workers on a machine with more cores have.
cores
    Workers and loader share the machine's cores.

The profile is one run of one worker that is busy all the time: CPU seconds of a call in the worker and in the loader,
and for writes the seconds of the store's transactions, during which no other worker writes. With ``cores``, another run
uses it lightly: the CPU of a call is a line over the utilisation, and a call takes seconds until threads wake. The law
is a closed network: each worker is a station that only the callers of its connections visit, the loader's thread one
that all visit. It is solved by mean value analysis (`nodewise_laws.multiclass`), and bounded by 1 / time of a
transaction (an asymptotic bound of operational analysis). Where threads would use more cores than there are, all
compute so much slower that they use just these; a worker that waits for a core gathers calls as a busy one does. A
worker with a share computes at the speed of a core until the share of a period is used up: share / CPU of a call bounds
its calls a second.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import astuple, dataclass, replace
from functools import cache
from pathlib import Path
from statistics import fmean, median
from typing import Any, Final

import grpc
import numpy as np
import rpc
from core_shares import core_shares, shares_available
from open_loop import Loader, prefer
from processes import Server, cpu_clock_of
from results import Result, write_table
from scipy.optimize import brentq

from nodewise_laws import multiclass
from nodewise_protos.v1 import configuration_pb2, objective_pb2, profile_pb2, profile_service_pb2
from nodewise_protos.v1 import prediction_service_pb2 as pb

WORKERS: Final = (1, 2, 4)
CALLERS: Final = {"shares": (32, 96), "cores": (64, 128)}
"""Callers of each setting: few, who leave workers idle at times, and many."""
PROFILE_CALLERS: Final = 32
"""Callers that keep one worker busy without a pause."""
LIGHT_CALLERS: Final = 4
"""Callers that use one worker lightly."""
SLOWEST: Final = 0.01
"""Speed of a thread below which nothing is searched."""
STEPS: Final = 40
"""Of the iteration to the utilisation at which the CPU of a call is what it is at this utilisation."""
THINK_S: Final = 0.02
SHARE: Final = 0.2
SECONDS: Final = 1.5
ROUNDS: Final = 4
PARTS: Final = ("server", "loader", "store")
SAMPLED_S: Final = 6.0
"""Seconds after which the server's metrics hold all that was before."""

COLUMNS: Final = (
    "setting",
    "mix",
    "workers",
    "callers",
    "predicted_per_s",
    "measured_per_s",
    "error",
    "error_by_its_own_cpu",
)


@cache
def _asked() -> list[bytes]:
    return rpc.requests()


def cached(number: int) -> bytes:
    """A question whose reply is known."""
    return _asked()[number % 8]


def unasked(number: int) -> bytes:
    """A question about a stored job that nobody asked before."""
    workers = sorted(random.Random(number).sample(range(1, 65), rpc.CONFIGURATIONS))
    return pb.PredictRequest(
        profile=profile_pb2.ProfileSource(profile_id=f"job-{number % 8}"),
        configurations=configuration_pb2.Configurations(workers=workers),
        objective=objective_pb2.Objective(knee=objective_pb2.Knee()),
    ).SerializeToString()


def append(number: int) -> bytes:
    """The first measurements of a new job."""
    return profile_service_pb2.AppendProfileRequest(
        profile_id=f"new-{number}", request_id="bench", content=rpc.profile()
    ).SerializeToString()


MIXES: Final[dict[str, tuple[str, Callable[[int], bytes]]]] = {
    "cached": (rpc.PREDICT, cached),
    "unasked": (rpc.PREDICT, unasked),
    "append": (rpc.APPEND, append),
}


@dataclass(frozen=True, slots=True)
class Window:
    """One run of callers.

    Attributes
    ----------
    per_s : float
        Answers a second.
    server_s, loader_s : float
        CPU seconds of a call in all processes of the server, and in the loader.
    connections : list of int
        Callers of each worker.
    """

    per_s: float
    server_s: float
    loader_s: float
    connections: list[int]


@dataclass(frozen=True, slots=True)
class Demands:
    """Of a call: CPU seconds in the worker and in the loader, and seconds in which the store writes nothing else.

    ``waking_s`` are seconds in which neither computes.
    """

    server_s: float
    loader_s: float
    store_s: float = 0.0
    waking_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Machine:
    """The share of a core that each worker has, None = as much as is free; and the cores of all processes."""

    share: float | None
    cores: int

    def solve(self, demands: Demands, connections: Sequence[int], think_s: float) -> tuple[float, float]:
        """Calls a second of workers with so many callers each, by the law; and the speed of a thread that computes.

        Threads that share all cores compute at less than the speed of a core where they would use more cores than
        there are: at the speed at which they use them all.
        """

        def per_s(speed: float) -> float:
            workers = len(connections)
            stations = [[0.0] * workers + [demands.loader_s / speed] for _ in connections]
            for worker in range(workers):
                stations[worker][worker] = demands.server_s / speed
            solved = multiclass(stations, [think_s + demands.waking_s] * workers, connections)
            most_per_s = np.inf if self.share is None else self.share / demands.server_s
            found = float(np.minimum(solved.throughput_per_s, most_per_s).sum())
            return min(found, 1.0 / demands.store_s) if demands.store_s > 0.0 else found

        def free_cores(speed: float) -> float:
            return self.cores - per_s(speed) * (demands.server_s + demands.loader_s)

        speed = 1.0
        if self.share is None and free_cores(1.0) < 0.0:
            speed = float(brentq(free_cores, SLOWEST, 1.0, xtol=1e-4))
        return per_s(speed), speed

    def per_s(self, demands: Demands, connections: Sequence[int], think_s: float) -> float:
        """Calls a second, by the law."""
        return self.solve(demands, connections, think_s)[0]

    def used(self, per_s: float, speed: float, demands: Demands, workers: int) -> tuple[float, float]:
        """Shares of time in which a worker and the loader compute or wait for a core."""
        return per_s * demands.server_s / workers / speed, per_s * demands.loader_s / speed


@dataclass(frozen=True, slots=True)
class Profile:
    """One worker, busy all the time, and used lightly; None = that is not part of the law."""

    busy: Window
    light: Window | None

    def waking_s(self, machine: Machine) -> float:
        """What a call of the light run took beyond the law's time for its CPU."""
        if self.light is None:
            return 0.0
        callers = sum(self.light.connections)
        of_law = machine.per_s(Demands(self.light.server_s, self.light.loader_s), self.light.connections, THINK_S)
        return max(callers / self.light.per_s - callers / of_law, 0.0)

    def per_s(self, machine: Machine, connections: Sequence[int], store_s: float) -> float:
        """Calls a second by the law: the CPU of a call is on the line through both runs, at its utilisation."""
        runs = (self.light or self.busy, self.busy)
        costs = [Demands(each.server_s, each.loader_s) for each in runs]
        points = list(zip(*(machine.used(each.per_s, 1.0, cost, 1) for each, cost in zip(runs, costs, strict=True))))
        waking_s, per_s, speed, demands = self.waking_s(machine), 0.0, 0.0, costs[1]
        for step in range(1, STEPS):
            demands = replace(demands, store_s=store_s, waking_s=waking_s)
            # The mean of all steps: the law alone would go to and fro between much and little CPU.
            now_per_s, now_speed = machine.solve(demands, connections, THINK_S)
            per_s, speed = per_s + (now_per_s - per_s) / step, speed + (now_speed - speed) / step
            server, loader = machine.used(per_s, speed, demands, len(connections))
            demands = Demands(
                float(np.interp(server, points[0], [each.server_s for each in costs])),
                float(np.interp(loader, points[1], [each.loader_s for each in costs])),
            )
        return per_s


class Bench:
    """A server with some workers, and its loader, in one of the settings."""

    def __init__(self, server: Server, loader: Loader) -> None:
        self.server = server
        self._metrics = f"http://{server.http_target}/metrics"
        self._loader = loader
        self.calls = 0
        """That were answered so far."""

    def window(self, callers: int, think_s: float) -> Window:
        """Measure once."""
        self._loader.begin_closed(callers, SECONDS, think_s)  # connecting is over, which costs more than a call
        before = self._cpu_s()
        connections = self.server.connections()
        while not self._loader.ended(0.1):
            pass
        after = self._cpu_s()
        outcomes = self._loader.outcomes()
        refused = {name for each in outcomes for name in each.ended} - {"OK"}
        if refused:
            raise RuntimeError(f"calls were refused, so that no capacity was measured: {', '.join(sorted(refused))}")
        ended = sum(each.ended["OK"] for each in outcomes)
        self.calls += ended
        server_s, loader_s = ((last - first) / ended for first, last in zip(before, after, strict=True))
        return Window(sum(each.in_time for each in outcomes) / SECONDS, server_s, loader_s, connections)

    def profile(self, machine: Machine) -> Profile:
        """Measure a busy run, and a light one where workers have no share."""
        busy = self.window(PROFILE_CALLERS, THINK_S if machine.share else 0.0)  # a share is busy though they think
        return Profile(busy, None if machine.share else self.window(LIGHT_CALLERS, THINK_S))

    def writing_s(self) -> float:
        """Seconds of the store's transactions so far, by the server's metrics."""
        time.sleep(SAMPLED_S)
        with urllib.request.urlopen(self._metrics) as reply:
            lines = reply.read().decode().splitlines()
        return sum(float(line.split()[1]) for line in lines if line.startswith("nodewise_store_write_seconds_total"))

    def _cpu_s(self) -> tuple[float, float]:
        return self.server.cpu_s(), time.clock_gettime_ns(cpu_clock_of(self._loader.pid)) / 1e9


@contextmanager
def bench(setting: str, mix: str, workers: int) -> Iterator[Bench]:
    """A server whose jobs are stored, warmed up."""
    path, request = MIXES[mix]
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        options = ("--workers", str(workers), "--http", "127.0.0.1:0")
        server = stack.enter_context(Server(*rpc.served(f"sqlite:{folder}/bench.db", *options), pinned=False))
        loader = stack.enter_context(Loader(server.target, path, request, pinned=False))
        rpc.store_profiles(server.target)
        found = Bench(server, loader)
        found.window(PROFILE_CALLERS, 0.0)
        if shares_available():  # the loader is not what is measured: it computes whenever it can
            stack.enter_context(core_shares([loader.pid], None, first=True))
            stack.enter_context(core_shares(server.workers, SHARE if setting == "shares" else None))
        yield found


def by_predict(server: Server, demands: Demands, callers: Sequence[int]) -> list[float]:
    """Calls a second of one worker with so many callers each, as the profiled server itself predicts.

    Callers are workers that exchange asynchronously with one parameter server: they compute while they think, the
    loader's thread is the server's link, and the CPU of a call is the update.
    """
    one = configuration_pb2.Configurations(
        nodes=[1], workers=[1], parameter_servers=[1], sync_modes=[1], batch_per_worker_samples=[1]
    )
    content = profile_pb2.ProfileContent(
        phase_timings=profile_pb2.PhaseTimings(
            configurations=one,
            download_seconds=[demands.loader_s],
            compute_seconds=[THINK_S],
            upload_seconds=[0.0],
            update_seconds=[demands.server_s],
        )
    )
    asked = configuration_pb2.Configurations(
        nodes=callers, workers=callers, parameter_servers=[1], sync_modes=[1], batch_per_worker_samples=[1]
    )
    question = pb.PredictRequest(profile=profile_pb2.ProfileSource(content=content), configurations=asked)
    with grpc.insecure_channel(server.target) as channel:
        reply: bytes = channel.unary_unary(rpc.PREDICT)(question.SerializeToString())
    return list(pb.PredictResponse.FromString(reply).predictions.steps_per_second)


@dataclass(frozen=True, slots=True)
class Trial:
    """Callers of some workers, between two profiles of one worker: what others do to the machine moves both."""

    profiles: Sequence[Profile]
    window: Window


def measured(setting: str, mix: str, rounds: int) -> Iterator[dict[str, Any]]:
    """One line for the profile, and one for each number of workers and callers."""
    about = {"setting": setting, "mix": mix}
    machine = Machine(SHARE if setting == "shares" else None, len(os.sched_getaffinity(0)))
    with ExitStack() as stack:
        benches = {workers: stack.enter_context(bench(setting, mix, workers)) for workers in WORKERS}
        one = benches[1]
        before_s, before_calls = one.writing_s(), one.calls
        cases = [(workers, callers) for workers in WORKERS for callers in CALLERS[setting]]
        trials: dict[tuple[int, int], list[Trial]] = {case: [] for case in cases}
        profile = one.profile(machine)
        for workers, callers in cases * rounds:
            window = benches[workers].window(callers, THINK_S)
            before, profile = profile, one.profile(machine)
            trials[workers, callers].append(Trial((before, profile), window))
        store_s = (one.writing_s() - before_s) / (one.calls - before_calls)
        every = [each.profiles[0] for of_case in trials.values() for each in of_case]
        busy = [each.busy for each in every]
        demands = Demands(median(each.server_s for each in busy), median(each.loader_s for each in busy), store_s)
        waking_s = median(each.waking_s(machine) for each in every)
        profiled = {f"{name}_us": round(1e6 * value, 1) for name, value in zip(PARTS, astuple(demands))}
        yield about | {"name": "profile of one worker"} | profiled | {"waking_us": round(1e6 * waking_s, 1)}
        if setting == "shares":
            few = (1, 4, 8, 16, PROFILE_CALLERS)
            answers = by_predict(one.server, demands, few)
            laws = [Machine(None, 2).per_s(demands, [callers], THINK_S) for callers in few]
            compared = {"predict_per_s": [round(each, 1) for each in answers]} | {
                "law_per_s": [round(each, 1) for each in laws]
            }
            yield about | {"name": "one worker, by Predict", "callers": few} | compared
    for (workers, callers), of_case in trials.items():
        yield about | {"workers": workers, "callers": callers} | _line(machine, of_case, store_s)


def _line(machine: Machine, trials: Sequence[Trial], store_s: float) -> dict[str, Any]:
    """Medians of the trials; and the error that is left with the CPU of a call as it was in these runs."""

    def profiled(trial: Trial) -> float:
        return fmean(each.per_s(machine, trial.window.connections, store_s) for each in trial.profiles)

    def by_busy_cpu(trial: Trial) -> float:
        return profiled(replace(trial, profiles=[replace(each, light=None) for each in trial.profiles]))

    def by_its_own_cpu(trial: Trial) -> float:
        waking_s = fmean(each.waking_s(machine) for each in trial.profiles)
        own = Demands(trial.window.server_s, trial.window.loader_s, store_s, waking_s)
        return machine.per_s(own, trial.window.connections, THINK_S)

    def error(of: Callable[[Trial], float]) -> float:
        return round(median(of(each) / each.window.per_s for each in trials) - 1.0, 3)

    return {
        "predicted_per_s": round(median(map(profiled, trials)), 1),
        "measured_per_s": round(median(each.window.per_s for each in trials), 1),
        "error": error(profiled),
        "error_by_busy_cpu": error(by_busy_cpu),
        "error_by_its_own_cpu": error(by_its_own_cpu),
        "server_us": round(median(each.window.server_s for each in trials) * 1e6, 1),
        "loader_us": round(median(each.window.loader_s for each in trials) * 1e6, 1),
        "connections": trials[-1].window.connections,
    }


def run() -> Iterator[Result]:
    """The short form: measured capacity beside the predicted one, of questions whose replies are known."""
    for line in measured(_settings()[0], "cached", 2):
        if "measured_per_s" in line:
            name = f"capacity_{line['setting']}_cached_{line['workers']}_workers_{line['callers']}_callers"
            yield Result(name, line["measured_per_s"], "calls/s", line["predicted_per_s"])


def _settings() -> list[str]:
    if shares_available():
        return list(CALLERS)
    print("capacity: shares of a core are left out, as control groups of version 1 are not writable", file=sys.stderr)
    return ["cores"]


def main() -> int:
    """The long form."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--mixes", default=",".join(MIXES))
    parser.add_argument("--settings", default=",".join(_settings()))
    parser.add_argument("--write", type=Path, help="page whose table is renewed")
    parser.add_argument("--first", action="store_true", help="before all else on the machine, where that is allowed")
    given = parser.parse_args()
    if given.first:
        prefer()
    lines = []
    for setting in given.settings.split(","):
        for mix in given.mixes.split(","):
            for line in measured(setting, mix, given.rounds):
                print(json.dumps(line), flush=True)
                lines += [line] if "measured_per_s" in line else []
    if given.write:
        write_table(given.write, "capacity", [COLUMNS, *([_cell(line[key]) for key in COLUMNS] for line in lines)])
    return 0


def _cell(value: object) -> str:
    return f"{value:+.1%}" if isinstance(value, float) and abs(value) < 1.0 else f"{value}"


if __name__ == "__main__":
    sys.exit(main())
