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
from nodewise_policies.ascent import ascended
from nodewise_policies.efficiency import ratios_at
from nodewise_policies.service import Service
from nodewise_policies.sharing import (
    Candidates,
    Ledger,
    per_job_least,
    per_row,
    remaining_s,
    submission_ranks,
)

__all__ = ["CappedEfficiency", "capped_scores"]


class CappedEfficiency:
    """Efficiency within twice the fair share, ageing, restart costs, and a fill by proportional fairness.

    Parameters: ``cap_factor`` k, ``age_weight`` a, ``count_restarts`` (0 leaves restart costs out).
    """

    def decide(self, state: ClusterState, curves: Curves, budget: Budget) -> Allocation:
        """Schedule, then fill; what was granted when the time is over stands."""
        candidates = Candidates(curves)
        ledger = Ledger(state, candidates)
        ranks = submission_ranks(state)
        seconds = remaining_s(state, curves, restarts=state.parameters["count_restarts"] >= 0.5)
        scores = capped_scores(state, curves, candidates, seconds)
        service = Service(curves, candidates, ledger, ranks, scores)
        complete = service.serve(budget, "aged remaining time over efficiency {:.6g} s".format)
        if complete and ledger.has_free():
            rates = -np.log(seconds) * per_row(curves, state.columns.weight)
            complete = ascended(ledger, curves, rates, service.held, ranks, budget)
        return ledger.allocation(state.memory, complete=complete)


def capped_scores(state: ClusterState, curves: Curves, candidates: Candidates, seconds: Floats) -> Floats:
    """Aged remaining time over efficiency of every row; infinite above the cap.

    Parameters
    ----------
    seconds : (rows,) float
        Remaining time at every row, restarts included where they count.
    """
    lengths = np.diff(curves.offsets)
    waited_s = np.maximum(state.now_s - state.columns.submit_time_s, 0.0)
    ages = waited_s / per_job_least(curves, seconds)
    aged = state.columns.weight * (1 + state.parameters["age_weight"] * ages)
    claims = np.where(lengths > 0, state.columns.weight, 0.0)
    fair = sum(pool.total_devices for pool in state.pools) * claims / max(claims.sum(), np.finfo(float).tiny)
    caps = np.maximum(np.round(state.parameters["cap_factor"] * fair), 1)
    within = curves.devices <= np.repeat(caps, lengths)
    within[candidates.starts] = True
    rows = np.flatnonzero(within)
    scores = np.full(len(within), np.inf)
    scores[rows] = ratios_at(rows, curves, candidates, seconds, aged)
    return scores
