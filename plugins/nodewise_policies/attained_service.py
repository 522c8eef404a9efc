"""Least attained service (LAS), discretised: jobs that have had little go first, whatever is left of them.

Source: Gu et al., "Tiresias: a GPU cluster manager for distributed deep learning", NSDI'19, discretised 2D-LAS. A job's
attained service is devices times seconds. Queue 0 holds jobs below the first limit, queue 1 those below the second,
queue 2 the rest. By queue, then by submission, each job gets the devices it requested; one that does not fit is passed
over (backfill); what no longer fits is preempted. Sizes need not be known, so wrongly declared ones change nothing.

A job that has waited ``promotion_ratio`` times as long as it has run counts as of queue 0, so that none starves.
"""

from __future__ import annotations

import numpy as np

from nodewise.plugin import Allocation, Budget, ClusterState, Curves, JobState
from nodewise_policies.fifo import serve_rigid
from nodewise_policies.sharing import Ledger

__all__ = ["LeastAttainedService"]


class LeastAttainedService:
    """Queues by attained service.

    Parameters: ``first_limit_device_s``, ``second_limit_device_s`` (equal limits make two queues), ``promotion_ratio``
    (0 = nobody is promoted). A weight divides attained service: weight 2 may have twice as much.
    """

    def decide(self, state: ClusterState, curves: Curves, budget: Budget) -> Allocation:
        """Serve queue after queue; what was granted when the time is over stands."""
        ledger = Ledger(state, curves, budget)
        queues = np.array([_queue(state, job) for job in state.jobs], dtype=np.int64)
        ordered = state.columns.order
        order = ordered[np.argsort(queues[ordered], kind="stable")]
        return ledger.allocation(complete=serve_rigid(ledger, order, backfill=True))


def _queue(state: ClusterState, job: JobState) -> int:
    parameters = state.parameters
    service = job.attained_service_device_s / job.weight
    promotion = parameters["promotion_ratio"]
    if promotion > 0:
        # Seconds that it ran, if on the devices that it requested: more is not known.
        ran_s = job.attained_service_device_s / (job.requested_devices + job.server_devices)
        if state.now_s - job.submit_time_s - ran_s >= promotion * ran_s:
            return 0
    return sum(service >= parameters[name] for name in ("first_limit_device_s", "second_limit_device_s"))
