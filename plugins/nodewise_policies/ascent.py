"""Greedy ascent: devices that are left go, step by step, where a job's value rises most per device.

A step leads from the count that a job holds to any larger one that fits, not only to the next: of all of them the one
with the steepest rise per device. That is the next vertex of the upper concave hull of the job's values, so a dip (a
slow 2-node point that hides the gain at 3 nodes) or a gap in the allowed counts stops no job. Without ``look_ahead``
the only step is the one to the next count.
"""

from __future__ import annotations

from heapq import heapify, heappop, heapreplace
from typing import Final, NamedTuple

from nodewise.plugin import Floats
from nodewise_policies.sharing import CurvePosition, Ledger

__all__ = ["ascend"]

_DIGITS: Final = 10
"""Significant digits that tell one job's rise from another's: ties by the formula are ties in floating point."""
_EQUAL: Final = 1e-9
"""Rises that differ by less are those of a straight line, apart from rounding: the shortest step is taken."""


class _Step(NamedTuple):
    """A step of one job; the heap serves the least tuple: steepest rise, then earliest rank."""

    fall: float
    rank: int
    job: int
    row: int


def ascend(ledger: Ledger, values: Floats, positions: dict[int, CurvePosition], *, look_ahead: bool = True) -> bool:
    """Raise jobs until nothing that fits raises any job's value; False when the time ran out.

    Parameters
    ----------
    values : (rows,) float
        What a job is worth at each row of the curves.
    positions : dict
        Per job with a grant what it holds; kept up to date.

    Notes
    -----
    A step in the heap may be out of date only in one way: it no longer fits. Free devices only shrink, so looking
    again when it surfaces gives what a scan of all jobs would.
    """
    devices, ranks = ledger.curves.devices, ledger.ranks

    def best(job: int) -> _Step | None:
        row, stop = positions[job]
        extra_devices = ledger.extra_devices(job)
        if row + 1 >= stop or extra_devices < 1:
            return None
        extra = devices[row + 1 : stop if look_ahead else row + 2] - devices[row]
        if extra[-1] > extra_devices:
            extra = extra[: int(extra.searchsorted(extra_devices, side="right"))]
            if not len(extra):
                return None
        rise = values[row + 1 : row + 1 + len(extra)] - values[row]
        rise = rise / extra
        steepest = float(rise.max())
        if not steepest > 0:
            return None
        first = int((rise >= steepest * (1 - _EQUAL)).argmax())
        return _Step(-float(f"{steepest:.{_DIGITS}g}"), int(ranks[job]), job, row + 1 + first)

    heap = [step for step in map(best, positions) if step is not None]
    heapify(heap)
    served = 0
    while heap:
        step = heap[0]
        row, stop = positions[step.job]
        count = int(devices[step.row])
        if count - int(devices[row]) <= ledger.extra_devices(step.job):
            if ledger.out_of_time(served):
                return False
            served += 1
            ledger.raise_to(step.job, count)
            positions[step.job] = CurvePosition(step.row, stop)
        again = best(step.job)
        if again is None:
            heappop(heap)
        else:
            heapreplace(heap, again)
    return True
