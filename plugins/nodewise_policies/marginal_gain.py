"""Marginal gain (Optimus): devices go, one step at a time, where they shorten the remaining time most.

Source: Peng et al., "Optimus: an efficient dynamic resource scheduler for deep learning clusters", EuroSys'18, section
4.1. With R samples left and thr(n) the throughput, the gain of going from n to m worker devices is

    (R / thr(n) - R / thr(m)) / (m - n)     seconds per device

1. Every job, by submission, gets its smallest count (with its servers) while that fits, in the pool that it runs in,
   else where it is fastest.
2. Again and again the greatest gain above 0 among the steps that fit, until there is none.

The published rule looks at m = n + 1 alone and stops at a dip of the curve; here a step may lead over it (``ascent``).
Servers come with the job in the number that it states: curves over the number of servers are not part of a question.
"""

from __future__ import annotations

from nodewise.plugin import Allocation, Budget, ClusterState, Curves
from nodewise_policies.ascent import ascend
from nodewise_policies.sharing import Ledger, per_row, remaining_s, smallest_first

__all__ = ["MarginalGain"]


class MarginalGain:
    """Greatest decrease of weighted remaining time per device.

    Parameters: ``look_ahead`` (0 = only the next count), ``count_restarts`` (1 = remaining time includes the restart
    that a change costs).
    """

    def decide(self, state: ClusterState, curves: Curves, budget: Budget) -> Allocation:
        """Start, then raise; what was granted when the time is over stands."""
        ledger = Ledger(state, curves, budget)
        started = smallest_first(ledger, "its smallest count")
        complete = started is not None
        if started is not None and ledger.has_free():
            seconds = remaining_s(state, curves, restarts=state.parameters["count_restarts"] >= 0.5)
            values = -seconds * per_row(curves, state.columns.weight)
            complete = ascend(ledger, values, started, look_ahead=state.parameters["look_ahead"] >= 0.5)
        return ledger.allocation(complete=complete)
