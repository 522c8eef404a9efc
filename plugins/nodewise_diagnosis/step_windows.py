"""Reported windows of steps as matrices: one row per window of the job, one column per rank."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import STEP_PARTS, Floats, Ints, StepTimes

__all__ = ["StepWindows", "align_windows", "peer_log_ratio"]

_LEAST_SHARE: Final = 0.5
"""Of a window's steps that a rank must have reported, and of the ranks that a window must have."""

_STARTED_TOGETHER_S: Final = 60.0
"""Between the first windows of the ranks of one start."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StepWindows:
    """Windows that all ranks share. Seconds are NaN where a rank reported nothing.

    Attributes
    ----------
    first_step, begin_s : (windows,)
        Number of the first step, and when it began: the median over ranks.
    steps : int
        Steps of each window.
    rank, node : (ranks,) int
        Which ranks, ascending; the machine of each, -1 = not known.
    step_s : (windows, ranks) float
        The step.
    lost : int
        Windows between a rank's first and last that never came.
    parts : mapping of str to (windows, ranks) float
        Parts that every rank reports.
    """

    first_step: Ints
    begin_s: Floats
    steps: int
    rank: Ints
    node: Ints
    step_s: Floats
    lost: int = 0
    parts: Mapping[str, Floats] = field(default_factory=dict)

    @property
    def own_s(self) -> Floats | None:
        """Time of a step in which a rank waits for no other; None = the parts do not tell.

        Without the exchange, if that is known. Else the backward pass holds it, and what is left is the rest.
        """
        if "exchange" in self.parts:
            return np.maximum(self.step_s - self.parts["exchange"], 0.0)
        alone = [self.parts[name] for name in ("loading", "forward", "update") if name in self.parts]
        return np.sum(alone, axis=0) if "forward" in self.parts else None


def align_windows(times: StepTimes) -> StepWindows:
    """Windows that hold the same steps on all ranks, the longest in use; windows that few ranks have are left out.

    The time of a window of several shorter ones is their mean, each by its steps.
    """
    times = _newest_run(times)
    if not len(times):
        nothing = np.zeros((0, 0))
        empty = np.zeros(0, np.int64)
        return StepWindows(first_step=empty, begin_s=np.zeros(0), steps=0, rank=empty, node=empty, step_s=nothing)
    steps = int(times.steps.max())
    first, row = np.unique(times.first_step // steps, return_inverse=True)
    rank, column = np.unique(times.rank, return_inverse=True)
    shape = (len(first), len(rank))
    place = row * shape[1] + column
    weight = times.steps.astype(np.float64)
    total = np.bincount(place, weights=weight, minlength=shape[0] * shape[1]).reshape(shape)
    is_known = total >= _LEAST_SHARE * steps

    def matrix(seconds: Floats) -> Floats:
        summed = np.bincount(place, weights=weight * seconds, minlength=shape[0] * shape[1]).reshape(shape)
        return np.where(is_known, summed / np.maximum(total, 1.0), np.nan)

    node = np.full(shape[1], -1, dtype=np.int64)
    node[column] = times.node
    is_kept = is_known.mean(axis=1) >= _LEAST_SHARE
    earliest = np.full(shape, np.inf)
    np.minimum.at(earliest, (row, column), times.begin_s)
    parts = {name: getattr(times, f"{name}_s") for name in STEP_PARTS}
    return StepWindows(
        first_step=(first * steps)[is_kept],
        begin_s=np.nanmedian(np.where(is_known, earliest, np.nan)[is_kept], axis=1) if is_kept.any() else np.zeros(0),
        steps=steps,
        rank=rank,
        node=node,
        step_s=matrix(times.step_s)[is_kept],
        lost=_gap_count(is_known),
        parts={name: matrix(column_s)[is_kept] for name, column_s in parts.items() if (column_s >= 0.0).all()},
    )


def _newest_run(times: StepTimes) -> StepTimes:
    """What came since steps were last counted anew, as by a job that was started again."""
    order = np.lexsort((times.begin_s, times.rank))
    same = np.diff(times.rank[order]) == 0
    anew = np.flatnonzero(same & (np.diff(times.first_step[order]) < 0)) + 1
    if not len(anew):
        return times
    is_newest = times.begin_s >= times.begin_s[order][anew].max() - _STARTED_TOGETHER_S
    later = np.ones(len(times), dtype=np.bool_)
    for rank in np.unique(times.rank[order][anew]):
        mine = np.flatnonzero(times.rank == rank)
        mine = mine[np.argsort(times.begin_s[mine], kind="stable")]
        last = np.flatnonzero(np.diff(times.first_step[mine]) < 0)
        if len(last):
            later[mine[: last[-1] + 1]] = False
    is_newest &= later
    return StepTimes(**{each.name: getattr(times, each.name)[is_newest] for each in fields(StepTimes)})


def _gap_count(is_known: NDArray[np.bool_]) -> int:
    """Gaps between the first and the last entry of each column."""
    before = np.maximum.accumulate(is_known, axis=0)
    after = np.maximum.accumulate(is_known[::-1], axis=0)[::-1]
    return int((before & after & ~is_known).sum())


def peer_log_ratio(seconds: Floats) -> Floats:
    """Ln of each rank's time over the median of the other ranks', by window; NaN where a rank has no peers."""
    windows, ranks = seconds.shape
    if ranks < 2:
        return np.full(seconds.shape, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(seconds > 0.0, np.log(seconds), np.nan)
    order = np.argsort(logs, axis=1)  # NaN comes last
    ascending = np.take_along_axis(logs, order, axis=1)
    count = np.isfinite(logs).sum(axis=1, keepdims=True)
    place = np.empty_like(order)
    np.put_along_axis(place, order, np.broadcast_to(np.arange(ranks), (windows, ranks)), axis=1)

    def without_own(index: Ints) -> Floats:
        """The entry at an index of the ascending times without the rank's own."""
        index = np.clip(index + (index >= place), 0, ranks - 1)
        return np.take_along_axis(ascending, index, axis=1)

    others = np.maximum(count - 1, 1)
    median = 0.5 * (without_own((others - 1) // 2) + without_own(others // 2))
    return np.where(count >= 2, logs - median, np.nan)
