"""What is true of traces that others recorded, and of made ones with one defect each, is what a diagnosis says.

Truths are those of the field note on diagnosis, found by interval arithmetic: union of device intervals in each step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import pytest
from measurements import data_path
from recorded_jobs import job_of
from recorded_traces import NobodyWaits

from nodewise.diagnosis.checks import wrong_diagnosis
from nodewise.domain.diagnosis import Diagnosis, DiagnosisQuestion
from nodewise.domain.profile import Profile
from nodewise.domain.trace import Trace
from nodewise_diagnosis.diagnoser import ReplayDiagnoser

pytestmark = pytest.mark.data

PUBLIC = ("traces", "public_dev")
MADE = ("cases", "traces")
CLEAN = (
    "00_clean", "01_cupti_236_years", "03_raw_newline_and_quotes", "05_ts_as_strings", "06_kernel_overruns_successors",
    "07_inf_nan_args", "08_one_step_and_stub", "08b_three_steps_and_stub", "10_no_correlation_external_id_only",
    "11_negative_duration", "12_both_say_rank_0", "14_container_pid_equals_gpu", "16_xpu_oneccl",
    "17_multimem_all_reduce", "02_second_half_ts0", "04_cut_in_step_5",
)  # fmt: skip
"""Two ranks with steps of 100 ms: computation 75, exposed exchange 20, idle 3, loading 2."""


def _job(*parts: str) -> Sequence[Trace]:
    path = data_path(*parts)
    found = job_of(path, "rank*.json.gz") if path.is_dir() else job_of(path.parent, path.name)
    ranks = {trace.rank for trace in found}
    return found if len(ranks) == len(found) else [replace(one, rank=rank) for rank, one in enumerate(found)]


@cache
def _diagnosed(*parts: str) -> Diagnosis:
    found = ReplayDiagnoser().diagnose(_job(*parts), Profile(), DiagnosisQuestion(), NobodyWaits())
    assert wrong_diagnosis(found) is None
    # One step everywhere, and parts that add up to it.
    assert max(one.step_s for one in found.ranks) == pytest.approx(found.step_s, rel=1e-3)
    for one in found.ranks:
        assert sum(part.seconds for part in one.parts) == pytest.approx(one.step_s, rel=0.01)
        total = one.compute_s + one.exposed_communication_s + one.data_loading_s + one.idle_s
        assert total == pytest.approx(one.step_s, rel=0.01)
    return found


def _ms(found: Diagnosis, kind: str, what: str = "") -> float:
    return sum(one.seconds for one in found.ranks[0].parts if one.kind == kind and what in one.what) * 1e3


def _busy_ms(name: str, step_ms: float, busy_ms: float) -> Diagnosis:
    found = _diagnosed(*PUBLIC, name)
    assert found.step_s * 1e3 == pytest.approx(step_ms, rel=0.01)
    assert found.ranks[0].compute_s * 1e3 == pytest.approx(busy_ms, rel=0.01)
    return found


def test_kernels_of_replayed_graphs_are_seen_although_the_host_is_done_early() -> None:
    assert _busy_ms("mi300x_vllm_graphs.json.gz", 307.7, 156.1).bound_by == "device"


def test_a_trace_of_a_device_alone() -> None:
    assert _busy_ms("mi210_gpu_only.json.gz", 6.02, 5.34).bound_by == "device"


def test_events_of_a_category_that_is_not_known_are_a_devices_work() -> None:
    found = _busy_ms("mtia_inference.json.gz", 443.3, 424)
    assert found.bound_by == "device"
    assert "have unknown categories" in found.verdict


def test_preprocessing_is_named_by_its_function_and_graphs_gain_nothing_of_it() -> None:
    found = _busy_ms("h100_timesformer_preprocessing_gap.json.gz", 382.5, 382.5 - 224)
    assert found.bound_by == "host"
    assert "preprocess" in found.verdict.split(":", maxsplit=1)[0]
    assert _ms(found, "preprocessing") == pytest.approx(218, rel=0.01)
    graphs = [one for one in found.strategies if one.name.startswith("capture")]
    assert all(one.predicted_step_s > found.step_s - 0.005 for one in graphs)


def test_loading_is_named() -> None:
    found = _diagnosed(*PUBLIC, "h100_owlv2_loader.json.gz")
    assert found.bound_by == "loading"
    assert _ms(found, "loading") == pytest.approx(619.05, rel=0.01)


def test_start_up_is_named_by_its_call() -> None:
    found = _busy_ms("a100_alexnet_cuda_startup.json.gz", 43_425, 66)
    assert "cudaDeviceGetStreamPriorityRange" in found.verdict.split(".", maxsplit=1)[0] + found.verdict
    assert _ms(found, "startup", "cudaDeviceGetStreamPriorityRange") == pytest.approx(29_930, rel=0.01)
    assert _ms(found, "startup", "cudaLaunchKernel") == pytest.approx(3_100, rel=0.02)
    assert _ms(found, "allocation", "cudaFree") == pytest.approx(6_600, rel=0.01)
    assert "no steps are marked" in found.verdict
    assert found.strategies == ()


def test_launches_without_kernels_say_that_nobody_can_tell() -> None:
    found = _diagnosed(*PUBLIC, "a100_cupti_range_no_kernels.json.gz")
    assert found.bound_by == "none"
    assert found.verdict.startswith("The bottleneck cannot be determined: 77 calls launch kernels")
    assert found.ranks[0].compute_s == 0
    assert _ms(found, "startup", "cudaLaunchKernel") == pytest.approx(5_200, rel=0.01)


@pytest.mark.parametrize("name", CLEAN)
def test_a_defect_of_the_recording_changes_nothing_of_the_job(name: str) -> None:
    found = _diagnosed(*MADE, name)
    assert found.bound_by == "device"
    assert found.step_s * 1e3 == pytest.approx(100, rel=0.001)
    for one in found.ranks:
        assert one.compute_s * 1e3 == pytest.approx(75, abs=0.5)  # a kernel that is left out takes 0.4
        assert one.exposed_communication_s * 1e3 == pytest.approx(20, abs=0.1)
        assert one.data_loading_s * 1e3 == pytest.approx(2, abs=0.1)
        assert one.idle_s * 1e3 == pytest.approx(3, abs=0.5)
    first = found.bottlenecks[0]
    assert first.kind == "collective"
    assert first.gain_if_removed_s * 1e3 == pytest.approx(20, abs=0.1)
    assert "First to look at" in found.verdict


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("02_second_half_ts0", "steps 13, 14, 15 do less than half"),
        ("04_cut_in_step_5", "is truncated"),
        ("06_kernel_overruns_successors", "6 events overlap the next event"),
        ("08_one_step_and_stub", "holds no work"),
    ],
)
def test_what_was_repaired_or_is_missing_is_told(name: str, said: str) -> None:
    found = _diagnosed(*MADE, name)
    warnings = [each for trace in _job(*MADE, name) for each in trace.report.warnings]
    assert said in " ".join((found.verdict, *found.warnings, *warnings))


def test_without_marks_the_recording_is_a_window() -> None:
    found = _diagnosed(*MADE, "09_no_step_marks")
    assert found.bound_by == "device"
    assert "a window of 597.06 ms" in found.verdict
    assert "call profiler.step() to mark steps" in found.verdict


@pytest.mark.parametrize("name", ["queue_full_1023.json.gz", "queue_full_100000.json.gz"])
def test_launches_that_block_on_a_full_queue_are_the_devices_time(name: str) -> None:
    found = _diagnosed(*MADE, name)
    assert found.bound_by == "device"
    assert "would be 84.00 ms shorter" in found.verdict
    assert found.ranks[0].compute_s * 1e3 == pytest.approx(90, abs=0.01)
