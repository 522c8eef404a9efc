"""Jobs that were recorded with a known fault, and one that was recorded by others, are diagnosed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from recorded_jobs import gloo_job, measured_traces
from recorded_traces import NobodyWaits, Recorder

from nodewise.diagnosis.checks import wrong_diagnosis
from nodewise.domain.diagnosis import Diagnosis, DiagnosisQuestion
from nodewise.domain.errors import NodewiseError
from nodewise.domain.profile import Profile
from nodewise.domain.trace import EventKind, MemorySamples
from nodewise.plugin import Catalogue
from nodewise_diagnosis.diagnoser import ReplayDiagnoser
from nodewise_diagnosis.plugin import nodewise_diagnosers

NO_PROFILE = Profile()
"""A diagnosis of these jobs needs traces alone."""


def diagnosed(traces: object, **question: object) -> Diagnosis:
    (record,) = nodewise_diagnosers()
    asked = DiagnosisQuestion(**{"strategies": 0, **question})  # type: ignore[arg-type]
    found = record.diagnoser.diagnose(traces, NO_PROFILE, asked, NobodyWaits())  # type: ignore[arg-type]
    assert wrong_diagnosis(found) is None
    return found


@pytest.mark.parametrize(
    ("name", "rank", "gain_ms"), [("ddp_2_ranks_straggler", 1, 43.2), ("ddp_4_ranks_straggler", 3, 33)]
)
def test_a_rank_with_layers_of_1_3_times_comes_first_with_what_it_costs(name: str, rank: int, gain_ms: float) -> None:
    # gain_ms: the measured median step with and without it (measured.json of the job and of *_3_buckets).
    found = diagnosed(gloo_job(name))

    first = found.bottlenecks[0]
    assert (first.kind, first.rank, first.matters) == ("rank", rank, True)
    assert first.gain_if_removed_s * 1e3 == pytest.approx(gain_ms, rel=0.15)
    assert found.bound_by == "skew"
    assert all(straggler.ranks == (rank,) for straggler in found.stragglers)
    assert f"rank {rank}" in found.verdict
    assert "nothing stands out" not in found.verdict


def test_a_collective_of_five_times_the_transfer_comes_first() -> None:
    found = diagnosed(gloo_job("ddp_4_ranks_slow_collective"))

    first = found.bottlenecks[0]
    assert first.kind == "collective"
    assert "bucket1" in first.what
    assert "times the" in first.why
    assert first.gain_if_removed_s * 1e3 == pytest.approx(148, rel=0.1)  # the measured steps differ by that
    assert found.bound_by == "network"


def test_batches_of_one_rank_that_are_60_ms_late_come_first() -> None:
    found = diagnosed(gloo_job("ddp_4_ranks_slow_loader"))

    first = found.bottlenecks[0]
    assert (first.kind, first.rank) == ("loader", 1)
    assert first.gain_if_removed_s * 1e3 == pytest.approx(60, rel=0.1)
    assert found.bound_by == "loading"
    assert found.ranks[1].data_loading_s == pytest.approx(0.0624, rel=0.05)
    assert found.ranks[0].data_loading_s < 0.005


def test_a_single_late_batch_is_found_although_it_makes_the_steps_differ() -> None:
    found = diagnosed(gloo_job("ddp_4_ranks_late_batch"))

    first = found.bottlenecks[0]
    assert (first.kind, first.rank, first.matters) == ("loader", 1, True)
    assert "step 8" in first.what
    assert first.gain_if_removed_s * 4 == pytest.approx(0.1, rel=0.1)  # one of four steps, 100 ms late
    assert found.persistence_s > first.gain_if_removed_s


def test_a_healthy_job_has_no_faults() -> None:
    found = diagnosed(gloo_job("ddp_4_ranks_3_buckets"))

    faults = [one for one in found.bottlenecks if one.kind in {"rank", "outlier", "link"}]
    assert not any(one.matters for one in faults)
    assert all("does not matter" in one.why for one in faults)
    assert found.bound_by == "device"
    assert "nothing stands out" in found.verdict


def test_a_server_is_not_compared_with_its_workers() -> None:
    for name in ("parameter_server_2_ranks", "parameter_server_4_ranks"):
        found = diagnosed(gloo_job(name))
        assert not any(one.matters for one in found.bottlenecks if one.kind in {"rank", "link"})
        assert found.bound_by in {"network", "device"}


@pytest.mark.data
def test_the_eight_ranks_of_the_recommender_wait_for_each_other_and_not_for_the_network() -> None:
    found = diagnosed(measured_traces("dlrm_8rank_v100/*.json.gz"))

    assert found.bound_by == "skew"
    assert "not by the network" in found.verdict
    assert sum(one.transfer_s for one in found.collectives) * 1e6 == pytest.approx(198, abs=20)
    assert [one.ranks[0] for one in found.stragglers] == [7, 7, 7, 7, 7, 5, 5, 4]
    assert [set(one.ranks) for one in found.stragglers[:4]] == [{7}] * 4
    assert [set(one.ranks) for one in found.stragglers[4:]] == [{7, 4}, {5}, {5}, {4, 5}]
    told = [found.verdict.index(f"rank {rank} at") for rank in (7, 5, 4)]
    assert told == sorted(told)
    waits_us = [5580, 11125, 3280, 9571, 6370, 6041, 3342, 1534]
    assert [one.waiting_s * 1e6 for one in found.ranks] == pytest.approx(waits_us, abs=60)
    assert found.exposed_communication_s < 0.4 * found.step_s
    assert any("begin the step" in warning for warning in found.warnings)


@pytest.mark.data
def test_of_one_rank_it_is_said_how_waiting_was_told_from_transfer() -> None:
    found = diagnosed(measured_traces("ddp_one_rank/a100x8_recsys_rank3.json.gz"))

    assert any("1 of 8 ranks" in warning for warning in found.warnings)
    assert not any("its size explains" in one.why for one in found.bottlenecks)
    assert found.stragglers == ()


@pytest.mark.data
def test_a_job_that_waits_for_its_loader_is_told_so() -> None:
    found = diagnosed(measured_traces("single_gpu/v100_resnet50_workers0*"))

    assert found.bound_by == "loading"
    assert found.bottlenecks[0].kind == "loader"
    assert found.ranks[0].data_loading_s > 0.05


@pytest.mark.parametrize("name", ["ddp_4_ranks_straggler", "parameter_server_4_ranks", "ddp_2_ranks_8_buckets"])
def test_shares_of_a_rank_add_up_to_its_step(name: str) -> None:
    for one in diagnosed(gloo_job(name), strategies=0).ranks:
        parts = one.compute_s + one.exposed_communication_s + one.data_loading_s + one.idle_s
        assert parts == pytest.approx(one.step_s, rel=1e-9)
        assert one.host_bound_s <= one.idle_s + 1e-12
        assert one.exposed_communication_s <= one.communication_s + one.waiting_s + 1e-12


def test_strategies_are_replayed_and_combinations_do_not_just_add_up() -> None:
    found = diagnosed(gloo_job("ddp_4_ranks_straggler"), strategies=20)

    by_parts = {frozenset(one.parts or (one.name,)): one for one in found.strategies}
    assert any(one.name.startswith("fix: rank 3") for one in found.strategies)
    assert any(len(parts) > 1 for parts in by_parts)
    speedups = [one.speedup for one in found.strategies]
    assert speedups == sorted(speedups, reverse=True)
    for one in found.strategies:
        assert one.lower_step_s <= one.predicted_step_s <= one.upper_step_s
        assert one.rests_on
        assert one.effort
        if not any("accumulate" in part for part in (one.name, *one.parts)):
            assert one.speedup == pytest.approx(found.step_s / one.predicted_step_s, rel=1e-6)


def test_what_the_trace_cannot_show_is_not_promised() -> None:
    found = diagnosed(gloo_job("ddp_4_ranks_3_buckets"), largest_batch_factor=4.0, strategies=20)

    names = " ".join(one.name for one in found.strategies)
    assert "recompute" not in names  # no memory was recorded
    assert "16-bit numbers" not in names  # no kernels
    assert "graphs" not in names  # nothing is launched


def test_steps_and_numbers_asked_for_are_kept() -> None:
    traces = gloo_job("ddp_2_ranks_3_buckets")
    found = diagnosed(traces, steps=(4,), bottlenecks=3, strategies=2, timeline=True)

    assert len(found.bottlenecks) == 3
    assert len(found.strategies) == 2
    assert {one.step for one in found.collectives} == {4}
    assert found.timeline is not None
    assert found.persistence_s == 0
    assert any("one step" in warning for warning in found.warnings)
    with pytest.raises(NodewiseError, match="have no step 9"):
        diagnosed(traces, steps=(2, 9))
    with pytest.raises(NodewiseError, match="at least one"):
        diagnosed([])


class _NoTime(NobodyWaits):
    def remaining_s(self) -> float:
        return 0.0


def test_when_the_time_is_over_what_was_found_is_returned_as_incomplete() -> None:
    (record,) = nodewise_diagnosers()
    found = record.diagnoser.diagnose(gloo_job("ddp_4_ranks_straggler"), NO_PROFILE, DiagnosisQuestion(), _NoTime())

    assert not found.complete
    assert found.ranks
    assert found.verdict


def test_the_same_traces_give_the_same_diagnosis_in_any_order() -> None:
    traces = gloo_job("ddp_4_ranks_late_batch")
    once, again = diagnosed(traces), diagnosed(traces[::-1])

    assert once.bottlenecks == again.bottlenecks
    assert once.strategies == again.strategies
    assert once.verdict == again.verdict
    assert np.isfinite([one.gain_if_removed_s for one in once.bottlenecks]).all()


def test_other_buckets_and_links_are_replayed_as_measured() -> None:
    # measured.json of ddp_4_ranks_8_buckets: 186 ms with one layer to a bucket, 200 with three.
    found = diagnosed(gloo_job("ddp_4_ranks_3_buckets"), strategies=100)

    single = {one.name: one for one in found.strategies if not one.parts}
    buckets = next(one for name, one in single.items() if name.startswith("gradient buckets"))
    assert buckets.predicted_step_s == pytest.approx(0.186, rel=0.05)
    link = single["a link of twice the bandwidth"]
    assert link.lower_step_s < link.predicted_step_s < found.step_s
    assert link.changes[0].value == 2.0


def test_gradients_accumulated_over_two_micro_batches_gain_per_sample() -> None:
    found = diagnosed(gloo_job("ddp_4_ranks_1_bucket"), strategies=100)

    one = next(one for one in found.strategies if one.name.startswith("accumulate"))
    assert one.predicted_step_s > found.step_s  # of twice the samples
    assert one.speedup == pytest.approx(2 * found.step_s / one.predicted_step_s)
    assert 1.0 < one.speedup < 2.0


@pytest.mark.parametrize("memory", [True, False])
def test_recomputation_is_offered_where_memory_was_recorded(memory: bool) -> None:
    samples = MemorySamples(
        time_ns=np.array([0, 10**18 * 3]),
        device=np.zeros(2, dtype=np.int64),
        allocated_bytes=np.array([1 << 30, 4 << 30]),
    )
    traces = [
        replace(trace, memory=replace(samples, time_ns=trace.steps.begin_ns[2:4]) if memory else trace.memory)
        for trace in gloo_job("ddp_2_ranks_1_bucket")
    ]
    found = diagnosed(traces, strategies=100, largest_batch_factor=4.0)

    assert any("recompute" in one.name for one in found.strategies) == memory
    assert (found.ranks[0].memory_high_water_bytes == 4 << 30) == memory


@pytest.mark.parametrize(
    ("device", "known", "ratio"),
    [
        ("Tesla V100-SXM2-32GB", True, 125 / 15.7),
        ("NVIDIA A100-SXM4-80GB", True, 2.0),  # against TF32
        ("Tesla V100-SXM2-32GB", False, 2.0),
        ("A device of tomorrow", True, 2.0),
    ],
)
def test_what_16_bit_numbers_gain_at_best_is_told_by_the_catalogue(device: str, known: bool, ratio: float) -> None:
    recorder = Recorder()
    recorder.step(1, 0, 1000)
    recorder.call("cudaLaunchKernel", 0, 1, 1)
    recorder.kernel("volta_sgemm_128x64_nn", 2, 802, 1)
    recorder.call("cudaDeviceSynchronize", 2, 990)
    context = NobodyWaits()
    if not known:
        context.catalogue = Catalogue()
    trace = replace(recorder.trace(), devices=(device,))
    found = ReplayDiagnoser().diagnose([trace], Profile(), DiagnosisQuestion(), context)
    (one,) = [one for one in found.strategies if one.name.startswith("16-bit numbers") and not one.parts]
    assert f"1/{ratio:g} by the matrix units of {device}" in one.rests_on
    assert one.lower_step_s < one.predicted_step_s < found.step_s


def test_traces_without_times_are_diagnosed_by_a_replay_of_their_durations() -> None:
    recorder = Recorder()
    for name, begin, end, correlation in (("gemm", 0, 400, 1), ("add", 400, 500, 2), ("gemm", 500, 900, 3)):
        recorder.call("cudaLaunchKernel", begin, begin + 1, correlation)
        recorder.kernel(name, begin + 2, end + 2, correlation)
    trace = recorder.trace()
    kernels = np.flatnonzero(trace.kind == EventKind.KERNEL)
    stated = replace(
        trace,
        timed=False,
        begin_ns=np.zeros_like(trace.begin_ns),
        dependencies=np.stack((kernels[:-1], kernels[1:]), axis=1),
    )

    found = diagnosed([stated])

    assert found.step_s == pytest.approx(900e-6, rel=0.01)
    assert (found.bottlenecks[0].kind, found.bottlenecks[0].what) == ("kernel", "gemm")
    assert found.bottlenecks[0].gain_if_removed_s == pytest.approx(800e-6, rel=0.01)
    assert found.bound_by == "device"
    assert any("without times" in warning for warning in found.warnings)
