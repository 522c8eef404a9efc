"""What holds of the scores whatever is predicted and measured."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nodewise.evaluation import segments
from nodewise.evaluation.metrics import Outcomes, metrics_by

QUICK = settings(derandomize=True, deadline=None, max_examples=60)
ROUNDING = 1e-9


@st.composite
def outcomes(draw: st.DrawFn) -> Outcomes:
    rows = draw(st.integers(1, 25))

    def column(values: st.SearchStrategy[float]) -> np.ndarray:
        return np.array(draw(st.lists(values, min_size=rows, max_size=rows)))

    rate = st.sampled_from([0.1, 0.25, 1.0, 2.0, 3.0]) | st.floats(1e-3, 1e3)
    predicted = column(rate | st.just(0.0))
    factor = column(st.floats(1.0, 10.0))
    return Outcomes(
        answered=predicted > 0,
        predicted_steps_per_s=predicted,
        lower_steps_per_s=predicted / factor,
        upper_steps_per_s=predicted * factor,
        measured_steps_per_s=column(rate | st.just(0.0)),
        job=column(st.integers(0, 3)).astype(np.int64),
        global_batch=column(st.sampled_from([0, 8, 16])).astype(np.int64),
        samples_per_step=column(st.sampled_from([4, 8])).astype(np.int64),
        configuration=column(st.integers(0, 4)).astype(np.int64),
    )


def reordered(found: Outcomes, order: np.ndarray) -> Outcomes:
    return Outcomes(**{name: column[order] for name, column in asdict(found).items()})


@QUICK
@given(found=outcomes(), data=st.data())
def test_order_of_rows_and_numbers_of_jobs_change_no_bit(found: Outcomes, data: st.DataObject) -> None:
    order = np.array(data.draw(st.permutations(range(len(found)))), dtype=np.int64)
    numbers = np.array(data.draw(st.permutations(range(4))), dtype=np.int64)
    other = reordered(found, order)
    other = Outcomes(**{**asdict(other), "job": numbers[other.job]})
    zeros = np.zeros(len(found), dtype=np.int64)
    assert metrics_by(found, zeros, 1) == metrics_by(other, zeros, 1)


@QUICK
@given(found=outcomes())
def test_parts_of_one_pass_are_what_each_part_alone_gives(found: Outcomes) -> None:
    part = found.job
    for number, metrics in enumerate(metrics_by(found, part, 4)):
        alone = reordered(found, np.flatnonzero(part == number))
        assert [metrics] == metrics_by(alone, np.zeros(len(alone), dtype=np.int64), 1)


@QUICK
@given(found=outcomes())
def test_scores_lie_where_scores_can(found: Outcomes) -> None:
    (metrics,) = metrics_by(found, np.zeros(len(found), dtype=np.int64), 1)
    assert metrics.rows_count + metrics.refused_count <= len(found)
    if metrics.rows_count == 0:
        assert metrics.mape is metrics.bias is metrics.coverage90 is None
        return
    assert metrics.mape is not None
    assert metrics.median_ape is not None
    assert metrics.p90_ape is not None
    assert metrics.max_ape is not None
    assert 0 <= metrics.median_ape <= metrics.p90_ape * (1 + ROUNDING) <= metrics.max_ape * (1 + 2 * ROUNDING)
    assert metrics.mape <= metrics.max_ape * (1 + ROUNDING)
    assert metrics.bias is not None
    assert metrics.mean_abs_ln is not None
    assert abs(metrics.bias) <= metrics.mean_abs_ln * (1 + ROUNDING) + ROUNDING
    assert metrics.kendall is None or -1 - ROUNDING <= metrics.kendall <= 1 + ROUNDING
    assert metrics.coverage90 is not None
    assert metrics.worst_job_coverage90 is not None
    assert 0 <= metrics.worst_job_coverage90 <= metrics.coverage90 + ROUNDING <= 1 + 2 * ROUNDING
    assert metrics.width90 is not None
    assert metrics.interval_score90 is not None
    assert metrics.interval_score90 >= metrics.width90 * (1 - ROUNDING) - ROUNDING
    if metrics.groups_count:
        assert metrics.regret is not None
        assert metrics.hit is not None
        assert metrics.within5 is not None
        assert -ROUNDING <= metrics.regret < 1
        assert 0 <= metrics.hit <= 1
        assert 0 <= metrics.within5 <= 1
    else:
        assert metrics.regret is metrics.hit is metrics.within5 is None


@QUICK
@given(found=outcomes())
def test_knowing_the_truth_scores_best(found: Outcomes) -> None:
    known = found.measured_steps_per_s
    truth = Outcomes(
        **{
            **asdict(found),
            "answered": known > 0,
            "predicted_steps_per_s": known,
            "lower_steps_per_s": known,
            "upper_steps_per_s": known,
        }
    )
    (metrics,) = metrics_by(truth, np.zeros(len(found), dtype=np.int64), 1)
    if metrics.rows_count:
        assert metrics.mape == metrics.bias == metrics.macro_abs_ln == metrics.interval_score90 == 0.0
        assert metrics.coverage90 == metrics.worst_job_coverage90 == 1.0
        assert metrics.kendall is None or abs(metrics.kendall - 1.0) <= ROUNDING
    if metrics.groups_count:
        assert (metrics.regret, metrics.hit, metrics.within5) == (0.0, 1.0, 1.0)


@QUICK
@given(
    values=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30),
    share=st.floats(0.0, 1.0),
    data=st.data(),
)
def test_segments_are_numpys_means_and_quantiles(values: list[float], share: float, data: st.DataObject) -> None:
    segment = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(values), max_size=len(values))))
    column = np.array(values)
    found = np.stack((segments.means(column, segment, 4), segments.quantiles(column, segment, 4, share)))
    for number in range(4):
        own = column[segment == number]
        if len(own):
            np.testing.assert_allclose(found[:, number], [own.mean(), np.quantile(own, share)], rtol=1e-9, atol=1e-6)
        else:
            assert np.isnan(found[:, number]).all()
