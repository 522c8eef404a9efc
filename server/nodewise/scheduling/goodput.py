"""Goodput: throughput times the share of time that is progress where devices fail at a constant rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from nodewise.domain.columns import Floats, as_floats
from nodewise.domain.configurations import SyncMode
from nodewise.domain.failures import RESTART_S, useful_ratio
from nodewise.domain.schedule import ClusterState, NodePool
from nodewise.scheduling.curves import JobCurves

__all__ = ["count_failures", "failure_columns"]

HOUR_S: Final = 3600.0


def count_failures(curves: JobCurves, state: ClusterState) -> JobCurves:
    """The curves as goodput in pools that state failures.

    A failure of any device of a job, servers included, stops the job, and it restarts from its last checkpoint.
    Asynchronous training continues without the node that failed until that is replaced. Failures at constant rates add
    up. The share is that of a long run: it does not fall with the work that is left, so that shares of time stay valid.
    """
    rows = curves.curves
    job = np.repeat(np.arange(len(state.jobs)), np.diff(rows.offsets))
    device_s, restart_s = (column[rows.pool] for column in failure_columns(state.pools))
    stated_s = as_floats([np.nan if each.checkpoint_s is None else each.checkpoint_s for each in state.jobs])[job]
    save_s = np.where(np.isnan(stated_s), curves.save_s, stated_s)
    useful = np.where(
        np.equal(rows.configurations.sync_mode, SyncMode.ASYNC),
        device_s / (device_s + restart_s * rows.devices / rows.nodes),
        useful_ratio(device_s / (rows.devices + state.columns.server_devices[job]), save_s, restart_s),
    )
    goodput = as_floats(rows.samples_per_s * np.where(np.isnan(device_s), 1.0, useful))
    return replace(curves, curves=replace(rows, samples_per_s=goodput), throughput=rows.samples_per_s)


def failure_columns(pools: Sequence[NodePool]) -> tuple[Floats, Floats]:
    """By pool, mean seconds of one device between failures (NaN = not stated), and seconds until a job runs again."""
    hours = [np.nan if pool.device_hours is None else pool.device_hours for pool in pools]
    restarts = [RESTART_S if pool.restart_s is None else pool.restart_s for pool in pools]
    return HOUR_S * as_floats(hours), as_floats(restarts)
