"""Other links, servers and batches than those that were measured."""

from __future__ import annotations

import numpy as np
import pytest
from queueing_profiles import observations, predicted, profile, reasons, rows, timings

from nodewise.plugin import Configurations, SyncMode, as_ints

PHASES = (0.16, 0.5, 0.16, 0.01)


def test_a_faster_link_scales_what_its_bytes_take() -> None:
    # 4 MB on 25 MB/s take 0.16 s: nothing but bytes, so that twice the rate halves the transfers.
    job = profile(timings(PHASES), parameter_bytes=4_000_000, link_bytes_per_s=25e6)
    answer = predicted(job, rows([1], link_bytes_per_s=50e6))
    assert answer.step_s[0] == pytest.approx(0.08 + 0.5 + 0.08 + 0.01)
    assert reasons(answer) == {"LINK_SCALED"}
    same = predicted(job, rows([1], link_bytes_per_s=25e6))
    assert same.step_s[0] == pytest.approx(sum(PHASES))
    assert not same.notices


def test_messages_do_not_scale_with_the_link() -> None:
    job = profile(timings((0.2, 0.5, 0.2, 0.01)), parameter_bytes=4_000_000, link_bytes_per_s=25e6)
    answer = predicted(job, rows([1], link_bytes_per_s=50e6))
    assert answer.breakdown_s["download"][0] == pytest.approx(0.04 + 0.08)


def test_unknown_bytes_scale_with_the_link_and_with_doubt() -> None:
    job = profile(timings(PHASES), link_bytes_per_s=25e6)
    answer = predicted(job, rows([1, 8], link_bytes_per_s=12.5e6))
    assert answer.step_s[0] == pytest.approx(0.32 + 0.5 + 0.32 + 0.01)
    known = predicted(profile(timings(PHASES)), rows([1]))
    assert answer.log_spread[0] > known.log_spread[0]


@pytest.mark.parametrize("mode", [SyncMode.ASYNC, SyncMode.SYNC])
def test_two_servers_help_by_less_than_two(mode: SyncMode) -> None:
    job = profile(timings((0.3, 0.1, 0.3, 0.0)))
    one, two = predicted(job, rows([30], mode)), predicted(job, rows([30], mode, parameter_servers=2))
    assert 1.1 < one.step_s[0] / two.step_s[0] < 1.6
    assert two.log_spread[0] > one.log_spread[0]
    assert "SERVERS_SCALED" in reasons(two)


def test_no_server_means_one() -> None:
    job = profile(timings(PHASES, parameter_servers=0))
    np.testing.assert_array_equal(
        predicted(job, rows([3], parameter_servers=0)).step_s, predicted(job, rows([3], parameter_servers=1)).step_s
    )
    assert not predicted(job, rows([3], parameter_servers=1)).notices


def test_compute_follows_the_samples_per_exchange() -> None:
    job = profile(timings(PHASES, batch_per_worker=32))
    answer = predicted(job, rows([1], batch_per_worker=64, accumulation=2))
    assert answer.breakdown_s["compute"][0] == pytest.approx(2.0)
    assert reasons(answer) == {"COMPUTE_SCALED"}
    assert predicted(job, rows([1])).step_s[0] == pytest.approx(sum(PHASES))


def test_the_same_setting_changes_nothing() -> None:
    setting = {"parameter_servers": 2, "link_bytes_per_s": 1e9, "batch_per_worker": 32}
    answer = predicted(profile(timings(PHASES, **setting)), rows([1, 6], **setting))
    plain = predicted(profile(timings(PHASES)), rows([1, 6]))
    np.testing.assert_array_equal(answer.step_s, plain.step_s)
    np.testing.assert_array_equal(answer.log_spread, plain.log_spread)
    assert not answer.notices


def test_rows_of_many_settings_are_answered_as_if_alone() -> None:
    job = profile(
        timings(PHASES, cv=0.2), observations({1: 1.2, 8: 3.0}), parameter_bytes=4_000_000, link_bytes_per_s=25e6
    )
    parts = [
        rows([1, 4], SyncMode.ASYNC),
        rows([2, 90], SyncMode.SYNC),
        rows([3], SyncMode.ALLREDUCE),
        rows([4], SyncMode.ASYNC, parameter_servers=3),
        rows([5], SyncMode.SYNC, link_bytes_per_s=5e7),
    ]
    together = predicted(job, Configurations.concatenated(parts))
    at = 0
    for part in parts:
        alone = predicted(job, part)
        here = slice(at, at + len(part))
        np.testing.assert_array_equal(together.step_s[here], alone.step_s)
        np.testing.assert_array_equal(together.log_spread[here], alone.log_spread)
        np.testing.assert_array_equal(together.status[here], alone.status)
        at += len(part)
    assert together.refusals[0].rows == (4,)
    assert together.bottleneck_index[4] == -1


def test_the_order_of_rows_does_not_matter() -> None:
    job = profile(timings(PHASES))
    asked = Configurations.concatenated([rows([1, 2, 3], SyncMode.SYNC), rows([4, 5], parameter_servers=2)])
    order = as_ints([4, 2, 0, 3, 1])
    np.testing.assert_array_equal(predicted(job, asked.take(order)).step_s, predicted(job, asked).step_s[order])
