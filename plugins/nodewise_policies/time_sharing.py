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

__all__ = ["MaxMinFairness", "MinMakespan"]


class MaxMinFairness:
    """Max-min fair shares; ``aware`` of how much faster a job runs on one pool than on another.

    Without throughputs no pool is better than another: jobs that take the same devices in every pool divide their time
    alike, and the order in which pools are served is drawn for each round, so that it does not matter how they are
    listed.
    """

    def __init__(self, *, aware: bool) -> None:
        self._aware = aware

    def decide(self, state: ClusterState, curves: Curves, budget: Budget) -> Shares:
        """Shares of time; an equal split when the time runs out."""
        at = curves.at_requests(state)
        rates = at.samples_per_s if self._aware else (at.samples_per_s > 0).astype(float)
        sizes = np.array([pool.total_devices for pool in state.pools], dtype=float)
        proportional = rates @ (sizes / max(sizes.sum(), 1.0)) if self._aware else np.ones(len(rates))
        claims = np.where(proportional > 0, proportional * state.columns.weight, 1.0)
        values = rates * at.devices / claims[:, np.newaxis]
        shares = greatest_least_value(state, values, at.devices, budget)
        if self._aware:
            return _share(state, at.devices, shares)
        evened = None if shares is None else _even_out(shares, at.devices)
        return _share(state, at.devices, evened, int(state.parameters["seed"]))


class MinMakespan:
    """Shares by which all jobs are done as early as possible."""

    def decide(self, state: ClusterState, curves: Curves, budget: Budget) -> Shares:
        """Shares of time; an equal split when the time runs out."""
        at = curves.at_requests(state)
        left = state.columns.remaining_samples
        values = at.samples_per_s / left[:, np.newaxis]
        return _share(state, at.devices, greatest_least_value(state, values, at.devices, budget))


def _even_out(shares: Floats, devices: Ints) -> Floats:
    """The same time for every job and load of every pool; jobs that take the same anywhere divide their time alike."""
    anywhere = (devices > 0).all(axis=1) & (devices == devices[:, :1]).all(axis=1)
    time = shares.sum(axis=1)
    load = (shares * devices)[anywhere].sum(axis=0)
    if not load.sum() > 0:
        return shares
    split: Floats = time[:, np.newaxis] * load / load.sum()
    return np.where(anywhere[:, np.newaxis], split, shares)


def _share(state: ClusterState, devices: Ints, shares: Floats | None, seed: int | None = None) -> Shares:
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
