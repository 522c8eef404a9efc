"""Perfect scaling and the last known step."""

from __future__ import annotations

import pytest
from baseline_profiles import GOLDEN, Run, configurations, predicted, profile

from nodewise.plugin import SyncMode

STRONG: tuple[Run, ...] = ((1, 1, 64, 0.8), (1, 2, 32, 0.45), (1, 4, 16, 0.3))
"""One global batch of 64."""


def test_perfect_scaling_is_one_workers_step_at_the_batch() -> None:
    asked = configurations([(2, 8, 4), (4, 16, 6), (2, 8, 16), (2, 8, 1)])
    slope_s, last_slope_s = (0.70326 - 0.45532) / 4, (0.92151 - 0.70326) / 4
    expected = (0.45532, 0.45532 + 2 * slope_s, 0.92151 + 4 * last_slope_s, 0.45532 - 3 * slope_s)
    assert predicted("linear", profile(GOLDEN), asked).step_s == pytest.approx(expected)


def test_perfect_scaling_divides_a_global_batch() -> None:
    answer = predicted("linear", profile(STRONG), configurations([(2, 8, 8), (8, 64, 1)]))
    assert answer.step_s == pytest.approx([0.1, 0.0125])


def test_the_smallest_run_need_not_be_one_worker() -> None:
    runs: tuple[Run, ...] = ((2, 4, 8, 0.7), (1, 4, 8, 0.5), (2, 8, 8, 0.9))
    assert predicted("linear", profile(runs), configurations([(4, 32, 8)])).step_s == pytest.approx([0.5])


def test_a_line_ends_at_a_tenth_of_the_smallest_batch() -> None:
    runs: tuple[Run, ...] = ((1, 1, 10, 1.0), (1, 1, 20, 2.5))
    assert predicted("linear", profile(runs), configurations([(1, 2, 1)])).step_s == pytest.approx([0.1])


@pytest.mark.parametrize("mode", [SyncMode.ASYNC, SyncMode.SYNC])
def test_parameter_servers_and_a_batch_that_nobody_knows(mode: SyncMode) -> None:
    runs: tuple[Run, ...] = ((1, 1, 0, 0.5), (2, 2, 0, 0.6))
    known = profile(runs, mode, servers=[1, 1])
    answer = predicted("linear", known, configurations([(4, 4, 0)], mode, servers=[2]))
    assert answer.step_s == pytest.approx([0.5])
    refused = predicted("linear", known, configurations([(4, 4, 32)], mode, servers=[2]))
    assert not refused.answered.any()
