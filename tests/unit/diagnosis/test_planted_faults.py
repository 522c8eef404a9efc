"""Faults planted into recorded jobs come first wherever they move the step by more than steps differ by anyway."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
from planted_faults import Bed
from recorded_jobs import gloo_job, measured_traces
from recorded_traces import NobodyWaits

from nodewise.domain.diagnosis import Bottleneck, Diagnosis, DiagnosisQuestion
from nodewise.domain.profile import Profile
from nodewise_diagnosis.bottlenecks import UNKNOWN_PERSISTENCE
from nodewise_diagnosis.diagnosing import diagnose_traces
from nodewise_diagnosis.stopwatch import Edit, persistence_ns

HEALTHY = [
    *(
        f"ddp_{ranks}_ranks_{buckets}"
        for ranks in (2, 4)
        for buckets in ("1_bucket", "2_buckets", "3_buckets", "8_buckets")
    ),
    "ddp_4_ranks_3_buckets_fast_link",
    "parameter_server_2_ranks",
    "parameter_server_4_ranks",
    pytest.param("dlrm_8rank_v100", marks=pytest.mark.data),
]


@cache
def _bed(name: str) -> Bed:
    return Bed(measured_traces(f"{name}/*.json.gz") if name.startswith("dlrm") else gloo_job(name))


def _noise_ns(bed: Bed, duration_ns: np.ndarray) -> float:  # type: ignore[type-arg] # whole numbers
    lengths = bed.watch.lengths_ns(Edit(duration_ns=duration_ns))
    return persistence_ns(lengths) if len(lengths) > 1 else UNKNOWN_PERSISTENCE * float(lengths[0])


def _first(bed: Bed, duration_ns: np.ndarray) -> tuple[Bottleneck, Diagnosis]:  # type: ignore[type-arg] # whole numbers
    question = DiagnosisQuestion(strategies=0, bottlenecks=200)
    found = diagnose_traces(bed.planted(duration_ns), Profile(), question, NobodyWaits())
    return found.bottlenecks[0], found


def _comparable(bed: Bed) -> Sequence[int]:
    """Ranks that have others to be compared with: a server has not, and neither has its only worker."""
    compute = [
        float(bed.graph.duration_ns[(bed.graph.rank == rank) & (bed.roles.role == 1)].sum()) for rank in bed.graph.ranks
    ]
    workers = [rank for rank, took in zip(bed.graph.ranks, compute, strict=True) if took > 0.1 * max(compute)]
    return workers if len(workers) > 1 else []


@pytest.mark.parametrize("name", HEALTHY)
@pytest.mark.parametrize("factor", [1.1, 1.3])
def test_a_slow_rank_comes_first(name: str, factor: float) -> None:
    bed = _bed(name)
    for rank in _comparable(bed):
        planted = bed.slow_rank(rank, factor)
        first, found = _first(bed, planted)
        if bed.moved_ns(planted) > _noise_ns(bed, planted):
            assert (first.kind, first.rank, first.matters) == ("rank", rank, True), (rank, found.bottlenecks[:3])
            assert first.gain_if_removed_s * 1e9 == pytest.approx(bed.moved_ns(planted), rel=0.35)
        elif bed.moved_ns(planted) < 0.5 * _noise_ns(bed, planted):
            told = [one for one in found.bottlenecks if one.kind == "rank" and one.rank == rank]
            assert all("does not matter" in one.why and not one.matters for one in told)


@pytest.mark.parametrize("name", HEALTHY)
def test_an_exchange_of_five_times_the_time_comes_first(name: str) -> None:
    bed = _bed(name)
    for which, exchange in enumerate(bed.exchanges):
        planted = bed.slow_exchange(which)
        first, found = _first(bed, planted)
        # With one exchange in a step nothing tells it from a slow link: it comes first as what it is, an overhead.
        if bed.moved_ns(planted) > _noise_ns(bed, planted):
            assert (first.kind, first.matters) == ("collective", True), (exchange.label, found.bottlenecks[:3])
            assert _name(first.what) == _name(exchange.label)
        elif bed.moved_ns(planted) < 0.5 * _noise_ns(bed, planted):
            told = [one for one in found.bottlenecks if one.kind == "collective" and "its size explains" in one.why]
            assert all("does not matter" in one.why for one in told if _name(one.what) == _name(exchange.label))


@pytest.mark.parametrize("name", HEALTHY)
@pytest.mark.parametrize("share", [0.2])
def test_late_batches_of_a_rank_come_first(name: str, share: float) -> None:
    bed = _bed(name)
    delay = int(share * bed.watch.step_ns())
    for rank in bed.graph.ranks:
        planted = bed.late_loader(rank, delay)
        if bed.moved_ns(planted) <= _noise_ns(bed, planted):
            continue
        first, found = _first(bed, planted)
        assert (first.kind, first.rank, first.matters) == ("loader", rank, True), (rank, found.bottlenecks[:3])


@pytest.mark.parametrize("name", ["ddp_2_ranks_1_bucket", "ddp_4_ranks_3_buckets", "ddp_4_ranks_1_bucket"])
def test_batches_that_are_late_on_all_ranks_come_first(name: str) -> None:
    bed = _bed(name)
    planted = bed.graph.duration_ns.copy()
    delay = int(0.15 * bed.watch.step_ns())
    for rank in bed.graph.ranks:
        planted += bed.late_loader(rank, delay) - bed.graph.duration_ns
    first, found = _first(bed, planted)

    assert (first.kind, first.rank, first.matters) == ("loader", -1, True), found.bottlenecks[:3]
    assert found.bound_by == "loading"


@pytest.mark.parametrize("name", ["ddp_2_ranks_3_buckets", "ddp_4_ranks_8_buckets", "parameter_server_4_ranks"])
def test_a_fault_of_a_single_step_comes_first(name: str) -> None:
    bed = _bed(name)
    for rank in _comparable(bed):
        step = int(bed.watch.steps[1])
        late = bed.late_loader(rank, int(0.6 * bed.watch.step_ns()))
        planted = np.where(bed.graph.step == step, late, bed.graph.duration_ns)
        if bed.moved_ns(planted) <= _noise_ns(bed, bed.graph.duration_ns):
            continue
        first, found = _first(bed, planted)
        assert (first.kind, first.rank, first.matters) == ("loader", rank, True), (rank, found.bottlenecks[:3])
        assert f"step {bed.graph.steps.number[step]}" in first.what


def _name(label: str) -> str:
    """Name and number of an exchange, without its size and what takes most of it."""
    return label.split(",", maxsplit=1)[0].split(" (", maxsplit=1)[0]
