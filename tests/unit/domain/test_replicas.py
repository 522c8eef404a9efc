"""Replicas that several workers share: an asynchronous step is one replica's mini-batch."""

from __future__ import annotations

import pytest

from nodewise.domain.configurations import Configurations, SyncMode
from nodewise.plugin import as_ints


def asked(mode: SyncMode, *, tensor: int = 1, pipeline: int = 1) -> Configurations:
    rows = Configurations.of(3, nodes=[4, 8, 9], workers=[4, 8, 9], sync_mode=mode, batch_per_worker=16)
    return rows.replaced(tensor_parallel=as_ints([tensor] * 3), pipeline_parallel=as_ints([pipeline] * 3))


@pytest.mark.parametrize("mode", [SyncMode.ASYNC, SyncMode.HYBRID])
def test_workers_that_share_a_replica_take_one_step_together(mode: SyncMode) -> None:
    assert asked(mode).cycles_per_step().tolist() == [4.0, 8.0, 9.0]
    # Of nine workers one stands by.
    assert asked(mode, tensor=2).cycles_per_step().tolist() == [2.0, 4.0, 4.0]
    assert asked(mode, tensor=2, pipeline=2).cycles_per_step().tolist() == [1.0, 2.0, 2.0]
    assert asked(mode, tensor=2).samples_per_step().tolist() == [16.0] * 3


def test_synchronous_steps_are_of_all_replicas() -> None:
    assert asked(SyncMode.SYNC, tensor=2).cycles_per_step().tolist() == [1.0] * 3
    assert asked(SyncMode.SYNC, tensor=2).samples_per_step().tolist() == [32.0, 64.0, 64.0]
