"""First in, first out: rigid requests by submission.

Source: the common baseline of Gavel (OSDI'20), Tiresias (NSDI'19) and others. Strict: the first job that does not fit
blocks all that come after it. With ``backfill`` those after it that fit go ahead.
"""

from __future__ import annotations

from nodewise.plugin import Allocation, Budget, ClusterState, Curves
from nodewise_policies.sharing import Candidates, Ledger, out_of_time, submission_order

__all__ = ["Fifo"]


class Fifo:
    """Gives each job, by submission, the devices it requested, or the next larger allowed count.

    - A job goes to the pool it runs in while it fits there, else to the pool where its curve is highest (ties: first
      pool).
    - All allocations are cleared each round, so a job that was let past an earlier one gives way once that one fits.
    - A job whose request no pool can ever hold, or without a curve, gets nothing and blocks nobody.
    - A full quota holds back the later jobs of its own queue, not those of others.
    - Weights are not used: the order of submission is the whole rule.
    """

    def decide(self, state: ClusterState, curves: Curves, budget: Budget) -> Allocation:
        """Go through the jobs by submission until one blocks (strict) or all were looked at (``backfill`` 1)."""
        backfill = state.parameters.get("backfill", 0.0) >= 0.5
        candidates = Candidates(curves)
        ledger = Ledger(state, candidates)
        held_back: set[str] = set()
        for turn, job in enumerate(submission_order(state.jobs)):
            if out_of_time(budget, turn):
                return ledger.allocation(state.memory, complete=False)
            if job in ledger.kept:
                continue
            wanted = _wanted_rows(state, candidates, job)
            asker = state.jobs[job]
            if not wanted or asker.queue in held_back:
                continue
            fitting = [row for row, pool in wanted if candidates.devices(row) <= ledger.room(job, pool)]
            if fitting:
                row = _preferred(state, curves, job, fitting)
                ledger.take(job, int(curves.pool[row]), candidates.devices(row), f"requested {asker.requested_devices}")
            elif backfill:
                continue
            elif any(candidates.devices(row) + asker.server_devices <= ledger.free[pool] for row, pool in wanted):
                held_back.add(asker.queue)
            else:
                break
        return ledger.allocation(state.memory)


def _wanted_rows(state: ClusterState, candidates: Candidates, job: int) -> list[tuple[int, int]]:
    """Per pool the row of the requested devices or the next larger count, with its pool."""
    requested = state.jobs[job].requested_devices
    found = ((candidates.at_least(segment, requested), segment) for segment in candidates.segments[job])
    return [(row, segment.pool) for row, segment in found if row < segment.stop]


def _preferred(state: ClusterState, curves: Curves, job: int, rows: list[int]) -> int:
    """The row in the pool that the job runs in, else the fastest; rows come by pool."""
    current = state.jobs[job].current
    here = [row for row in rows if current is not None and curves.pool[row] == current.pool]
    return here[0] if here else max(rows, key=lambda row: curves.samples_per_s[row])
