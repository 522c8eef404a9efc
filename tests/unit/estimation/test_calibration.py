"""Spreads follow the errors that were tried."""

from __future__ import annotations

import numpy as np
import pytest

from nodewise.domain.columns import as_floats, as_ints, constant_floats
from nodewise.domain.configurations import Configurations, SyncMode
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.predictions import Predictions
from nodewise.domain.profile import Observations, Profile
from nodewise.estimation.lessons.calibration import UNTRIED, Calibration, calibration_of
from nodewise.estimation.lessons.trials import Predict, trials_at_largest

RUNS = (1, 2, 4)


def job(last: float) -> Profile:
    """Runs at 1, 2 and 4 workers; the largest takes ``last`` seconds per step."""
    workers = as_ints(list(RUNS))
    rows = Configurations.of(3, nodes=workers, workers=workers, sync_mode=SyncMode.ALLREDUCE)
    return Profile(observations=Observations.of(rows, as_floats([1.0, 1.0, 1.0 / last])))


def constant_step(spread: float):  # type: ignore[no-untyped-def]
    """An estimator that says one second, and how unsure it is."""

    def predict(profile: Profile, asked: Configurations) -> Predictions:
        assert len(profile.observations) == 2, "the largest scale is held out"
        assert asked.workers.tolist() == [4]
        return Predictions.of(constant_floats(len(asked), 1.0), log_spread=spread)

    return predict


def calibrated(profiles: list[Profile], predict: Predict) -> Calibration:
    return calibration_of(tuple(trial for profile in profiles for trial in trials_at_largest(profile, predict)))


def test_nothing_tried_changes_nothing() -> None:
    assert calibrated([], constant_step(0.1)) is UNTRIED
    assert calibrated([Profile()], constant_step(0.1)) is UNTRIED


def test_errors_as_stated_keep_the_spread() -> None:
    quantiles = [-1.8, -1.2, -0.8, -0.4, -0.1, 0.1, 0.4, 0.8, 1.2, 1.8]
    found = calibrated([job(float(np.exp(0.1 * z))) for z in quantiles], constant_step(0.1))
    assert found.jobs == 10
    assert found.factor == pytest.approx(1.0, abs=0.15)


def test_larger_errors_widen_and_smaller_ones_narrow() -> None:
    wide = calibrated([job(1.5)] * 20, constant_step(0.1))
    narrow = calibrated([job(1.01)] * 40, constant_step(0.1))
    assert wide.factor == pytest.approx(np.log(1.5) / 0.1 / 1.645, rel=0.05)
    assert narrow.factor == pytest.approx(0.5, abs=0.25)
    assert wide.calibration_id != narrow.calibration_id


def test_one_job_alone_moves_little() -> None:
    assert calibrated([job(1.3)], constant_step(0.1)).factor < 1.7


def test_the_order_of_jobs_is_irrelevant_and_so_are_jobs_that_are_refused() -> None:
    jobs = [job(1.1), job(1.2), job(0.9)]
    first = calibrated(jobs, constant_step(0.1))
    assert calibrated(jobs[::-1], constant_step(0.1)) == first

    def refusing(profile: Profile, asked: Configurations) -> Predictions:
        raise NodewiseError(Reason.EVIDENCE_MISSING, "no")

    assert calibrated(jobs, refusing) is UNTRIED


def test_simulations_keep_their_interval() -> None:
    found = calibrated([job(1.5)] * 20, constant_step(0.1))
    plain = Predictions.of(constant_floats(2, 1.0), log_spread=0.1)
    np.testing.assert_allclose(found.apply(plain).log_spread, 0.1 * found.factor)
    simulated = Predictions(
        status=plain.status,
        step_s=plain.step_s,
        log_spread=plain.log_spread,
        breakdown_s=plain.breakdown_s,
        bottlenecks=plain.bottlenecks,
        bottleneck_index=plain.bottleneck_index,
        extrapolation=plain.extrapolation,
        simulated=True,
    )
    assert found.apply(simulated) is simulated
