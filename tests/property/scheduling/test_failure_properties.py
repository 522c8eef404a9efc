"""The share of time that is progress: less with more failures, longer saves and restarts, and other intervals."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
from hypothesis import given, settings

from nodewise.domain.failures import useful_ratio

SECONDS = st.floats(0.0, 1e7)
MEANS_S = st.floats(1e-3, 1e12)


@settings(derandomize=True)
@given(mean_s=MEANS_S, factor=st.floats(1.0, 1e6), save_s=SECONDS, restart_s=SECONDS)
def test_the_useful_share_falls_with_failures_saves_and_restarts(
    mean_s: float, factor: float, save_s: float, restart_s: float
) -> None:
    share = useful_ratio(mean_s, save_s, restart_s)
    assert 0.0 < share <= 1.0
    slack = share * (1.0 + 1e-9)
    assert useful_ratio(mean_s / factor, save_s, restart_s) <= slack
    assert useful_ratio(mean_s, save_s * factor, restart_s) <= slack
    assert useful_ratio(mean_s, save_s, restart_s * factor) <= slack


@settings(derandomize=True)
@given(mean_s=MEANS_S, save_s=SECONDS, restart_s=SECONDS, interval_s=st.floats(1e-3, 1e9))
def test_no_interval_is_better_than_the_best(mean_s: float, save_s: float, restart_s: float, interval_s: float) -> None:
    at_interval = useful_ratio(mean_s, save_s, restart_s, np.array([interval_s]))
    assert (at_interval <= useful_ratio(mean_s, save_s, restart_s) * (1.0 + 1e-9)).all()
