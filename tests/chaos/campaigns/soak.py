"""Mixed load with thousands of distinct jobs: whether memory, descriptors, threads and latencies stay as they are."""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from logged_server import LoggedServer
from planted_distributions import WELL, planted
from process_figures import descriptors, family, processor_s, resident_bytes, threads
from serving import Stubs, inline, observed, one_worker_phases, workers
from steady_callers import USUAL, Asked, SteadyCallers, predict_request, predicting
from valid_requests import V1BETA1, valid_requests

from nodewise_protos.v1 import prediction_service_pb2 as predictions
from nodewise_protos.v1 import profile_pb2
from nodewise_protos.v1 import profile_service_pb2 as profiles

WINDOWS: Final = 12
FLAT: Final = 0.05
"""Share by which memory may differ between the first and the last windows after warming up."""


def run(arguments: argparse.Namespace, folder: Path) -> Iterator[dict[str, Any]]:
    """Figures of each window, then the verdict."""
    environment = planted(folder / "site", [WELL])
    options = ("--store", f"sqlite:{folder}/store.db", "--workers", str(arguments.workers))
    pace = arguments.calls_per_s or 20.0
    windows: list[dict[str, Any]] = []
    with (
        LoggedServer(folder, *options, environment=environment) as server,
        SteadyCallers(server.target, _mixed(arguments.jobs, arguments.seed), calls_per_s=pace, new_every=1) as callers,
    ):
        time.sleep(60.0 * arguments.warm_up_minutes)
        warmed = callers.begin_window()
        yield {"warmed_up": True, **_figures(server.pid, warmed.answered(), callers)}
        for number in range(WINDOWS):
            ends = time.monotonic() + 60.0 * arguments.minutes / WINDOWS
            samples = []
            while time.monotonic() < ends:
                samples.append(_sizes(server.pid))
                time.sleep(min(1.0, max(0.0, ends - time.monotonic())))
            window = callers.begin_window()
            figures = _figures(server.pid, window.answered(), callers)
            # The most that was seen: what grows grows in its peaks, what is collected now and then does not.
            figures["resident_mb"] = round(max(size for size, _ in samples) / 1e6, 1)
            figures["median_resident_mb"] = round(sorted(size for size, _ in samples)[len(samples) // 2] / 1e6, 1)
            figures["p99_ms"] = {who: round(window.percentile_ms(who, 0.99), 1) for who in sorted(window.seconds)}
            windows.append(figures)
            yield {"window": number + 1, **figures}
    yield _verdict(windows, arguments, callers)


def _verdict(windows: list[dict[str, Any]], arguments: argparse.Namespace, callers: SteadyCallers) -> dict[str, Any]:
    """The last quarter beside the first, after warming up."""
    part = max(1, len(windows) // 4)

    def mean(of: list[dict[str, Any]], what: str) -> float:
        return float(sum(window[what] for window in of) / len(of))

    growth = mean(windows[-part:], "median_resident_mb") / mean(windows[:part], "median_resident_mb") - 1.0
    return {
        "minutes": arguments.minutes,
        "warm_up_minutes": arguments.warm_up_minutes,
        "distinct_jobs": arguments.jobs,
        "calls": callers.answered(),
        "failures_count": len(callers.failures),
        "failures": callers.failures[:5],
        "resident_growth": round(growth, 4),
        "descriptors": [windows[0]["descriptors"], windows[-1]["descriptors"]],
        "threads": [windows[0]["threads"], windows[-1]["threads"]],
        "kept": growth <= FLAT and not callers.failures,
    }


def _figures(pid: int, answered: int, callers: SteadyCallers) -> dict[str, Any]:
    processes = family(pid)
    return {
        "answered": answered,
        "failures": len(callers.failures),
        "processes": len(processes),
        "resident_mb": round(sum(map(resident_bytes, processes)) / 1e6, 1),
        "resident_mb_each": [round(resident_bytes(process) / 1e6, 1) for process in processes],
        "descriptors": sum(map(descriptors, processes)),
        "threads": sum(map(threads, processes)),
        "processor_s": round(sum(map(processor_s, processes)), 1),
    }


def _sizes(pid: int) -> tuple[int, int]:
    processes = family(pid)
    return sum(map(resident_bytes, processes)), len(processes)


def _mixed(jobs: int, seed: int) -> Mapping[str, Asked]:
    """Callers of every kind, of whom those that predict go through all the jobs in an order of chance."""
    chance = random.Random(seed)
    order = chance.sample(range(jobs), jobs)
    valid = valid_requests()

    def of_many(ask: Asked) -> Asked:
        return lambda stubs, number, options: ask(stubs, order[number % jobs], options)

    def batch(stubs: Stubs, number: int, options: dict[str, Any]) -> Any:
        asked = [
            predictions.BatchJob(
                profile=inline(one_worker_phases(compute_s=0.1 + order[(number + each) % jobs] * 1e-5))
            )
            for each in range(8)
        ]
        request = predictions.BatchPredictRequest(jobs=asked, configurations=workers(*range(1, 17)))
        return stubs.prediction.BatchPredict(request, **options)

    def append(stubs: Stubs, number: int, options: dict[str, Any]) -> Any:
        content = profile_pb2.ProfileContent(observations=observed([1, 2, 4], [1.0, 1.9, 3.5 + number * 1e-6]))
        request = profiles.AppendProfileRequest(
            profile_id=f"job-{number % 500}", request_id=f"{number}", content=content
        )
        return stubs.profile.AppendProfile(request, **options)

    def simulate(stubs: Stubs, number: int, options: dict[str, Any]) -> Any:
        (request,) = valid[f"{V1BETA1}.SimulationService/Simulate"]
        return list(stubs.simulation.Simulate(request, **options))

    def stream(stubs: Stubs, number: int, options: dict[str, Any]) -> Any:
        questions = [
            predictions.StreamPredictRequest(
                question_id=str(each), predict=predict_request("", order[(number + each) % jobs])
            )
            for each in range(8)
        ]
        return list(stubs.prediction.StreamPredict(iter(questions), **options))

    asking: dict[str, Asked] = {name: of_many(ask) for name, ask in USUAL.items()}
    asking["well"] = of_many(predicting(WELL.name))
    return asking | {"batch": batch, "stream": stream, "append": append, "simulate": simulate}
