"""Hybrid training: synchronous first, then asynchronous."""

from __future__ import annotations

import numpy as np
import pytest
from parameter_server_tables import sync_switch_seconds
from queueing_profiles import answered, assessed, observations, predicted, profile, reasons, refused, rows, timings

from nodewise.plugin import Observations, Predictions, Profile, Reason, RowStatus, SyncMode

PHASES = (0.1, 0.5, 0.15, 0.01)
JOB = profile(timings(PHASES, cv=0.3))
SHARES = [0.0, 0.1, 0.5, 0.9, 1.0]
MINI_BATCHES = 64_000


def both_modes(measured: dict[SyncMode, dict[int, float]]) -> Profile:
    parts = [observations(rates, mode) for mode, rates in measured.items()]
    return profile(measured=Observations.concatenated(parts))


def hybrid(job: Profile, workers: int, shares: list[float], switch_s: float = 0.0) -> Predictions:
    asked = rows([workers] * len(shares), SyncMode.HYBRID, hybrid_sync_fraction=shares, hybrid_switch_s=switch_s)
    return answered(job, asked)


def pure(job: Profile, workers: int, mode: SyncMode) -> Predictions:
    return answered(job, rows([workers], mode))


@pytest.mark.data
def test_published_switch_points_from_the_two_pure_runs() -> None:
    asynchronous_s, synchronous_s, switched = sync_switch_seconds()
    assert (asynchronous_s, synchronous_s) == (1598.0, 10532.0)
    assert {0.02, 0.04, 0.05, 0.1, 0.15, 0.2, 0.25, 0.5, 0.75} <= switched.keys()
    job = both_modes(
        {
            SyncMode.SYNC: {8: MINI_BATCHES / 8 / synchronous_s},
            SyncMode.ASYNC: {8: MINI_BATCHES / asynchronous_s},
        }
    )
    answer = hybrid(job, 8, list(switched))
    finish_s = MINI_BATCHES / 8 * answer.step_s
    for share, predicted_s, measured_s in zip(switched, finish_s, switched.values(), strict=True):
        assert predicted_s == pytest.approx(measured_s, rel=0.05 if share == 0.15 else 0.03), share
    # The released times have the gap at the switch taken out.
    assert answer.once_s is None or not answer.once_s.any()
    ends = hybrid(job, 8, [0.0, 1.0])
    np.testing.assert_allclose(MINI_BATCHES / 8 * ends.step_s, [asynchronous_s, synchronous_s], rtol=1e-9)


@pytest.mark.parametrize(
    "job",
    [JOB, both_modes({SyncMode.SYNC: {1: 1.0, 8: 0.7}, SyncMode.ASYNC: {1: 1.0, 8: 4.5}})],
    ids=["phases", "throughputs"],
)
def test_all_of_one_mode_is_that_mode(job: Profile) -> None:
    ends = hybrid(job, 6, [0.0, 1.0])
    for row, mode in enumerate((SyncMode.ASYNC, SyncMode.SYNC)):
        alone = pure(job, 6, mode)
        assert ends.step_s[row] == pytest.approx(alone.step_s[0], rel=1e-12)
        assert ends.log_spread[row] == pytest.approx(alone.log_spread[0], rel=1e-12)
        assert ends.extrapolation[row] == alone.extrapolation[0]
        for name, part in alone.breakdown_s.items():
            assert ends.breakdown_s[name][row] == pytest.approx(part[0], rel=1e-12)
        for name, busy in alone.utilisation.items():
            assert ends.utilisation[name][row] == pytest.approx(busy[0], rel=1e-12)


def test_a_step_is_the_mean_over_both_parts() -> None:
    answer = hybrid(JOB, 6, SHARES)
    synchronous, asynchronous = pure(JOB, 6, SyncMode.SYNC), pure(JOB, 6, SyncMode.ASYNC)
    share = np.array(SHARES)
    # A job that never switches is one of its modes and has no other's step.
    switches = (share > 0.0) & (share < 1.0)
    np.testing.assert_allclose(answer.extra["sync_step_s"], np.where(switches, synchronous.step_s[0], 0.0), rtol=1e-12)
    np.testing.assert_allclose(
        answer.extra["async_step_s"], np.where(switches, asynchronous.step_s[0], 0.0), rtol=1e-12
    )
    expected = share * synchronous.step_s[0] + (1 - share) * asynchronous.step_s[0]
    np.testing.assert_allclose(answer.step_s, expected, rtol=1e-12)
    np.testing.assert_allclose(sum(answer.breakdown_s.values()), answer.step_s, rtol=1e-12)
    low, high = sorted([synchronous.log_spread[0], asynchronous.log_spread[0]])
    assert np.all((answer.log_spread >= low - 1e-12) & (answer.log_spread <= high + 1e-12))


def test_only_asynchronous_mini_batches_are_stale() -> None:
    answer = hybrid(JOB, 6, SHARES)
    asynchronous = pure(JOB, 6, SyncMode.ASYNC)
    np.testing.assert_allclose(answer.staleness_mean, 5.0 * (1 - np.array(SHARES)))
    np.testing.assert_allclose(answer.staleness_p95, [*[asynchronous.staleness_p95[0]] * 4, 0.0])


def test_the_switch_is_paid_once_where_there_is_one() -> None:
    plain, switching = hybrid(JOB, 6, SHARES), hybrid(JOB, 6, SHARES, switch_s=90.0)
    np.testing.assert_array_equal(switching.step_s, plain.step_s)
    assert plain.once_s is None or not plain.once_s.any()
    np.testing.assert_array_equal(switching.once_s, [0.0, 90.0, 90.0, 90.0, 0.0])


def test_assumptions_of_both_parts_are_told() -> None:
    assumed = profile(timings((0.01, 0.5, 0.01, 0.0)))
    assert reasons(hybrid(assumed, 4, [0.5])) == {"UNSAID"}
    scaled = rows([4], SyncMode.HYBRID, hybrid_sync_fraction=0.5, parameter_servers=2)
    assert "SERVERS_SCALED" in reasons(answered(assumed, scaled))


def test_either_mode_that_nobody_measured_is_missing() -> None:
    asked = rows([4], SyncMode.HYBRID, hybrid_sync_fraction=0.5)
    for measured, missing in ((SyncMode.SYNC, "ASYNC"), (SyncMode.ASYNC, "SYNC")):
        job = profile(measured=observations({1: 1.0, 8: 0.9}, measured))
        (reason, message), *_ = refused(predicted(job, asked)).values()
        assert reason == Reason.EVIDENCE_MISSING
        assert f"do not carry over to {missing}:" in message


def test_a_hybrid_of_which_one_mode_is_missing_cannot_be_answered() -> None:
    asked = rows([4], SyncMode.HYBRID, hybrid_sync_fraction=0.5)
    for measured in (SyncMode.SYNC, SyncMode.ASYNC):
        refusal = assessed(profile(measured=observations({1: 1.0, 8: 0.9}, measured)), asked).refusal
        assert refusal is not None
        assert refusal.reason == Reason.EVIDENCE_MISSING


def test_modes_measured_at_one_number_of_workers_answer_for_that() -> None:
    job = both_modes({SyncMode.SYNC: {8: 0.7}, SyncMode.ASYNC: {8: 4.5}})
    assert hybrid(job, 8, [0.5]).step_s[0] == pytest.approx(0.5 / 0.7 + 0.5 * 8 / 4.5, rel=1e-9)
    other = rows([4], SyncMode.HYBRID, hybrid_sync_fraction=0.5)
    assert refused(predicted(job, other))[0][0] == Reason.EVIDENCE_MISSING
    assert assessed(job, other).refusal is not None


def test_modes_measured_at_one_number_of_workers_are_told_row_by_row() -> None:
    job = both_modes({SyncMode.SYNC: {8: 0.7}, SyncMode.ASYNC: {8: 4.5}})
    asked = rows([4, 8], SyncMode.HYBRID, hybrid_sync_fraction=0.5)
    answer = predicted(job, asked)
    assert answer.status.tolist() == [RowStatus.REFUSED, RowStatus.ANSWERED]
    assert assessed(job, asked).refusal is None
