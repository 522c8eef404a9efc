"""What an exchange costs by its size and by how many take part."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from nodewise.plugin import CollectiveKind, Floats

__all__ = ["Cost", "bytes_factor", "fitted_cost"]

_SHARED = (
    int(CollectiveKind.ALL_GATHER),
    int(CollectiveKind.REDUCE_SCATTER),
    int(CollectiveKind.ALL_TO_ALL),
    int(CollectiveKind.GATHER),
    int(CollectiveKind.SCATTER),
)


def bytes_factor(kind: int, ranks: int) -> float:
    """Bytes that cross a rank's link per byte of an exchange.

    Of bandwidth-optimal algorithms: 2 (N - 1) / N for an all-reduce, (N - 1) / N for what leaves a rank its own share,
    1 for what is passed on whole (R. Thakur, R. Rabenseifner and W. Gropp, International Journal of High Performance
    Computing Applications 19(1), 2005).
    """
    if ranks <= 1:
        return 0.0
    if kind == CollectiveKind.ALL_REDUCE:
        return 2.0 * (ranks - 1) / ranks
    return (ranks - 1) / ranks if kind in _SHARED else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """``fixed_s + s_per_byte * bytes_factor * bytes`` seconds for one exchange.

    Attributes
    ----------
    sizes : int
        Distinct sizes that it was fitted to. Of a single one nobody can tell what is fixed: all is taken to be per byte.
    log_error : float
        Root mean square of ln(measured / fitted) over those sizes, and over the exchanges of a size where one only.
    """

    fixed_s: float
    s_per_byte: float
    sizes: int
    log_error: float

    def seconds(self, wire_bytes: Floats | float) -> Floats:
        """Seconds of exchanges that bring some bytes to each link."""
        found: Floats = self.fixed_s + self.s_per_byte * np.asarray(wire_bytes, dtype=np.float64)
        return found


def fitted_cost(wire_bytes: Floats, seconds: Floats) -> Cost:
    """Fit to exchanges, waiting not included: least squares of relative errors over the median of each size.

    Parameters
    ----------
    wire_bytes : (n,)
        Bytes times ``bytes_factor``, at least one.
    seconds : (n,)
    """
    sizes, member = np.unique(np.asarray(wire_bytes, dtype=np.float64), return_inverse=True)
    middle = np.array([np.median(seconds[member == which]) for which in range(len(sizes))])
    spread = float(np.std(np.log(np.maximum(seconds, 1e-9) / np.maximum(middle[member], 1e-9))))
    if len(sizes) == 1:
        whole = sizes[0] > 0
        return Cost(
            fixed_s=0.0 if whole else float(middle[0]),
            s_per_byte=float(middle[0] / sizes[0]) if whole else 0.0,
            sizes=1,
            log_error=spread,
        )
    weight = 1.0 / np.maximum(middle, 1e-9)
    scale = sizes.max()
    (fixed, slope), _ = nnls(np.column_stack((weight, weight * sizes / scale)), np.ones(len(sizes)))
    fit = np.maximum(fixed + slope * sizes / scale, 1e-9)
    error = float(np.sqrt(np.mean(np.log(np.maximum(middle, 1e-9) / fit) ** 2)))
    return Cost(fixed_s=float(fixed), s_per_byte=float(slope / scale), sizes=len(sizes), log_error=error)
