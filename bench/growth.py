"""Memory of a server that is asked about one job after the other: resident bytes by jobs, and whether they level off.

``python bench/growth.py [JOBS] [MINUTES]`` prints a line every thousand jobs. The load is mixed: jobs that nobody asked
about before, told inline and stored; further observations of stored ones; questions about them; plans and batches.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
from processes import Server
from results import Result
from rpc import CONFIGURATIONS, PREDICT, profile

from nodewise_protos.v1 import configuration_pb2, options_pb2, profile_pb2, profile_service_pb2
from nodewise_protos.v1 import prediction_service_pb2 as pb

JOBS = 10_000
WARM_UP_JOBS = 4_000
"""Jobs until the caches are full: a quarter of a gigabyte at some 60 to 100 kB each."""
WINDOW_JOBS = 1_000
STORED_SHARE = 0.1
"""Jobs that are stored; the others are told inline, as by a scheduler that keeps its own profiles."""


def content(number: int) -> profile_pb2.ProfileContent:
    """A job that is like no other."""
    found = profile()
    found.phase_timings.compute_seconds[0] *= 1.0 + 1e-4 * number
    return found


def question(source: profile_pb2.ProfileSource, draw: random.Random) -> bytes:
    """About the usual configurations, or some of a job's own."""
    workers = range(1, CONFIGURATIONS + 1) if draw.random() < 0.5 else sorted(draw.sample(range(1, 65), CONFIGURATIONS))
    return pb.PredictRequest(
        profile=source, configurations=configuration_pb2.Configurations(workers=workers)
    ).SerializeToString()


def observed(steps_per_s: float, number: int) -> profile_pb2.ProfileContent:
    """A run of a job, measured."""
    ran = configuration_pb2.Configurations(
        nodes=[2], workers=[2 + number % 8], parameter_servers=[1], sync_modes=[1], batch_per_worker_samples=[32]
    )
    return profile_pb2.ProfileContent(
        observations=profile_pb2.Observations(configurations=ran, steps_per_second=[steps_per_s])
    )


def resident_bytes(pid: int) -> int:
    """Of a process that has no children that count."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


class Load:
    """Asks, one call after the other."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._predict = channel.unary_unary(PREDICT)
        self._batch = channel.unary_unary("/nodewise.v1.PredictionService/BatchPredict")
        self._append = channel.unary_unary("/nodewise.v1.ProfileService/AppendProfile")
        self._draw = random.Random(11)
        self._stored: list[str] = []

    def ask(self, number: int) -> None:
        """About one more job."""
        draw = self._draw
        if draw.random() < STORED_SHARE:
            name = f"job-{number}"
            self._append_to(name, f"first-{number}", content(number))
            self._stored.append(name)
            source = profile_pb2.ProfileSource(profile_id=name)
        else:
            source = profile_pb2.ProfileSource(content=content(number))
        self._predict(question(source, draw))
        if self._stored and number % 10 == 0:
            name = draw.choice(self._stored)
            self._append_to(name, f"more-{number}", observed(1.0 + draw.random(), number))
            self._predict(question(profile_pb2.ProfileSource(profile_id=name), draw))
        if number % 50 == 0:
            self._batch_of(number)

    def _append_to(self, name: str, request_id: str, about: profile_pb2.ProfileContent) -> None:
        request = profile_service_pb2.AppendProfileRequest(profile_id=name, request_id=request_id, content=about)
        self._append(request.SerializeToString())

    def _batch_of(self, number: int) -> None:
        jobs = [pb.BatchJob(profile=profile_pb2.ProfileSource(content=content(number + place))) for place in range(20)]
        request = pb.BatchPredictRequest(
            jobs=jobs,
            configurations=configuration_pb2.Configurations(workers=range(1, CONFIGURATIONS + 1)),
            options=options_pb2.PredictOptions(),
        )
        self._batch(request.SerializeToString())


def grown(jobs: int, seconds: float) -> Iterator[tuple[int, float, int]]:
    """Jobs, seconds since the start and resident bytes, now and every thousand jobs."""
    with tempfile.TemporaryDirectory() as folder:
        command = ("-m", "nodewise", "serve", "--listen", "127.0.0.1:0", "--store", f"sqlite:{folder}/bench.db")
        with Server(*command, pinned=False) as server, grpc.insecure_channel(server.target) as channel:
            load, started = Load(channel), time.perf_counter()
            number = 0
            while number < jobs or time.perf_counter() - started < seconds:
                if number % WINDOW_JOBS == 0:
                    yield number, time.perf_counter() - started, resident_bytes(server.pid)
                load.ask(number)
                number += 1
            yield number, time.perf_counter() - started, resident_bytes(server.pid)


def run() -> Iterator[Result]:
    """Memory at the end beside that once the caches were full."""
    sizes = {number: size for number, _, size in grown(JOBS, 0.0)}
    yield Result("resident_after_10000_jobs", sizes[JOBS] / 1e6, "MB", sizes[WARM_UP_JOBS] / 1e6)


def main() -> int:
    """Print how memory grows."""
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else JOBS
    seconds = 60.0 * float(sys.argv[2]) if len(sys.argv) > 2 else 0.0
    for number, at_s, size in grown(jobs, seconds):
        print(f"{number:8,} jobs {at_s:8.1f} s {size / 1e6:8.1f} MB", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
