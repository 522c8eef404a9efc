"""A site of 100,000 devices, a million profiles and 10,000 calls a second, played by one machine as fast as it can.

``python bench/site_load.py [--profiles 1000000] [--jobs 12500] [--seconds 60] [--store FOLDER] [--write PAGE]`` prints
one JSON object a line: what each kind of call costs, and what the site's mix costs beside what follows from
these. Then it prints what the site needs, as a table, which ``--write`` puts into the page.

Of each job that runs, callers ask the same question again and again, and its ranks report a measurement each minute,
which changes the profile, so that the next answer is computed anew. The calls of a second of the site are played in
their proportions, one behind the other in each caller: time is compressed or stretched to what the machine can do.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import random
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any, Final

import grpc
import rpc
from databases import Database, database
from growth import resident_bytes
from open_loop import prefer
from processes import Server
from results import Result, write_table

from nodewise.domain.columns import as_floats, as_ints
from nodewise.domain.configurations import Configurations, SyncMode
from nodewise.domain.profile import PhaseTimings
from nodewise.profiles.batches import Batch
from nodewise.profiles.opening import StoreOptions, open_store, open_traces
from nodewise.profiles.store import AppendRequest
from nodewise.runtime.event_loop import new_event_loop
from nodewise_protos.v1 import configuration_pb2, objective_pb2, profile_pb2, profile_service_pb2
from nodewise_protos.v1 import prediction_service_pb2 as pb

DEVICES: Final = 100_000
PROFILES: Final = 1_000_000
CALLS_PER_S: Final = 10_000.0
DEVICES_OF_A_JOB: Final = 8
JOBS: Final = DEVICES // DEVICES_OF_A_JOB
REPORT_S: Final = 60.0
"""Seconds between two measurements that a job reports."""
REPORTS_PER_S: Final = JOBS / REPORT_S
UTILISATION: Final = 0.6
"""Of a worker's core, so that bursts wait little."""
SETTINGS: Final = {
    "NODEWISE_CACHE_BYTES": str(2 << 30),
    "NODEWISE_LEARN_INTERVAL_S": "0",
    "NODEWISE_STORE_INSPECT_INTERVAL_S": "0",
}
"""Caches for all jobs that run; what reads all profiles now and then is measured by itself."""
TOGETHER: Final = 1_000
CALLERS: Final = 32
WINDOW_S: Final = 3.0
ROUNDS: Final = 3
REPORTS: Final = 2_000
ALONE: Final = 100
PAUSE_S: Final = 0.1
"""Behind a report that is sent alone: longer than what follows it in the background."""
SAMPLED_S: Final = 6.0
WRITING: Final = "nodewise_store_write_seconds_total"
REPLIES: Final = "nodewise_replies_total"
KNOWN: Final = 'nodewise_replies_total{known="yes"'

Call = tuple[str, bytes]


def name(number: int) -> str:
    """Of a profile."""
    return f"team-{number % 100:03d}/job-{number:07d}"


def ask(job: int) -> Call:
    """The question that callers ask about a job."""
    question = pb.PredictRequest(
        profile=profile_pb2.ProfileSource(profile_id=name(job)),
        configurations=configuration_pb2.Configurations(workers=range(1, rpc.CONFIGURATIONS + 1)),
        objective=objective_pb2.Objective(knee=objective_pb2.Knee()),
    )
    return rpc.PREDICT, question.SerializeToString()


def report(job: int, number: int) -> Call:
    """A run of a job, measured."""
    draw = random.Random(number)
    ran = configuration_pb2.Configurations(
        nodes=[2], workers=[draw.randrange(2, 17)], parameter_servers=[1], sync_modes=[1], batch_per_worker_samples=[32]
    )
    content = profile_pb2.ProfileContent(
        observations=profile_pb2.Observations(configurations=ran, steps_per_second=[draw.uniform(2.0, 4.0)])
    )
    request = profile_service_pb2.AppendProfileRequest(
        profile_id=name(job), request_id=f"report-{number}", content=content
    )
    return rpc.APPEND, request.SerializeToString()


def fill(url: str, traces: str, profiles: int) -> None:
    """Store the profiles, each with the phases of one worker, by the store's own transactions."""
    store = open_store(url, StoreOptions(traces=open_traces(traces)))
    download, compute, upload, update = rpc.PHASES
    ran = Configurations.of(1, nodes=1, workers=1, parameter_servers=1, sync_mode=SyncMode.ASYNC, batch_per_worker=32)
    unstated = as_floats([0.0])
    for first in range(0, profiles, TOGETHER):
        requests = []
        for number in range(first, min(first + TOGETHER, profiles)):
            timings = PhaseTimings(
                configurations=ran,
                download_s=as_floats([download]),
                compute_s=as_floats([compute * (1.0 + 1e-6 * number)]),
                upload_s=as_floats([upload]),
                update_s=as_floats([update]),
                compute_variation=unstated,
                transfer_variation=unstated,
                hidden_s=unstated,
                steps=as_ints([0]),
            )
            batch = Batch(sequence_number=1, phase_timings=timings, commit=True)
            requests.append(AppendRequest(name(number), "fill", (batch,)))
        for outcome in store.apply(requests):
            if isinstance(outcome, Exception):
                raise outcome
    store.close()


@dataclass(frozen=True, slots=True)
class Costs:
    """Per call, in CPU seconds of the server, the work that follows in the background included.

    Attributes
    ----------
    first_s, hit_s, again_s : float
        A question about a job that this worker never saw; one whose reply it knows; one behind a report that it stored.
    report_s : float
        A measurement, stored, scored and fitted.
    follow_s : float
        A measurement that another replica stored.
    writing_s, database_s : float
        Of a measurement: seconds of the store's transaction where it comes alone, and CPU of the database.
    job_bytes : float
        Memory of a worker for a job with a question.
    """

    first_s: float = 0.0
    hit_s: float = 0.0
    again_s: float = 0.0
    report_s: float = 0.0
    follow_s: float = 0.0
    writing_s: float = 0.0
    database_s: float = 0.0
    job_bytes: float = 0.0

    def call_s(self, workers: float, *, routed: bool) -> float:
        """CPU seconds of the site's mean call where calls go to workers at random, or always to the same for a job.

        A worker computes an answer anew if the job reported since that worker was last asked: of two Poisson streams
        of rates m (reports) and a (questions to this worker), m / (m + a) of the questions follow a report.
        """
        questions_per_s = CALLS_PER_S - REPORTS_PER_S
        asked_per_s = questions_per_s / JOBS / (1.0 if routed else workers)
        computed = (1.0 / REPORT_S) / (1.0 / REPORT_S + asked_per_s)
        elsewhere = 0.0 if routed else 1.0 - 1.0 / workers
        anew_s = elsewhere * self.first_s + (1.0 - elsewhere) * self.again_s
        question_s = (1.0 - computed) * self.hit_s + computed * anew_s
        report_s = self.report_s + (workers - 1.0) * self.follow_s
        return (questions_per_s * question_s + REPORTS_PER_S * report_s) / CALLS_PER_S

    def workers(self, *, routed: bool) -> int:
        """Workers, each on a core of its own, that answer the site's calls at `UTILISATION`."""
        return next(n for n in count(1) if CALLS_PER_S * self.call_s(n, routed=routed) <= UTILISATION * n)


class Site:
    """A server and callers, each with a connection."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._metrics = f"http://{server.http_target}/metrics"

    def play(self, calls: Iterator[Call], seconds: float = math.inf) -> tuple[int, float, list[float]]:
        """Calls until they or the time are over: their number, CPU seconds of one, and sorted latencies in seconds."""
        rpc.settle(self.server)
        before_s = self.server.cpu_s()
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            latencies_s = sorted(runner.run(_play(self.server.target, calls, time.perf_counter() + seconds)))
        rpc.settle(self.server)
        return len(latencies_s), (self.server.cpu_s() - before_s) / len(latencies_s), latencies_s

    def writing_s(self, jobs: int) -> float:
        """Seconds of a transaction with one report, behind a pause: nothing waits for the interpreter or the store."""
        before_s = self.counter(WRITING)
        with grpc.insecure_channel(self.server.target) as channel:
            for number in range(ALONE):
                path, data = report(number % jobs, 20_000_000 + number)
                channel.unary_unary(path)(data)
                time.sleep(PAUSE_S)
        return (self.counter(WRITING) - before_s) / ALONE

    def counter(self, which: str) -> float:
        """A counter of the server's metrics, all labels together."""
        time.sleep(SAMPLED_S)
        with urllib.request.urlopen(self._metrics) as reply:
            lines = reply.read().decode().splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(which))


async def _play(target: str, calls: Iterator[Call], end_s: float) -> list[float]:
    latencies_s: list[float] = []

    async def caller(place: int) -> None:
        options = [("grpc.use_local_subchannel_pool", 1), ("n", place)]
        async with grpc.aio.insecure_channel(target, options=options) as channel:
            methods = {path: channel.unary_unary(path) for path in (rpc.PREDICT, rpc.APPEND)}
            for path, data in calls:
                began_s = time.perf_counter()
                await methods[path](data)
                latencies_s.append(time.perf_counter() - began_s)
                if time.perf_counter() > end_s:
                    return

    await asyncio.gather(*(caller(place) for place in range(CALLERS)))
    return latencies_s


def mixed(jobs: int, draw: random.Random) -> Iterator[Call]:
    """The site's calls, in their proportions."""
    for number in count():
        job = draw.randrange(jobs)
        yield report(job, 10_000_000 + number) if draw.random() < REPORTS_PER_S / CALLS_PER_S else ask(job)


def serving(stack: ExitStack, url: str, traces: str) -> Site:
    """A server of one worker on a store."""
    options = ("--http", "127.0.0.1:0", "--traces", traces)
    return Site(stack.enter_context(Server(*rpc.served(url, *options), pinned=False)))


def played(folder: str, profiles: int, jobs: int, seconds: float) -> Iterator[tuple[Costs, dict[str, Any]]]:
    """The site on one worker with a file: costs, then its mix."""
    url, draw = f"sqlite:{folder}/site.db", random.Random(5)
    if not Path(folder, "site.db").exists():
        fill(url, f"{folder}/traces", profiles)
    stored_bytes = sum(each.stat().st_size for each in Path(folder).glob("site.db*"))
    with ExitStack() as stack:
        site = serving(stack, url, f"{folder}/traces")
        empty_bytes = resident_bytes(site.server.pid)
        _, first_s, _ = site.play(ask(job) for job in range(jobs))
        job_bytes = (resident_bytes(site.server.pid) - empty_bytes) / jobs
        hits = (ask(draw.randrange(jobs)) for _ in count())
        hit_s = median(site.play(hits, WINDOW_S)[1] for _ in range(ROUNDS))
        written = min(REPORTS, jobs)
        _, report_s, _ = site.play(report(job, job) for job in range(written))
        writing_s = site.writing_s(jobs)
        _, again_s, _ = site.play(ask(job) for job in range(written))
        costs = Costs(first_s, hit_s, again_s, report_s, writing_s=writing_s, job_bytes=job_bytes)
        yield (
            costs,
            {"name": "costs, SQLite", "profiles": profiles, "jobs": jobs}
            | {
                "bytes_a_profile": round(stored_bytes / profiles),
                "worker_mb": round(empty_bytes / 1e6, 1),
            }
            | _microseconds(costs),
        )
        known, asked = site.counter(KNOWN), site.counter(REPLIES)
        calls, call_s, latencies_s = site.play(mixed(jobs, draw), seconds)
        took_s = sum(latencies_s) / CALLERS
        known, asked = site.counter(KNOWN) - known, site.counter(REPLIES) - asked
        yield (
            costs,
            {"name": "the site's mix", "calls": calls, "seconds": round(took_s, 1)}
            | {
                "calls_per_s": round(calls / took_s, 1),
                "seconds_for_one_of_the_site": round(CALLS_PER_S * took_s / calls, 2),
                "mean_us": round(call_s * 1e6, 1),
                "predicted_us": round(costs.call_s(1, routed=True) * 1e6, 1),
                "known_share": round(known / asked, 4),
                "p50_ms": round(1e3 * latencies_s[calls // 2], 1),
                "p99_ms": round(1e3 * latencies_s[int(0.99 * calls)], 1),
                "worker_mb": round(resident_bytes(site.server.pid) / 1e6, 1),
            },
        )


def replicated(running: Database, costs: Costs) -> tuple[Costs, dict[str, Any]]:
    """Two replicas on PostgreSQL, of which one stores reports: what these cost it, the other one, and the database."""
    with ExitStack() as stack:
        traces = stack.enter_context(tempfile.TemporaryDirectory())
        fill(running.url, traces, REPORTS)
        writing, other = serving(stack, running.url, traces), serving(stack, running.url, traces)
        for site in (writing, other):
            site.play(ask(job) for job in range(REPORTS))
        writing_s = writing.writing_s(REPORTS)
        before_s = (running.cpu_s(), other.server.cpu_s())
        idle_s = time.perf_counter()
        _, report_s, _ = writing.play(report(job, job) for job in range(REPORTS))
        database_s = (running.cpu_s() - before_s[0]) / REPORTS
        follow_s = other.server.cpu_s() - before_s[1]
        # What a server does while nothing happens is not the price of what it follows.
        took_s, rest_s = time.perf_counter() - idle_s, other.server.cpu_s()
        time.sleep(SAMPLED_S)
        follow_s -= (other.server.cpu_s() - rest_s) * (took_s - SAMPLED_S) / SAMPLED_S
        costs = replace(
            costs, report_s=report_s, follow_s=max(follow_s, 0.0) / REPORTS, writing_s=writing_s, database_s=database_s
        )
        return costs, {"name": "costs, PostgreSQL and another replica"} | _microseconds(costs)


def _microseconds(costs: Costs) -> dict[str, float]:
    named = {key: value for key, value in asdict(costs).items() if key.endswith("_s")}
    return {f"{key[:-2]}_us": round(1e6 * value, 1) for key, value in named.items()} | {
        "job_bytes": round(costs.job_bytes)
    }


def needs(costs: Costs, worker_bytes: float, profile_bytes: float) -> list[tuple[str, ...]]:
    """What the site needs, as a table."""
    ways = {"spread at random": False, "routed by job": True}
    workers = [costs.workers(routed=routed) for routed in ways.values()]
    call_us = [1e6 * costs.call_s(each, routed=routed) for each, routed in zip(workers, ways.values(), strict=True)]
    jobs_gb = JOBS * costs.job_bytes / 1e9
    memory_gb = [
        each * worker_bytes / 1e9 + jobs_gb * (1 if routed else each)
        for each, routed in zip(workers, ways.values(), strict=True)
    ]
    # The clock also counts what the database and the worker wait for a core of a busy machine.
    busy = f"{REPORTS_PER_S * costs.database_s:.0%} to {REPORTS_PER_S * costs.writing_s:.0%}"
    most = f"{1.0 / costs.database_s:,.0f} to {1.0 / costs.writing_s:,.0f}/s"
    rows = [
        ("CPU of a mean call", [f"{each:.0f} us" for each in call_us]),
        (f"workers, each with a core of its own, used to {UTILISATION:.0%}", [str(each) for each in workers]),
        ("memory of all workers", [f"{each:.1f} GB" for each in memory_gb]),
        ("time that the database's one writer is busy, by its CPU and by the clock", [busy] * 2),
        ("reports that this writer takes, likewise", [most] * 2),
        ("cores of the database", [f"{REPORTS_PER_S * costs.database_s:.2f}"] * 2),
        ("database, a million profiles", [f"{PROFILES * profile_bytes / 1e9:.1f} GB"] * 2),
    ]
    return [("need", *(f"calls {way}" for way in ways)), *((part, *cells) for part, cells in rows)]


def run() -> Iterator[Result]:
    """CPU of the site's mean call beside what follows from the costs of its kinds, with fewer profiles."""
    os.environ.update(SETTINGS)
    with tempfile.TemporaryDirectory() as folder:
        for _, line in played(folder, 20_000, 1_000, 10.0):
            if "predicted_us" in line:
                yield Result("site_mix_server_cpu", line["mean_us"], "us", line["predicted_us"])


def main() -> int:
    """The long form."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profiles", type=int, default=PROFILES)
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--store", type=Path, help="folder in which the filled store is kept for the next run")
    parser.add_argument("--write", type=Path, help="page whose table is renewed")
    parser.add_argument("--first", action="store_true", help="before all else on the machine, where that is allowed")
    given = parser.parse_args()
    if given.first:
        prefer()
    os.environ.update(SETTINGS)
    figures: dict[str, Any] = {}
    with ExitStack() as stack:
        folder = str(given.store or stack.enter_context(tempfile.TemporaryDirectory()))
        for found, line in played(folder, given.profiles, given.jobs, given.seconds):
            print(json.dumps(line), flush=True)
            costs, figures = found, line | figures
    with database() as running:
        if running is None:
            print("the needs are left out: PostgreSQL is not installed", file=sys.stderr)
            return 0
        costs, line = replicated(running, costs)
        print(json.dumps(line), flush=True)
    table = needs(costs, 1e6 * figures["worker_mb"], figures["bytes_a_profile"])
    for row in table:
        print(json.dumps(row), flush=True)
    if given.write:
        write_table(given.write, "needs", table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
