"""Shortest remaining processing time (SRPT), for jobs that may run on any of their counts.

With R samples left and thr(n) the throughput, rem(n) = R / thr(n). Again and again the job and count of least rem among
the jobs without a grant and the counts that fit (ties: earlier submission, smaller id, fewer devices, first pool),
until nothing is free or fits. For rigid jobs it is the classical rule, which minimises the mean response time of one
server.
"""

from __future__ import annotations

from nodewise.plugin import Allocation, Budget, ClusterState, Curves
from nodewise_policies.service import Service
from nodewise_policies.sharing import Ledger, comparable, per_row, remaining_s

__all__ = ["Srpt"]


class Srpt:
    """Least remaining time first, at the count where it is least. A weight divides the remaining time.

    Parameter ``count_restarts`` (1 = remaining time includes the restart that a change costs).
    """

    def decide(self, state: ClusterState, curves: Curves, budget: Budget) -> Allocation:
        """Serve by least remaining time; what was granted when the time is over stands."""
        ledger = Ledger(state, curves, budget)
        seconds = remaining_s(state, curves, restarts=state.parameters["count_restarts"] >= 0.5)
        scores = comparable(seconds / per_row(curves, state.columns.weight))
        return ledger.allocation(complete=Service(ledger, scores).serve("remaining time {:.6g} s".format))
