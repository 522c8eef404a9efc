"""The efficiency rule, capped by the fair share, then filled: the policy that Nodewise ships as its default.

Least remaining time over efficiency has the best median response time of the rules known, but gives single jobs the
devices that many others wait for, and lets long jobs wait for ever. Here, with G devices, J jobs that have a curve,
w the weights and k the cap factor:

1. Schedule: as the efficiency rule (``efficiency``), but a job gets at most max(1, round(k G w_j / sum w)) devices, or
   its smallest count where that is more. A job's ratio is divided by 1 + a x (time since its submission) / (least
   remaining time), so that every job is served at last, and a long one does not wait much longer than it runs.
2. Fill: again and again the step to a larger count at which ln(rate) rises most per device, times the weight, until
   nothing rises (proportional fairness of rates). A step may cross a dip (``ascent``).

Remaining time includes the restart that another count than the present one costs. So a job is resized only where that
pays within its own remaining time: not for one per cent, and not shortly before its end.
"""

from __future__ import annotations

import numpy as np

from nodewise.plugin import Allocation, Budget, ClusterState, Curves, Floats
from nodewise_policies.ascent import ascend
from nodewise_policies.efficiency import ratios_at
from nodewise_policies.service import Service
from nodewise_policies.sharing import CurvePosition, Ledger, fair_shares, per_job_least, per_row, remaining_s

__all__ = ["CappedEfficiency", "capped_scores", "fill"]


class CappedEfficiency:
    """Efficiency within twice the fair share, ageing, restart costs, and a fill by proportional fairness.

    Parameters: ``cap_factor`` k, ``age_weight`` a, ``count_restarts`` (0 leaves restart costs out).
    """

    def decide(self, state: ClusterState, curves: Curves, budget: Budget) -> Allocation:
        """Schedule, then fill; what was granted when the time is over stands."""
        ledger = Ledger(state, curves, budget)
        seconds = remaining_s(state, curves, restarts=state.parameters["count_restarts"] >= 0.5)
        service = Service(ledger, capped_scores(ledger, seconds))
        complete = service.serve("first by remaining time over efficiency, less for time waited: {:.4g} s".format)
        return ledger.allocation(complete=complete and fill(ledger, seconds, service.held))


def fill(ledger: Ledger, seconds: Floats, positions: dict[int, CurvePosition]) -> bool:
    """Give out what is free by proportional fairness of rates; False when the time ran out."""
    if not ledger.has_free():
        return True
    rates = -np.log(seconds) * per_row(ledger.curves, ledger.state.columns.weight)
    return ascend(ledger, rates, positions)


def capped_scores(ledger: Ledger, seconds: Floats) -> Floats:
    """Aged remaining time over efficiency of every row; infinite above the cap.

    Parameters
    ----------
    seconds : (rows,) float
        Remaining time at every row, restarts included where they count.
    """
    state, curves, candidates = ledger.state, ledger.curves, ledger.candidates
    waited_s = np.maximum(state.now_s - state.columns.submit_time_s, 0.0)
    ages = waited_s / per_job_least(curves, seconds)
    aged = state.columns.weight * (1 + state.parameters["age_weight"] * ages)
    caps = np.maximum(np.round(state.parameters["cap_factor"] * fair_shares(state, curves)), 1)
    within = curves.devices <= per_row(curves, caps)
    within[candidates.starts] = True
    rows = np.flatnonzero(within)
    scores = np.full(len(within), np.inf)
    scores[rows] = ratios_at(rows, curves, candidates, seconds, aged)
    return scores
