"""The linear programme of Gavel's policies: the greatest least value of shares of time.

Source: Narayanan et al., "Heterogeneity-aware cluster scheduling policies for deep learning workloads", OSDI'20,
section 4. With X_ij the share of time of job i on pool j, s_ij the devices that it takes there, and c_ij its worth:

    max_X min_i sum_j c_ij X_ij,    sum_j X_ij <= 1,    sum_i s_ij X_ij <= devices_j,    X >= 0

A queue's quota adds sum_(i in queue) sum_j s_ij X_ij <= quota. HiGHS' interior point method solves it: it is faster
here than the simplex method, and its shares lie further inside of the optimal ones, so that what the least value does
not need is spread over more jobs.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csc_array

from nodewise.plugin import Budget, ClusterState, Floats, Ints

__all__ = ["greatest_least_value"]

_DUST: Final = 1e-9
"""Shares below this are zero: solvers stop at about this distance from a bound."""
_LONGEST_S: Final = 1e9
"""Stands for a budget without end."""


def greatest_least_value(state: ClusterState, values: Floats, devices: Ints, budget: Budget) -> Floats | None:
    """Shares (jobs, pools) that maximise the least value; None when the time ran out.

    Parameters
    ----------
    values : (jobs, pools) float
        c_ij; 0 = the job cannot run there. A job that can run nowhere gets nothing and holds back nobody.
    devices : (jobs, pools) int
        s_ij.
    """
    shares = np.zeros(values.shape)
    job, pool = np.nonzero(values > 0)
    if not len(job):
        return shares
    remaining_s = budget.remaining_s()
    if remaining_s <= 0:
        return None
    present, rank = np.unique(job, return_inverse=True)
    quotas = _quotas(state, job)
    variables, jobs, pools = len(job), len(present), len(state.pools)
    each = np.arange(variables)
    entries = [
        # min value >= z, as z - sum_j c_ij X_ij <= 0; z is the last variable. Values are brought to about 1.
        (rank, each, -values[job, pool] / values.max()),
        (np.arange(jobs), np.full(jobs, variables), np.ones(jobs)),
        (jobs + rank, each, np.ones(variables)),
        (2 * jobs + pool, each, devices[job, pool].astype(float)),
    ]
    limits = [np.zeros(jobs), np.ones(jobs), np.array([float(each.total_devices) for each in state.pools])]
    for number, (members, quota) in enumerate(quotas):
        row = np.full(len(members), 2 * jobs + pools + number)
        entries.append((row, members, devices[job[members], pool[members]].astype(float)))
        limits.append(np.array([float(quota)]))
    rows, columns, factors = (np.concatenate(parts) for parts in zip(*entries))
    bounds = np.concatenate(limits)
    matrix: Any = csc_array((factors, (rows, columns)), shape=(len(bounds), variables + 1))
    objective = np.zeros(variables + 1)
    objective[-1] = -1.0
    found = linprog(
        objective,
        A_ub=matrix,
        b_ub=bounds,
        bounds=[(0.0, None)],
        method="highs-ipm",
        options={"time_limit": min(remaining_s, _LONGEST_S)},
    )
    if found.x is None:
        return None
    due = found.x[:-1].clip(0.0, 1.0)
    shares[job, pool] = np.where(due > _DUST, due, 0.0)
    return shares


def _quotas(state: ClusterState, job: Ints) -> list[tuple[Ints, int]]:
    """Variables and quota of every queue that has both."""
    if not state.quotas:
        return []
    queues = np.array([asker.queue for asker in state.jobs], dtype=object)[job]
    found = ((np.flatnonzero(queues == queue), quota) for queue, quota in sorted(state.quotas.items()))
    return [(members, quota) for members, quota in found if len(members)]
