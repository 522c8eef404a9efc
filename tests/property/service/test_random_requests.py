"""Whatever is sent to any method, the caller learns what is wrong with it: never a fault, never nothing.

More examples: ``NODEWISE_FUZZ_EXAMPLES=10000 .venv/bin/pytest tests/property/service/test_random_requests.py``; guided
by coverage, for as long as one likes: ``make fuzz``.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest
from fuzzing import WAYS, Fuzzed
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from process_figures import resident_bytes
from valid_requests import valid_requests

from nodewise_protos.v1beta1 import simulation_service_pb2

EXAMPLES = int(os.environ.get("NODEWISE_FUZZ_EXAMPLES", "60"))
GROWTH_BYTES = 600 * 1024 * 1024
"""Caches fill, and NumPy's largest answers of these limits come and go."""


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fuzzed]:
    with Fuzzed(tmp_path_factory.mktemp("traces")) as found:
        before = resident_bytes(os.getpid())
        yield found
    assert resident_bytes(os.getpid()) - before < GROWTH_BYTES


def test_the_requests_that_are_spoilt_are_answered_as_they_are(fuzzed: Fuzzed) -> None:
    """Or fuzzing would stop at the first check."""
    for path in fuzzed.paths:
        outcome = fuzzed.ask(path, fuzzed.valid(path))
        assert outcome.replies or outcome.code.name == "DEADLINE_EXCEEDED", (path, outcome)


def test_a_batch_that_takes_an_age_is_no_fault_of_the_estimator(fuzzed: Fuzzed) -> None:
    path = "/nodewise.v1beta1.PlanService/Plan"
    (request,) = valid_requests()[path]
    request.constraints.global_batch_samples.values[:] = [32, 2**31 - 1]
    assert fuzzed.ask(path, [request.SerializeToString()]).replies


def test_a_step_that_takes_no_time_is_no_fault_of_the_sharing_model(fuzzed: Fuzzed) -> None:
    path = "/nodewise.v1beta1.SharingService/PredictSharing"
    (request,) = valid_requests()[path]
    request.jobs[0].step_seconds, request.jobs[0].device_utilization_ratio = 5e-324, 1e-6
    assert fuzzed.ask(path, [request.SerializeToString()]).replies


def test_jobs_of_next_to_no_work_are_slowed_by_a_number(fuzzed: Fuzzed) -> None:
    request = simulation_service_pb2.SimulateRequest(
        cluster={"pools": [{"name": "all", "available_devices": [2, 2]}]},
        jobs={
            "count": 1,
            "arrival_seconds": [0.0],
            "work_samples": [3e-318],
            "requested_devices": [1],
            "curve_indexes": [0],
        },
        curves=[{"rows": {"devices_counts": [1, 2], "pool_indexes": [0], "samples_per_second": [1e-311, 2.0]}}],
        policy="fifo",
    )
    assert fuzzed.ask("/nodewise.v1beta1.SimulationService/Simulate", [request.SerializeToString()]).replies


@pytest.mark.parametrize("path", sorted(valid_requests()))
@given(way=st.sampled_from(WAYS), chance=st.randoms(use_true_random=False))
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_request_is_too_odd(fuzzed: Fuzzed, path: str, way: str, chance: random.Random) -> None:
    fuzzed.ask(path, fuzzed.drawn(path, way, chance))
