"""Impossible times: found, repaired where other events allow it, else ignored; always reported."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import EventKind, Ints, TraceSteps

__all__ = ["cut_outlasting", "cut_overruns", "moved_to_launches", "without_stub"]

_CLOCKS_APART_NS: Final = 1_000_000
"""Clocks of host and device agree within some microseconds: a longer lead over the launch is no inaccuracy."""
_SAME_OFFSET: Final = 0.1
"""Spread of leads, as a share of them, below which work before its launches was timed by one clock, set differently."""
_ROUNDING_NS: Final = 1_000
_SERIAL_SHARE: Final = 0.1
"""A stream on which more than this share of events holds others entirely does not run one after the other."""
_FAR: Final = 10
"""An event that lasts this many times as long as the longest step, or as the rest of the recording, is damaged."""


def moved_to_launches(
    begin_ns: Ints, launch: Ints, is_kept: NDArray[np.bool_], warnings: list[str]
) -> tuple[Ints, NDArray[np.bool_]]:
    """Repair work that begins long before the call that launched it.

    Where all of it is early by the same time, its clock was set differently: it is moved until none begins before its
    launch. Otherwise (times of 0, times that were overwritten) its time is unknown.

    Returns
    -------
    (begin_ns, kept)
        ``is_kept`` without the events whose time is unknown.
    """
    linked_rows = np.flatnonzero(is_kept & (launch >= 0))
    lead = begin_ns[launch[linked_rows]] - begin_ns[linked_rows]
    early = linked_rows[lead > _CLOCKS_APART_NS]
    if not len(early):
        return begin_ns, is_kept
    lead = lead[lead > _CLOCKS_APART_NS]
    spread = np.percentile(lead, 90) - np.percentile(lead, 10)
    begin_ns, is_kept = begin_ns.copy(), is_kept.copy()
    if len(early) > 1 and spread <= _SAME_OFFSET * float(np.median(lead)) and len(np.unique(begin_ns[early])) > 1:
        begin_ns[early] += int(lead.max())
        outcome = f"were moved {lead.max() * 1e-6:.3f} ms later, as their clock was set differently"
    else:
        is_kept[early] = False
        outcome = "were ignored: their times are 0, or were overwritten"
    warnings.append(f"{len(early)} device events begin before the calls that launched them, and {outcome}")
    return begin_ns, is_kept


def cut_overruns(lane: Ints, begin_ns: Ints, duration_ns: Ints, correlation: Ints, work: Ints) -> tuple[Ints, int]:
    """Cut work that overlaps all following work on its stream: a stream runs one after the other.

    Parameters
    ----------
    work : (n,) int
        Events on streams that are known to be serial. Events of one launch (a graph) may overlap.

    Returns
    -------
    (duration_ns, cut)
        A cut event ends where the next one begins.
    """
    order = work[np.lexsort((begin_ns[work], lane[work]))]
    this, following = order[:-1], order[1:]
    end = begin_ns + duration_ns
    holds = (lane[this] == lane[following]) & (end[this] > end[following] + _ROUNDING_NS)
    holds &= (correlation[this] != correlation[following]) | (correlation[this] < 0)
    if not holds.any():
        return duration_ns, 0
    lanes = int(lane.max()) + 1
    often = np.bincount(lane[this[holds]], minlength=lanes) > _SERIAL_SHARE * np.bincount(lane[order], minlength=lanes)
    cut = holds & ~often[lane[this]]
    duration_ns = duration_ns.copy()
    duration_ns[this[cut]] = begin_ns[following[cut]] - begin_ns[this[cut]]
    return duration_ns, int(cut.sum())


def cut_outlasting(name: Ints, begin_ns: Ints, duration_ns: Ints, steps: TraceSteps, work: Ints) -> tuple[Ints, int]:
    """Give work that is far longer than every step, or the rest of the recording, its name's usual duration; else 0.

    Returns
    -------
    (duration_ns, cut)
    """
    if len(steps):
        # Of a host that runs ahead the marks are short: work takes as long as it is spread out.
        spread = int(begin_ns[work].max() - begin_ns[work].min()) // len(steps) if len(work) else 0
        limit = _FAR * max(int((steps.end_ns - steps.begin_ns).max()), spread)
    else:
        others = np.ones(len(begin_ns), dtype=np.bool_)
        others[work] = False
        last = max(int((begin_ns + duration_ns)[others].max(initial=0)), int(begin_ns.max(initial=0)))
        limit = _FAR * (last - int(begin_ns.min(initial=last)))
    far = work[duration_ns[work] > limit] if limit > 0 else work[:0]
    if not len(far):
        return duration_ns, 0
    duration_ns = duration_ns.copy()
    for event in far.tolist():
        alike = work[(name[work] == name[event]) & (duration_ns[work] <= limit)]
        duration_ns[event] = int(np.median(duration_ns[alike])) if len(alike) else 0
    return duration_ns, len(far)


def without_stub(steps: TraceSteps, kind: NDArray[np.int8], begin_ns: Ints, warnings: list[str]) -> TraceSteps:
    """Exclude the recorder's own mark after the last step: nothing begins in it, although events begin in others."""
    if len(steps) < 2:
        return steps
    work = begin_ns[(kind == EventKind.OPERATOR) | (kind == EventKind.CALL)]  # in order of begin
    work_counts = np.searchsorted(work, steps.end_ns, "left") - np.searchsorted(work, steps.begin_ns, "left")
    if work_counts[-1] > 0 or not work_counts[:-1].any():
        return steps
    took = (steps.end_ns[-1] - steps.begin_ns[-1]) * 1e-6
    warnings.append(
        f"the last step mark (step {steps.number[-1]}, {took:.3f} ms) holds no work: it was made by the recorder and "
        "is ignored"
    )
    return TraceSteps(number=steps.number[:-1], begin_ns=steps.begin_ns[:-1], end_ns=steps.end_ns[:-1])
