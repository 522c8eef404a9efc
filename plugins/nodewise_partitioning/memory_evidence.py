"""What measured runs say of a job's memory: one factor on all that a device cannot do without, and how sure it is.

    runs whose bytes were measured   exp(share of the median of ln(measured without the cache / needed))
    runs that ran                    at most memory / needed: what was measured is never refused
    runs that ran out of memory      at least memory / needed, where the runs that ran leave room for it

The share, n between^2 / (n between^2 + within^2), shrinks what few runs say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Floats
from nodewise_partitioning.memory import ROUNDED
from nodewise_partitioning.software import LOG_SPREAD

__all__ = ["MemoryRuns", "memory_level"]

WITHIN: Final = 0.05
"""Deviation of ln(bytes) between runs of one job: of BigScience's A100 runs about their job's median (0.05 to 0.06 with
the one that holds more at a smaller micro-batch, 0.035 without)."""
PRIOR_RUNS: Final = 1.0
"""Runs that the equations' own deviation counts for beside those of the job. Of BigScience's other runs of a job
intervals of 90 % then hold 94 to 96 % with one to four known (0.5: 88 to 93 %; 4: 97 to 100 %, a fifth wider)."""
OF_FORCED: Final = (4.0 / 18.0) ** 0.5
"""Deviation per ln of the factor: where runs contradict the equations so far, all that is known is a bound. What lies
beyond one in a tail of Student's t with four degrees of freedom, a Pareto tail of exponent four, exceeds it by a
deviation of sqrt(4 / ((4 - 1)^2 (4 - 2))) of it."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class MemoryRuns:
    """Runs as columns.

    Attributes
    ----------
    needed_bytes, cached_bytes, capacity_bytes : float
        By the equations, cached beside what is needed; what the device has.
    held_bytes : float
        Measured, the cache included; 0 = not measured.
    ran : bool
        False = ran out of memory.
    """

    needed_bytes: Floats
    cached_bytes: Floats
    capacity_bytes: Floats
    held_bytes: Floats
    ran: NDArray[np.bool_]


def memory_level(runs: MemoryRuns, log_spread: float = LOG_SPREAD) -> tuple[float, float]:
    """The factor, and the deviation of ln(bytes) that remains.

    Parameters
    ----------
    log_spread : float
        Deviation of ln(bytes) by the equations. What is not within a job is between jobs: of Megatron's, one run moves
        its job's others by a third of what it says.
    """
    is_usable = runs.ran & (runs.held_bytes > runs.cached_bytes)
    needed = (runs.held_bytes - runs.cached_bytes)[is_usable]
    residuals = np.log(needed / runs.needed_bytes[is_usable])
    count = len(residuals)
    between = count * (log_spread**2 - WITHIN**2)
    share = between / (between + WITHIN**2)
    level = float(np.exp(share * np.median(residuals))) if count else 1.0
    bound = runs.capacity_bytes / runs.needed_bytes
    most = float(np.min(bound[runs.ran], initial=np.inf)) * ROUNDED
    least = float(np.max(bound[~runs.ran], initial=0.0)) / ROUNDED
    level = min(max(level, least), most)
    squares = PRIOR_RUNS * log_spread**2 + float(np.sum((residuals - np.log(level)) ** 2))
    spread = float(np.sqrt(squares / (PRIOR_RUNS + count)))
    return level, spread if count else max(spread, OF_FORCED * abs(float(np.log(level))))
