"""Completion where every change of the cluster is known: the work curve is linear between changes, so it is exact.

Used to replay recorded runs and traces of availability, and to tell how much of an error is the forecast of lifetimes.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from nodewise.plugin import Floats

__all__ = ["finish_s", "losses_to_changes"]


def finish_s(
    changes_s: npt.ArrayLike,
    speeds: npt.ArrayLike,
    steps: npt.ArrayLike,
    *,
    stall_s: float = 0.0,
    end_s: float = math.inf,
) -> Floats:
    """When some amounts of work are done.

    Parameters
    ----------
    changes_s : rising times from which each speed holds, the first 0; the last holds for ever.
    speeds : steps per second.
    steps : amounts of work.
    stall_s : seconds without progress after every change but the first; a further change starts them anew.
    end_s : end of the record, beyond which nothing is known to run.

    Returns
    -------
    numpy.ndarray
        Seconds; infinite for work that is never done.
    """
    starts, rates = np.asarray(changes_s, dtype=np.float64), np.asarray(speeds, dtype=np.float64)
    ends = np.append(starts[1:], math.inf)
    begins = starts + np.where(np.arange(len(starts)) > 0, stall_s, 0.0)
    run_s = np.maximum(ends - begins, 0.0)
    done = np.concatenate(([0.0], np.cumsum(rates[:-1] * run_s[:-1])))
    steps_asked = np.asarray(steps, dtype=np.float64)
    # The first stretch whose end reaches the work.
    at = np.minimum(np.searchsorted(done[1:], steps_asked, side="left"), len(starts) - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        finish_s = begins[at] + (steps_asked - done[at]) / rates[at]
    return np.where((rates[at] > 0.0) & (finish_s <= end_s), finish_s, math.inf)


def losses_to_changes(lost_s: npt.ArrayLike, speeds: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Changes and speeds of a cluster of equal workers from when each is lost (infinite: never), and none replaced.

    ``speeds`` is the table of speeds by workers alive, from 0 to all. Losses before 0 count from the start.
    """
    times_s = np.sort(np.maximum(np.asarray(lost_s, dtype=np.float64), 0.0))
    table = np.asarray(speeds, dtype=np.float64)
    times_s = times_s[np.isfinite(times_s)]
    times = np.unique(np.append(0.0, times_s))
    alive = len(table) - 1 - np.searchsorted(times_s, times, side="right")
    return times, table[alive]
