"""Whether it pays to move from the row that a job runs on to the one that its objective prefers."""

from __future__ import annotations

from typing import Final

from nodewise.domain.objective import CurrentConfiguration, FewestDevices, LeastCost, LeastTime, Rule
from nodewise.estimation.answer.rules import Rows

__all__ = ["staying"]

USUAL_PAYBACK_S: Final = 3600.0
"""Seconds in which a move must pay where nothing says how long the work takes."""


def staying(rule: Rule, current: CurrentConfiguration, here: int, there: int, rows: Rows) -> float | None:
    """Seconds within which moving from one row to another does not pay; None = it does.

    Rules of time and cost compare both with the restart in them. Others compare what is done within the seconds in
    which the move must have paid for itself: those stated, else those of the work on the current row.
    """
    if not rows.within(rule)[here]:
        return None
    work_s = None if rows.finish_s is None else float(rows.finish_s[here])
    stated_s = current.payback_s
    window_s = stated_s if stated_s is not None else work_s if work_s is not None else USUAL_PAYBACK_S
    now, then = _key(rule, rows, here), _key(rule, rows, there)
    if now is not None and then is not None:
        return None if then < now else work_s if work_s is not None else window_s
    done = float(rows.rate[there]) * max(window_s - current.restart_cost_s, 0.0)
    return None if done > float(rows.rate[here]) * window_s else window_s


def _key(rule: Rule, rows: Rows, row: int) -> tuple[float, ...] | None:
    """What a rule of time or cost compares, less is better; None = it compares rates."""
    if isinstance(rule, LeastCost) and rows.costs is not None:
        return (float(rows.costs[row]),)
    if isinstance(rule, FewestDevices) and rows.finish_s is not None:
        return float(rows.devices[row]), float(rows.finish_s[row])
    if isinstance(rule, LeastTime) and rows.finish_s is not None:
        return (float(rows.finish_s[row]),)
    return None
