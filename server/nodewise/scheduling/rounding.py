"""Shares of time, rounded to devices that jobs get now.

A policy that answers with shares says: job i is due the share x_ij of time on pool j with the devices it requested
(Gavel's X). A job runs in one pool and at an allowed count, so what is due is rounded by the largest remainder:

1. a job's pool is the one of its greatest share; its due is (sum of its shares) x requested devices;
2. by descending due, each job gets the largest allowed count not above its due that fits;
3. by descending remainder (due minus grant), each job rises once to its next allowed count where that fits.

Ties: earlier submission, then id. Servers are taken in addition.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.schedule import ClusterState, Curves, Grant

__all__ = ["rounded"]


def rounded(shares: NDArray[np.float64], state: ClusterState, curves: Curves) -> tuple[Grant, ...]:
    """Grants for shares of shape (jobs, pools), each row adding up to at most 1. Jobs without a curve get nothing."""
    free = [pool.total_devices for pool in state.pools]
    quotas = dict(state.quotas)
    grants = [Grant(0)] * len(state.jobs)
    options: dict[int, tuple[int, list[int]]] = {}
    due: dict[int, float] = {}
    for index, job in enumerate(state.jobs):
        rows = curves.rows(index)
        pools = sorted(set(curves.pool[rows].tolist()), key=lambda pool: -shares[index, pool])
        if not pools or shares[index, pools[0]] <= 0:
            continue
        counts = curves.devices[rows][curves.pool[rows] == pools[0]].tolist()
        options[index] = (pools[0], counts)
        due[index] = float(shares[index].sum()) * job.requested_devices

    def give(index: int, devices: int) -> bool:
        job, pool = state.jobs[index], options[index][0]
        held = grants[index].devices
        more = devices - held + (0 if held else job.server_devices)
        if more > free[pool] or more > quotas.get(job.queue, more):
            return False
        free[pool] -= more
        if job.queue in quotas:
            quotas[job.queue] -= more
        grants[index] = Grant(devices, pool, f"due {due[index]:.3g} devices by its share of time")
        return True

    def order(index: int, value: float) -> tuple[float, float, str]:
        return -value, state.jobs[index].submit_time_s, state.jobs[index].job_id

    for index in sorted(options, key=lambda index: order(index, due[index])):
        for devices in reversed([count for count in options[index][1] if count <= due[index] * (1 + 1e-9)]):
            if give(index, devices):
                break
    for index in sorted(options, key=lambda index: order(index, due[index] - grants[index].devices)):
        larger = [count for count in options[index][1] if count > grants[index].devices]
        if larger and due[index] > grants[index].devices:
            give(index, larger[0])
    return tuple(grants)
