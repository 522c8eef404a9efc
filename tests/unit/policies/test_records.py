"""What the plugin registers, and what all its policies have in common."""

from __future__ import annotations

import pytest
from schedules import POLICIES, TABLE, decided, granted, job, state_of

import nodewise_policies.plugin
from nodewise.domain.schedule import CurrentAllocation
from nodewise.plugin import Policy, new_plugin_manager

SHARING_TIME = ["max-min-fairness", "max-min-fairness-aware", "min-makespan-aware"]
NAMES = [
    "fifo",
    "equal-share",
    "efficiency-srpt",
    "efficiency-srpt-fill",
    "efficiency-capped",
    "srpt",
    "marginal-gain",
    *SHARING_TIME,
    "las",
    "goodput",
    "packing",
    "deadline-aware",
]
GRANTING = [name for name in NAMES if name not in SHARING_TIME]


def test_the_hook_registers_the_policies() -> None:
    manager = new_plugin_manager()
    manager.register(nodewise_policies.plugin)
    [records] = manager.hook.nodewise_policies()
    assert [record.name for record in records] == NAMES
    assert all(isinstance(record.policy, Policy) for record in records)
    assert [parameter.name for parameter in POLICIES["fifo"].record.parameters] == ["backfill", "over_commit", "seed"]


@pytest.mark.parametrize("name", GRANTING)
def test_a_job_within_its_minimum_run_keeps_what_it_has(name: str) -> None:
    held = CurrentAllocation(pool=0, placement=((0, 4),), age_s=5.0)
    pinned = job("a", submitted=9.0, current=held, minimum_run_s=60.0, server_devices=1, requested_devices=3, queue="q")
    other = job("b", 10.0, requested_devices=2, queue="q")
    tables = [TABLE, TABLE]
    found = granted(name, state_of([pinned, other], 6, {"q": 6}), tables)
    assert found == [3, 2]
    over = job("a", submitted=9.0, current=held, minimum_run_s=5.0, requested_devices=6)
    assert granted(name, state_of([over, other], 6), tables) != [4, 2]


@pytest.mark.parametrize("name", GRANTING)
def test_memory_is_echoed_and_reasons_are_given(name: str) -> None:
    state = state_of([job("a", requested_devices=2)], 8)
    answer = decided(name, state, [TABLE])
    assert answer.memory == state.memory
    assert answer.complete
    assert answer.grants[0].why
