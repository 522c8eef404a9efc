"""Whether it pays to move from the row that a job runs on to the one that its objective prefers."""

from __future__ import annotations

from dataclasses import dataclass

from nodewise.domain.columns import Floats, Ints
from nodewise.domain.objective import CurrentConfiguration, FewestDevices, LeastCost, LeastTime, Rule

__all__ = ["Stay", "staying"]

USUAL_PAYBACK_S = 3600.0
"""Seconds in which a move must pay where nothing says how long the work takes."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Stay:
    """What a move is weighed with, row by row; times and costs of other rows have the restart in them.

    Attributes
    ----------
    held, devices : int
        Nodes and devices with those of parameter servers.
    """

    rate: Floats
    finish_s: Floats | None
    costs: Floats | None
    held: Ints
    devices: Ints

    def meets(self, rule: Rule, row: int) -> bool:
        """Whether a row keeps the limits of a rule."""
        if isinstance(rule, LeastTime):
            in_nodes = rule.max_nodes is None or self.held[row] <= rule.max_nodes
            return in_nodes and (rule.max_cost is None or self.costs is None or self.costs[row] <= rule.max_cost)
        if isinstance(rule, LeastCost | FewestDevices) and rule.deadline_s is not None:
            return self.finish_s is None or bool(self.finish_s[row] <= rule.deadline_s)
        return True

    def key(self, rule: Rule, row: int) -> tuple[float, ...] | None:
        """What a rule of time or cost compares, less is better; None = it compares rates."""
        if isinstance(rule, LeastCost) and self.costs is not None:
            return (float(self.costs[row]),)
        if isinstance(rule, FewestDevices) and self.finish_s is not None:
            return float(self.devices[row]), float(self.finish_s[row])
        if isinstance(rule, LeastTime) and self.finish_s is not None:
            return (float(self.finish_s[row]),)
        return None


def staying(rule: Rule, current: CurrentConfiguration, here: int, there: int, rows: Stay) -> float | None:
    """Seconds within which moving from one row to another does not pay; None = it does.

    Rules of time and cost compare both with the restart in them. Others compare what is done within the seconds in
    which the move must have paid for itself: those stated, else those of the work on the current row.
    """
    if not rows.meets(rule, here):
        return None
    work_s = None if rows.finish_s is None else float(rows.finish_s[here])
    stated_s = current.payback_s
    window_s = stated_s if stated_s is not None else work_s if work_s is not None else USUAL_PAYBACK_S
    now, then = rows.key(rule, here), rows.key(rule, there)
    if now is not None and then is not None:
        return None if then < now else work_s if work_s is not None else window_s
    done = float(rows.rate[there]) * max(window_s - current.restart_cost_s, 0.0)
    return None if done > float(rows.rate[here]) * window_s else window_s
