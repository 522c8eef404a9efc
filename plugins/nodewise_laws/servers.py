"""Several parameter servers that hold a shard each: what a step that uses all of them in parallel can reach.

A worker's transfer goes to all P servers at once and is done when the slowest part is (fork and join). That has no
product form, so throughput is bracketed by networks that have one:

    optimistic      one station of the mean demand, as if load were shared evenly, never above the hard bound
    slowest server  one station of the largest demand, as if nobody ever waited for the other servers: the truth if
                    shards are always the same bytes and servers share their rate among transfers
    pessimistic     the P servers one after another
    bound           X <= 1 / max_m d_m: the busiest server cannot do more, whatever the order and the placement

The bound is the utilisation law. The rest is a reconstruction from first principles, not a published law: each takes
away from, or adds to, what a worker waits for. Slowest server and optimistic are the same where shards are even.
Simulated fork and join (2 to 4 servers, 1 to 16 workers, processor sharing, gamma compute times) came within 0.3 % of
the slowest server where sizes were constant, up to 6 % below it where they varied by 30 %, and up to 15 % below it, but
never below the pessimistic edge, where they were exponential.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import SupportsIndex

import numpy as np
import numpy.typing as npt

from nodewise_laws._checks import (
    FloatArray,
    IntArray,
    broadcast,
    count,
    float_array,
    frozen,
    non_negative,
    non_negative_scalar,
)
from nodewise_laws.mva import exact_mva

__all__ = ["ServerBracket", "server_bracket", "shard_demands_s"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ServerBracket:
    """Throughputs between which several servers lie, at populations 1..n; index 0 is population 1.

    pessimistic <= slowest server <= optimistic <= bound, at every population.

    Attributes
    ----------
    pessimistic_per_s : (n,) cycles per second if the parts of a transfer went one after another.
    slowest_server_per_s : (n,) the same if a transfer took as long as its part on the busiest server.
    optimistic_per_s : (n,) the same if load were spread evenly, but no more than `bound_per_s`.
    bound_per_s : cycles per second that the busiest server can do; infinite if no server has a demand.
    """

    pessimistic_per_s: FloatArray
    slowest_server_per_s: FloatArray
    optimistic_per_s: FloatArray
    bound_per_s: float

    @property
    def population(self) -> IntArray:
        """(n,) the populations 1..n that the entries stand for."""
        return np.arange(1, self.pessimistic_per_s.size + 1)


def shard_demands_s(
    shard_bytes: npt.ArrayLike, bytes_per_s: npt.ArrayLike, *, tensors: npt.ArrayLike = 0.0, overhead_s: float = 0.0
) -> FloatArray:
    """Seconds that a transfer of each shard occupies its server: d_m = s_m / B_m + T_m o.

    Parameters
    ----------
    shard_bytes : (P,) bytes s_m of each shard, in one direction.
    bytes_per_s : (P,) or scalar, rate B_m of each server's link in that direction, more than 0.
    tensors : (P,) or scalar, number of messages T_m of each shard.
    overhead_s : seconds o that a message costs beside its bytes.

    Returns
    -------
    (P,) array
        Demand in seconds per step.

    Raises
    ------
    ValueError
        An argument is negative, not finite or does not fit the others, or a rate is 0.
    """
    size, messages = non_negative("shard_bytes", shard_bytes, ndim=1), non_negative("tensors", tensors)
    rate, overhead = non_negative("bytes_per_s", bytes_per_s), non_negative_scalar("overhead_s", overhead_s)
    if not np.all(rate > 0.0):
        message = f"bytes_per_s must be more than 0, got {bytes_per_s!r}"
        raise ValueError(message)
    broadcast(shard_bytes=size, bytes_per_s=rate, tensors=messages)
    return np.asarray(size / rate + messages * overhead)


def server_bracket(
    server_demands_s: npt.ArrayLike, other_demands_s: npt.ArrayLike, think_s: float, population: SupportsIndex
) -> ServerBracket:
    """Bracket the throughput of steps that use P servers in parallel, for every population from 1 to `population`.

    A step may use the servers several times, once per row: a full-duplex link is used for the download and, by itself,
    for the upload. The bracket treats each row so.

    Parameters
    ----------
    server_demands_s : (P,) or (F, P) seconds that a step occupies each of P >= 1 servers, in each of F >= 1 phases.
    other_demands_s : (K,) seconds of service per step at stations that are not split; K may be 0.
    think_s : seconds per step without queueing, at least 0.
    population : largest number of workers n, at least 1.

    Returns
    -------
    ServerBracket
        Curves from exact mean value analysis; with one server all three are the same.

    Raises
    ------
    ValueError
        An argument is negative, not finite or of the wrong shape, or a step takes no time at all.
    """
    shape = float_array("server_demands_s", server_demands_s).shape
    if len(shape) not in {1, 2} or 0 in shape:
        message = f"server_demands_s must be (P,) or (F, P) with at least one server, got shape {shape}"
        raise ValueError(message)
    phases = np.atleast_2d(non_negative("server_demands_s", server_demands_s))
    others = non_negative("other_demands_s", other_demands_s, ndim=1)
    workers = count("population", population, minimum=1)

    def throughput(demands_s: FloatArray) -> FloatArray:
        return exact_mva(np.concatenate((demands_s, others)), think_s, workers).throughput_per_s

    largest = phases.max(axis=1)
    busiest = float(largest.max())
    bound = 1.0 / busiest if busiest > 1e-300 else np.inf
    # The order holds in exact arithmetic; minima and maxima keep rounding from breaking it.
    slowest = np.minimum(throughput(largest), bound)
    optimistic = np.minimum(throughput(phases.mean(axis=1)), bound)
    return ServerBracket(
        pessimistic_per_s=frozen(np.minimum(throughput(phases.ravel()), slowest)),
        slowest_server_per_s=frozen(slowest),
        optimistic_per_s=frozen(np.maximum(optimistic, slowest)),
        bound_per_s=bound,
    )
