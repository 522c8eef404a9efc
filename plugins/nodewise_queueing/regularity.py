"""Position of a job between fair sharing and the two asymptotic bounds: regular workers disturb each other less.

Mean value analysis holds for workers out of step with each other. Workers whose compute hardly varies are not. While
the link could serve all of them one after the other they settle into a schedule without waiting. Beyond, fair
sharing makes transfers that overlap end together: workers fall in step, all of them download, then all upload, and each
direction of the link idles while the other is used. More workers than the link's queue has room for break the step up:
their senders back off at different times.

The constants are a fit, stated in research/queueing.md: chosen on eight asynchronous jobs of the project's
testbed, checked on six others, and on four that were measured afterwards.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from nodewise.plugin import Floats
from nodewise_queueing.network import Network

__all__ = ["ORDER_NOISE", "ORDER_SPREAD", "between", "coherence_of", "expected_order", "lock_order", "order_swing"]

COHERENT_JITTER: Final = 0.3
"""Standard deviation of compute, in units of one transfer under load, at which workers keep half of their coherence."""

IN_STEP: Final = 0.4
"""How far from fair sharing (0) to all in step (1) perfectly coherent workers get beyond the knee."""

ORDER_NODES: Final = (0.0, 1.0, 1.5, 3.0, 4.5)
"""Workers over the knee: orderly up to 1, in step from 1.5 to 3, as many as break it up from 4.5 on."""

ORDER_SPREAD: Final = 0.12
"""Standard deviation of a job's own place about the expected one, the same at every number of workers."""

ORDER_NOISE: Final = 0.18
"""Standard deviation of the place at each number of workers: workers that start otherwise order themselves
otherwise."""


def coherence_of(network: Network, transfer_s: float, compute_std_s: float) -> float:
    """How much workers keep in relation to each other, 0 to 1: jitter of compute against the length of a transfer.

    Two workers that share the link drift apart by the jitter of each cycle, and meet as long as it is shorter than a
    transfer.
    """
    if not transfer_s > 0.0 or not max(network.demands_s) > 0.0:
        return 0.0
    return 1.0 / (1.0 + (compute_std_s / (COHERENT_JITTER * transfer_s)) ** 2)


def expected_order(network: Network, coherence: float, population: int) -> Floats:
    """(n,) place of 1 to `population` workers: 1 orderly, 0 shared out of step, -1 in step."""
    if coherence == 0.0:
        return np.zeros(population)
    places = np.array([1.0, 1.0, -IN_STEP, -IN_STEP, 0.0])
    workers = np.arange(1, population + 1)
    return np.asarray(coherence * np.interp(workers / network.knee, ORDER_NODES, places))


def lock_order(order: Floats, lock_utilisation: Floats) -> Floats:
    """The place of workers that a lock lets through one by one, each after the same time.

    What leaves such a lock comes as regularly as it is busy: the squared variation of the times between departures is
    1 - rho^2 of that of the arrivals (W. Whitt, "The queueing network analyzer", Bell System Technical J. 62(9), 1983,
    equation 38 for constant service). Regular arrivals are orderly ones.
    """
    return np.asarray(order + (1.0 - np.abs(order)) * np.square(lock_utilisation))


def between(in_step: Floats, shared: Floats, orderly: Floats, order: Floats) -> Floats:
    """Logarithm of the rate at a place between the three, geometrically; the arguments are logarithms of rates."""
    place = np.clip(order, -1.0, 1.0)
    up, down = np.maximum(place, 0.0), np.maximum(-place, 0.0)
    return np.asarray(shared + up * np.maximum(orderly - shared, 0.0) - down * np.maximum(shared - in_step, 0.0))


def order_swing(in_step: Floats, orderly: Floats, spread: float) -> Floats:
    """Standard deviation of ln(rate) from doubt about the place: half of the way between the bounds is 1."""
    return np.asarray(0.5 * spread * np.maximum(orderly - in_step, 0.0))
