"""Exchange of replicas with sharded parameter servers: the step of synchronous and the cycle of asynchronous replicas.

Every b samples, each machine w of a replica fetches and returns its x_w bytes of parameters (X in all). Each of the S
servers holds a share. With R replicas, t seconds per sample, link rate beta per direction and alpha seconds per
message:

    sync    T = b t + max(2 (alpha + x_w / beta), 2 R X / (S beta_s)) + E[max of R] - mean
    async   T >= max(b t + 2 (alpha + x_w / beta), R c X / (S beta_s))

In a synchronous step, all replicas fetch and then all return, so the two directions follow each other. Asynchronous
replicas use both directions at once: c = 1 on a full-duplex link, c = 2 if both directions share the link's rate.
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
    """The bytes that one replica exchanges with the servers, and the links.

    Attributes
    ----------
    largest_bytes, total_bytes : float
        Parameters of the machine that holds most, and of the whole replica (X).
    message_s, machine_bytes_per_s, server_bytes_per_s : float
        Seconds per message; rates of the links of machines and servers, per direction.
    half_duplex : bool
        Whether both directions share the rate.
    """

    largest_bytes: float
    total_bytes: float
    message_s: float
    machine_bytes_per_s: float
    server_bytes_per_s: float
    half_duplex: bool = False

    def machine_s(self) -> float:
        """Time of both transfers of the machine with most parameters, without contention."""
        return 2.0 * (self.message_s + self.largest_bytes / self.machine_bytes_per_s)

    def round_s(self, replicas: Floats, servers: Floats) -> Floats:
        """Time of both transfers of all replicas through the servers, one direction after the other."""
        return np.asarray(2.0 * replicas * self.total_bytes / (servers * self.server_bytes_per_s))

    def cycle_demand_s(self, servers: Floats) -> Floats:
        """Time that one cycle of one replica occupies a server's link."""
        ways = 2.0 if self.half_duplex else 1.0
        return np.asarray(ways * self.total_bytes / (servers * self.server_bytes_per_s))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Synchronous:
    """Parts of one synchronous step: columns over rows, in seconds, which add up to the step."""

    compute_s: Floats
    exchange_s: Floats
    barrier_s: Floats

    @property
    def step_s(self) -> Floats:
        """Time of a step, which is one global batch."""
        return np.asarray(self.compute_s + self.exchange_s + self.barrier_s)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Asynchronous:
    """The cycle of one asynchronous replica: columns over rows.

    Attributes
    ----------
    cycle_s : float
        Time of a cycle by the asymptotic bound: no replica waits for another until the servers are saturated.
    longest_cycle_s : float
        Time of a cycle by the balanced-job bound: replicas queue at the servers at random.
    compute_s, exchange_s, queueing_s : float
        Parts of ``cycle_s``: computation, own transfers, waiting for servers.
    utilisation : float
        Fraction of time that the servers' links are busy.
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
    """Return the steps of replicas that wait for each other.

    Parameters
    ----------
    batch_s : (rows,) mean seconds that a replica computes in a step.
    replicas, servers : (rows,) whole numbers of at least 1.
    compute_cv : coefficient of variation of ``batch_s``, which is gamma distributed.
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
    """Return E[max] / mean, for each count by itself, so that a row does not depend on the other rows."""
    return float(expected_maximum_gamma(1.0, cv, replicas))


def asynchronous(batch_s: Floats, replicas: Floats, servers: Floats, exchange: Servers) -> Asynchronous:
    """Return the cycles of replicas that wait only for the servers."""
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
    """Return the number of replicas whose exchanges saturate the servers while they compute: R* = b t / demand."""
    demand = exchange.cycle_demand_s(servers)
    return knee_population(demand[..., np.newaxis], np.maximum(batch_s - demand, 0.0))
