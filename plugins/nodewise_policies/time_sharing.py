"""Gavel's policies: time on pools of different devices is shared out, and the core makes rounds of it.

Source: Narayanan et al., "Heterogeneity-aware cluster scheduling policies for deep learning workloads", OSDI'20. A job
runs on the devices that it requested. With thr_ij its throughput there in pool j, s_i the devices, w_i its weight:

- max-min-fairness-aware maximises the least  sum_j thr_ij s_i X_ij / (w_i thr_i^prop),  thr_i^prop being its throughput
  on shares of the pools in proportion to their sizes: everyone gains as much as possible over an equal split. A weight
  of 2 doubles the job's claim.
- max-min-fairness knows no throughputs: all are 1.
- min-makespan-aware minimises the time after which all are done: it maximises the least  sum_j thr_ij X_ij / R_i,  R_i
  being the samples left. (The publication bisects over the time; the time's inverse is linear in X.)
"""

from __future__ import annotations

import numpy as np

from nodewise.plugin import Budget, ClusterState, Curves, Floats, Ints, Shares
from nodewise_policies.max_min_program import greatest_least_value
from nodewise_policies.sharing import weights

__all__ = ["MaxMinFairness", "MinMakespan", "equal_devices"]


class MaxMinFairness:
    """Max-min fair shares; ``aware`` of how much faster a job runs on one pool than on another.

    Without throughputs the split over pools is arbitrary as far as fairness goes; it is made in proportion to the
    pools' sizes, and the pools are served in an order that is drawn, so that it does not matter how they are listed.
    """

    def __init__(self, *, aware: bool) -> None:
        self._aware = aware

    def decide(self, state: ClusterState, curves: Curves, budget: Budget) -> Shares:
        """Shares of time; an equal split when the time runs out."""
        at = curves.at_requests(state)
        if not self._aware:
            return self._plain(state, (at.samples_per_s > 0).astype(float), at.devices, budget)
        sizes = np.array([pool.total_devices for pool in state.pools], dtype=float)
        proportional = at.samples_per_s @ (sizes / max(sizes.sum(), 1.0))
        claims = np.where(proportional > 0, proportional * weights(state), 1.0)
        values = at.samples_per_s * at.devices / claims[:, np.newaxis]
        return _shared(state, at.devices, greatest_least_value(state, values, at.devices, budget))

    def _plain(self, state: ClusterState, runs: Floats, devices: Ints, budget: Budget) -> Shares:
        seed = int(state.parameters["seed"])
        listed = runs.any(axis=1)
        alike = bool((devices[listed] == devices[listed][:, :1]).all())
        if alike and not state.quotas:
            return _shared(state, devices, _proportional(state, devices), seed)
        values = runs * devices / weights(state)[:, np.newaxis]
        return _shared(state, devices, greatest_least_value(state, values, devices, budget), seed)


class MinMakespan:
    """Shares by which all jobs are done as early as possible."""

    def decide(self, state: ClusterState, curves: Curves, budget: Budget) -> Shares:
        """Shares of time; an equal split when the time runs out."""
        at = curves.at_requests(state)
        left = np.array([job.remaining_samples for job in state.jobs], dtype=float)
        values = at.samples_per_s / left[:, np.newaxis]
        return _shared(state, at.devices, greatest_least_value(state, values, at.devices, budget))


def equal_devices(wanted: Ints, claims: Floats, devices: float) -> Floats:
    """Devices per job, max-min fair: its claim times a common level, at most what it wants, nothing left over."""
    level = wanted / claims
    order = np.argsort(level, kind="stable")
    # Jobs that get what they want are those of the lowest levels: fill up to each level in turn.
    sated = np.concatenate(([0.0], np.cumsum(wanted[order])))[:-1]
    claiming = np.cumsum(claims[order][::-1])[::-1]
    needed = sated + claiming * level[order]
    short = np.flatnonzero(needed > devices)
    if not len(short):
        return wanted.astype(float)
    first = int(short[0])
    common = (devices - sated[first]) / claiming[first]
    fair: Floats = np.minimum(wanted, common * claims)
    return fair


def _proportional(state: ClusterState, devices: Ints) -> Floats:
    """Max-min fair shares of jobs that take the same number of devices in every pool, split as the pools' sizes."""
    sizes = np.array([pool.total_devices for pool in state.pools], dtype=float)
    shares = np.zeros(devices.shape)
    runs = np.flatnonzero(devices.any(axis=1))
    if len(runs):
        wanted = devices[runs, 0]
        due = equal_devices(wanted, weights(state)[runs], float(sizes.sum())) / wanted
        shares[runs] = due[:, np.newaxis] * sizes / sizes.sum()
    return shares


def _shared(state: ClusterState, devices: Ints, shares: Floats | None, seed: int | None = None) -> Shares:
    """The answer; without shares (the time ran out) everyone's equal split, as far as it is meant to run."""
    complete = shares is not None
    if shares is None:
        shares = (devices > 0) / max(len(state.pools), 1)
    return Shares(
        shares=shares,
        complete=complete,
        memory=state.memory,
        round_s=state.parameters["round_s"],
        hold_s=state.parameters["hold_s"],
        shuffle_seed=seed,
    )
