"""Rows that differ in workers alone are planned without sorting, to the same plan."""

from __future__ import annotations

from dataclasses import astuple

import pytest

from nodewise.domain.configurations import Configurations, SyncMode
from nodewise.plugin import constant_floats, constant_ints
from nodewise_queueing import rows
from nodewise_queueing.rows import MAX_WORKERS, Plan, clients_of

WORKERS = (1, 7, 3, 3)


def asked(mode: int = SyncMode.ASYNC, workers: tuple[int, ...] = WORKERS, **columns: float) -> Configurations:
    made = {
        name: constant_ints(len(workers), value) if isinstance(value, int) else constant_floats(len(workers), value)
        for name, value in columns.items()
    }
    return Configurations.of(len(workers), workers=workers, sync_mode=mode, device="K80").replaced(**made)


def said(plan: Plan | None) -> object:
    """A plan as plain values."""
    assert plan is not None
    groups = [(astuple(each.key), each.rows, each.workers.tolist(), each.largest) for each in plan.groups]
    return groups, plan.refusals


@pytest.mark.parametrize(
    "configurations",
    [
        asked(),
        asked(SyncMode.SYNC),
        asked(parameter_servers=3, link_bytes_per_s=1e9, batch_per_worker=64, accumulation=2),
        asked(workers=(MAX_WORKERS,)),
    ],
)
def test_rows_that_are_alike_are_planned_as_sorting_plans_them(configurations: Configurations) -> None:
    assert said(rows._alike(configurations)) == said(rows._sort(configurations, clients_of(configurations, 1)))


@pytest.mark.parametrize(
    "configurations",
    [
        asked(SyncMode.HYBRID),
        asked(SyncMode.ALLREDUCE),
        asked(SyncMode.SYNC, backup_workers=1),
        asked(tensor_parallel=2),
        asked(pipeline_parallel=2),
        asked(workers=(0, 1)),
        asked(workers=(1, MAX_WORKERS + 1)),
        asked(workers=()),
        Configurations.concatenated([asked(), asked(SyncMode.SYNC)]),
        Configurations.concatenated([asked(), asked(link_bytes_per_s=1e9)]),
    ],
)
def test_other_rows_are_left_to_sorting(configurations: Configurations) -> None:
    assert rows._alike(configurations) is None
