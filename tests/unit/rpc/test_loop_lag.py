"""How late the loop is, as calls see it that come while it is held, and as the log tells it."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from nodewise.rpc.loop_lag import EVERY_S, LATE_S, LoopLag


async def test_a_loop_that_is_held_is_late_at_once_and_for_a_while_after(logs: list[Any]) -> None:
    lag = LoopLag()
    assert lag.now_s == 0.0
    lag.start()
    time.sleep(LATE_S + 0.1)  # noqa: ASYNC251  # holds the loop on purpose
    assert lag.now_s > LATE_S, "it is seen while the loop is held"
    await asyncio.sleep(EVERY_S)  # its timer was due before
    assert {each["event"] for each in logs} == {"loop_late"}
    assert logs[0]["lag_ms"] > LATE_S * 1e3
    lag.stop()
    assert lag.now_s == 0.0
    assert lag.worst_s > LATE_S


async def test_it_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    lag, now_s = LoopLag(), 1_000.0
    monkeypatch.setattr("nodewise.rpc.loop_lag.time.monotonic", lambda: now_s)
    lag.start()
    now_s += 0.25
    lag._look()
    assert lag.now_s == pytest.approx(0.2)
    for _ in range(1_200):
        now_s += 0.05
        lag._look()
    assert lag.now_s == pytest.approx(0.0, abs=1e-9)
    assert lag.worst_s < 0.01
    lag.stop()
