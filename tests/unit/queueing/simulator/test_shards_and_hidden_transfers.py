"""Several servers in parallel, and transfers that run while a worker computes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nodewise_laws import exact_mva, overlapped_mva
from nodewise_queueing.simulator import Discipline, Law, Link, SimulationSpec, simulate

ONE = SimulationSpec(
    compute_s=0.5,
    download_s=(0.1,),
    upload_s=(0.15,),
    update_s=(0.02,),
    transfer_law=Law.constant(),
    update_law=Law.constant(),
)


def sharded(servers: int) -> SimulationSpec:
    return replace(
        ONE, download_s=(0.1 / servers,) * servers, upload_s=(0.15 / servers,) * servers, update_s=(0.02,) * servers
    )


@pytest.mark.parametrize("servers", [2, 4])
@pytest.mark.parametrize("workers", [2, 6, 12])
def test_parallel_shards_lie_between_one_fast_server_and_servers_in_series(servers: int, workers: int) -> None:
    spec = replace(sharded(servers), update_s=(0.0,) * servers)
    rate = simulate(spec, workers, seed=2, cycles=40_000).throughput_per_s
    shares = [0.1 / servers, 0.15 / servers]
    best = float(exact_mva(shares, 0.5, workers).throughput_per_s[-1])
    in_series = float(exact_mva(shares * servers, 0.5, workers).throughput_per_s[-1])
    assert in_series * 0.995 <= rate <= best * 1.005
    assert rate <= 1.0 / max(shares)


def test_an_uneven_shard_is_the_bottleneck() -> None:
    spec = replace(sharded(2), upload_s=(0.14, 0.01), update_s=(0.0, 0.0))
    result = simulate(spec, 16, seed=2, cycles=20_000)
    assert result.throughput_per_s == pytest.approx(1.0 / 0.14, rel=0.01)
    assert result.upload_utilisation[0] == pytest.approx(1.0, abs=1e-2)
    assert result.upload_utilisation[1] == pytest.approx(0.01 / 0.14, rel=0.05)


def test_a_shard_without_a_transfer_is_updated_all_the_same() -> None:
    spec = replace(sharded(2), upload_s=(0.05, 0.0), download_s=(0.0, 0.0))
    result = simulate(spec, 1, seed=2, cycles=2_000)
    assert result.cycle_s == pytest.approx(0.5 + 0.05 + 0.02, rel=0.03)
    assert result.update_utilisation[1] == pytest.approx(0.02 / result.cycle_s, rel=0.03)


@pytest.mark.parametrize("discipline", list(Discipline))
def test_a_lone_worker_saves_what_is_hidden(discipline: Discipline) -> None:
    spec = replace(ONE, download_hidden_s=0.06, upload_hidden_s=0.1, compute_law=Law.constant(0.0))
    result = simulate(replace(spec, link=Link(discipline=discipline)), 1, seed=2, cycles=3_000)
    assert result.download_s == pytest.approx(0.04, rel=0.01)
    assert result.compute_s == pytest.approx(0.5)
    assert result.upload_s == pytest.approx(0.05, rel=0.01)
    assert result.cycle_s == pytest.approx(0.5 + 0.04 + 0.05 + 0.02, rel=0.01)
    # The link carries the bytes all the same.
    assert result.upload_utilisation[0] == pytest.approx(0.15 / result.cycle_s, rel=0.01)


def test_compute_does_not_end_before_all_parameters_are_there() -> None:
    spec = replace(ONE, compute_s=0.01, download_hidden_s=0.1, compute_law=Law.constant(0.0))
    result = simulate(spec, 1, seed=2, cycles=3_000)
    assert result.download_s == pytest.approx(0.0, abs=1e-12)
    assert result.compute_s == pytest.approx(0.1, rel=0.01)


def test_hidden_transfers_lie_between_no_overlap_and_the_bounds() -> None:
    for workers in (2, 4, 8, 16):
        spec = replace(ONE, download_hidden_s=0.05, upload_hidden_s=0.1, update_s=(0.0,))
        rate = simulate(spec, workers, seed=2, cycles=40_000).throughput_per_s
        none = float(exact_mva((0.1, 0.15), 0.5, workers).throughput_per_s[-1])
        heuristic = float(overlapped_mva((0.1, 0.15), (0.05, 0.1), 0.5, workers).throughput_per_s[-1])
        assert none < rate <= min(workers / 0.6, 1.0 / 0.15) * 1.005
        # The heuristic is the cautious one: it errs by up to a tenth near the knee.
        assert heuristic * 0.995 < rate < heuristic * 1.12


def test_hidden_work_on_one_half_duplex_link_meets_itself() -> None:
    """A worker's upload may be under way with its own download: both have their place."""
    spec = replace(
        ONE, compute_s=0.02, download_hidden_s=0.1, upload_hidden_s=0.02, link=Link(half_duplex=True), update_s=(0.0,)
    )
    result = simulate(spec, 5, seed=2, cycles=20_000)
    assert result.throughput_per_s == pytest.approx(1.0 / 0.25, rel=0.01)
    assert result.download_queue[0] > 5.0
