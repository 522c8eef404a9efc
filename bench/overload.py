"""Overload: calls at fixed times whatever becomes of them, from processes of their own, against a server on one core.

``python bench/overload.py [--seconds 60] [--loads 0.8,2,5,20] [--callers 10]``. Capacity is what the server answers
in the same run when a few callers always wait; goodput is told as a share of it. Calls are batches of many jobs,
which the event loop computes: the case in which a server stops taking in calls while it works.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import grpc
import rpc
from google.rpc import error_details_pb2, status_pb2
from processes import Server
from results import Result

from nodewise.runtime.serve import new_event_loop
from nodewise_protos.v1 import configuration_pb2, objective_pb2, profile_pb2
from nodewise_protos.v1 import prediction_service_pb2 as pb

BATCH: Final = "/nodewise.v1.PredictionService/BatchPredict"
HEALTH: Final = "/grpc.health.v1.Health/Check"
DEADLINE_S: Final = 5.0
LOADS: Final = (0.8, 2.0, 5.0, 20.0)
CALLERS: Final = 10
SECONDS: Final = 6.0


def question(jobs: int) -> bytes:
    """A batch that takes some milliseconds of CPU; jobs differ from each other by their configurations."""
    return pb.BatchPredictRequest(
        jobs=[
            pb.BatchJob(
                profile=profile_pb2.ProfileSource(profile_id=f"job-{number % 8}"),
                configurations=configuration_pb2.Configurations(workers=range(1 + number % 16, 17 + number % 16)),
            )
            for number in range(jobs)
        ],
        objective=objective_pb2.Objective(knee=objective_pb2.Knee()),
    ).SerializeToString()


def _reason(error: grpc.aio.AioRpcError) -> str:
    """Code and reason; a refusal without both is untyped."""
    reason, retry = "", ""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            for detail in status_pb2.Status.FromString(value).details:
                info = error_details_pb2.ErrorInfo()
                if detail.Unpack(info):
                    reason = info.reason
                retry = retry or "+retry" * detail.Is(error_details_pb2.RetryInfo.DESCRIPTOR)
    return f"{error.code().name} {reason}{retry}".strip()


async def _calls(target: str, request: bytes, per_s: Sequence[float], seconds: float, seed: int) -> dict[str, Any]:
    """Open loops of several callers, each over a connection of its own."""
    outcomes: list[Counter[str]] = [Counter() for _ in per_s]
    latencies: list[list[float]] = [[] for _ in per_s]
    refusals_s: list[float] = []
    late_s = 0.0

    async def one(place: int, method: Any, due_s: float) -> None:
        try:
            await method(request, timeout=DEADLINE_S)
        except grpc.aio.AioRpcError as error:
            outcomes[place][_reason(error)] += 1
            refusals_s.append(time.perf_counter() - due_s)
        else:
            outcomes[place]["OK"] += 1
            latencies[place].append(time.perf_counter() - due_s)

    async def caller(place: int, rate: float) -> None:
        nonlocal late_s
        draw = random.Random(seed * 1000 + place)
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]
        async with grpc.aio.insecure_channel(target, options=options) as channel:
            method = channel.unary_unary(BATCH)
            await channel.channel_ready()
            due_s = time.perf_counter()
            end_s, calls = due_s + seconds, set[asyncio.Task[None]]()
            while (due_s := due_s + draw.expovariate(rate)) < end_s:
                wait_s = due_s - time.perf_counter()
                late_s = max(late_s, -wait_s)
                if wait_s > 0:
                    await asyncio.sleep(wait_s)
                calls.add(task := asyncio.create_task(one(place, method, due_s)))
                task.add_done_callback(calls.discard)
            while calls:
                await asyncio.wait(calls)

    await asyncio.gather(*(caller(place, rate) for place, rate in enumerate(per_s)))
    return {
        "outcomes": [dict(each) for each in outcomes],
        "latencies": latencies,
        "refusals_s": refusals_s,
        "late_s": late_s,
    }


def _load(pipe: Any, *arguments: Any) -> None:
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        pipe.send(runner.run(_calls(*arguments)))


async def _closed(target: str, request: bytes, seconds: float, callers: int = 3) -> float:
    """Answers per second when a few callers always wait."""
    done, end_s = 0, time.perf_counter() + seconds

    async def caller() -> None:
        nonlocal done
        options = [("grpc.use_local_subchannel_pool", 1)]
        async with grpc.aio.insecure_channel(target, options=options) as channel:
            method = channel.unary_unary(BATCH)
            while time.perf_counter() < end_s:
                await method(request)
                done += 1

    began_s = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(callers)))
    return done / (time.perf_counter() - began_s)


def capacity(target: str, request: bytes, seconds: float) -> float:
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(_closed(target, request, seconds))


def offered(server: Server, request: bytes, per_s: Sequence[float], seconds: float, seed: int) -> dict[str, Any]:
    """What becomes of a load; health is asked meanwhile."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    cpu_s, began_s = server.cpu_s(), time.perf_counter()
    loader = multiprocessing.get_context("spawn").Process(
        target=_load, args=(theirs, server.target, request, tuple(per_s), seconds, seed)
    )
    loader.start()
    theirs.close()
    health: Counter[int] = Counter()
    with grpc.insecure_channel(server.target, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
        check = channel.unary_unary(HEALTH)
        while not ours.poll(0.25):
            try:
                health[check(b"", timeout=1.0)[1]] += 1
            except grpc.RpcError:
                health[-1] += 1
    found: dict[str, Any] = ours.recv()
    loader.join()
    found["health"] = dict(health)
    found["cpu_share"] = (server.cpu_s() - cpu_s) / (time.perf_counter() - began_s)
    return found


def recovery_s(target: str, request: bytes, usual_s: float) -> float:
    """Seconds after the load until three answers in a row take no longer than they usually do."""
    began_s, good = time.perf_counter(), 0
    with grpc.insecure_channel(target, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
        method = channel.unary_unary(BATCH)
        while good < 3:
            called_s = time.perf_counter()
            try:
                method(request, timeout=DEADLINE_S)
            except grpc.RpcError:
                good = 0
            else:
                good = good + 1 if time.perf_counter() - called_s < 2 * usual_s else 0
            if time.perf_counter() - began_s > 30:
                return float("inf")
    return time.perf_counter() - began_s


def quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


def rss_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def measured(seconds: float, loads: Sequence[float], callers: int, jobs: int) -> Iterator[dict[str, Any]]:
    """One line for each load, and one for a greedy caller among ten."""
    request = question(jobs)
    with tempfile.TemporaryDirectory() as folder:
        command = ("-m", "nodewise", "serve", "--listen", "127.0.0.1:0", "--store", f"sqlite:{folder}/bench.db")
        with Server(*command) as server:
            rpc.store_profiles(server.target)
            capacity(server.target, request, 1.0)
            cpu_s = server.cpu_s()
            most = capacity(server.target, request, max(2.0, seconds / 4))
            began_mb = rss_mb(server.pid)
            yield {"name": "capacity", "calls_per_s": round(most, 1), "cpu_s": round(server.cpu_s() - cpu_s, 2)}
            for load in loads:
                # What the machine gives changes while others use it: capacity is measured again beside each load.
                most = capacity(server.target, request, 2.0)
                rates = [load * most / callers] * callers
                found = offered(server, request, rates, seconds, int(load * 10))
                recovered_s = recovery_s(server.target, request, 3 / most)
                most = (most + capacity(server.target, request, 2.0)) / 2
                yield _line(f"{load} x capacity", found, most, seconds) | {
                    "recovery_s": round(recovered_s, 3),
                    "rss_growth_mb": round(rss_mb(server.pid) - began_mb, 1),
                }
            yield from _greedy(server, request, seconds, callers)


def _line(name: str, found: dict[str, Any], most: float, seconds: float) -> dict[str, Any]:
    outcomes: Counter[str] = Counter()
    for each in found["outcomes"]:
        outcomes.update(each)
    latencies = [each for some in found["latencies"] for each in some]
    return {
        "name": name,
        "capacity": round(most, 1),
        "goodput_of_capacity": round(outcomes["OK"] / seconds / most, 3),
        "p50_ms": round(quantile(latencies, 0.5) * 1e3, 1),
        "p99_ms": round(quantile(latencies, 0.99) * 1e3, 1),
        "refused_p50_ms": round(quantile(found["refusals_s"], 0.5) * 1e3, 1),
        "refused_p99_ms": round(quantile(found["refusals_s"], 0.99) * 1e3, 1),
        "outcomes": dict(outcomes),
        "health": found["health"],
        "server_cpu_share": round(found["cpu_share"], 2),
        "loader_late_ms": round(found["late_s"] * 1e3, 1),
    }


def _greedy(server: Server, request: bytes, seconds: float, callers: int) -> Iterator[dict[str, Any]]:
    """Nine callers that together ask for 0.7 of capacity: alone, and beside one that asks for five times as much."""
    most = capacity(server.target, request, 2.0)
    modest = [0.7 * most / (callers - 1)] * (callers - 1)
    alone = offered(server, request, [*modest], seconds, 1)
    beside = offered(server, request, [*modest, 5 * most], seconds, 1)
    served = [
        sum(each.get("OK", 0) for each in found["outcomes"][: callers - 1]) / len(modest) for found in (alone, beside)
    ]
    asked = [sum(sum(each.values()) for each in found["outcomes"][: callers - 1]) for found in (alone, beside)]
    yield {
        "name": "one greedy caller among ten",
        "others_served_alone": round(served[0], 1),
        "others_served_beside": round(served[1], 1),
        "kept": round(served[1] / served[0], 3) if served[0] else None,
        "others_asked": asked,
        "p99_alone_ms": round(quantile([x for s in alone["latencies"] for x in s], 0.99) * 1e3, 1),
        "p99_beside_ms": round(quantile([x for s in beside["latencies"][:-1] for x in s], 0.99) * 1e3, 1),
        "greedy": beside["outcomes"][-1],
    }


def run() -> Iterator[Result]:
    """The short form: goodput at five times the capacity."""
    for line in measured(SECONDS, (5.0,), CALLERS, 100):
        if "goodput_of_capacity" in line:
            yield Result("overload_5x_goodput", line["goodput_of_capacity"] * line["capacity"], "1/s", line["capacity"])
        if line.get("kept") is not None:
            served = line["others_served_alone"]
            yield Result("overload_others_beside_a_greedy_caller", line["others_served_beside"], "calls", served)


def main() -> int:
    """The long form."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--loads", default=",".join(map(str, LOADS)))
    parser.add_argument("--callers", type=int, default=CALLERS)
    parser.add_argument("--jobs", type=int, default=100)
    given = parser.parse_args()
    loads = [float(each) for each in given.loads.split(",") if each]
    for line in measured(given.seconds, loads, given.callers, given.jobs):
        print(json.dumps(line), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
