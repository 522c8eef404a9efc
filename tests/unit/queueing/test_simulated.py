"""Answers by simulation, where they are asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from queueing_profiles import (
    answered,
    mixed,
    observations,
    predicted,
    profile,
    reasons,
    refused,
    rows,
    steps_per_s,
    timings,
)

from nodewise.plugin import (
    Configurations,
    Fidelity,
    NodewiseError,
    Predictions,
    Profile,
    Reason,
    RowStatus,
    SyncMode,
    WorkerGroup,
)

PHASES = (0.1, 0.5, 0.15, 0.0)
JOB = profile(timings(PHASES, cv=0.3))
WORKERS = [1, 2, 4, 6, 12]
MODES = pytest.mark.parametrize("mode", [SyncMode.ASYNC, SyncMode.SYNC])


class Clock:
    """A budget that ends after so many looks."""

    def __init__(self, looks: int) -> None:
        self.looks = looks

    def remaining_s(self) -> float:
        self.looks -= 1
        return 1.0 if self.looks >= 0 else 0.0


def simulated(job: Profile, asked: Configurations, **options: Any) -> Predictions:
    found = answered(job, asked, fidelity=Fidelity.SIMULATE, **options)
    assert found.simulated
    return found


def difference(job: Profile, asked: Configurations, **options: Any) -> tuple[np.ndarray, np.ndarray]:
    """|ln(simulated / by the laws)|, and its standard error."""
    found, expected = simulated(job, asked, **options), answered(job, asked)
    assert not expected.simulated
    return np.abs(np.log(found.step_s / expected.step_s)), found.log_spread


@pytest.mark.parametrize("cv", [0.1, 0.3, 1.0])
@pytest.mark.parametrize("phases", [PHASES, (0.3, 0.5, 0.2, 0.0)])
def test_shared_links_are_those_of_mean_value_analysis(phases: tuple[float, ...], cv: float) -> None:
    apart, error = difference(profile(timings(phases, cv=cv)), rows(WORKERS))
    assert np.all(apart < 3 * error + 0.01)


@pytest.mark.parametrize("facts", [{"half_duplex": True}, {"link_bytes_per_s": 25e6, "worker_link_bytes_per_s": 1e7}])
def test_half_duplex_links_and_slower_links_of_workers_are_too(facts: dict[str, Any]) -> None:
    apart, error = difference(profile(timings((0.16, 0.5, 0.16, 0.0), cv=0.3), **facts), rows(WORKERS))
    assert np.all(apart < 3 * error + 0.01)


@pytest.mark.parametrize("cv", [0.1, 0.3])
@pytest.mark.parametrize("phases", [PHASES, (0.01, 1.0, 0.01, 0.005)])
def test_rounds_agree_with_the_law_of_a_barrier(phases: tuple[float, ...], cv: float) -> None:
    apart, error = difference(profile(timings(phases, cv=cv)), rows(WORKERS, SyncMode.SYNC))
    assert np.all(apart < 0.03 + 3 * error)


# The law lets everybody begin each round at once; a worker that was late begins the next one late.
@pytest.mark.parametrize(("backup", "most"), [(1, 0.05), (2, 0.05), (4, 0.12)])
def test_rounds_with_backups_agree_with_their_law(backup: int, most: float) -> None:
    job = profile(timings((0.01, 1.0, 0.01, 0.005), cv=0.3))
    apart, error = difference(job, rows([8], SyncMode.SYNC, backup_workers=backup))
    assert apart[0] < most + 3 * error[0]


@MODES
@pytest.mark.parametrize("hidden_s", [0.0, 0.05])
@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"round_trip_s": 0.03},
        {"half_duplex": True},
        {"parameter_bytes": 4_000_000, "link_bytes_per_s": 25e6},
        {"link_bytes_per_s": 25e6, "worker_link_bytes_per_s": 1e7},
    ],
    ids=["nothing known", "round trip", "half duplex", "bytes and link", "slower workers' links"],
)
def test_one_worker_is_the_profile(mode: SyncMode, hidden_s: float, facts: dict[str, Any]) -> None:
    job = profile(timings((0.16, 0.5, 0.16, 0.02), cv=0.1, hidden_s=hidden_s), **facts)
    assert simulated(job, rows([1], mode)).step_s[0] == pytest.approx(0.84 - hidden_s, rel=0.01)


@MODES
@pytest.mark.parametrize(
    "groups",
    [
        [WorkerGroup("", 3), WorkerGroup("", 3, 2.0)],
        [WorkerGroup("", 1, 0.1), WorkerGroup("", 3)],
        [WorkerGroup("", 1, 10.0), WorkerGroup("", 3)],
    ],
    ids=["half slow", "one fast", "one straggler"],
)
def test_workers_that_are_not_alike_agree_with_their_laws(mode: SyncMode, groups: list[WorkerGroup]) -> None:
    apart, error = difference(profile(timings((0.01, 1.0, 0.01, 0.005), cv=0.3)), mixed(groups, mode=mode))
    assert apart[0] < 0.03 + 3 * error[0]


def test_a_hybrid_is_simulated_in_both_parts() -> None:
    asked = rows([4, 4, 4], SyncMode.HYBRID, hybrid_sync_fraction=[0.0, 0.5, 1.0], hybrid_switch_s=90.0)
    answer = simulated(JOB, asked)
    asynchronous, synchronous = (simulated(JOB, rows([4], mode)).step_s[0] for mode in (SyncMode.ASYNC, SyncMode.SYNC))
    np.testing.assert_allclose(answer.step_s, [asynchronous, (asynchronous + synchronous) / 2, synchronous])
    np.testing.assert_array_equal(answer.once_s, [0.0, 90.0, 0.0])


@MODES
def test_a_seed_fixes_the_answer_and_another_gives_another(mode: SyncMode) -> None:
    asked = rows([2, 6], mode)
    first, again = (simulated(JOB, asked, seed=7) for _ in range(2))
    np.testing.assert_array_equal(first.step_s, again.step_s)
    np.testing.assert_array_equal(first.log_spread, again.log_spread)
    other = simulated(JOB, asked, seed=8)
    assert np.all(first.step_s != other.step_s)
    np.testing.assert_allclose(first.step_s, other.step_s, rtol=0.03)
    # A row is the same whatever else is asked.
    assert simulated(JOB, rows([6], mode), seed=7).step_s[0] == first.step_s[1]


def test_more_steps_make_the_interval_narrower() -> None:
    steps = [4_000, 16_000, 64_000, 256_000]
    spreads = [simulated(JOB, rows([6]), simulated_steps=count).log_spread[0] for count in steps]
    slope = np.polyfit(np.log(steps), np.log(spreads), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.15)


def test_parts_staleness_and_utilisation_are_those_of_the_run() -> None:
    asked = rows(WORKERS)
    answer = simulated(JOB, asked)
    np.testing.assert_allclose(sum(answer.breakdown_s.values()), answer.step_s, rtol=1e-9)
    np.testing.assert_allclose(answer.breakdown_s["compute"], 0.5, rtol=0.02)
    np.testing.assert_allclose(answer.staleness_mean, np.array(WORKERS) - 1, atol=0.02)
    assert np.all(answer.staleness_p95 >= answer.staleness_mean - 0.02)
    np.testing.assert_allclose(answer.utilisation["uplink"], steps_per_s(answer, asked) * 0.15, rtol=0.02)
    assert answer.bottlenecks[answer.bottleneck_index[-1]] == "upload"
    assert reasons(answer) == {"SIMULATED"}


def test_throughputs_alone_cannot_be_simulated() -> None:
    job = profile(measured=observations({1: 1.0, 8: 5.0}))
    answer = predicted(job, rows([2, 4]), fidelity=Fidelity.SIMULATE)
    assert answer.status.tolist() == [RowStatus.REFUSED] * 2
    assert {reason for reason, _ in refused(answer).values()} == {Reason.EVIDENCE_MISSING}
    assert answer.refusals[0].refusal.missing_fields == ("phase_timings",)


def test_a_simulation_without_time_left_is_not_begun_and_one_that_runs_ends() -> None:
    asked = rows([2, 4, 6])
    assert simulated(JOB, asked, budget=Clock(looks=100)).answered.all()
    # Before each row, and every few milliseconds within it.
    assert simulated(JOB, rows([2]), budget=Clock(looks=100)).answered.all()
    for looks in (0, 1, 4):
        with pytest.raises(NodewiseError) as caught:
            simulated(JOB, asked, budget=Clock(looks))
        assert caught.value.reason == Reason.DEADLINE_EXCEEDED
    # By the laws nothing waits for anything.
    assert answered(JOB, asked, budget=Clock(looks=0)).answered.all()
