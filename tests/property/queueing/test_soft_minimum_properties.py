"""The curve of asynchronous jobs known by throughputs alone lies where queueing theory lets it lie."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nodewise.plugin import SyncMode
from nodewise_laws import asymptotic_bounds
from nodewise_queueing.hypotheses import Hypotheses, shape_of

WORKERS = np.array([1, 2, 3, 5, 8, 64, 1000])

shares = st.floats(1e-4, 0.999)
powers = st.floats(1.0, 20.0)
factors = st.floats(0.1, 10.0)


def steps(share: float, power: float, demand_factor: float = 1.0, compute_factor: float = 1.0) -> np.ndarray:
    one = Hypotheses(
        mode=SyncMode.ASYNC,
        share=np.array([share]),
        sharpness=np.array([power]),
        variation=np.zeros(1),
        log_prior=np.zeros(1),
    )
    return shape_of(one, WORKERS, demand_factor=demand_factor, compute_factor=compute_factor).step[0]


@given(share=shares, power=powers, demand_factor=factors, compute_factor=factors)
def test_it_lies_between_the_asymptotic_bounds_and_is_exact_for_one_worker(
    share: float, power: float, demand_factor: float, compute_factor: float
) -> None:
    demand, think = share * demand_factor, (1.0 - share) * compute_factor
    step, bounds = steps(share, power, demand_factor, compute_factor), asymptotic_bounds([demand], think, WORKERS)
    np.testing.assert_allclose(step[0], demand + think, rtol=1e-12)
    assert np.all(WORKERS / step <= bounds.upper_per_s * (1.0 + 1e-9))
    assert np.all(WORKERS / step >= bounds.lower_per_s * (1.0 - 1e-9))
    assert np.all(np.diff(step) >= 0.0)
    assert np.all(np.diff(WORKERS / step) >= -1e-9 * (WORKERS / step)[1:])


@given(share=shares, power=powers, sharper=st.floats(1.0, 3.0))
def test_a_sharper_knee_makes_nobody_slower(share: float, power: float, sharper: float) -> None:
    assert np.all(steps(share, power * sharper) <= steps(share, power) * (1.0 + 1e-9))


@given(share=shares)
def test_its_softest_form_is_the_pessimistic_bound(share: float) -> None:
    np.testing.assert_allclose(steps(share, 1.0), 1.0 + (WORKERS - 1) * share, rtol=1e-12)
