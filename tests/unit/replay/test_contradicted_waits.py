"""Waits between streams that are made out: what some step contradicts is in no step."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from nodewise_replay.building.waits import find_contradictions

STEP_NS = 1_000_000


def _nodes(ends_us: list[int], begins_us: list[int]) -> Any:
    """By step, work (place 1) that ends at a time, then work of another stream (place 2) that begins at one."""
    steps = np.arange(len(ends_us))
    end = steps * STEP_NS + np.array(ends_us) * 1000
    begin = steps * STEP_NS + np.array(begins_us) * 1000
    return SimpleNamespace(
        key=np.repeat([1, 2], len(steps)),
        step=np.tile(steps, 2),
        begin_ns=np.concatenate((end - 1000, begin)),
        end_ns=np.concatenate((end, begin + 1000)),
    )


def test_a_wait_that_every_step_allows_is_kept() -> None:
    nodes = _nodes([100, 200, 300], [150, 210, 301])
    awaited, waiter = np.array([0, 1, 2]), np.array([3, 4, 5])
    assert find_contradictions(nodes, awaited, waiter).tolist() == [False] * 3


def test_a_wait_that_a_step_contradicts_is_in_none() -> None:
    nodes = _nodes([100, 200, 300], [150, 120, 301])
    assert find_contradictions(nodes, np.array([0, 2]), np.array([3, 5])).tolist() == [True, True]


def test_work_of_the_step_before_is_compared_with_that_of_the_step_before() -> None:
    # In the second step the waiter waits for the first step's work.
    nodes = _nodes([900, 900, 900], [0, 50, 50])
    assert find_contradictions(nodes, np.array([0, 1]), np.array([4, 5])).tolist() == [False, False]
    nodes = _nodes([900, 1090, 900], [0, 50, 50])
    assert find_contradictions(nodes, np.array([0]), np.array([4])).tolist() == [True]


def test_without_waits_there_is_nothing_to_compare() -> None:
    none = np.zeros(0, dtype=np.int64)
    assert not len(find_contradictions(_nodes([100], [200]), none, none))
