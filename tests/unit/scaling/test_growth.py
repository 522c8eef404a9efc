"""How compute grows with the batch where one batch ran, and what exchange is told over then."""

from __future__ import annotations

import numpy as np
import pytest
from scaling_profiles import answered, predicted, profile, rows

from nodewise.plugin import Floats
from nodewise_scaling.form import Places, parts_of
from nodewise_scaling.growth import FIXED_POWER, FIXED_S, with_growth
from nodewise_scaling.parameters import BATCH_SHARE, COUNT, HYPER_MEAN, HYPER_SD, INTRA
from nodewise_scaling.points import Points, average


def ran(*runs: tuple[float, float]) -> Points:
    """Samples and seconds of one worker."""
    keys = np.array([[1.0, 1.0, 1.0, batch, 1.0] for batch, _ in runs])
    return average(keys, np.array([step_s for _, step_s in runs]))


def fixed_s(points: Points) -> float:
    """What the prior takes of a step for fixed."""
    mean, _ = with_growth(points, HYPER_MEAN, HYPER_SD)
    return points.unit_s / (1.0 + float(np.exp(mean[BATCH_SHARE])))


@pytest.mark.parametrize(("batch", "per_sample_s"), [(1, 0.05), (64, 0.05), (64, 0.001), (512, 0.001), (4096, 4e-7)])
def test_one_batch_is_split_as_is_usual_of_its_seconds_per_sample(batch: float, per_sample_s: float) -> None:
    usual_s = FIXED_S * per_sample_s**FIXED_POWER
    assert fixed_s(ran((batch, usual_s + batch * per_sample_s))) == pytest.approx(usual_s, rel=1e-6)


def test_a_long_step_is_mostly_samples_and_a_short_one_mostly_fixed() -> None:
    assert fixed_s(ran((64, 2.0))) < 0.2 * 2.0
    assert fixed_s(ran((32, 0.007))) > 0.8 * 0.007


def test_the_less_a_step_grows_the_less_is_known_of_it() -> None:
    deviations = [with_growth(ran((64, step_s)), HYPER_MEAN, HYPER_SD)[1][BATCH_SHARE] for step_s in (0.01, 0.1, 1.0)]
    assert np.all(np.diff(deviations) < 0.0)


def test_runs_of_several_batches_tell_themselves() -> None:
    mean, sd = with_growth(ran((8, 0.2), (16, 0.3)), HYPER_MEAN, HYPER_SD)
    assert mean is HYPER_MEAN
    assert sd is HYPER_SD


def test_exchange_that_was_not_seen_does_not_grow_with_a_large_batch() -> None:
    def exchange(batch_share: float) -> float:
        theta: Floats = np.zeros(COUNT)
        theta[BATCH_SHARE], theta[INTRA] = batch_share, 0.0
        ones = np.ones(1)
        at = Places(
            nodes=ones, sharing=8.0 * ones, per_node=8.0 * ones, batch=ones, log_accumulation=0.0 * ones,
            over_fixed=False,
        )  # fmt: skip
        return float(parts_of(theta, at).intra[0])

    assert exchange(-5.0) == pytest.approx(1.0, rel=0.02)
    assert exchange(5.0) == pytest.approx(2.5 / (1.0 + np.exp(5.0)), rel=0.02)


def test_one_run_of_one_worker_at_a_large_batch_scales() -> None:
    """As vgg16 and bert do: 16 workers take a third of it or less, not the whole again."""
    of = profile(rows([(1, 1, 128)], device="A100"), [0.38])
    asked = rows([(2, 16, 8)], device="A100")
    assert 0.04 < predicted(of, asked).step_s[0] < 0.19
    assert answered(of, asked).log_spread[0] > 0.3
