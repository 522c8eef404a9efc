"""Rules: choose the preferred row among the answered rows, with the reason and the numbers behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import lt
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.columns import Floats, Ints
from nodewise.domain.configurations import Configurations
from nodewise.domain.objective import FewestDevices, HighestThroughput, Knee, LeastCost, LeastTime, Rule
from nodewise.domain.words import number, pluralize

__all__ = ["Preference", "Rows", "apply_rule"]

ONLY_ONE: Final = "the only size to choose from"
"""Reason text if there is only one row."""
KNEE_TOLERANCE: Final = 1e-9
"""Relative tolerance of the knee rule, so that rounding does not reject exactly linear scaling at share 1."""

Preference = tuple[int | None, str, dict[str, float]]
"""The row (None = no row is within the limits of the rule), the reason, and the numbers behind it."""


class _Remembering:
    """A slot for a cached value that is not a dataclass field."""

    __slots__ = ("_steps",)

    _steps: tuple[list[int], list[float], Sequence[int]]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Rows(_Remembering):
    """The answered rows of a question, prepared for the rules.

    Attributes
    ----------
    configurations, index : Configurations, slice or int
        The configurations of the question, and the places of these rows among them.
    scale, scale_name : int, str
        Number of nodes, or of workers if all rows have the same number of nodes; and its name.
    rate, rate_name : float, str
        Rate of each row (goodput, samples/s or steps/s), and the name of its unit.
    finish_s, costs : float or None
        Time in seconds and cost of the work. All rows but the current one include the restart.
    """

    configurations: Configurations
    index: slice | Ints
    nodes: Ints
    workers: Ints
    scale: Ints
    scale_name: str
    rate: Floats
    rate_name: str
    finish_s: Floats | None = None
    costs: Floats | None = None
    currency: str = ""

    @property
    def nodes_held(self) -> Ints:
        """Nodes of each row, including the nodes of parameter servers."""
        return self.configurations.nodes_held()[self.index]

    @property
    def devices(self) -> Ints:
        """Devices of each row: one for each worker and one for each parameter server."""
        return self.configurations.devices_held()[self.index]

    @property
    def rate_key(self) -> str:
        """Key of the rate in the numbers of a preference."""
        return _key_of(self.rate_name)

    @property
    def steps(self) -> tuple[list[int], list[float], Sequence[int]]:
        """Scales in ascending order, with the best rate at each scale and its row. Cached for the next knee rule."""
        try:
            return self._steps
        except AttributeError:
            # Python lists: a question has a few dozen rows, for which the call overhead of array functions dominates.
            scale, rate = self.scale.tolist(), self.rate.tolist()
            steps: tuple[list[int], list[float], Sequence[int]] = scale, rate, range(len(scale))
            if not all(map(lt, scale, scale[1:])):
                best: dict[int, int] = {}
                for row, count in enumerate(scale):
                    if count not in best or rate[row] > rate[best[count]]:
                        best[count] = row  # keep the best row of each scale
                places = [best[count] for count in sorted(best)]
                steps = [scale[row] for row in places], [rate[row] for row in places], places
            object.__setattr__(self, "_steps", steps)
            return steps

    def scale_text(self, row: int) -> str:
        """Return the scale of a row as text for people."""
        return pluralize(int(self.scale[row]), self.scale_name[:-1])

    def within(self, rule: Rule) -> NDArray[np.bool_]:
        """Return a mask of the rows within the limits of a rule. A limit on unknown costs or times is ignored."""
        within_limits = np.ones(len(self.rate), dtype=bool)
        if rule.max_nodes is not None:
            within_limits &= self.nodes_held <= rule.max_nodes
        for most, column in ((rule.max_cost, self.costs), (rule.deadline_s, self.finish_s)):
            if most is not None and column is not None:
                within_limits &= column <= most
        return within_limits

    def least(self, is_allowed: NDArray[np.bool_], *keys: Floats | Ints) -> int:
        """Return the allowed row with the least keys, compared in order; the first row among equal ones."""
        candidates = np.flatnonzero(is_allowed)
        for key in keys:
            values = key[candidates]
            candidates = candidates[values == values.min()]
        return int(candidates[0])

    def numbers(self, row: int, *names: str) -> dict[str, float]:
        """Return the known values of a row, by name."""
        columns = {self.rate_key: self.rate, "finish_s": self.finish_s, "cost": self.costs}
        return {name: float(column[row]) for name in names if (column := columns[name]) is not None}


@lru_cache(maxsize=64)
def _key_of(rate_name: str) -> str:
    whole, _, of = rate_name.partition(" of ")
    key = whole.replace("/", "_per_")
    return f"goodput_{key}" if of == "goodput" else f"{key}_of_{of}".replace(" ", "_") if of else key


def apply_rule(rule: Rule, rows: Rows) -> tuple[str, Preference]:
    """Return the name of a rule and its preference among at least one row."""
    name, prefer = _RULES[type(rule)]
    return name, prefer(rows, rule)


def _highest(rows: Rows, rule: HighestThroughput) -> Preference:
    best = rows.least(rows.within(rule), -rows.rate, rows.nodes)
    what = f"{number(float(rows.rate[best]))} {rows.rate_name} on {rows.scale_text(best)}"
    row_count = len(rows.rate)
    why = f"{what} is the highest of {row_count} configurations" if row_count > 1 else f"{what}, {ONLY_ONE}"
    return best, why, rows.numbers(best, rows.rate_key)


def _knee(rows: Rows, rule: Knee) -> Preference:
    (counts, rates, places), share = rows.steps, rule.share
    base = rates[0] / counts[0]
    enough = share * base * (1.0 - KNEE_TOLERANCE)
    at, gain = 0, 0.0
    # The largest sufficient step decides, so the search starts at the end.
    for place in range(len(counts) - 1, 0, -1):
        step_gain = (rates[place] - rates[place - 1]) / (counts[place] - counts[place - 1])
        if step_gain >= enough:
            at, gain = place, step_gain
            break
    row, unit = places[at], rows.rate_name
    key, one = rows.rate_key, rows.scale_name[:-1]
    numbers = {key: rates[at], "share": share, f"{key}_per_{one}": base}
    if at:
        numbers[f"gain_per_{one}"] = gain
        why = (
            f"{rows.scale_text(row)}: the step from {counts[at - 1]} brings {number(gain)} {unit} each, "
            f"at least {share:g} of the {number(base)} at {counts[0]}"
        )
        if at < len(counts) - 1:
            why += "; no larger step does"
    elif len(counts) > 1:
        gain_text = f"{share:g} of the {number(base)} {unit} each at {counts[0]}"
        why = f"{rows.scale_text(row)}: no larger step brings {gain_text}"
    else:
        why = f"{number(rates[0])} {unit} on {rows.scale_text(row)}, {ONLY_ONE}"
    return row, why, numbers


def _least_time(rows: Rows, rule: LeastTime) -> Preference:
    limits = []
    if rule.max_nodes is not None:
        limits.append(f"{rule.max_nodes} nodes")
    if rule.max_cost is not None:
        limits.append(f"a cost of {rule.max_cost:g} {rows.currency}".rstrip())
    within = " and ".join(limits)
    is_allowed = rows.within(rule)
    if not is_allowed.any():
        least = f"; the cheapest row costs {number(rows.costs.min())}" if rows.costs is not None else ""
        return None, f"no row stays within {within}: the smallest has {rows.nodes_held.min()} nodes{least}", {}
    # Time spent once can change the order, so times are compared if they are known.
    best = rows.least(is_allowed, -rows.rate if rows.finish_s is None else rows.finish_s, rows.nodes)
    time = f"{number(rows.rate[best])} {rows.rate_name}"
    if rows.finish_s is not None:
        time = f"{number(rows.finish_s[best])} s"
    why = f"{time} on {rows.nodes[best]} nodes is the least time{f' within {within}' if within else ''}"
    return best, why, rows.numbers(best, rows.rate_key, "finish_s", "cost")


def _least_cost(rows: Rows, rule: LeastCost) -> Preference:
    assert rows.costs is not None  # least cost without prices was refused
    is_allowed = rows.within(rule)
    if not is_allowed.any():
        return _too_late(rows, rule, lambda row: f"{rows.nodes[row]} nodes")
    within = "without a deadline" if rule.deadline_s is None else f"within {number(rule.deadline_s)} s"
    best = rows.least(is_allowed, rows.costs, rows.nodes)
    cost = f"{number(rows.costs[best])} {rows.currency}".rstrip()
    why = f"{cost} on {rows.nodes[best]} nodes is the least cost {within}"
    return best, why, rows.numbers(best, "cost", rows.rate_key, "finish_s")


def _fewest_devices(rows: Rows, rule: FewestDevices) -> Preference:
    def devices(row: int) -> str:
        servers = int(rows.devices[row] - rows.workers[row])
        beside = f" and {servers} parameter server{'s' if servers > 1 else ''}" if servers else ""
        return f"{rows.workers[row]} devices{beside}"

    assert rows.finish_s is not None  # a deadline without work was refused
    in_time = rows.within(rule)
    if not in_time.any():
        return _too_late(rows, rule, devices)
    best = rows.least(in_time, rows.devices, rows.finish_s, rows.nodes)
    within = f"within {number(rule.deadline_s)} s"
    why = f"{devices(best)}, done in {number(rows.finish_s[best])} s, are the fewest {within}"
    return best, why, rows.numbers(best, rows.rate_key, "finish_s")


def _too_late(rows: Rows, rule: LeastCost | FewestDevices, where: Callable[[int], str]) -> Preference:
    assert rows.finish_s is not None  # a deadline without work was refused
    assert rule.deadline_s is not None
    fastest = int(rows.finish_s.argmin())
    took = f"the fastest takes {number(rows.finish_s[fastest])} s on {where(fastest)}"
    return None, f"no row finishes within {number(rule.deadline_s)} s: {took}", {}


_RULES: Final[Mapping[type[Rule], tuple[str, Callable[[Rows, Any], Preference]]]] = MappingProxyType(
    {
        HighestThroughput: ("highest_throughput", _highest),
        Knee: ("knee", _knee),
        LeastTime: ("least_time", _least_time),
        LeastCost: ("least_cost", _least_cost),
        FewestDevices: ("fewest_devices", _fewest_devices),
    }
)
