"""Turns, overlap and slices of a device, room for kernels, and how busy a device is."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodewise.plugin import KernelShape, Processors, SoloJob
from nodewise_sharing.jobs import busy_of, busy_share
from nodewise_sharing.modes import mps_range, overlap_shares, slice_range, turn_shares
from nodewise_sharing.placement import blocks_per_processor, processors_filled
from nodewise_sharing.shares import fit_shares
from nodewise_sharing.verdict import share_device

VOLTA = Processors(processors=80, threads=2048, blocks=32, registers=65_536, shared_bytes=98_304)
shares = st.floats(0.0, 1.0)


@given(shares, shares)
def test_two_jobs_that_take_turns_meet_by_chance(one: float, other: float) -> None:
    told = turn_shares([SoloJob("a", device_utilisation=one), SoloJob("b", device_utilisation=other)])
    np.testing.assert_allclose(told, 1.0 / (1.0 + one * other), rtol=1e-9)


@given(st.lists(st.floats(0.05, 1.0), min_size=3, max_size=3))
def test_what_partners_cost_adds_up_about_as_the_exact_network_has_it(busy: list[float]) -> None:
    jobs = [SoloJob(str(index), str(index), each) for index, each in enumerate(busy)]
    pairwise = [
        sum(1.0 / turn_shares([job, partner])[0] - 1.0 for partner in jobs if partner is not job) for job in jobs
    ]
    np.testing.assert_allclose(1.0 / (1.0 + np.array(pairwise)), turn_shares(jobs), rtol=0.13)
    assert share_device(jobs, fit_shares([])).middle.shape == (3,)


@given(shares, shares, shares, shares)
def test_overlap_costs_nothing_until_a_resource_runs_out(one: float, other: float, read: float, reads: float) -> None:
    told = overlap_shares([SoloJob("a", "", one, read), SoloJob("b", "", other, reads)])
    excess = max(0.0, one + other - 1.0) + max(0.0, read + reads - 1.0)
    np.testing.assert_allclose(told, 1.0 / (1.0 + excess))


@given(shares, shares, st.floats(0.0, 2.0))
def test_kernels_that_fill_a_device_take_turns_in_one_context_too(one: float, other: float, filled: float) -> None:
    jobs = [SoloJob("a", device_utilisation=one), SoloJob("b", device_utilisation=other)]
    low, high = mps_range(jobs, [filled, None])
    np.testing.assert_array_equal(low, turn_shares(jobs))
    assert np.all(high >= low)
    assert np.array_equal(high, low) or filled < 1.0


@given(shares, st.floats(0.05, 1.0), st.floats(0.0, 1.0))
def test_slices_slow_down_device_work_alone(busy: float, fraction: float, filled: float) -> None:
    job = SoloJob("a", device_utilisation=busy)
    low, high = slice_range(job, fraction)
    known = slice_range(job, fraction, filled)
    assert low == pytest.approx(1.0 / (1.0 - busy + busy / fraction))
    assert high == 1.0
    assert known[0] == known[1]
    assert low - 1e-12 <= known[0] <= high


def test_a_slice_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match=r"fraction is 0.0: a slice must have more than 0"):
        slice_range(SoloJob("a"), 0.0)


@pytest.mark.parametrize(
    ("kernel", "held"),
    [
        (KernelShape(640, 256), 8),
        (KernelShape(640, 256, registers_per_thread=64), 4),
        (KernelShape(640, 256, shared_bytes_per_block=49_152), 2),
        (KernelShape(640, 32), 32),
        (KernelShape(640, 33), 32),
        (KernelShape(640, 65), 21),
        (KernelShape(640, 256, shared_bytes_per_block=98_305), 0),
    ],
)
def test_blocks_that_a_processor_holds(kernel: KernelShape, held: int) -> None:
    assert blocks_per_processor(kernel, VOLTA) == held
    assert processors_filled(kernel, VOLTA) == (640 / (80 * held) if held else math.inf)


@given(st.floats(0.001, 10.0), st.floats(0.001, 10.0), st.floats(1.2, 8.0))
def test_host_time_shows_where_a_faster_device_gains_little(host: float, work: float, speed: float) -> None:
    told = busy_share(host + work, {"faster": (host + work / speed, speed)})
    assert told == pytest.approx(work / (host + work), abs=1e-6)


def test_busy_is_measured_or_between_what_devices_tell_and_all() -> None:
    assert busy_of(SoloJob("a")) == 1.0
    assert busy_of(SoloJob("a", device_utilisation=0.3, step_seconds=1.0, elsewhere={"b": (1.0, 2.0)})) == 0.3
    assert busy_of(SoloJob("a", step_seconds=1.0, elsewhere={"b": (1.0, 2.0)})) == pytest.approx(0.5)
