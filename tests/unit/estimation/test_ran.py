"""Which rows of a question a profile's observations have measured."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from estimators import asked

from nodewise.domain.configurations import Configurations, Placement, SyncMode, WorkerGroup, WorkerGroups
from nodewise.domain.profile import Observations, Profile
from nodewise.estimation.suggestion.ran_before import ran_before

STATED: dict[str, Any] = {"sync_mode": SyncMode.SYNC, "parameter_servers": 1, "batch_per_worker": 8, "device": "V100"}


def profile(observed: Configurations) -> Profile:
    return Profile(observations=Observations.of(observed, np.ones(len(observed))))


def ran(configurations: Configurations, observed: Configurations) -> list[bool]:
    found: list[bool] = ran_before(configurations, profile(observed)).tolist()
    return found


def test_rows_of_equal_content() -> None:
    rows = asked(1, 2, 4, **STATED)
    assert ran(rows, asked(4, 1, 8, **STATED)) == [True, False, True]
    assert ran(rows, asked(**STATED)) == [False, False, False]
    assert ran(rows, asked(16, **STATED)) == [False, False, False]


@pytest.mark.parametrize(
    "change",
    [
        {"sync_mode": SyncMode.ASYNC},
        {"parameter_servers": 2},
        {"batch_per_worker": 16},
        {"batch_per_worker": 0},
        {"device": "K80"},
        {"link_bytes_per_s": 1e9},
    ],
)
def test_what_differs_did_not_run(change: dict[str, Any]) -> None:
    rows = asked(2, **{"link_bytes_per_s": 1e8, **STATED})
    assert ran(rows, asked(2, **{"link_bytes_per_s": 1e8, **STATED, **change})) == [False]


@pytest.mark.parametrize("unstated", ["sync_mode", "parameter_servers", "device"])
def test_what_an_observation_does_not_state_is_as_asked(unstated: str) -> None:
    rest = {name: value for name, value in STATED.items() if name != unstated}
    assert ran(asked(2, **STATED), asked(2, **rest)) == [True]


def test_batches_compare_by_what_a_worker_has() -> None:
    rows = asked(2, 4, sync_mode=SyncMode.ALLREDUCE, batch_per_worker=8)
    whole = asked(2, 4, sync_mode=SyncMode.ALLREDUCE, global_batch=16)
    assert ran(rows, whole) == [True, False]
    assert ran(whole, rows) == [True, False]


def placed(*workers: int) -> Configurations:
    rows = Configurations.of(1, nodes=len(workers), workers=sum(workers), sync_mode=SyncMode.ALLREDUCE)
    return rows.replaced(placement=Placement.of([workers]))


def test_placements_compare_by_the_workers_of_nodes() -> None:
    packed = Configurations.of(1, nodes=2, workers=4, sync_mode=SyncMode.ALLREDUCE)
    assert ran(packed, placed(2, 2)) == [True]
    assert ran(placed(2, 2), packed) == [True]
    assert ran(packed, placed(3, 1)) == [False]
    assert ran(placed(1, 3), placed(3, 1)) == [True]


def test_workers_that_are_not_alike_are_nobodys_repeat() -> None:
    plain = asked(2, **STATED)
    slow = plain.replaced(
        worker_groups=WorkerGroups.of([(WorkerGroup("V100", 1), WorkerGroup("V100", 1, 2.0))], ("V100",))
    )
    assert ran(slow, slow) == [False]
    assert ran(plain, slow) == [False]
