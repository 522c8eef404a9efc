"""Exact mean value analysis of single-class closed queueing networks.

The network: `n` customers (workers) circulate for ever between one delay station, where no customer waits
(think time, computing), and `K` queueing stations of load-independent rate (links, the server's update).
With processor sharing the means below are exact for any service law of the given mean (BCMP theorem);
with first come, first served they are exact for exponential service.

Sources: M. Reiser and S. S. Lavenberg, "Mean-value analysis of closed multichain queuing networks",
J. ACM 27(2), 1980; F. Baskett, K. M. Chandy, R. R. Muntz and F. G. Palacios, "Open, closed, and mixed
networks of queues with different classes of customers", J. ACM 22(2), 1975.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, SupportsIndex

import numpy as np
import numpy.typing as npt

from nodewise_laws._checks import FloatArray, IntArray, count, float_array, freeze, non_negative, non_negative_scalar
from nodewise_laws.kernels import Kernel
from nodewise_laws.object_code import object_code

__all__ = ["MvaCurve", "MvaCurves", "OverlappedMva", "exact_mva", "exact_mva_many", "overlapped_mva"]

PLAIN_CELLS: Final = 96
"""Populations times stations up to which a recursion runs as plain Python: quicker than a call of the kernel."""

Values = FloatArray | list[float]
"""What the recursions index: lists where they run as plain Python, which is quicker there, arrays where compiled."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Solution:
    """Results of exact MVA at populations 1..n: of one network, or of J networks on a first axis of every array.

    Attributes
    ----------
    demands_s : (..., K) seconds of service that one cycle asks of each queueing station.
    throughput_per_s : (..., n) cycles per second of all customers of a network together.
    residence_s : (..., n, K) seconds that one cycle spends at each station, waiting and in service.
    """

    demands_s: FloatArray
    throughput_per_s: FloatArray
    residence_s: FloatArray

    @property
    def population(self) -> IntArray:
        """(n,) the populations 1..n, to which the last axis of the throughput belongs."""
        return np.arange(1, self.throughput_per_s.shape[-1] + 1)

    @property
    def queue_length(self) -> FloatArray:
        """(..., n, K) mean number of customers at each station, the one in service included: Little's law, L = X R."""
        return self.throughput_per_s[..., np.newaxis] * self.residence_s

    @property
    def utilisation(self) -> FloatArray:
        """(..., n, K) share of time that each station is busy: utilisation law, U = X D."""
        return self.throughput_per_s[..., np.newaxis] * self.demands_s[..., np.newaxis, :]

    @property
    def cycle_s(self) -> FloatArray:
        """(..., n) seconds of one customer's cycle: Little's law, n / X = Z + sum of R."""
        return self.population / self.throughput_per_s


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MvaCurve(_Solution):
    """One network; ``think_s`` is the seconds that one cycle spends without queueing."""

    think_s: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MvaCurves(_Solution):
    """J networks; ``think_s`` (J,) is the seconds that one cycle of each spends without queueing."""

    think_s: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OverlappedMva:
    """Results of `overlapped_mva` for one network at populations 1..n; index 0 is population 1.

    Attributes
    ----------
    throughput_per_s : (n,) cycles per second of all customers together.
    residence_s : (n, K) seconds that one cycle's work spends at each station, hidden or not.
    exposed_s : (n, K) seconds of these that lengthen the cycle.
    """

    throughput_per_s: FloatArray
    residence_s: FloatArray
    exposed_s: FloatArray


def exact_mva(demands_s: npt.ArrayLike, think_s: float, population: SupportsIndex) -> MvaCurve:
    """Solve one network exactly for every population from 1 to `population`.

    ::

        R_k(n) = D_k (1 + L_k(n-1));  X(n) = n / (Z + sum_k R_k(n));  L_k(n) = X(n) R_k(n);  L_k(0) = 0

    Parameters
    ----------
    demands_s : (K,) seconds of service per cycle at each queueing station, each at least 0; K may be 0.
    think_s : seconds per cycle without queueing (delay station Z), at least 0.
    population : largest number of customers, at least 1.

    Returns
    -------
    MvaCurve
        One row per population; cost O(population x K).

    Raises
    ------
    ValueError
        An argument is negative, not finite or of the wrong shape, or a cycle takes no time at all.
    """
    demands = non_negative("demands_s", demands_s, ndim=1)
    think = non_negative_scalar("think_s", think_s)
    customers = count("population", population, minimum=1)
    _reject_cycle_out_of_range(float(demands.sum()) + think)

    rates, spent_s = np.empty(customers), np.empty((customers, demands.size))
    _run(_exact_recursion, (demands,), (think,), (rates, spent_s))
    return MvaCurve(
        demands_s=freeze(demands.copy()),
        think_s=think,
        throughput_per_s=freeze(rates),
        residence_s=freeze(spent_s),
    )


def overlapped_mva(
    demands_s: npt.ArrayLike,
    saved_s: npt.ArrayLike,
    think_s: float,
    population: SupportsIndex,
    *,
    residual_share: npt.ArrayLike | None = None,
) -> OverlappedMva:
    """Solve a network in which part of each residence costs the cycle no time, for populations 1 to `population`.

    Transfers that run while the worker computes are hidden, yet the link has to carry their bytes: they keep their
    demand and shorten only the cycle. A station that serves in order of arrival makes a newcomer wait for the rest of
    the service under way, which is less than a whole one where services hardly vary (M. Reiser, "A queueing network
    analysis of computer communication networks with window flow control", IEEE Trans. Comm. 27(8), 1979). Without
    either this is `exact_mva`; else it is a heuristic, for the network has no product form.

    ::

        R_k(n) = D_k (1 + L_k(n-1) - (1 - r_k) U_k(n-1));  E_k(n) = max(0, R_k(n) - h_k)
        X(n) = n / max(Z + sum_k E_k(n), n D*);  L_k(n) = min(X(n) R_k(n), n);  U_k(n) = X(n) D_k
        D* = min(max_k D_k, Z + sum_k max(0, D_k - h_k))

    Two limits keep it physical: the busiest station serves no more than 1 / D_max, unless one worker alone is quicker
    (what a cycle lacks is waited for there), and no station holds more than n customers.

    Parameters
    ----------
    demands_s : (K,) seconds of service per cycle at each queueing station, each at least 0; K may be 0.
    saved_s : (K,) seconds h_k of the residence at each station that do not lengthen the cycle; below 0 = a delay that
        is no queueing.
    think_s : seconds per cycle without queueing, at least 0.
    population : largest number of customers, at least 1.
    residual_share : (K,) mean rest of the service that an arrival finds under way over a whole service, 0 to 1:
        (1 + cv^2) / 2 where service is in order of arrival and varies by cv <= 1; 1 (the default) where it is shared or
        exponential.

    Returns
    -------
    OverlappedMva
        One row per population; cost O(population x K).

    Raises
    ------
    ValueError
        An argument is negative, not finite or of the wrong shape, or a lone customer's cycle takes no time at all.
    """
    demands = non_negative("demands_s", demands_s, ndim=1)
    saved = float_array("saved_s", saved_s, ndim=1)
    if saved.shape != demands.shape or not np.all(np.isfinite(saved)):
        message = f"saved_s must be finite and of the shape of demands_s, {demands.shape}, got {saved_s!r}"
        raise ValueError(message)
    think = non_negative_scalar("think_s", think_s)
    customers = count("population", population, minimum=1)
    residual: FloatArray = np.ones(demands.size)
    if residual_share is not None:
        residual = float_array("residual_share", residual_share, ndim=1)
        if residual.shape != demands.shape or not np.all((residual >= 0.0) & (residual <= 1.0)):
            shape = f"of the shape of demands_s, {demands.shape}"
            message = f"residual_share must be from 0 to 1 and {shape}, got {residual_share!r}"
            raise ValueError(message)
    if not saved.any() and np.all(residual == 1.0):
        exact = exact_mva(demands, think, customers)
        return OverlappedMva(
            throughput_per_s=exact.throughput_per_s, residence_s=exact.residence_s, exposed_s=exact.residence_s
        )
    alone_s = think + float(np.maximum(demands - saved, 0.0).sum())
    _reject_cycle_out_of_range(alone_s)

    busiest = int(demands.argmax())
    shortest_s = min(float(demands[busiest]), alone_s)
    rates, spent_s, exposed_s = np.empty(customers), *np.empty((2, customers, demands.size))
    times = think, shortest_s, busiest
    _run(_overlapped_recursion, (demands, saved, residual), times, (rates, spent_s, exposed_s))
    return OverlappedMva(throughput_per_s=freeze(rates), residence_s=freeze(spent_s), exposed_s=freeze(exposed_s))


def exact_mva_many(demands_s: npt.ArrayLike, think_s: npt.ArrayLike, population: SupportsIndex) -> MvaCurves:
    """Solve J networks of K stations each, exactly, for every population from 1 to `population`.

    The same recursion as `exact_mva`, over the population in Python and over the networks in NumPy:
    from about five networks on it is the quicker of the two. A network of fewer stations than K has
    its missing demands set to 0, which changes nothing.

    Parameters
    ----------
    demands_s : (J, K) seconds of service per cycle at each queueing station, each at least 0.
    think_s : (J,) or scalar, seconds per cycle without queueing, at least 0.
    population : largest number of customers, the same for all networks, at least 1.

    Returns
    -------
    MvaCurves
        One row per network, one column per population.

    Raises
    ------
    ValueError
        An argument is negative, not finite or of the wrong shape, or some cycle takes no time at all.
    """
    demands = non_negative("demands_s", demands_s, ndim=2)
    think = non_negative("think_s", think_s)
    networks, stations = demands.shape
    if think.shape not in ((), (networks,)):
        message = f"think_s must be a scalar or of shape ({networks},) to fit demands_s, got {think.shape}"
        raise ValueError(message)
    think = np.broadcast_to(think, (networks,)).copy()
    customers = count("population", population, minimum=1)
    if networks:
        cycles = demands.sum(axis=1) + think
        _reject_cycle_out_of_range(float(cycles.min()))
        _reject_cycle_out_of_range(float(cycles.max()))

    # Population is the outer axis while computing, so that each step writes one contiguous block.
    throughput = np.empty((customers, networks))
    residence = np.empty((customers, networks, stations))
    queue = np.zeros((networks, stations))
    for index in range(customers):
        spent = residence[index]
        np.multiply(demands, 1.0 + queue, out=spent)
        throughput[index] = (index + 1) / (think + spent.sum(axis=1))
        queue = throughput[index, :, np.newaxis] * spent
    return MvaCurves(
        demands_s=freeze(demands.copy()),
        think_s=freeze(think),
        throughput_per_s=freeze(np.ascontiguousarray(throughput.T)),
        residence_s=freeze(np.ascontiguousarray(residence.transpose(1, 0, 2))),
    )


def _run(
    recursion: Kernel[..., None],
    stations: tuple[FloatArray, ...],
    numbers: tuple[float, ...],
    filled: tuple[FloatArray, ...],
) -> None:
    """Let a recursion fill in arrays: compiled where that pays, else as plain Python."""
    cells = [array.reshape(-1) for array in filled]
    if cells[-1].size > PLAIN_CELLS:
        # A copy: to a kernel, arrays that are read-only or not contiguous are of other types.
        recursion(*(array.copy() for array in stations), *numbers, *cells)
        return
    lists = [[0.0] * array.size for array in cells]
    recursion.__wrapped__(*(array.tolist() for array in stations), *numbers, *lists)
    for array, values in zip(cells, lists, strict=True):
        array[:] = values


@object_code
def _exact_recursion(demands_s: Values, think_s: float, throughput_per_s: Values, residence_s: Values) -> None:
    """Fill in X (n,) and R (n x K, row by row), as defined in `exact_mva`."""
    stations = len(demands_s)
    rate, before, now = 0.0, 0, 0
    for index in range(len(throughput_per_s)):
        cycle = think_s
        for station in range(stations):
            queue = rate * residence_s[before + station] if index > 0 else 0.0
            spent = demands_s[station] * (1.0 + queue)
            residence_s[now + station] = spent
            cycle += spent
        rate = (index + 1) / cycle
        throughput_per_s[index] = rate
        before, now = now, now + stations


@object_code
def _overlapped_recursion(
    demands_s: Values,
    saved_s: Values,
    residual_share: Values,
    think_s: float,
    shortest_s: float,
    busiest: int,
    throughput_per_s: Values,
    residence_s: Values,
    exposed_s: Values,
) -> None:
    """Fill in X (n,), R and E (n x K, row by row), as defined in `overlapped_mva`; D* is `shortest_s`."""
    stations = len(demands_s)
    rate, before, now = 0.0, 0, 0
    for index in range(len(throughput_per_s)):
        cycle = think_s
        for station in range(stations):
            queue = 0.0
            if index > 0:
                queue = min(rate * residence_s[before + station], float(index))
                queue -= (1.0 - residual_share[station]) * rate * demands_s[station]
            spent = demands_s[station] * (1.0 + max(queue, 0.0))
            residence_s[now + station] = spent
            exposed = max(0.0, spent - saved_s[station])
            exposed_s[now + station] = exposed
            cycle += exposed
        least = (index + 1) * shortest_s
        if cycle < least:
            exposed_s[now + busiest] += least - cycle
            cycle = least
        rate = (index + 1) / cycle
        throughput_per_s[index] = rate
        before, now = now, now + stations


def _reject_cycle_out_of_range(cycle_s: float) -> None:
    """Refuse a cycle of zero length, whose throughput would be infinite, and values beyond doubles."""
    if not 1e-300 < cycle_s < 1e300:
        message = (
            "demands_s and think_s must add up to a cycle of more than 0 seconds "
            f"(between 1e-300 and 1e300), got {cycle_s!r}"
        )
        raise ValueError(message)
