"""How sure predictions are: spreads, how errors hang together, and how far beyond the evidence a row lies."""

from __future__ import annotations

import numpy as np
import pytest
from scaling_profiles import EIGHT, TEN, Scale, answered, fitted, full, job, joined, rows, several

from nodewise.plugin import CovariantModel, Options, SyncMode

OUTSIDE = [*full([3, 4, 5, 8, 16, 64]), (3, 3, 16), (5, 10, 4), (1, 3, 8)]


def test_doubt_grows_with_the_distance_in_nodes() -> None:
    answer = answered(job(), rows(full([2, 3, 4, 6, 8, 16, 32, 64])))
    assert np.all(np.diff(answer.log_spread) > 0.0)


def test_doubt_falls_with_evidence_from_more_nodes() -> None:
    few, more = (answered(job(scales=scales), rows(full([6, 8, 16]))) for scales in (EIGHT, TEN))
    assert np.all(more.log_spread < few.log_spread)


def test_what_was_measured_is_the_least_doubtful() -> None:
    measured, outside = (answered(job(), rows(scales)) for scales in (EIGHT, OUTSIDE))
    assert measured.log_spread.max() < outside.log_spread.min()


@pytest.mark.parametrize(
    ("scale", "ratio"),
    [
        ((2, 8, 8), 1.0),
        ((2, 6, 5), 1.0),
        ((4, 8, 8), 2.0),
        ((2, 24, 8), 3.0),
        ((1, 1, 64), 4.0),
        ((1, 1, 1), 4.0),
        ((20, 80, 1), 10.0),
    ],
)
def test_extrapolation_is_the_largest_ratio_beyond_what_was_measured(scale: Scale, ratio: float) -> None:
    assert answered(job(), rows([scale])).extrapolation.tolist() == [ratio]


def test_errors_of_unmeasured_rows_hang_together_as_their_spreads_say() -> None:
    model, asked = fitted(job()), rows(OUTSIDE)
    covariance = model.log_covariance(asked, Options())
    assert isinstance(model, CovariantModel)
    np.testing.assert_array_equal(covariance, covariance.T)
    assert np.linalg.eigvalsh(covariance).min() > -1e-9 * np.trace(covariance)
    # The spread holds what no model of nodes, workers and batch tells besides: the same in every row.
    floor = model.predict(asked, Options()).log_spread ** 2 - np.diag(covariance)
    assert floor[0] > 0.0
    np.testing.assert_allclose(floor, floor[0], rtol=1e-6)
    assert np.sqrt(floor[0]) == pytest.approx(answered(job(), rows(EIGHT)).log_spread[0], rel=1e-6)


def test_the_closer_two_rows_the_more_alike_their_errors() -> None:
    covariance = fitted(job()).log_covariance(rows(full([8, 9, 16, 64])), Options())
    correlation = covariance / np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    assert np.all(np.diff(correlation[0]) < 0.0)
    assert correlation[0, 1] > 0.9


def test_covariance_of_a_job_with_many_points_is_positive_semi_definite() -> None:
    scales = [(nodes, 4 * nodes, batch) for nodes in range(1, 9) for batch in range(2, 22)]
    asked = rows([*scales[::7], *full([16, 64]), (1, 1, 1), (12, 12, 100)])
    covariance = fitted(job(scales=scales)).log_covariance(asked, Options())
    assert np.linalg.eigvalsh(covariance).min() > -1e-9 * np.trace(covariance)


def test_covariance_is_nothing_in_refused_rows_and_between_devices() -> None:
    model = fitted(joined(job(), job(device="V100")))
    asked = several(
        rows(full([3, 4])),
        rows(full([3]), device="V100"),
        rows(full([3]), device="unheard-of"),
        rows(full([3]), sync_mode=int(SyncMode.SYNC)),
    )
    covariance = model.log_covariance(asked, Options())
    related = np.zeros((5, 5), dtype=bool)
    related[:2, :2] = related[2, 2] = True
    np.testing.assert_array_equal(covariance != 0.0, related)


def test_the_noise_of_one_measurement_is_known() -> None:
    assert 0.02 < fitted(job()).measurement_log_spread < 0.1
