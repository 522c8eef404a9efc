"""Replicas against sharded parameter servers: the synchronous step, and the cycle that asynchronous replicas reach.

Every b samples each machine w of a replica fetches and returns the x_w bytes of parameters that it holds, X in all, and
the S servers hold a share each. R replicas, t seconds per sample, links of beta per direction, messages of alpha:

    sync    T = b t + max(2 (alpha + x_w / beta), 2 R X / (S beta_s)) + E[max of R] - mean
    async   T >= max(b t + 2 (alpha + x_w / beta), R c X / (S beta_s))

In a synchronous step all replicas fetch, then all return: both directions one after the other. Asynchronous ones
mix, so that a full-duplex link carries them beside each other: c = 1, and 2 where both share the link's rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from nodewise.plugin import Floats
from nodewise_laws import asymptotic_bounds, balanced_job_bounds, expected_maximum_gamma, knee_population

__all__ = ["Asynchronous", "Servers", "Synchronous", "asynchronous", "knee_replicas", "synchronous"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Servers:
    """What one replica exchanges with the servers, and over what.

    Attributes
    ----------
    largest_bytes, total_bytes : float
        Parameters of the machine that holds most, and of all machines of a replica: X.
    message_s, machine_bytes_per_s, server_bytes_per_s : float
        Links of machines and servers, per direction.
    half_duplex : bool
        Both directions share that rate.
    """

    largest_bytes: float
    total_bytes: float
    message_s: float
    machine_bytes_per_s: float
    server_bytes_per_s: float
    half_duplex: bool = False

    def machine_s(self) -> float:
        """Both transfers of the machine with most parameters, without contention."""
        return 2.0 * (self.message_s + self.largest_bytes / self.machine_bytes_per_s)

    def round_s(self, replicas: Floats, servers: Floats) -> Floats:
        """Both transfers of all replicas through the servers, one direction after the other."""
        return np.asarray(2.0 * replicas * self.total_bytes / (servers * self.server_bytes_per_s))

    def cycle_demand_s(self, servers: Floats) -> Floats:
        """Time that one replica's cycle keeps a server's link busy."""
        ways = 2.0 if self.half_duplex else 1.0
        return np.asarray(ways * self.total_bytes / (servers * self.server_bytes_per_s))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Synchronous:
    """Columns over rows, seconds of one step: parts that add up to it."""

    compute_s: Floats
    exchange_s: Floats
    barrier_s: Floats

    @property
    def step_s(self) -> Floats:
        """One global batch."""
        return np.asarray(self.compute_s + self.exchange_s + self.barrier_s)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Asynchronous:
    """Columns over rows, of one replica's cycle.

    Attributes
    ----------
    cycle_s : float
        At the upper asymptote: no replica waits for another until the servers are busy all the time.
    longest_cycle_s : float
        At the balanced-job bound: replicas meet at the servers by chance.
    compute_s, exchange_s, queueing_s : float
        Parts of ``cycle_s``: computing, own transfers, waiting for servers.
    utilisation : float
        Share of the time that the servers' links are busy.
    """

    cycle_s: Floats
    longest_cycle_s: Floats
    compute_s: Floats
    exchange_s: Floats
    queueing_s: Floats
    utilisation: Floats


def synchronous(
    batch_s: Floats, replicas: Floats, servers: Floats, exchange: Servers, *, compute_cv: float
) -> Synchronous:
    """Steps of replicas that wait for each other.

    Parameters
    ----------
    batch_s : (rows,) mean seconds in which a replica computes its samples of a step.
    replicas, servers : (rows,) whole numbers of at least 1.
    compute_cv : coefficient of variation of a replica's ``batch_s``, of a gamma law.
    """
    counts, index = np.unique(replicas, return_inverse=True)
    ratios = np.array([_slowest_ratio(compute_cv, count) for count in counts.tolist()])
    slowest = batch_s * ratios[index.reshape(np.shape(replicas))]
    return Synchronous(
        compute_s=batch_s,
        exchange_s=np.maximum(exchange.machine_s(), exchange.round_s(replicas, servers)),
        barrier_s=np.maximum(slowest - batch_s, 0.0),
    )


@lru_cache(maxsize=4096)
def _slowest_ratio(cv: float, replicas: float) -> float:
    """Mean of the slowest over the mean, one count at a time: so that it does not depend on the rows beside."""
    return float(expected_maximum_gamma(1.0, cv, replicas))


def asynchronous(batch_s: Floats, replicas: Floats, servers: Floats, exchange: Servers) -> Asynchronous:
    """Cycles of replicas that wait only for the servers."""
    demand = exchange.cycle_demand_s(servers)
    alone = np.maximum(exchange.machine_s(), demand)
    private = batch_s + alone
    # A replica's work besides being served: think + demand is its cycle without contention.
    think = np.maximum(private - demand, 0.0)
    upper = asymptotic_bounds(demand[..., np.newaxis], think, replicas).upper_per_s
    lower = balanced_job_bounds(demand[..., np.newaxis], think, replicas).lower_per_s
    cycle = replicas / upper
    own = np.minimum(alone, cycle - batch_s)
    return Asynchronous(
        cycle_s=cycle,
        longest_cycle_s=np.maximum(replicas / lower, cycle),
        compute_s=batch_s,
        exchange_s=own,
        queueing_s=cycle - batch_s - own,
        utilisation=np.minimum(upper * demand, 1.0),
    )


def knee_replicas(batch_s: Floats, servers: Floats, exchange: Servers) -> Floats:
    """Replicas whose exchanges keep the servers busy all the time while they compute: R* = b t / demand."""
    demand = exchange.cycle_demand_s(servers)
    return knee_population(demand[..., np.newaxis], np.maximum(batch_s - demand, 0.0))
