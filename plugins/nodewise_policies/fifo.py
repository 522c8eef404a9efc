"""First in, first out: rigid requests by submission.

Source: the common baseline of Gavel (OSDI'20), Tiresias (NSDI'19) and others. Strict: the first job that does not fit
blocks all that come after it. With ``backfill`` those after it that fit go ahead.
"""

from __future__ import annotations

import numpy as np

from nodewise.plugin import Allocation, Budget, ClusterState, Curves, Ints, JobState, Requests, Shares
from nodewise_policies.over_committed import over_committed
from nodewise_policies.sharing import NEVER, Ledger

__all__ = ["Fifo", "serve_rigid"]


class Fifo:
    """Gives each job, by submission, the devices it requested, or the next larger allowed count.

    - A job goes to the pool it runs in while it fits there, else to the one where it is fastest (ties: first pool).
    - All allocations are cleared each round, so a job that was let past an earlier one gives way once that one fits.
    - A job whose request no pool can ever hold, or without a curve, gets nothing and blocks no other job.
    - A full quota holds back the later jobs of its own queue, not those of others.
    - Weights are not used: the order of submission is the whole rule.
    - With ``over_commit`` it does what Gavel's program of that name does (``over_committed``), by shares of time.
    """

    def decide(self, state: ClusterState, curves: Curves, budget: Budget) -> Allocation | Shares:
        """Go through the jobs by submission until one blocks (strict) or all were looked at (``backfill`` 1)."""
        if state.parameters["over_commit"] >= 0.5:
            return over_committed(state, curves)
        ledger = Ledger(state, curves, budget)
        backfill = state.parameters["backfill"] >= 0.5
        return ledger.allocation(complete=serve_rigid(ledger, state.columns.order, backfill=backfill))


def serve_rigid(ledger: Ledger, order: Ints, *, backfill: bool) -> bool:
    """Give the jobs, in this order, their requests, where they run or are fastest; False when the time ran out.

    Parameters
    ----------
    backfill : bool
        Skip a job that does not fit, where it would block all after it.
    """
    state = ledger.state
    at = ledger.curves.at_requests(state)
    needs = np.where(at.devices > 0, at.devices, NEVER).min(axis=1, initial=NEVER)
    order = order[(needs[order] < NEVER) & ~np.isin(order, list(ledger.kept))]
    if not len(order):
        return True
    ahead = order[: sum(ledger.free)]
    pools = _preferred_pool(state, at)[ahead]
    fit = ledger.fitting_together(pools, at.devices[ahead, pools])
    demands = zip(ahead[:fit].tolist(), pools.tolist(), at.workers[ahead, pools].tolist())
    for turn, (job, pool, count) in enumerate(demands):
        if ledger.out_of_time(turn):
            return False
        ledger.take(job, pool, count, _why(state.jobs[job]))
    held_back: set[str] = set()
    rest = order[fit:]
    for turn, job in enumerate(ledger.in_turn(rest, needs) if backfill else map(int, rest), start=fit):
        if ledger.out_of_time(turn):
            return False
        asker = state.jobs[job]
        if asker.queue in held_back:
            continue
        workers = at.workers[job].tolist()
        requested_pools = [pool for pool, count in enumerate(workers) if count]
        fitting = [pool for pool in requested_pools if workers[pool] <= ledger.available_devices(job, pool)]
        if fitting:
            here = [pool for pool in fitting if asker.current is not None and pool == asker.current.pool]
            pool = here[0] if here else max(fitting, key=at.samples_per_s[job].__getitem__)
            ledger.take(job, pool, workers[pool], _why(asker))
        elif backfill:
            continue
        elif any(at.devices[job, pool] <= ledger.free[pool] for pool in requested_pools):
            held_back.add(asker.queue)
        else:
            break
    return True


def _preferred_pool(state: ClusterState, at: Requests) -> Ints:
    """Per job the pool that it runs in, else the one where it is fastest."""
    fastest = np.where(at.workers > 0, at.samples_per_s, -1.0).argmax(axis=1)
    pool = state.columns.pool
    stays = (pool >= 0) & (at.workers[np.arange(len(pool)), pool] > 0)
    return np.where(stays, pool, fastest)


def _why(job: JobState) -> str:
    return f"requested {job.requested_devices}"
