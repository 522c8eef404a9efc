"""Whose memory is too much."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from nodewise.runtime import recycling
from nodewise.runtime.recycling import LEAST_BYTES, LEAST_LIFE_S, Recycling, limit_bytes
from nodewise.runtime.settings import Settings


@dataclass
class Grown:
    """What is looked at of a worker."""

    pid: int
    served: float
    stale: bool = False

    def served_s(self) -> float:
        return self.served


@pytest.mark.parametrize(
    ("settings", "memory", "limit"),
    [
        ({"recycle_bytes": 5}, 1 << 40, 5),
        ({"recycle_bytes": 0}, 1 << 40, 0),
        ({}, 64 << 30, 32 << 30),
        ({"workers": 4}, 64 << 30, 8 << 30),
        ({"workers": 4}, 1 << 30, LEAST_BYTES),
        ({}, None, 0),
        ({"store": "memory:"}, 64 << 30, 0),
    ],
)
def test_the_limit(settings: dict[str, Any], memory: int | None, limit: int) -> None:
    assert limit_bytes(Settings(**settings), memory) == limit


def test_the_largest_beyond_the_limit_goes_and_no_young_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recycling, "rss_bytes", lambda pid: 100 * pid)
    workers = [Grown(3, 2 * LEAST_LIFE_S), Grown(5, 2 * LEAST_LIFE_S), Grown(9, 0.5 * LEAST_LIFE_S)]
    looked: Any = workers
    Recycling(Settings(recycle_bytes=500)).mark(looked)
    assert not any(worker.stale for worker in workers)
    Recycling(Settings(recycle_bytes=0)).mark(looked)
    assert not any(worker.stale for worker in workers)
    Recycling(Settings(recycle_bytes=250)).mark(looked)
    assert [worker.pid for worker in workers if worker.stale] == [5]
