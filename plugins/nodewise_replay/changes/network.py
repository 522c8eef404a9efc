"""What an exchange costs by its size and by how many take part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.plugin import CollectiveKind, Floats, Ints

__all__ = ["LATENCY_BYTES", "Cost", "bytes_factor", "fitted_cost"]

LATENCY_BYTES: Final = (4.0 * 1024, 64.0 * 1024, 1024.0 * 1024)
"""Bytes that a link would carry in the latency of an exchange: least, middle and most, where nothing tells.

Least is Gigabit Ethernet, 125 MB/s and 30 us; most are all-reduces over NVLink and InfiniBand (0.1 ms and 10 GB/s
between two A100 nodes, 18 us and 36 GB/s among eight V100); the middle is their geometric mean.
"""

_SHARED = (
    int(CollectiveKind.ALL_GATHER),
    int(CollectiveKind.REDUCE_SCATTER),
    int(CollectiveKind.ALL_TO_ALL),
    int(CollectiveKind.GATHER),
    int(CollectiveKind.SCATTER),
)


def bytes_factor(kind: Ints | int, ranks: Ints | int) -> Floats:
    """Bytes that cross a rank's link per byte of an exchange.

    Of bandwidth-optimal algorithms: 2 (N - 1) / N for an all-reduce, (N - 1) / N for what leaves a rank its own share,
    1 for what is passed on whole (R. Thakur, R. Rabenseifner and W. Gropp, International Journal of High Performance
    Computing Applications 19(1), 2005).
    """
    share = (ranks - 1) / np.maximum(ranks, 1)
    passed_on = np.where(np.isin(kind, _SHARED), share, 1.0)
    factor: Floats = np.where(np.equal(kind, CollectiveKind.ALL_REDUCE), 2.0 * share, passed_on)
    return np.where(np.greater(ranks, 1), factor, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """``fixed_s + s_per_byte * bytes_factor * bytes`` seconds for one exchange.

    Attributes
    ----------
    fixed_s : float
        Mean of what the bytes do not account for: latency, and what processes wait for their processor.
    sizes : int
        Distinct sizes that it was fitted to.
    log_error : float
        Root mean square of ln(measured / fitted) of the sizes' medians; of a single size, of its exchanges.
    """

    fixed_s: float
    s_per_byte: float
    sizes: int
    log_error: float

    def seconds(self, wire_bytes: Floats | float) -> Floats:
        """Seconds of exchanges that bring some bytes to each link."""
        seconds: Floats = self.fixed_s + self.s_per_byte * np.asarray(wire_bytes, dtype=np.float64)
        return seconds

    @property
    def latency_told(self) -> bool:
        """Whether several sizes tell latency from bandwidth."""
        return self.sizes > 1

    def rescale(
        self, seconds: Floats, wire_bytes: Floats, after: Floats, *, bandwidth: float = 1.0, latency: float = 1.0
    ) -> Floats:
        """What recorded exchanges take with other bytes or over another link.

        Bytes go by their cost; what an exchange took beyond that it takes again, times ``latency``.
        """
        own = np.minimum(self.s_per_byte * wire_bytes, seconds)
        rescaled_s: Floats = (seconds - own) * latency + self.s_per_byte * after / bandwidth
        return rescaled_s


def fitted_cost(wire_bytes: Floats, seconds: Floats, latency_bytes: float = LATENCY_BYTES[1]) -> Cost:
    """Fit to exchanges, waiting not included.

    Over several sizes: least squares of relative errors of each size's median, no term below 0. Bytes take at least as
    long every time, so they account for no more than the shortest exchange of each size; of a single size, for what is
    left of it by a latency in which the link would carry ``latency_bytes``.

    Parameters
    ----------
    wire_bytes : (n,)
        Bytes times ``bytes_factor``, above 0; at least one.
    seconds : (n,)
    latency_bytes : float
        Of no effect where there are several sizes.
    """
    seconds = np.maximum(np.asarray(seconds, dtype=np.float64), 0.0)
    sizes, member = np.unique(np.asarray(wire_bytes, dtype=np.float64), return_inverse=True)
    of_size = [seconds[member == which] for which in range(len(sizes))]
    middle = np.maximum([np.median(values) for values in of_size], _SHORTEST_S)
    shortest = np.array([values.min() for values in of_size])
    if len(sizes) == 1:
        slope = float(shortest[0] / (sizes[0] + latency_bytes))
    else:
        slope = float(np.min(shortest / sizes))
        slope = min(slope, _seconds_per_byte(sizes, middle))
    fixed_s = float(np.mean(seconds - slope * sizes[member]))
    fit = np.maximum(fixed_s + slope * sizes, _SHORTEST_S)
    errors = np.log(middle / fit) if len(sizes) > 1 else np.log(np.maximum(seconds, _SHORTEST_S) / middle[member])
    return Cost(
        fixed_s=max(fixed_s, 0.0), s_per_byte=slope, sizes=len(sizes), log_error=float(np.sqrt(np.mean(errors**2)))
    )


def _seconds_per_byte(sizes: Floats, seconds: Floats) -> float:
    """The slope of a line without negative terms, by least squares of relative errors.

    Of two terms at most one is held at 0, so that no solver is needed, whose import takes longer than an answer.
    """
    weights = (seconds.min() / seconds) ** 2
    mean_size, mean_s = np.average(sizes, weights=weights), np.average(seconds, weights=weights)
    apart = sizes - mean_size
    slope = float((weights * apart * (seconds - mean_s)).sum() / (weights * apart**2).sum())
    if mean_s < slope * mean_size:  # the latency would be negative
        return float((weights * sizes * seconds).sum() / (weights * sizes**2).sum())
    return max(slope, 0.0)


_SHORTEST_S = 1e-9
"""Resolution of recorded times."""
