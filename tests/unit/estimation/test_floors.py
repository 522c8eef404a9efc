"""The least that a step can take, by facts and by runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodewise.catalogue.loading import load_catalogue
from nodewise.domain.columns import as_floats, as_ints
from nodewise.domain.configurations import Configurations, SyncMode
from nodewise.domain.predictions import Predictions
from nodewise.domain.profile import Network, Observations, Profile
from nodewise.domain.workload import Workload
from nodewise.estimation.answer.floors import Floors, floors_of, raise_to_floors

CATALOGUE = load_catalogue()
RESNET50_BYTES = 102_228_128
GIGABIT = 125_000_000.0


def rows(scales: Sequence[tuple[int, int, int]], *, device: str = "V100", link: float = 0.0) -> Configurations:
    """All-reduce rows of nodes, workers and samples per worker."""
    count = len(scales)
    nodes, workers, batches = (as_ints(list(column)) for column in zip(*scales, strict=True))
    plain = Configurations.of(count, nodes=nodes, workers=workers, device=device)
    return plain.replaced(
        sync_mode=as_ints([int(SyncMode.ALLREDUCE)] * count),
        batch_per_worker=batches,
        link_bytes_per_s=as_floats([link] * count),
    )


def job(runs: Sequence[tuple[int, int, int, float]], workload: Workload | None = None, link: float = 0.0) -> Profile:
    """A job of runs: nodes, workers, samples per worker, seconds of a step."""
    ran = rows([run[:3] for run in runs], link=link) if runs else Configurations.of(0)
    observations = Observations.of(ran, as_floats([1.0 / run[3] for run in runs])) if runs else Observations.none()
    return Profile(workload=workload or Workload(), network=Network(), observations=observations)


def found(profile: Profile, asked: Configurations) -> Floors:
    return floors_of(profile, profile.observations.configurations, asked, CATALOGUE)


def test_bytes_over_the_link_of_a_node_are_a_floor_across_nodes_alone() -> None:
    """Horovod's ResNet-50 over 1 Gbit/s (horovod #752): 0.82 s on two nodes, whatever the devices do."""
    profile = job([], Workload(parameter_bytes=RESNET50_BYTES, precision="fp32"))
    floors = found(profile, rows([(1, 2, 32), (2, 4, 32), (4, 8, 32)], link=GIGABIT))
    np.testing.assert_allclose(floors.exchange_s, RESNET50_BYTES / GIGABIT * np.array([0.0, 1.0, 1.5]))
    half = found(job([], Workload(parameter_bytes=RESNET50_BYTES, precision="fp16")), rows([(2, 4, 32)], link=GIGABIT))
    assert half.exchange_s[0] == pytest.approx(floors.exchange_s[1] / 2.0)


def test_flops_over_the_peak_are_a_floor() -> None:
    profile = job([], Workload(flops_per_sample=1e12, precision="fp32"))
    peak = dict(CATALOGUE.device("V100") or {})["fp32_flops_per_s"]
    assert found(profile, rows([(1, 1, 16)])).compute_s[0] == pytest.approx(16e12 / peak)
    assert not found(profile, rows([(1, 1, 16)], device="nobody's")).compute_s.any()


def test_facts_that_a_run_contradicts_force_nothing() -> None:
    workload = Workload(parameter_bytes=RESNET50_BYTES, precision="fp32")
    quick = job([(2, 4, 32, 0.3)], workload, link=GIGABIT)
    assert not found(quick, rows([(4, 8, 32)], link=GIGABIT)).exchange_s.any()


def test_linear_scaling_is_from_the_most_efficient_run_on_fewer_workers() -> None:
    profile = job([(1, 8, 256, 0.100), (2, 16, 256, 0.120), (4, 32, 256, 0.110)])
    floors = found(profile, rows([(1, 8, 256), (2, 16, 256), (8, 64, 256), (8, 64, 128), (8, 64, 512), (16, 16, 256)]))
    # None of its own scale; half of the samples take half at least; more samples at once, or emptier nodes, have none.
    np.testing.assert_allclose(floors.linear_s, [0.0, 0.1, 0.1, 0.05, 0.0, 0.0])


def test_superlinear_runs_have_no_floor_of_linear_scaling() -> None:
    profile = job([(1, 8, 256, 0.100), (2, 16, 256, 0.080)])
    assert not found(profile, rows([(4, 32, 256)])).linear_s.any()


def test_other_devices_links_and_splits_bound_nothing() -> None:
    profile = job([(1, 8, 256, 0.1)])
    split = rows([(2, 16, 256)]).replaced(tensor_parallel=as_ints([2]))
    for asked in (rows([(2, 16, 256)], device="A100"), rows([(2, 16, 256)], link=1e9), split):
        assert not found(profile, asked).linear_s.any()


def test_a_step_below_its_floor_is_raised_with_the_doubt_that_this_brings() -> None:
    told = Predictions.of(as_floats([0.2, 1.0]), log_spread=0.1, breakdown_s={"compute": as_floats([0.2, 1.0])})
    floors = Floors(exchange_s=as_floats([0.8, 0.8]), compute_s=np.zeros(2), linear_s=np.zeros(2))
    answer = raise_to_floors(told, floors)
    np.testing.assert_allclose(answer.step_s, [0.8, 1.0])
    np.testing.assert_allclose(answer.log_spread, [np.hypot(0.1, np.log(4.0)), 0.1])
    assert [answer.bottlenecks[index] for index in answer.bottleneck_index] == ["exchange_inter_node", "compute"]
    np.testing.assert_allclose(sum(answer.breakdown_s.values()), answer.step_s)
    assert [notice.rows for notice in answer.notices] == [(0,)]


@given(
    step_s=st.lists(st.floats(1e-3, 10.0), min_size=3, max_size=3),
    floors=st.lists(st.lists(st.floats(0.0, 10.0), min_size=3, max_size=3), min_size=3, max_size=3),
)
def test_no_step_is_below_its_floor_and_parts_add_up(step_s: list[float], floors: list[list[float]]) -> None:
    parts = {"compute": 0.75 * as_floats(step_s), "exchange_inter_node": 0.25 * as_floats(step_s)}
    bounds = Floors(*map(as_floats, floors))
    answer = raise_to_floors(Predictions.of(as_floats(step_s), breakdown_s=parts), bounds)
    assert (answer.step_s >= bounds.step_s * (1.0 - 1e-8)).all()
    assert (answer.step_s >= np.array(step_s) * (1.0 - 1e-12)).all()
    np.testing.assert_allclose(sum(answer.breakdown_s.values()), answer.step_s)
