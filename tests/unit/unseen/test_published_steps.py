"""Published steps of one worker, each model left out: errors and ranges that must not get lost."""

from __future__ import annotations

import pytest
from measurements import DATA

from score_unseen import cmdare_steps, left_out, order, scores

pytestmark = pytest.mark.data


def test_models_left_out() -> None:
    steps = cmdare_steps(DATA / "transient" / "cmdare_single_worker_step_time.csv")
    told = left_out(steps, "model")
    assert 85.0 <= scores(told)["coverage"] <= 95.0
    for device, percent in {"K80": 6.0, "P100": 8.0}.items():
        found = scores([row for row in told if row[0].device == device])
        assert found["error"] <= percent
        assert found["kendall"] >= 0.95
    expected, true, sure, right = order(steps)
    assert expected == pytest.approx(true, abs=0.06)
    assert right >= sure - 0.05


def test_devices_left_out() -> None:
    steps = cmdare_steps(DATA / "transient" / "cmdare_single_worker_step_time.csv")
    assert scores(left_out(steps, "device"))["error"] <= 12.0
