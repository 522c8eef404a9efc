"""The linear programme of Gavel's policies: the greatest least value of shares of time.

Source: Narayanan et al., "Heterogeneity-aware cluster scheduling policies for deep learning workloads", OSDI'20,
section 4. With X_ij the share of time of job i on pool j, s_ij the devices that it takes there, and c_ij its worth:

    max_X min_i sum_j c_ij X_ij,    sum_j X_ij <= 1,    sum_i s_ij X_ij <= devices_j,    X >= 0

A queue's quota adds sum_(i in queue) sum_j s_ij X_ij <= quota. Jobs that are alike in all of this are one in the
programme, with the sum of their shares, and get equal ones: what is optimal for each can be averaged. HiGHS' interior
point method solves it: it is faster here than the simplex method, and its shares lie further inside of the optimal
ones, so that what the least value does not need is spread over more jobs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from nodewise.plugin import Budget, ClusterState, Floats, Ints

__all__ = ["greatest_least_value"]

_DUST: Final = 1e-9
"""Shares below this are zero: solvers stop at about this distance from a bound."""
_LONGEST_S: Final = 1e9
"""Used where the budget has no end."""


def greatest_least_value(state: ClusterState, values: Floats, devices: Ints, budget: Budget) -> Floats | None:
    """Shares (jobs, pools) that maximise the least value; None when the time ran out.

    Parameters
    ----------
    values : (jobs, pools) float
        c_ij; 0 = the job cannot run there. A job that can run nowhere gets nothing and blocks no other job.
    devices : (jobs, pools) int
        s_ij.
    """
    runs = np.flatnonzero((values > 0).any(axis=1))
    shares = np.zeros(values.shape)
    if not len(runs):
        return shares
    queues = {queue: place for place, queue in enumerate(sorted(state.quotas))}
    member = np.array([queues.get(job.queue, -1) for job in state.jobs], dtype=np.int64)
    traits = np.column_stack((values / values.max(), devices, member))[runs]
    _, first, kind, alike = np.unique(traits, axis=0, return_index=True, return_inverse=True, return_counts=True)
    kinds = _Kinds(
        values=traits[first, : len(state.pools)], devices=devices[runs[first]], jobs=alike, queue=member[runs[first]]
    )
    quotas = [float(state.quotas[queue]) for queue in queues]
    solution = _solve(kinds, [float(pool.total_devices) for pool in state.pools], quotas, budget)
    if solution is None:
        return None
    shares[runs] = solution[kind.reshape(-1)]
    return shares


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Kinds:
    """Kinds of jobs: ``values`` (about 1) and ``devices`` by pool, how many jobs, and their quota's place or -1."""

    values: Floats
    devices: Ints
    jobs: Ints
    queue: Ints


def _solve(kinds: _Kinds, sizes: list[float], quotas: list[float], budget: Budget) -> Floats | None:
    """Shares (kinds, pools) of one job of each kind; None when the time ran out."""
    # A server starts a quarter of a second sooner without SciPy's optimizers; most calls name another policy.
    from scipy.optimize import linprog  # noqa: PLC0415
    from scipy.sparse import csc_array  # noqa: PLC0415

    remaining_s = budget.remaining_s()
    if remaining_s <= 0:
        return None
    kind, pool = np.nonzero(kinds.values > 0)
    count, variables = len(kinds.jobs), len(kind)
    each, all_kinds, device_counts = np.arange(variables), np.arange(count), kinds.devices[kind, pool].astype(float)
    limited = np.flatnonzero(kinds.queue[kind] >= 0)
    entries = [
        # A variable is the sum of alike jobs' shares. Least value z, the last variable: jobs z - sum_j c_ij X_ij <= 0.
        (kind, each, -kinds.values[kind, pool]),
        (all_kinds, np.full(count, variables), kinds.jobs.astype(float)),
        (count + kind, each, np.ones(variables)),
        (2 * count + pool, each, device_counts),
        (2 * count + len(sizes) + kinds.queue[kind[limited]], limited, device_counts[limited]),
    ]
    rows, columns, factors = (np.concatenate(parts) for parts in zip(*entries))
    bounds = np.concatenate((np.zeros(count), kinds.jobs, sizes, quotas))
    matrix: Any = csc_array((factors, (rows, columns)), shape=(len(bounds), variables + 1))
    objective = np.zeros(variables + 1)
    objective[-1] = -1.0
    result = linprog(
        objective,
        A_ub=matrix,
        b_ub=bounds,
        bounds=[(0.0, None)],
        method="highs-ipm",
        options={"time_limit": min(remaining_s, _LONGEST_S)},
    )
    if result.x is None:
        return None
    due = result.x[:-1] / kinds.jobs[kind]
    shares = np.zeros(kinds.values.shape)
    shares[kind, pool] = np.where(due > _DUST, np.minimum(due, 1.0), 0.0)
    return shares
