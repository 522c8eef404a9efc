"""Asynchronous training against what is known exactly."""

from __future__ import annotations

from dataclasses import replace

import pytest
from queueing_truths import erlang_finite_source, throughput_interval_per_s

from nodewise_laws import exact_mva
from nodewise_queueing.simulator import Discipline, Law, Link, SimulationResult, SimulationSpec, simulate

CYCLES = 150_000
EXPONENTIAL = SimulationSpec(
    compute_s=0.5,
    download_s=(0.1,),
    upload_s=(0.15,),
    update_s=(0.0,),
    compute_law=Law.exponential(),
    transfer_law=Law.exponential(),
    update_law=Law.exponential(),
)
IN_ORDER = Link(discipline=Discipline.FIRST_COME_FIRST_SERVED)

# Z = 0.5 s, D = (0.1, 0.15) s at six workers: own recursion, LINE's MVA and CTMC.
SIX_WORKERS_PER_S = 5.558800


def contains(result: SimulationResult, expected_per_s: float) -> bool:
    low, high = throughput_interval_per_s(result, 0.99)
    return low <= expected_per_s <= high


@pytest.mark.parametrize(
    "law",
    [
        Law.exponential(),
        Law.uniform(0.1),
        Law.uniform(0.02),
        Law.lognormal(1.5),
        Law.gamma(0.5),
        Law.gamma(2.0),
    ],
    ids=lambda law: f"{law.kind.name}-{law.parameter:.2f}",
)
def test_shared_links_know_only_the_mean_of_a_law(law: Law) -> None:
    result = simulate(replace(EXPONENTIAL, compute_law=law, transfer_law=law), 6, seed=3, cycles=CYCLES)
    assert contains(result, SIX_WORKERS_PER_S)
    assert result.throughput_per_s == pytest.approx(SIX_WORKERS_PER_S, rel=0.015)


def test_one_station_has_a_closed_form() -> None:
    expected = float(erlang_finite_source(0.15, 0.5, 6)[-1])
    assert expected == pytest.approx(6.188100, abs=1e-6)
    assert contains(simulate(replace(EXPONENTIAL, download_s=(0.0,)), 6, seed=3, cycles=CYCLES), expected)


# Z = 0.5 s, D = 0.3 s, a(j) = min(j, limit): two algorithms agree.
@pytest.mark.parametrize(
    ("limit", "workers", "expected_per_s"),
    [(2, 2, 2.5), (2, 5, 5.419834), (2, 8, 6.511648), (3, 3, 3.75), (3, 5, 6.109959), (3, 8, 8.704188)],
)
@pytest.mark.parametrize("capped", [False, True])
def test_a_link_that_several_flows_speed_up(limit: int, workers: int, expected_per_s: float, capped: bool) -> None:
    # A flow may have 1 / limit of a link that is limit times as fast: the same station, said in another way.
    link = Link(flow_cap=1.0, rate_factor=(float(limit),)) if capped else Link(rate_factor=tuple(range(1, limit + 1)))
    spec = replace(EXPONENTIAL, download_s=(0.0,), upload_s=(0.3,), link=link)
    assert contains(simulate(spec, workers, seed=3, cycles=CYCLES), expected_per_s)


def test_a_goodput_that_falls_makes_more_workers_slower() -> None:
    link = Link(rate_factor=(1.0, 1.0, 0.8, 0.6))
    few, many = (simulate(replace(EXPONENTIAL, link=link), count, seed=1, cycles=20_000) for count in (4, 12))
    assert many.throughput_per_s < few.throughput_per_s


def test_exponential_service_in_order_is_a_product_form_too() -> None:
    assert contains(simulate(replace(EXPONENTIAL, link=IN_ORDER), 6, seed=3, cycles=CYCLES), SIX_WORKERS_PER_S)
    spec = replace(EXPONENTIAL, update_s=(0.12,), link=IN_ORDER)
    expected = float(exact_mva((0.1, 0.15, 0.12), 0.5, 6).throughput_per_s[-1])
    assert contains(simulate(spec, 6, seed=3, cycles=CYCLES), expected)


def test_nearly_constant_times_in_order_come_near_the_asymptotic_bound() -> None:
    spec = replace(EXPONENTIAL, compute_law=Law.constant(), transfer_law=Law.constant(), link=IN_ORDER)
    result = simulate(spec, 6, seed=3, cycles=30_000)
    assert result.throughput_per_s == pytest.approx(min(6 / 0.75, 1 / 0.15), rel=1e-3)


def test_one_half_duplex_link_is_one_station() -> None:
    result = simulate(replace(EXPONENTIAL, link=Link(half_duplex=True)), 6, seed=3, cycles=CYCLES)
    assert contains(result, float(exact_mva((0.25,), 0.5, 6).throughput_per_s[-1]))
    assert result.download_utilisation.tolist() == result.upload_utilisation.tolist()


def test_exactly_deterministic_workers_run_in_lock_step_if_they_begin_together() -> None:
    exact = replace(EXPONENTIAL, compute_law=Law.constant(0.0), transfer_law=Law.constant(0.0))
    together = simulate(replace(exact, start="simultaneous"), 6, seed=1, cycles=6_000)
    # Six transfers of 0.1 s, then six of 0.15 s, share a link and end at once: 0.5 + 0.6 + 0.9 s for six cycles.
    assert together.throughput_per_s == pytest.approx(3.0, rel=2e-3)
    assert together.download_s == pytest.approx(0.6)
    staggered = simulate(exact, 6, seed=1, cycles=6_000)
    assert 5.2 < staggered.throughput_per_s < 5.8


def test_ties_lose_nobody() -> None:
    spec = replace(EXPONENTIAL, compute_law=Law.constant(0.0), transfer_law=Law.constant(0.0), start="simultaneous")
    for link in (Link(), IN_ORDER):
        result = simulate(replace(spec, link=link, download_s=(0.25,), upload_s=(0.25,)), 4, seed=1, cycles=4_000)
        assert result.throughput_per_s * result.cycle_s == pytest.approx(4.0, rel=1e-3)


@pytest.mark.parametrize("half_duplex", [False, True])
def test_a_lone_worker_meets_nobody(half_duplex: bool) -> None:
    """Neither the order of service nor the duplex matters: cycle by cycle the times are the same."""
    spec = replace(EXPONENTIAL, update_s=(0.05,), link=Link(half_duplex=half_duplex))
    shared = simulate(spec, 1, seed=5, cycles=2_000)
    in_order = simulate(replace(spec, link=replace(IN_ORDER, half_duplex=half_duplex)), 1, seed=5, cycles=2_000)
    assert shared.throughput_per_s == pytest.approx(in_order.throughput_per_s, rel=1e-12)
    assert shared.staleness_mean == 0.0


def test_stragglers_slow_only_themselves() -> None:
    uneven = replace(EXPONENTIAL, compute_s=(0.5, 0.5, 2.0), download_s=(0.0,), upload_s=(1e-6,))
    assert simulate(uneven, 3, seed=2, cycles=CYCLES).throughput_per_s == pytest.approx(2 + 2 + 0.5, rel=0.01)
