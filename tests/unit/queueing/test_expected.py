"""What is expected of jobs of which only throughputs are known: by accelerator, by servers, and where neither helps."""

from __future__ import annotations

import numpy as np
import pytest
from queueing_profiles import observations, predicted, profile, rows

from nodewise.plugin import Predictions

ONE, FOUR = 21.0, 79.0
"""Steps/s of 1 and 4 workers, 6 % below linear: as much noise as contention."""


def predicted_of(device: str, *, servers: int = 1, scale: float = 1.0) -> Predictions:
    seen = observations({1: ONE * scale, 4: FOUR * scale}, device=device, parameter_servers=servers)
    return predicted(profile(measured=seen), rows([1, 4, 8, 16], device=device, parameter_servers=servers))


def test_a_faster_accelerator_meets_the_servers_limit_sooner() -> None:
    slow, fast = predicted_of("K80"), predicted_of("P100")
    assert fast.step_s[2] > 1.05 * slow.step_s[2]
    assert fast.utilisation["server"][2] > slow.utilisation["server"][2]
    # What was measured is told alike.
    np.testing.assert_allclose(fast.step_s[:2], slow.step_s[:2], rtol=0.05)


def test_accelerators_faster_than_any_that_was_learned_from_are_taken_as_the_fastest_one() -> None:
    np.testing.assert_array_equal(predicted_of("H100").step_s, predicted_of("P100").step_s)


def test_more_servers_are_expected_to_be_full_later() -> None:
    assert predicted_of("P100", servers=4).step_s[3] < 0.95 * predicted_of("P100").step_s[3]


def test_what_is_not_known_widens_the_answer() -> None:
    known, unknown, unstated = (predicted_of(device) for device in ("P100", "abacus", ""))
    assert unknown.log_spread[3] > 1.2 * known.log_spread[3]
    np.testing.assert_array_equal(unknown.step_s, unstated.step_s)


def test_the_units_of_time_do_not_matter() -> None:
    slow, fast = predicted_of("P100"), predicted_of("P100", scale=100.0)
    np.testing.assert_allclose(slow.step_s, 100.0 * fast.step_s, rtol=1e-9)
    np.testing.assert_allclose(slow.utilisation["server"], fast.utilisation["server"], rtol=1e-9)


@pytest.mark.parametrize("device", ["", "K80", "P100"])
def test_rows_that_show_a_full_server_overrule_what_is_expected(device: str) -> None:
    rates = {1: 1.0, 4: 3.1, 8: 3.3, 16: 3.3}
    answer = predicted(profile(measured=observations(rates, device=device)), rows([8, 16, 32], device=device))
    np.testing.assert_allclose([8, 16, 32] / answer.step_s, 3.3, rtol=0.08)
    assert answer.utilisation["server"][2] > 0.9
