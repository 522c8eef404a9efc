"""What the times of steps say of a job that runs: slow ranks, machines, exchanges and periods."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.plugin import Floats, StepAlarm, StepsDiagnosis, StepTimes
from nodewise_diagnosis.slow_hours import find_slow_hours
from nodewise_diagnosis.slowdowns import LEARNED, SLOWDOWN, Slowdown, find_slowdowns
from nodewise_diagnosis.step_windows import StepWindows, align_windows, peer_log_ratio

__all__ = ["diagnose_steps", "windows_between_alarms"]

_RANK_HOURS: Final = 10_000.0
"""Between false alarms, as the threshold is set: ten times what is promised, as times are not normally distributed."""
_NODE_SHARE: Final = 2 / 3
"""Of a machine's ranks that are slow together, from which on the machine is named."""
_TOGETHER: Final = 5
"""Windows that the begins of one slowdown are apart on several ranks."""
_SAME_CAUSE: Final = 0.5
"""Of a longer step that a slow rank explains, from which on the job is not named beside it."""
_SPREADS: Final = 3.0
"""Spreads of the other ranks beyond which one that was always slower is named."""
_NORMAL_95: Final = 1.645
_ERROR_OF_MEDIAN: Final = math.sqrt(math.pi / 2)
_MOST_ALARMS: Final = 1000


def diagnose_steps(windows: StepTimes, hours: StepTimes) -> StepsDiagnosis:
    """Alarms and recurring hours of a job that runs.

    Ranks are compared with their peers in the time without waiting, as exchanges of gradients give all of
    them the same step. Where the parts of the step do not tell that time, only the job's step is followed.

    Parameters
    ----------
    windows : StepTimes
        The period of interest.
    hours : StepTimes
        Medians by hour, of all days that are kept.
    """
    aligned = align_windows(windows)
    slow_hours = find_slow_hours(hours)
    count, ranks = aligned.step_s.shape
    if count < LEARNED:
        return StepsDiagnosis(
            alarms=(),
            slow_hours=slow_hours,
            verdict=f"Too few steps: most ranks reported {count} windows of {aligned.steps} steps, and {LEARNED} "
            "windows are needed.",
            ranks=ranks,
            steps=count * aligned.steps,
            lost_windows=aligned.lost,
            step_s=float(np.nanmedian(aligned.step_s)) if count else 0.0,
        )
    apart = windows_between_alarms(max(float(np.median(np.diff(aligned.begin_s))), 1e-3))
    own_s = aligned.own_s
    alarms = [] if own_s is None or ranks < 2 else _slow_ranks(aligned, own_s, apart)
    alarms += _slow_job(aligned, apart, alarms)
    alarms.sort(key=lambda alarm: (alarm.end_s > 0, -alarm.begin_s, alarm.ranks))
    return StepsDiagnosis(
        alarms=tuple(alarms[:_MOST_ALARMS]),
        slow_hours=slow_hours,
        verdict=_verdict(alarms, aligned, ranks_known=own_s is not None),
        ranks=ranks,
        steps=count * aligned.steps,
        lost_windows=aligned.lost,
        step_s=float(np.nanmedian(aligned.step_s)),
    )


def windows_between_alarms(window_s: float) -> float:
    """Windows of one rank between false alarms, as the threshold is set; a window lasts ``window_s`` seconds."""
    return _RANK_HOURS * 3600.0 / window_s


@dataclass(frozen=True, slots=True)
class _Group:
    """Ranks, by column, that are slow together; node -1 = not one machine."""

    columns: tuple[int, ...]
    node: int
    slowdown: Slowdown


def _slow_ranks(aligned: StepWindows, own_s: Floats, apart: float) -> list[StepAlarm]:
    """Ranks that became slower than their peers, or always were; those of one machine as one."""
    ratio = peer_log_ratio(own_s)
    slowdowns = [*_always_slow(ratio), *find_slowdowns(ratio, apart)]
    return [_rank_alarm(aligned, group) for group in _by_machine(aligned, slowdowns)]


def _always_slow(ratio: Floats) -> list[Slowdown]:
    """Ranks that take longer than the others from the first window on: by 5 %, and beyond what others differ by."""
    count, ranks = ratio.shape
    level = np.nanmedian(ratio[:LEARNED], axis=0)
    spread = 1.4826 * np.nanmedian(np.abs(ratio[:LEARNED] - level), axis=0)
    error = _NORMAL_95 * _ERROR_OF_MEDIAN * spread / math.sqrt(LEARNED)
    slowdowns = []
    for rank in np.flatnonzero(level - error > SLOWDOWN / 2).tolist():
        others = np.delete(level, rank)
        apart = 1.4826 * float(np.nanmedian(np.abs(others - np.nanmedian(others)))) if ranks > 2 else 0.0
        if level[rank] > _SPREADS * apart:
            later = np.flatnonzero(ratio[LEARNED:, rank] < level[rank] / 2)
            runs = np.flatnonzero(np.convolve(np.isin(np.arange(count - LEARNED), later), np.ones(3), "valid") == 3)
            end = int(runs[0]) + LEARNED if len(runs) else -1
            size = float(np.nanmedian(ratio[: end if end >= 0 else None, rank]))
            slowdowns.append(
                Slowdown(series=rank, begin=0, alarm=LEARNED, end=end, size=size, error=float(error[rank]))
            )
    return slowdowns


def _by_machine(aligned: StepWindows, slowdowns: Sequence[Slowdown]) -> list[_Group]:
    """Slowdowns of most ranks of one machine that begin together become one, of their median size."""
    groups: list[_Group] = []
    left = list(slowdowns)
    while left:
        first = left[0]
        node = int(aligned.node[first.series])
        members = np.flatnonzero(aligned.node == node)
        together = [
            one for one in left if aligned.node[one.series] == node and abs(one.begin - first.begin) <= _TOGETHER
        ]
        slow = {one.series for one in together}
        several = len(aligned.rank) > len(members) > 1
        if node >= 0 and several and len(slow) > 1 and len(slow) >= _NODE_SHARE * len(members):
            middle = sorted(together, key=lambda one: one.size)[len(together) // 2]
            groups.append(_Group(tuple(sorted(slow)), node, middle))
        else:
            together = [first]
            groups.append(_Group((first.series,), -1, first))
        left = [one for one in left if one not in together]
    return groups


def _rank_alarm(aligned: StepWindows, group: _Group) -> StepAlarm:
    one = group.slowdown
    run = slice(one.begin, one.end if one.end >= 0 else None)
    others = np.delete(np.arange(len(aligned.rank)), group.columns)
    part, most = "step", 0.0
    for name, seconds in aligned.parts.items():
        if name == "exchange":
            continue
        excess = _median(seconds[run][:, group.columns]) - _median(seconds[run][:, others])
        if one.begin > 0:
            excess -= _median(seconds[: one.begin, group.columns]) - _median(seconds[: one.begin][:, others])
        if excess > most:
            part, most = name, excess
    ranks = tuple(aligned.rank[list(group.columns)].tolist())
    whose = f"Node {group.node} (ranks {_rank_list(ranks)})" if group.node >= 0 else f"Rank {ranks[0]}"
    verb = "take" if group.node >= 0 and len(ranks) > 1 else "takes"
    return _alarm(aligned, one, "node" if group.node >= 0 else "rank", ranks, group.node, part, f"{whose} {verb}")


def _slow_job(aligned: StepWindows, apart: float, of_ranks: Sequence[StepAlarm]) -> list[StepAlarm]:
    """Slowdowns of the step of all ranks that no slow rank explains."""
    with np.errstate(divide="ignore"):
        level = np.log(np.nanmedian(aligned.step_s, axis=1))[:, None]
    alarms = []
    for one in find_slowdowns(level, apart * max(1, len(aligned.rank)), alike=False):
        begin_s = aligned.begin_s[one.begin]
        window_s = float(np.median(np.diff(aligned.begin_s)))
        explained_share = sum(
            each.slowdown - 1.0
            for each in of_ranks
            if each.first_step >= 0 and abs(each.begin_s - begin_s) <= _TOGETHER * window_s
        )
        if explained_share >= _SAME_CAUSE * math.expm1(one.size):
            continue
        run = slice(one.begin, one.end if one.end >= 0 else None)
        growth = {
            name: _median(seconds[run]) - _median(seconds[: one.begin]) for name, seconds in aligned.parts.items()
        }
        part = max(growth, key=growth.__getitem__, default="step")
        part = part if growth.get(part, 0.0) > 0.0 else "step"
        total = _median(aligned.step_s[run]) - _median(aligned.step_s[: one.begin])
        kind = "exchange" if part == "exchange" and growth[part] > _SAME_CAUSE * total else "job"
        alarms.append(_alarm(aligned, one, kind, (), -1, part, "All ranks take"))
    return alarms


def _alarm(
    aligned: StepWindows, one: Slowdown, kind: str, ranks: tuple[int, ...], node: int, part: str, whose: str
) -> StepAlarm:
    lasting = one.end < 0
    ratios = [math.exp(one.size + sign * one.error) for sign in (0, -1, 1)]
    since = f"since step {aligned.first_step[one.begin]}" if one.begin else "since the first report"
    until = "" if lasting else f" until step {aligned.first_step[one.end]}"
    than = "than before" if kind in {"job", "exchange"} else "than the others"
    where = "" if part == "step" else f", most of it in {_NAMES[part]}"
    low, high = (100 * (each - 1) for each in ratios[1:])
    return StepAlarm(
        kind=kind,
        ranks=ranks,
        node=node,
        part=part,
        first_step=int(aligned.first_step[one.begin]) if one.begin else -1,
        begin_s=float(aligned.begin_s[one.begin]),
        end_s=0.0 if lasting else float(aligned.begin_s[one.end]),
        slowdown=ratios[0],
        lower_slowdown=ratios[1],
        upper_slowdown=ratios[2],
        what=f"{whose} {100 * (ratios[0] - 1):.0f} % ({low:.0f} to {high:.0f} %) longer {than} {since}{until}{where}.",
    )


_NAMES: Final = {
    "loading": "the loading of batches",
    "forward": "the forward pass",
    "backward": "the backward pass",
    "exchange": "the exchange of gradients",
    "update": "the update of parameters",
}


def _verdict(alarms: Sequence[StepAlarm], aligned: StepWindows, *, ranks_known: bool) -> str:
    lasting = [alarm for alarm in alarms if not alarm.end_s]
    first = lasting[0].what if lasting else "Nothing is slower than it was."
    if len(lasting) > 1:
        first += f" {len(lasting) - 1} more slowdowns continue."
    if not ranks_known and len(aligned.rank) > 1:
        first += " The parts of the step were not reported, so the rank cannot be named."
    return first


def _median(seconds: Floats) -> float:
    return float(np.nanmedian(seconds)) if seconds.size else 0.0


def _rank_list(ranks: Sequence[int]) -> str:
    names = ", ".join(map(str, ranks[:8]))
    return names if len(ranks) <= 8 else f"{names}, ..."
