"""What calls take of a processor is what the cost model expects, on any machine: within a factor, and in its order."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from patience import PATIENCE_S
from serving import Stubs, inline, workers

from nodewise.rpc.costs import shipped_costs
from nodewise.runtime.embedded import EmbeddedServer
from nodewise.runtime.settings import Settings
from nodewise_protos.v1 import prediction_service_pb2 as predictions
from nodewise_protos.v1 import profile_pb2, schedule_pb2
from nodewise_protos.v1 import schedule_service_pb2 as schedules

WITHIN = 4.0
"""Factor to what the machine takes for the others; ``python bench/costs.py`` holds more sizes to three."""
_numbers = itertools.count(1)


def unseen() -> profile_pb2.ProfileSource:
    """A job that nobody asked about."""
    content = profile_pb2.ProfileContent()
    content.CopyFrom(inline().content)
    content.phase_timings.compute_seconds[0] *= 1.0 + 0.001 * next(_numbers)
    return profile_pb2.ProfileSource(content=content)


def batch(jobs: int) -> predictions.BatchPredictRequest:
    return predictions.BatchPredictRequest(
        jobs=[predictions.BatchJob(profile=unseen()) for _ in range(jobs)], configurations=workers(*range(1, 17))
    )


def schedule(jobs: int) -> schedules.ScheduleRequest:
    return schedules.ScheduleRequest(
        now=Timestamp(seconds=1),
        cluster=schedule_pb2.Cluster(pools=[schedule_pb2.NodePool(name="all", available_devices=[8] * 4)]),
        jobs=[
            schedule_pb2.ScheduleJob(job_id=f"{number}", profile=unseen(), remaining_samples=1e6)
            for number in range(jobs)
        ],
    )


def test_what_calls_take_is_what_is_expected() -> None:
    apart: dict[tuple[str, int], float] = {}
    taken: dict[tuple[str, int], float] = {}
    with EmbeddedServer(Settings(store="memory:")) as server, Stubs(server.target) as stubs:

        def measure(method: str, call: Callable[..., object], make: Callable[[int], Message], jobs: int) -> None:
            call(make(jobs), timeout=PATIENCE_S)
            requests = [make(jobs) for _ in range(3)]
            expected_s = sum(sum(shipped_costs().of(method, each)[:3]) for each in requests)
            before_s = time.process_time()
            for each in requests:
                call(each, timeout=PATIENCE_S)
            taken[method, jobs] = time.process_time() - before_s
            apart[method, jobs] = expected_s / taken[method, jobs]

        for jobs in (4, 40):
            measure("BatchPredict", stubs.prediction.BatchPredict, batch, jobs)
            measure("Schedule", stubs.schedule.Schedule, schedule, jobs)
    speed = statistics.median(apart.values())
    assert all(1.0 / WITHIN < each / speed < WITHIN for each in apart.values()), apart
    for method in ("BatchPredict", "Schedule"):
        assert taken[method, 4] < taken[method, 40]
