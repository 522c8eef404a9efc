"""Playing policies against recorded availability, tick by tick, and solving for the one that spends least, compiled.

A job holds nothing, spot, or on demand. Work is counted in ticks. A start on either fleet first pays for the
switch-over, which does no work. When spot ends, what was saved stays, and the next start costs a switch-over again.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from nodewise.plugin import Floats, Ints
from nodewise_laws.kernels import kernel

__all__ = ["GREEDY", "IDLE", "ON_DEMAND", "ON_DEMAND_ONLY", "PLANNED", "SPOT", "TIMED", "UNIFORM", "play", "solve"]

IDLE: Final = 0
SPOT: Final = 1
ON_DEMAND: Final = 2

ON_DEMAND_ONLY: Final = 0
GREEDY: Final = 1
UNIFORM: Final = 2
TIMED: Final = 3
PLANNED: Final = 4


@kernel
def _uniform(held: int, has_spot: int, ahead: float, hysteresis: float) -> int:
    """Keep an even pace; leave on demand only when far enough ahead of it."""
    if held == ON_DEMAND and ahead < hysteresis:
        return ON_DEMAND
    if has_spot:
        return SPOT
    return ON_DEMAND if ahead < 0.0 else IDLE


@kernel
def _place(held: int, warm: float, switch: float, most: int) -> int:
    """Index of the table by machines held: 0 none, then spot and then on demand, by ticks since the request."""
    if held == IDLE:
        return 0
    ticks = most if warm <= 1e-9 else max(min(int(switch - warm + 0.5), most), 1)
    return ticks if held == SPOT else most + ticks


@kernel
def _wanted_action(
    rule: int,
    held: int,
    has_spot: int,
    tick: int,
    work: float,
    warm: float,
    job: Floats,
    table: npt.NDArray[np.int8],
    state: int,
) -> int:
    """What a rule would do with the next tick, before the safety net."""
    total, span, switch, until, parts = job[0], job[1], job[2], job[4], job[5]
    if rule == ON_DEMAND_ONLY or (rule == TIMED and tick >= until):
        return ON_DEMAND
    if rule == UNIFORM:
        pace = total / span
        return _uniform(held, has_spot, total - work - tick * pace, 2.0 * switch * pace)
    if rule == PLANNED:
        column = min(int(work * parts + 0.999), table.shape[1] - 1)
        return int(table[int(span) - tick, column, _place(held, warm, switch, table.shape[2] // 2), state])
    if has_spot:
        return SPOT
    return ON_DEMAND if held == ON_DEMAND and rule == TIMED else IDLE


@kernel
def play(
    states: Ints,
    spots: int,
    starts: Ints,
    job: Floats,
    rule: int,
    table: npt.NDArray[np.int8],
    out: Floats,
) -> None:
    """One job from each start: its cost in ticks on demand, the tick it ends at, its ticks on spot and on demand.

    ``states`` of availability below ``spots`` have none. ``job``: ticks of work, ticks to the deadline, ticks of a
    switch-over, price of spot over that on demand, when a timed rule goes on demand, parts of a tick in the table.
    Every rule keeps the safety net: what does not leave room for a switch-over and all the rest on demand is not done,
    and, except with the plan, a job in the safety net stays in it.
    """
    span, switch = int(job[1]), job[2]
    for row in range(len(starts)):
        work, warm, held, settled = job[0], 0.0, IDLE, False
        used = np.float64(0.0)
        spot_ticks, demand_ticks, tick = 0.0, 0.0, 0
        while work > 1e-9:
            at = starts[row] + tick
            state = states[at] if at < len(states) else 0
            has_spot = 1 if state >= spots else 0
            if held == SPOT and not has_spot:
                held, warm = IDLE, 0.0
            action = ON_DEMAND
            if not settled and tick < span:
                action = _wanted_action(rule, held, has_spot, tick, work, warm, job, table, state)
                if action == SPOT and not has_spot:
                    action = IDLE
            starting = warm if action == held else switch
            if action != ON_DEMAND:
                after = work - max(1.0 - starting, 0.0) if action == SPOT else work
                if after > 1e-9 and after + switch > span - tick - 1.0 + 1e-9:
                    starting = warm if held == ON_DEMAND else switch
                    action, settled = ON_DEMAND, rule != PLANNED
            tick += 1
            held = action
            if action == IDLE:
                warm = 0.0
                continue
            warm = max(starting - 1.0, 0.0)
            began = min(starting, 1.0)
            used = min(1.0, began + work)
            work -= used - began
            if action == SPOT:
                spot_ticks += used
            else:
                demand_ticks += used
        out[row, 0] = demand_ticks + job[3] * spot_ticks
        out[row, 1] = tick - 1.0 + used
        out[row, 2], out[row, 3] = spot_ticks, demand_ticks


@kernel
def _expected_cost(
    value: Floats, action: int, column: int, held: int, chances: Floats, spots: int, job: Floats, left: int
) -> float:
    """Expected cost of an action in this tick and the best ones after it; infinite if it risks the deadline.

    ``held`` is a place of the table: see `_place`.
    """
    parts = int(job[5])
    switch = int(max(np.floor(job[2] * parts + 0.5), 1.0))
    most = (switch + parts - 1) // parts
    kind = IDLE if held == 0 else (SPOT if held <= most else ON_DEMAND)
    ticks = held - most if kind == ON_DEMAND else held
    starting, after, then, cost = 0, column, 0, 0.0
    if action != IDLE:
        starting = max(switch - ticks * parts, 0) if action == kind else switch
        began = min(starting, parts)
        after = max(column - (parts - began), 0)
        starting -= began
        then = min(ticks + 1, most) if action == kind else 1
        cost = (job[3] if action == SPOT else 1.0) * min((began + column) / parts, 1.0)
    if after == 0:
        return cost
    if after + (starting if action == ON_DEMAND else switch) > (left - 1) * parts:
        return np.inf
    for state in range(len(chances)):
        if chances[state] > 0.0:
            kept = then if state >= spots else 0
            place = most + then if action == ON_DEMAND else kept
            cost += chances[state] * value[after, place, state]
    return cost


@kernel
def solve(chances: Floats, spots: int, job: Floats, values: Floats, table: npt.NDArray[np.int8]) -> None:
    """Backward over the ticks left: the action that spends least in each, by work left, fleet held and availability.

    ``chances`` (states, states) of availability from one tick to the next; ``values`` holds what two numbers of ticks
    left cost. Where nothing keeps the deadline for sure the action is on demand.
    """
    most = table.shape[2] // 2
    values[:] = np.inf
    for left in range(1, table.shape[0]):
        later, value = values[(left + 1) % 2], values[left % 2]
        for column in range(1, table.shape[1]):
            for held in range(table.shape[2]):
                for state in range(len(chances)):
                    best, choice = np.inf, ON_DEMAND
                    for action in range(3):
                        if state < spots and (action == SPOT or 0 < held <= most):
                            continue
                        spent = _expected_cost(later, action, column, held, chances[state], spots, job, left)
                        if spent < best:
                            best, choice = spent, action
                    value[column, held, state] = best
                    table[left, column, held, state] = choice
