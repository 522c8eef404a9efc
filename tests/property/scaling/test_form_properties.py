"""The form and its residual, whatever the parameters and places."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nodewise_scaling.form import Places, log_steps, parts_of, slopes_of
from nodewise_scaling.parameters import COUNT, HYPER_MEAN, HYPER_SD, LEAST, NAMES
from nodewise_scaling.residual import RESIDUAL_SD, centres_of, coordinates, covariance

QUICK = settings(derandomize=True, deadline=None, max_examples=24)

deviations = st.lists(st.floats(-2.5, 2.5), min_size=COUNT, max_size=COUNT)
thetas = deviations.map(lambda each: np.maximum(HYPER_MEAN + np.array(each) * HYPER_SD, LEAST))
one_place = st.tuples(
    st.sampled_from([1, 2, 3, 5, 16, 200]),
    st.floats(1.0, 16.0),
    st.floats(1.0, 64.0),
    st.integers(1, 8),
)


@st.composite
def places(draw: st.DrawFn, least: int = 1) -> Places:
    """Rows of one job; its fullest node holds at least as many workers as any row's mean."""
    found = np.array(draw(st.lists(one_place, min_size=least, max_size=12)), dtype=np.float64)
    nodes, per_node, batch, accumulation = found.T
    fullest = float(np.ceil(per_node.max())) + draw(st.integers(0, 4))
    crowded = draw(st.floats(0.0, 1.0))
    return Places(
        nodes=nodes,
        sharing=per_node + 0.1 * crowded * (fullest - per_node),
        per_node=per_node,
        batch=batch,
        log_accumulation=np.log(accumulation),
    )


@QUICK
@given(theta=thetas, at=places())
def test_slopes_are_the_forms_derivatives(theta: np.ndarray, at: Places) -> None:
    form, slopes = slopes_of(theta, at)
    np.testing.assert_array_equal(form.log_step, log_steps(theta, at))
    assert slopes.shape == (COUNT, len(at))
    width = 1e-5
    for parameter in range(COUNT):
        aside = np.zeros(COUNT)
        aside[parameter] = width
        differences = (log_steps(theta + aside, at) - log_steps(theta - aside, at)) / (2.0 * width)
        np.testing.assert_allclose(slopes[parameter], differences, rtol=1e-5, atol=1e-7)


@QUICK
@given(theta=thetas, at=places())
def test_a_step_lies_between_its_longest_part_and_their_sum(theta: np.ndarray, at: Places) -> None:
    parts = parts_of(theta, at)
    step, compute = np.exp(parts.log_step), np.exp(parts.log_compute)
    longest = np.maximum(compute, np.maximum(parts.intra, parts.inter))
    assert np.all(longest <= step * (1.0 + 1e-9))
    assert np.all(step <= (compute + parts.intra + parts.inter) * (1.0 + 1e-9) + 1e-9)
    assert np.all((parts.inter == 0.0) == (at.nodes == 1.0))
    assert np.all((parts.intra == 0.0) == (at.sharing == 1.0))


@QUICK
@given(theta=thetas, at=places(), times=st.floats(1.0, 64.0))
def test_exchange_does_not_depend_on_which_batch_is_the_smallest(theta: np.ndarray, at: Places, times: float) -> None:
    """The same compute told at a batch so many times larger; its level and its share that grows change with it."""
    told = theta.copy()
    told[NAMES.index("batch_share")] += np.log(times)
    share = 1.0 / (1.0 + np.exp(-theta[NAMES.index("batch_share")]))
    told[NAMES.index("level")] += np.log1p(share * (times - 1.0))
    plain, again = parts_of(theta, at), parts_of(told, replace(at, batch=at.batch / times))
    np.testing.assert_allclose(again.log_compute, plain.log_compute, atol=1e-9)
    np.testing.assert_allclose(again.intra, plain.intra, rtol=1e-9)
    np.testing.assert_allclose(again.inter, plain.inter, rtol=1e-9)


@QUICK
@given(at=places())
def test_the_residuals_covariance_is_positive_semi_definite(at: Places) -> None:
    found = coordinates(at)
    kernel = covariance(found, found)
    np.testing.assert_allclose(kernel, kernel.T, rtol=0.0, atol=1e-12)
    # The square root of a rounded distance of 0.
    np.testing.assert_allclose(np.diag(kernel), RESIDUAL_SD**2, rtol=1e-6)
    assert np.linalg.eigvalsh(kernel).min() > -1e-7 * np.trace(kernel)
    assert np.all((kernel > 0.0) & (kernel <= RESIDUAL_SD**2))


@QUICK
@given(at=places(least=2), share=st.floats(0.0, 1.0))
def test_centres_are_distinct_rows(at: Places, share: float) -> None:
    found = coordinates(at)
    count = 1 + int(share * (len(at) - 1))
    centres = centres_of(covariance(found, found), count)
    assert len(set(centres.tolist())) == len(centres) == count
    assert np.all((centres >= 0) & (centres < len(at)))


@QUICK
@given(at=places(least=3))
def test_the_first_centres_lie_apart_where_rows_do(at: Places) -> None:
    """The second centre is the row that the first tells least of."""
    found = coordinates(at)
    first, second = centres_of(covariance(found, found), 2).tolist()
    distances = np.sqrt(((found - found[first]) ** 2).sum(axis=1))
    assert distances[second] >= distances.max() - 1e-6
