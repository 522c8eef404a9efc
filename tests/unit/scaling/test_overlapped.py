"""The hypothesis that exchange hides: its mathematics, and jobs of published training runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scaling_profiles import answered, full, job, notices, predicted, profile, refused, rows, several
from scipy.special import logsumexp, ndtr
from scipy.stats import multivariate_normal, t

from nodewise.plugin import Floats, Profile
from nodewise_scaling.device import BISECTIONS, median_of
from nodewise_scaling.overlap import DEGREES, GROWTH, GROWTH_SD, LAW, LENGTH, LOG_SHARES, NOISE_SD, fit_overlap
from nodewise_scaling.points import Points, average
from nodewise_scaling.residual import RESIDUAL_SD

RUNS = ((8.0, 32.0, 0.26), (16.0, 16.0, 0.14), (64.0, 4.0, 0.043))
"""Workers, samples of each, seconds."""


def points(runs: tuple[tuple[float, float, float], ...] = RUNS) -> Points:
    """Runs on full nodes of eight."""
    keys = [(max(workers / 8.0, 1.0), workers, min(workers, 8.0), batch, 1.0) for workers, batch, _ in runs]
    return average(np.array(keys), np.array([step_s for _, _, step_s in runs]))


def test_evidence_is_the_integral_over_the_level_and_the_fixed_share() -> None:
    """By brute force: a normal density for every level and share, under the law's prior of the fixed seconds."""
    samples = np.log([batch for _, batch, _ in RUNS])
    workers = np.log([count for count, _, _ in RUNS])
    measured = np.log([step_s for _, _, step_s in RUNS])
    far = (abs(samples[:, None] - samples) + abs(workers[:, None] - workers)) / LENGTH
    beyond = workers - workers.max()
    covariance = RESIDUAL_SD**2 * np.exp(-far) + GROWTH_SD**2 * np.outer(beyond, beyond) + NOISE_SD**2 * np.eye(3)
    shares = LOG_SHARES[::2]
    levels = np.linspace(measured.max() - 1.5, measured.max() + 1.5, 1501)
    logs = []
    for log_share in shares:
        share = np.exp(log_share)
        shape = np.log(share + (1.0 - share) * np.exp(samples - samples.max())) + GROWTH * beyond
        density = multivariate_normal(np.zeros(3), covariance).logpdf(measured - shape - levels[:, None])
        best = levels[np.argmax(density)]
        fixed = (log_share + best - LAW.alpha - LAW.beta * best) / LAW.deviation
        logs.append(
            logsumexp(density) + np.log(levels[1] - levels[0]) + t(DEGREES).logpdf(fixed) - np.log(LAW.deviation)
        )
    by_force = logsumexp(logs) + np.log(shares[1] - shares[0])
    assert fit_overlap(points(), 0.0).log_evidence == pytest.approx(by_force, abs=0.15)


@given(st.floats(0.002, 0.3), st.floats(0.0005, 0.5), st.floats(-1.0, 2.5))
def test_a_line_is_continued(fixed_s: float, sample_s: float, log_peak: float) -> None:
    def step_s(batch: float) -> float:
        return fixed_s + sample_s * batch

    runs = tuple((workers, batch, step_s(batch)) for workers, batch in ((8.0, 64.0), (16.0, 16.0), (64.0, 4.0)))
    fit = fit_overlap(points(runs), log_peak)
    expected, variance = fit.predict(points(((64.0, 8.0, 1.0),)).keys)
    assert abs(expected[0] - np.log(step_s(8.0))) < 0.2
    assert 0.0 < variance[0] < 0.2**2
    keys = points(runs).keys
    assert np.diag(fit.covariance(keys)) == pytest.approx(fit.predict(keys)[1])


def test_a_faster_device_has_the_same_fixed_seconds() -> None:
    """Of one run: on a device of eight times the peak the same step holds more arithmetic, so it shrinks less."""
    lone, asked = points(RUNS[:1]), points(((64.0, 2.0, 1.0),)).keys
    slow, fast, unknown = (fit_overlap(lone, log_peak).predict(asked) for log_peak in (0.0, np.log(8.0), None))
    assert fast[0][0] > slow[0][0]
    assert unknown[1][0] > slow[1][0]


@given(st.lists(st.tuples(st.floats(-5.0, 5.0), st.floats(0.05, 2.0)), min_size=2, max_size=2), st.floats(0.02, 0.98))
def test_the_median_of_a_mixture_halves_it(normals: list[tuple[float, float]], share: float) -> None:
    means, deviations = (np.array([[pair[place]] for pair in normals]) for place in (0, 1))
    shares = np.array([[share], [1.0 - share]])
    within = abs(means[1] - means[0]) / 2.0**BISECTIONS + 1e-9
    below, above = (
        float((shares * ndtr((median_of(means, deviations, shares) + side - means) / deviations)).sum())
        for side in (-within, within)
    )
    assert below <= 0.5 <= above


# --- through the plugin


def hiding(batches: Floats, *, device: str = "H100") -> Profile:
    """A job of 8 workers a node whose exchange never shows."""
    scales = [(2 * 2**place, 16 * 2**place, int(batch)) for place, batch in enumerate(batches)]
    return profile(rows(scales, device=device), [0.027 + 0.004 * batch for _, _, batch in scales])


def test_a_job_whose_exchange_hides_shrinks_on_with_its_batch() -> None:
    asked = rows([(32, 256, 2)], device="H100")
    answer = predicted(hiding(np.array([64, 32])), asked)
    assert answer.step_s[0] == pytest.approx(0.035, rel=0.2)
    assert "EXCHANGE_HIDDEN" in notices(answer)


def test_where_exchange_shows_it_is_not_taken_to_hide() -> None:
    assert "EXCHANGE_HIDDEN" not in notices(answered(job(), rows(full([8]))))


def test_samples_that_workers_share_count_in_fractions() -> None:
    ran = rows([(8, 64, 0), (32, 256, 0)], device="H100", batch_per_worker=0, global_batch=32)
    asked = rows([(16, 128, 0), (64, 512, 0)], device="H100", batch_per_worker=0, global_batch=32)
    answer = answered(profile(ran, [2.0, 0.55]), asked)
    assert 0.9 < answer.step_s[0] < 1.2
    assert 0.26 < answer.step_s[1] < 0.42
    # The same, as the service resolves it: a batch per worker that is rounded up.
    resolved = asked.replaced(batch_per_worker=np.ones(2, dtype=np.int64))
    assert (answered(profile(ran, [2.0, 0.55]), resolved).step_s == answer.step_s).all()


def test_replicas_that_are_split_alike_are_answered_from_their_own_runs() -> None:
    split = rows(full([1, 2]), tensor_parallel=2, zero_stage=1)
    of = profile(several(rows(full([1, 2])), split), [0.2, 0.25, 0.4, 0.5])
    asked = several(
        rows(full([4])), rows(full([4]), tensor_parallel=2, zero_stage=1), rows(full([4]), tensor_parallel=4)
    )
    answer = predicted(of, asked)
    assert list(refused(answer)) == [2]
    _, message = refused(answer)[2]
    assert "tensor_parallel 4" in message
    assert "tensor_parallel 2, zero_stage 1" in message
    plain = replace(of, observations=of.observations.take(np.array([0, 1])))
    assert answer.step_s[0] == answered(plain, rows(full([4]))).step_s[0]
    assert 1.5 < answer.step_s[1] / answer.step_s[0] < 2.5
