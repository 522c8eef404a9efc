"""Step times that a running job's ranks report, and their diagnosis."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

import numpy as np

from nodewise.domain.columns import Floats, Ints

__all__ = ["STEP_PARTS", "SlowHour", "StepAlarm", "StepTimes", "StepsDiagnosis"]

STEP_PARTS: Final = ("loading", "forward", "backward", "exchange", "update")
"""Parts of a step that a recorder measures separately."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StepTimes:
    """Windows of consecutive steps, one row per rank and window; seconds are medians over the window's steps.

    Attributes
    ----------
    rank, node : (n,) int
        Which process; its machine within the job, -1 = not known.
    first_step, steps : (n,) int
        Number of the window's first step, a multiple of its number of steps, and that number.
    begin_s : (n,) float
        When it began, seconds since 1970.
    step_s : (n,) float
        The whole step.
    loading_s, forward_s, backward_s, exchange_s, update_s : (n,) float
        Parts of it; negative = not known.
    """

    rank: Ints
    node: Ints
    first_step: Ints
    steps: Ints
    begin_s: Floats
    step_s: Floats
    loading_s: Floats
    forward_s: Floats
    backward_s: Floats
    exchange_s: Floats
    update_s: Floats

    def __len__(self) -> int:
        return len(self.rank)

    @staticmethod
    def concatenated(several: list[StepTimes]) -> StepTimes:
        """All rows of several."""
        names = [each.name for each in fields(StepTimes)]
        kinds = dict.fromkeys(("rank", "node", "first_step", "steps"), np.int64)
        columns = {
            name: np.concatenate([getattr(one, name) for one in several] or [np.empty(0, kinds.get(name, np.float64))])
            for name in names
        }
        return StepTimes(**columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepAlarm:
    """A slowdown in the step times.

    Attributes
    ----------
    kind : str
        ``rank``, ``node``, ``exchange`` (all ranks, in the exchange alone) or ``job`` (all ranks).
    ranks : tuple of int
        The slow ones; empty = all.
    node : int
        Their machine, if they are on one; -1 = several machines.
    part : str
        The part of the step that grew most, of ``STEP_PARTS``, or ``step``.
    first_step : int
        First slow step; -1 = the first known step.
    begin_s, end_s : float
        Begin and end, seconds since 1970; an end of 0 = it lasts.
    slowdown, lower_slowdown, upper_slowdown : float
        Time relative to the time before, or to the other ranks, with its interval (90 %).
    what : str
        The same in one sentence.
    """

    kind: str
    ranks: tuple[int, ...]
    node: int
    part: str
    first_step: int
    begin_s: float
    end_s: float
    slowdown: float
    lower_slowdown: float
    upper_slowdown: float
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowHour:
    """An hour of the day (UTC) in which the job was slow on several days.

    ``slowdown`` is the median over days of its step over that of the other hours of the same day.
    """

    hour: int
    slowdown: float
    slow_days: int
    days: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StepsDiagnosis:
    """Diagnosis of step times: alarms, the newest first, recurring slow hours, and a summary in one sentence.

    ``steps`` counts those of one rank, ``lost_windows`` windows between a rank's first and last that never came;
    ``step_s`` is the median over ranks and windows.
    """

    alarms: tuple[StepAlarm, ...]
    slow_hours: tuple[SlowHour, ...]
    verdict: str
    ranks: int
    steps: int
    lost_windows: int
    step_s: float
