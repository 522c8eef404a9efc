"""When to use spot and when to pay for on demand, so that a job is done by its deadline for the least money.

Beside fixed rules after Z. Wu et al., "Can't Be Late: Optimizing Spot Instance Savings under Deadlines", NSDI 2024
(from the paper's ideas): on demand only; *greedy*, spot while there is some and otherwise nothing, until only on demand
can still make it (the safety net); *uniform progress*, which keeps the pace of work over deadline, on demand where it
falls behind, and leaves on demand only when two switch-overs ahead; and *timed*, spot up to a time and on demand from
then on. Our own is *planned*: availability is a Markov chain over whether there is spot and for how long that has been
so, learned from the record so far; dynamic programming over time and work left finds what spends least among what keeps
the deadline for sure. No rule relies on spot for its promise, so none is late where on demand can be had at any time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from nodewise.plugin import Floats, Ints
from nodewise_transient._deadline_steps import GREEDY, ON_DEMAND_ONLY, PLANNED, TIMED, UNIFORM, play, solve

__all__ = [
    "Chain",
    "Deadline",
    "Rule",
    "RuleOutcome",
    "availability_states",
    "learn_chain",
    "plan",
    "plan_cells",
    "play_rule",
]

Rule = Literal["on-demand", "greedy", "uniform-progress", "timed", "planned"]

_CODES: Final = {
    "on-demand": ON_DEMAND_ONLY,
    "greedy": GREEDY,
    "uniform-progress": UNIFORM,
    "timed": TIMED,
    "planned": PLANNED,
}
AGES_S: Final = (900.0, 3600.0, 14400.0, 43200.0)
"""Ages that part the states of availability: how long it has lasted tells how long it will, as runs without and with
spot last for minutes or for days."""
PRIOR_RUN_S: Final = 3600.0
"""What a run is taken to last where the record shows none of its age: an hour, of the order of what is published."""
_EMPTY: Final = np.zeros((1, 1, 3, 1), dtype=np.int8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadline:
    """A job with a deadline.

    Attributes
    ----------
    work_s : its time on either fleet.
    deadline_s : from its start.
    switch_s : from asking for either fleet to working on it (start-up, loading the last save); it is paid for.
    spot_share : price of spot over that of on demand.
    tick_s : how often it is decided.
    """

    work_s: float
    deadline_s: float
    switch_s: float
    spot_share: float
    tick_s: float

    def __post_init__(self) -> None:
        if self.work_s + self.switch_s > self.span * self.tick_s:
            raise ValueError("the deadline cannot be met even on demand: it is earlier than work_s + switch_s")

    @property
    def span(self) -> int:
        """Whole ticks before the deadline."""
        return int(self.deadline_s / self.tick_s + 1e-9)

    def numbers(self, *, parts: int = 1, until_s: float = 0.0) -> Floats:
        """All of it in ticks, as the kernels take it."""
        tick = self.tick_s
        ticks = (self.work_s / tick, float(self.span), self.switch_s / tick, self.spot_share, until_s / tick, parts)
        return np.array(ticks, dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chain:
    """Availability as a Markov chain: (states, states) chances per tick; the first half has no spot."""

    chances: Floats

    @property
    def spots(self) -> int:
        """The first state with spot."""
        return len(self.chances) // 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RuleOutcome:
    """Outcomes of a rule by start: cost over that of on demand only, seconds to finish, and on either fleet."""

    cost: Floats
    end_s: Floats
    spot_s: Floats
    on_demand_s: Floats


def availability_states(has_spot: npt.ArrayLike, tick_s: float) -> Ints:
    """The chain's state at every tick of a record: whether there is spot, and the class of how long so far."""
    is_available = np.asarray(has_spot) > 0.0
    change = np.append(True, is_available[1:] != is_available[:-1])
    began = np.maximum.accumulate(np.where(change, np.arange(len(is_available)), 0))
    age_s = (np.arange(len(is_available)) - began) * tick_s
    ages = np.searchsorted(np.array(AGES_S), age_s, side="right")
    return np.asarray(ages + is_available * (len(AGES_S) + 1), dtype=np.int64)


def learn_chain(states: Ints, tick_s: float) -> Chain:
    """Count what followed what, from a record; each state also counts as one run of an hour that ended."""
    ages = len(AGES_S) + 1
    counts = np.zeros((2 * ages, 2 * ages))
    np.add.at(counts, (states[:-1], states[1:]), 1.0)
    for state in range(2 * ages):
        # The prior's run stays where it is, but for one tick at which it ends.
        counts[state, state] += PRIOR_RUN_S / tick_s - 1.0
        counts[state, 0 if state >= ages else ages] += 1.0
    return Chain(chances=counts / counts.sum(axis=1, keepdims=True))


def plan(job: Deadline, chain: Chain) -> npt.NDArray[np.int8]:
    """The action that spends least, by ticks and work left, fleet held and state of availability."""
    numbers = job.numbers(parts=_parts(job))
    shape = _shape(job, chain)
    table = np.zeros(shape, dtype=np.int8)
    solve(np.ascontiguousarray(chain.chances), chain.spots, numbers, np.empty((2, *shape[1:])), table)
    return table


def plan_cells(job: Deadline, chain: Chain) -> int:
    """Entries of the plan, of one byte each."""
    return int(np.prod(np.array(_shape(job, chain), dtype=np.float64)))


def _shape(job: Deadline, chain: Chain) -> tuple[int, int, int, int]:
    numbers = job.numbers(parts=_parts(job))
    parts = int(numbers[5])
    # No machines held, and either fleet by the ticks since the request, up to those of a switch-over.
    states = 1 + 2 * -(-max(int(numbers[2] * parts + 0.5), 1) // parts)
    return job.span + 1, int(np.ceil(numbers[0] * parts)) + 1, states, len(chain.chances)


def _parts(job: Deadline) -> int:
    """Parts of a tick in which the plan tells work: few, a switch-over being nearly a whole number of them."""
    switch = max(job.switch_s / job.tick_s, 1e-9)
    return min(range(1, 7), key=lambda parts: abs(max(round(switch * parts), 1) / parts / switch - 1.0) + 0.01 * parts)


def play_rule(
    job: Deadline,
    states: Ints,
    starts: Ints,
    rule: Rule,
    *,
    until_s: float = 0.0,
    table: npt.NDArray[np.int8] | None = None,
) -> RuleOutcome:
    """Play a rule from some ticks of a record; ``table`` is the plan, ``until_s`` when a timed rule goes on demand."""
    if (rule == "planned") != (table is not None):
        raise ValueError("plan must be given for the planned rule, and for no other")
    out = np.empty((len(starts), 4))
    numbers = job.numbers(parts=_parts(job), until_s=until_s)
    play(states, len(AGES_S) + 1, starts, numbers, _CODES[rule], _EMPTY if table is None else table, out)
    alone = (job.work_s + job.switch_s) / job.tick_s
    return RuleOutcome(
        cost=out[:, 0] / alone,
        end_s=out[:, 1] * job.tick_s,
        spot_s=out[:, 2] * job.tick_s,
        on_demand_s=out[:, 3] * job.tick_s,
    )
