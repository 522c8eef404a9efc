"""What holds for every network, whatever it is: Little's law, the utilisation law, sums of phases, and the seed."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from queueing_truths import throughput_interval_per_s

from nodewise_queueing.simulator import Discipline, Law, Link, SimulationSpec, simulate

CYCLES = 6_000
LAWS = st.sampled_from(
    [Law.constant(), Law.exponential(), Law.gamma(0.3), Law.lognormal(0.5), Law.uniform(1.0), Law.gamma(1.5)]
)
TIMES = st.floats(0.02, 0.3)


@st.composite
def specs(draw: st.DrawFn) -> SimulationSpec:
    servers = draw(st.integers(1, 3))

    def times() -> tuple[float, ...]:
        return tuple(draw(st.lists(TIMES | st.just(0.0), min_size=servers, max_size=servers)))

    download, upload = times(), times()
    barrier = draw(st.booleans())
    return SimulationSpec(
        compute_s=draw(st.floats(0.05, 1.0)),
        download_s=download,
        upload_s=upload,
        update_s=times(),
        compute_law=draw(LAWS),
        transfer_law=draw(LAWS),
        update_law=draw(LAWS),
        link=Link(
            discipline=draw(st.sampled_from(Discipline)),
            half_duplex=draw(st.booleans()),
            flow_cap=draw(st.sampled_from([1.0, 0.7])),
        ),
        download_hidden_s=draw(st.sampled_from([0.0, 0.5, 1.0])) * max(download),
        upload_hidden_s=draw(st.sampled_from([0.0, 0.1])),
        barrier=barrier,
        backup_workers=1 if barrier and draw(st.booleans()) else 0,
        start=draw(st.sampled_from(["staggered", "simultaneous"])),
    )


@given(spec=specs(), workers=st.integers(2, 9), seed=st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_time_is_conserved(spec: SimulationSpec, workers: int, seed: int) -> None:
    result = simulate(spec, workers, seed=seed, cycles=CYCLES // workers if spec.barrier else CYCLES)
    phases = result.download_s + result.compute_s + result.upload_s + result.update_s + result.barrier_s
    assert phases == pytest.approx(result.cycle_s, rel=1e-12)
    if spec.backup_workers:
        return  # cycles whose gradient is dropped are no part of these means
    cycles_per_s = result.throughput_per_s * (workers if spec.barrier else 1)
    # Little: workers are always somewhere. What began before the warm-up ended, or has not ended, is the difference.
    assert cycles_per_s * result.cycle_s == pytest.approx(workers, rel=0.02)
    if not spec.link.half_duplex:
        # A lone flow that is capped keeps its station busy for longer than it asks.
        slowest = 1.0 / spec.link.flow_cap
        in_order = spec.link.discipline is Discipline.FIRST_COME_FIRST_SERVED
        for used, asked in ((result.download_utilisation, spec.download_s), (result.upload_utilisation, spec.upload_s)):
            least = cycles_per_s * np.array(asked)
            assert np.all(used <= 1.0 + 1e-9)
            assert np.all(used >= (slowest if in_order else 1.0) * least * 0.85 - 1e-9)
            assert np.all(used <= slowest * least * 1.15 + 1e-9)
    np.testing.assert_allclose(result.update_utilisation, cycles_per_s * np.array(spec.update_s), rtol=0.15)


def test_little_and_utilisation_in_detail() -> None:
    spec = SimulationSpec(
        compute_s=0.5,
        download_s=(0.1,),
        upload_s=(0.15,),
        update_s=(0.03,),
        transfer_law=Law.gamma(0.5),
        update_law=Law.exponential(),
    )
    result = simulate(spec, 6, seed=11, cycles=200_000)
    rate = result.throughput_per_s
    for share, demand in (
        (result.download_utilisation, 0.1),
        (result.upload_utilisation, 0.15),
        (result.update_utilisation, 0.03),
    ):
        assert share[0] == pytest.approx(rate * demand, rel=0.01)
    assert result.download_queue[0] == pytest.approx(rate * result.download_s, rel=1e-3)
    assert result.upload_queue[0] == pytest.approx(rate * result.upload_s, rel=1e-3)
    assert result.update_queue[0] == pytest.approx(rate * result.update_s, rel=1e-3)
    assert result.compute_s == pytest.approx(0.5, rel=5e-3)
    # The next download follows an update at once: by Little, W - 1 others update meanwhile.
    assert result.staleness_mean == pytest.approx(5.0, rel=1e-3)
    assert 6 <= result.staleness_p95 <= 12
    assert result.events == pytest.approx(4 * 200_000, rel=1e-3)


def test_the_interval_covers_about_as_often_as_it_says() -> None:
    spec = SimulationSpec(
        compute_s=0.5, download_s=(0.1,), upload_s=(0.15,), update_s=(0.0,), transfer_law=Law.exponential()
    )
    hits = 0
    for seed in range(100):
        low, high = throughput_interval_per_s(simulate(spec, 6, seed=seed, cycles=12_000), 0.9)
        hits += low <= 5.558800 <= high
    assert 80 <= hits <= 97


def test_the_same_seed_is_the_same_run() -> None:
    spec = SimulationSpec(compute_s=0.5, download_s=(0.1, 0.2), upload_s=(0.1, 0.1), update_s=(0.01, 0.01))
    first, again, other = (simulate(spec, 5, seed=seed, cycles=500) for seed in (7, 7, 8))
    for name, value in asdict(first).items():
        np.testing.assert_array_equal(value, getattr(again, name), err_msg=name)
    assert other.throughput_per_s != first.throughput_per_s
