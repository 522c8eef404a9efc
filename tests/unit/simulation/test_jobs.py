"""Curves of simulated jobs."""

from __future__ import annotations

import pytest

from nodewise.scheduling.simulation.jobs import JobCurve


def test_curves_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="devices of 1 or more"):
        JobCurve.of({(0, 0): 1.0})
    with pytest.raises(ValueError, match="above 0"):
        JobCurve.of({(0, 1): -1.0})


def test_a_curve_knows_the_nodes_of_packed_devices() -> None:
    curve = JobCurve.of({(0, 1): 1.0, (0, 2): 2.0, (0, 5): 4.0, (1, 3): 1.0}, (2, 0))
    assert curve.nodes.tolist() == [1, 1, 3, 1]


def test_rates_on_a_share_of_the_cluster() -> None:
    curve = JobCurve.of({(0, 2): 4.0, (0, 4): 6.0, (1, 1): 1.0})
    # One device of pool 0 is half of the time on two; pool 1 is there all the time: both add up to 1.5 times the time.
    assert curve.share_rate([1.0, 1.0]) == pytest.approx((2.0 + 1.0) / 1.5)
    assert curve.share_rate([3.0, 0.0]) == pytest.approx(5.0)
    assert curve.share_rate([9.0, 0.0]) == pytest.approx(6.0)
