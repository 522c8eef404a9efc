"""Goodput (Pollux): devices go where they raise useful progress most, all jobs' speed-ups weighed together.

Source: Qiao et al., "Pollux: co-adaptive cluster scheduling for goodput-optimized deep learning", OSDI'21. Goodput is
throughput times statistical efficiency. With the gradient noise scale phi and the initial batch m0, both in samples, a
sample in a global batch of m is worth

    efficiency(m) = (phi + m0) / (phi + m)

of one in the initial batch. A job's speed-up is its goodput over that on its fair share of the devices; the rule
maximises the power mean of the speed-ups with exponent -1, that is, it minimises

    sum_j w_j goodput_j(fair share) / (goodput_j(n_j) keep_j(n_j)),  keep = max(age - restarts x cost, 0) / (age + cost)

where n_j is another count than the present one, else 1; age counts from submission, so that jobs that were restarted
often are left alone. The sum is separable: the greedy ascent over the concave hulls (``ascent``) minimises it exactly
where inverse goodputs are convex, which they are where goodput is concave. (The publication searches with a genetic
algorithm, because it also chooses nodes; here the core places jobs.)

What it needs: ``gradient_noise_scale_samples`` and ``initial_batch_samples`` of a job, and the batch of its curve.
Where one is missing, the job is taken by its throughput alone, efficiency 1, which is right at a fixed global batch;
the grant says so. The batch itself is not chosen here: it is the one that the job states.
"""

from __future__ import annotations

import numpy as np

from nodewise.plugin import Allocation, Budget, ClusterState, Curves, Floats, Ints
from nodewise_policies.ascent import ascend
from nodewise_policies.sharing import Ledger, elsewhere, fair_shares, per_job_least, per_row, smallest_first

__all__ = ["Goodput", "goodputs"]

_LEAST_KEEP = 1e-3
"""Of the goodput that is left to a change right after a restart: not 0, which no devices could outweigh."""


class Goodput:
    """Greatest power mean of speed-ups in goodput. A weight multiplies a job's claim."""

    def decide(self, state: ClusterState, curves: Curves, budget: Budget) -> Allocation:
        """Start, then raise; what was granted when the time is over stands."""
        ledger = Ledger(state, curves, budget)
        started = smallest_first(ledger, "its smallest count")
        if started is None:
            return ledger.allocation(complete=False)
        rates, has_goodput = goodputs(state, curves)
        complete = True
        if ledger.has_free():
            lengths = np.diff(curves.offsets)
            fair = per_row(curves, state.columns.weight * _at_fair_share(state, curves, rates, lengths))
            inverse = fair / (rates * _kept_part(state, curves, lengths))
            complete = ascend(ledger, -inverse, started)
        for job in started:
            what = "goodput" if has_goodput[job] else "throughput alone, as gradient noise scale or batch is not known"
            ledger.reword(job, f"speed-ups in {what}")
        return ledger.allocation(complete=complete)


def goodputs(state: ClusterState, curves: Curves) -> tuple[Floats, list[bool]]:
    """Useful samples/s of every row, and per job whether its statistical efficiency is known."""
    if not any(job.initial_batch_samples for job in state.jobs):
        return curves.samples_per_s, [False] * len(state.jobs)
    # What is not stated is NaN here only: comparisons with it are false.
    noise = np.array([job.gradient_noise_scale_samples for job in state.jobs], dtype=float)
    initial = np.array([job.initial_batch_samples for job in state.jobs], dtype=float)
    states_noise = (noise >= 0) & (initial > 0)
    lengths = np.diff(curves.offsets)
    batches = curves.configurations.samples_per_step()
    has_goodput = states_noise & (per_job_least(curves, batches) > 0)
    rows = np.repeat(has_goodput, lengths)
    useful = np.repeat(noise + initial, lengths)
    steps = np.repeat(noise, lengths) + batches
    efficiency = np.divide(useful, steps, out=np.ones(len(rows)), where=rows & (steps > 0))
    return curves.samples_per_s * efficiency, has_goodput.tolist()


def _at_fair_share(state: ClusterState, curves: Curves, rates: Floats, lengths: Ints) -> Floats:
    """Goodput of every job on devices in proportion to its weight: the greatest within, else on its smallest count."""
    fewest = per_job_least(curves, curves.devices.astype(float))
    within = curves.devices <= per_row(curves, np.maximum(fair_shares(state, curves), fewest))
    greatest: Floats = -per_job_least(curves, np.where(within, -rates, 0.0))
    return np.where(lengths > 0, greatest, 1.0)


def _kept_part(state: ClusterState, curves: Curves, lengths: Ints) -> Floats:
    """Which part of the goodput a change leaves, per row."""
    parts = np.ones(len(state.jobs))
    for index in np.flatnonzero(state.columns.has_run & (state.columns.restart_cost_s > 0)).tolist():
        job = state.jobs[index]
        age_s = max(state.now_s - job.submit_time_s, 0.0)
        left_s = max(age_s - job.restarts * job.restart_cost_s, 0.0)
        parts[index] = max(left_s / (age_s + job.restart_cost_s), _LEAST_KEEP)
    return np.where(elsewhere(state, curves), np.repeat(parts, lengths), 1.0)
