"""What is doubtful of measured runs."""

from __future__ import annotations

from typing import Any

import pytest

from nodewise.domain.columns import as_floats
from nodewise.domain.configurations import Configurations, SyncMode
from nodewise.domain.profile import Observations, Profile
from nodewise.domain.workload import Transformer, Workload
from nodewise.estimation.plausibility import doubts
from nodewise.plugin import Catalogue

PEAK = Catalogue(devices={"a100": {"fp32_flops_per_s": 19.5e12, "fp16_flops_per_s": 312e12}})


def reasons(
    nodes: list[int], workers: list[int], steps_per_s: list[float], workload: Workload | None = None, **stated: Any
) -> list[str]:
    how: dict[str, Any] = {"device": "A100", "sync_mode": SyncMode.ALLREDUCE, "batch_per_worker": 32} | stated
    ran = Configurations.of(len(nodes), nodes=nodes, workers=workers, parameter_servers=0, **how)
    profile = Profile(observations=Observations.of(ran, as_floats(steps_per_s)), workload=workload or Workload())
    return [each.reason for each in doubts(profile, PEAK)]


def test_usual_runs_are_not_doubted() -> None:
    assert reasons([1, 2, 4], [8, 16, 32], [10.0, 9.5, 9.0]) == []
    assert reasons([1, 1, 1, 1], [1, 2, 4, 8], [10.0, 10.0, 9.9, 9.0]) == []
    assert reasons([1, 2, 4], [1, 2, 4], [1.6, 3.1, 4.3], sync_mode=SyncMode.ASYNC) == []
    assert reasons([1, 2, 4], [8, 16, 32], [1.0, 1.9, 3.5], batch_per_worker=0, global_batch=512) == []
    assert reasons([], [], []) == []


@pytest.mark.parametrize(
    ("nodes", "steps_per_s", "doubted"), [(1, 5e3, False), (1, 2e4, True), (2, 500.0, False), (2, 2e3, True)]
)
def test_steps_that_are_too_short(nodes: int, steps_per_s: float, doubted: bool) -> None:
    assert ("STEPS_TOO_SHORT" in reasons([nodes], [8 * nodes], [steps_per_s])) is doubted


def test_asynchronous_steps_are_those_of_one_worker() -> None:
    assert reasons([16], [64], [5e3], sync_mode=SyncMode.ASYNC) == []
    assert reasons([16], [64], [7e4], sync_mode=SyncMode.ASYNC) == ["STEPS_TOO_SHORT"]


@pytest.mark.parametrize(
    "workload",
    [
        Workload(flops_per_sample=6e12),
        Workload(parameter_bytes=4_000_000_000_000),
        Workload(
            transformer=Transformer(
                layers=32, hidden_size=4096, attention_heads=32, sequence_length=2048, vocabulary_size=32000
            )
        ),
    ],
)
def test_faster_than_the_peak(workload: Workload) -> None:
    # 32 samples of a worker in 0.1 s, of at least 6 TFLOP each, are 1.9 PFLOP/s.
    assert reasons([1], [8], [10.0], workload) == ["FASTER_THAN_PEAK"]
    assert reasons([1], [8], [0.01], workload) == []
    assert reasons([1], [8], [10.0], workload, device="unknown") == []
    assert reasons([1], [8], [10.0], workload, batch_per_worker=0) == []


@pytest.mark.parametrize("batch", [{"batch_per_worker": 32}, {"batch_per_worker": 0}])
def test_more_than_linear(batch: dict[str, Any]) -> None:
    assert reasons([1, 2, 4], [8, 16, 32], [10.0, 19.2, 36.6], **batch) == ["MORE_THAN_LINEAR"]
    assert reasons([1, 2], [8, 16], [10.0, 11.0], **batch) == []


def test_more_than_linear_at_one_global_batch() -> None:
    assert reasons([1, 2], [8, 16], [1.0, 3.9], batch_per_worker=0, global_batch=512) == ["MORE_THAN_LINEAR"]


def test_workers_that_are_spread_wider_may_gain_more() -> None:
    assert reasons([1, 4], [8, 16], [10.0, 16.0]) == []


def test_runs_of_one_configuration_that_contradict() -> None:
    assert reasons([1, 1], [8, 8], [10.0, 4.9]) == ["RUNS_CONTRADICT"]
    assert reasons([1, 1, 1], [8, 8, 8], [10.0, 14.0, 21.0]) == ["RUNS_CONTRADICT"]
    assert reasons([1, 1], [8, 8], [10.0, 5.1]) == []


def test_a_throughput_that_collapses() -> None:
    assert reasons([1, 2], [8, 16], [10.0, 0.2]) == ["THROUGHPUT_COLLAPSES"]
    assert reasons([1, 2], [8, 16], [10.0, 0.6]) == []
