"""Closed networks whose stations serve at a rate that depends on how many customers are present.

Station k works a_k(j) times as fast with j customers present as it would on its demand alone: j active transfers that
may each use at most b_w of a link of rate B get min(j b_w, B), which is a station of demand D = S / b_w and relative
rate a(j) = min(j, B / b_w); a goodput that falls with the number of flows is a decreasing a(j). Such a network keeps
its product form (F. Baskett, K. M. Chandy, R. R. Muntz and F. G. Palacios, J. ACM 22(2), 1975), with processor sharing
for any law of service.

It is solved by convolution of the stations' normalising constants (J. P. Buzen, "Computational algorithms for closed
queueing networks with exponential servers", Comm. ACM 16(9), 1973), kept as logarithms, so that nothing overflows. All
terms are positive: nothing cancels. The recursion over marginal probabilities, which is better known, takes p(0) as 1
less the others and loses every digit of it where a station saturates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, SupportsIndex

import numpy as np
import numpy.typing as npt

from nodewise_laws._checks import FloatArray, IntArray, count, float_array, freeze, non_negative, non_negative_scalar

__all__ = ["LoadDependentCurve", "flow_capped_rates", "load_dependent"]

_TERMS_AT_ONCE: Final = 1 << 18
"""Largest number of terms held at a time, 2 MiB of doubles: what a core's cache holds."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoadDependentCurve:
    """The exact solution of one network at populations 1..n; index 0 is population 1.

    Attributes
    ----------
    demands_s : (K,) seconds of service that one cycle asks of each station at relative rate 1.
    rates : (K, n) relative rate of each station with 1..n customers present.
    think_s : seconds that one cycle spends without queueing.
    throughput_per_s : (n,) cycles per second of all customers together. Not monotone if a rate decreases.
    residence_s : (n, K) seconds that one cycle spends at each station.
    queue_length : (n, K) mean number of customers at each station.
    busy_share : (n, K) share of time that the station is busy. That of its capacity is X D / max a.
    """

    demands_s: FloatArray
    rates: FloatArray
    think_s: float
    throughput_per_s: FloatArray
    residence_s: FloatArray
    queue_length: FloatArray
    busy_share: FloatArray

    @property
    def population(self) -> IntArray:
        """(n,) the populations 1..n of the rows."""
        return np.arange(1, self.throughput_per_s.size + 1)

    @property
    def cycle_s(self) -> FloatArray:
        """(n,) seconds of one customer's cycle: Little's law, n / X = Z + sum of R."""
        return self.population / self.throughput_per_s


def flow_capped_rates(population: SupportsIndex, cap_ratio: float) -> FloatArray:
    """Relative rates of a link on which one flow cannot use everything: a(j) = min(j, B / b_w).

    The demand that belongs to them is what one flow takes on its own, S / b_w.

    Parameters
    ----------
    population : largest number of flows n, at least 1.
    cap_ratio : B / b_w, rate of the link over the most that one flow can use, more than 0; need not be whole.

    Returns
    -------
    (n,) array
        Rates with 1..n flows active.

    Raises
    ------
    ValueError
        An argument is out of its range or not finite.
    """
    flows = count("population", population, minimum=1)
    ratio = non_negative_scalar("cap_ratio", cap_ratio)
    if ratio == 0.0:
        message = "cap_ratio must be more than 0"
        raise ValueError(message)
    return np.asarray(np.minimum(np.arange(1.0, flows + 1.0), ratio))


def load_dependent(
    demands_s: npt.ArrayLike, rates: npt.ArrayLike, think_s: float, population: SupportsIndex
) -> LoadDependentCurve:
    """Solve one network of stations with load-dependent rates exactly for every population from 1 to `population`.

    ::

        g_k(j) = D_k^j / (a_k(1) ... a_k(j));  g_0(j) = Z^j / j!;  G = g_0 * g_1 * ... * g_K  (convolution)
        X(n) = G(n-1) / G(n);  p_k(j|n) = g_k(j) G_(k)(n-j) / G(n),   G_(k) = G without station k
        L_k(n) = sum_j j p_k(j|n);  R_k(n) = L_k(n) / X(n)

    G_(k) is convolved anew from the stations before k and those behind it, never divided out of G.

    Parameters
    ----------
    demands_s : (K,) seconds of service per cycle at each station at relative rate 1, each at least 0; K may be 0.
    rates : relative rates a_k(j) with j = 1..population customers present, each more than 0; of shape (K, population)
        or any that broadcasts to it: 1.0 makes all stations plain ones, (K, 1) gives each a constant factor.
    think_s : seconds per cycle without queueing (delay station Z), at least 0.
    population : largest number of customers n, at least 1.

    Returns
    -------
    LoadDependentCurve
        One row per population. Relative error about 1e-16 times n ln n. Cost O(K n^2): 0.6 ms for 3 stations and 64
        customers, 0.2 s for 2,000.

    Raises
    ------
    ValueError
        An argument is negative, not finite or of the wrong shape, a rate is 0, or a cycle takes no time at all.
    """
    demands = non_negative("demands_s", demands_s, ndim=1)
    think = non_negative_scalar("think_s", think_s)
    customers = count("population", population, minimum=1)
    relative = _rates(rates, demands.size, customers)
    cycle = float(demands.sum()) + think
    if not 1e-300 < cycle < 1e300:
        message = f"demands_s and think_s must add up to a cycle of more than 0 seconds, got {cycle!r}"
        raise ValueError(message)

    # In units of a lone customer's cycle, which keeps the logarithms small and their rounding with them.
    present = np.arange(customers + 1.0)
    with np.errstate(divide="ignore"):
        log_demand, log_think = np.log(demands / cycle), float(np.log(np.float64(think / cycle)))
    delay = _powers(log_think, present[1:])
    stations = [_powers(demand, rate) for demand, rate in zip(log_demand.tolist(), relative, strict=True)]
    before = [delay]
    for station in stations:
        before.append(_log_convolution(before[-1], station))
    constants = before[-1]

    queue = np.empty((customers, demands.size))
    busy = np.empty((customers, demands.size))
    behind: FloatArray | None = None
    for index in range(demands.size - 1, -1, -1):
        others = before[index] if behind is None else _log_convolution(before[index], behind)
        queue[:, index], busy[:, index] = _occupancy(stations[index], others, constants)
        behind = stations[index] if behind is None else _log_convolution(behind, stations[index])

    throughput = np.exp(constants[:-1] - constants[1:]) / cycle
    return LoadDependentCurve(
        demands_s=freeze(demands.copy()),
        rates=freeze(relative),
        think_s=think,
        throughput_per_s=freeze(throughput),
        residence_s=freeze(queue / throughput[:, np.newaxis]),
        queue_length=freeze(queue),
        busy_share=freeze(busy),
    )


def _rates(rates: npt.ArrayLike, stations: int, customers: int) -> FloatArray:
    """(K, n) relative rates, validated and copied."""
    array = float_array("rates", rates)
    if not np.all((array > 0.0) & (array < np.inf)):
        message = f"rates must be finite and more than 0, got {rates!r}"
        raise ValueError(message)
    try:
        return np.broadcast_to(array, (stations, customers)).copy()
    except ValueError as error:
        message = f"rates must broadcast to ({stations}, {customers}), stations by population, got shape {array.shape}"
        raise ValueError(message) from error


def _powers(log_demand: float, rates: FloatArray) -> FloatArray:
    """(n+1,) ln g(j) = j ln D - sum over i <= j of ln a(i), for j = 0..n; -inf for j > 0 without a demand."""
    logs = np.zeros(rates.size + 1)
    np.cumsum(log_demand - np.log(rates), out=logs[1:])
    return logs


def _shift(line: FloatArray) -> FloatArray:
    """(n+1, n+1) view: row m holds line[m - j] at column j, and -inf where j > m."""
    padded = np.concatenate((np.full(line.size - 1, -np.inf), line))
    return np.lib.stride_tricks.sliding_window_view(padded, line.size)[:, ::-1]


def _log_convolution(left: FloatArray, right: FloatArray) -> FloatArray:
    """(n+1,) ln of sum over j <= m of exp(left[j] + right[m-j]), for m = 0..n."""
    shifted, out = _shift(right), np.empty(left.size)
    for start, end in _blocks(left.size):
        terms = left[:end] + shifted[start:end, :end]
        largest = terms.max(axis=1)
        # Nothing there, ln 0: any finite shift leaves -inf.
        np.maximum(largest, -1e308, out=largest)
        terms -= largest[:, np.newaxis]
        with np.errstate(divide="ignore"):
            out[start:end] = np.log(np.exp(terms, out=terms).sum(axis=1)) + largest
    return out


def _occupancy(station: FloatArray, others: FloatArray, constants: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(n,) mean number at one station, and (n,) probability that it is busy, for populations 1..n."""
    shifted = _shift(others)
    weights = np.stack((np.arange(station.size, dtype=np.float64), np.ones(station.size)), axis=1)
    weights[0, 1] = 0.0
    out = np.empty((station.size, 2))
    for start, end in _blocks(station.size):
        terms = station[:end] + shifted[start:end, :end]
        terms -= constants[start:end, np.newaxis]
        out[start:end] = np.exp(terms, out=terms) @ weights[:end]
    return out[1:, 0], np.minimum(out[1:, 1], 1.0)


def _blocks(size: int) -> list[tuple[int, int]]:
    """Rows to treat together."""
    rows = max(_TERMS_AT_ONCE // size, 1)
    return [(start, min(start + rows, size)) for start in range(0, size, rows)]
