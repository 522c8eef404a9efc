"""Facts that a job does not state, their likely values, and how much these move a step and widen the interval.

A step is computed with the most likely value of each fact; what the others add to its deviation is a matter of
`nodewise_laws.alternatives`. Partitioned transformers are treated alike (`nodewise_partitioning`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from nodewise.plugin import Floats, Ints, Notice, freeze
from nodewise_laws.alternatives import DEVIATIONS, Effects, deviation_of

__all__ = ["EVEN", "LEAST_WEIGHT", "Unsaid", "mixed_unsaid", "unsaid_notices", "unsaid_of"]

LEAST_EFFECT: Final = 0.02
"""Least effect, in ln, from which a notice names a fact."""

EVEN: Final = 0.5
LEAST_WEIGHT: Final = 0.01
"""Likely values of less weight are dropped."""

FEW: Final = 256
"""Rows of which a list is sorted sooner than an array."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Unsaid:
    """One fact that is not stated, row by row.

    Attributes
    ----------
    fact : str
        As tables call it.
    taken : str
        What it is taken as and why, in words.
    effects : (3, n) float
        Deviation of ln(step); least and most times the step, over the likely values.
    """

    fact: str
    taken: str
    effects: Floats

    @property
    def deviation(self) -> Floats:
        """(n,) of ln(step)."""
        deviation: Floats = self.effects[0]
        return deviation

    def take(self, rows: Ints) -> Unsaid:
        """Some rows, in the given order."""
        return Unsaid(fact=self.fact, taken=self.taken, effects=self.effects.take(rows, axis=1))

    def prepend_row(self) -> Unsaid:
        """The same with an unused row before the others."""
        return replace(self, effects=freeze(np.concatenate((self.effects[:, :1], self.effects), axis=1)))

    def repeat(self, rows: int) -> Unsaid:
        """One row for several that ask the same."""
        return replace(self, effects=freeze(self.effects.repeat(rows, axis=1)))

    def read_between(self, workers: Ints, nodes: Ints) -> Unsaid:
        """Rows for all numbers of workers, read off between some."""
        return replace(self, effects=np.stack([np.interp(workers, nodes, column) for column in self.effects]))


def unsaid_of(fact: str, assumption: str, effects: Effects, log_spread: Floats) -> Unsaid:
    """Effect of a fact on rows whose model alone has a deviation of ``log_spread``."""
    moved = np.stack([np.zeros(np.shape(log_spread)), *(effect for effect, _ in effects)])
    deviation = deviation_of(effects, log_spread)
    moves = np.stack([deviation, np.exp(moved.min(axis=0)), np.exp(moved.max(axis=0))])
    return Unsaid(fact=fact, taken=assumption, effects=moves)


def mixed_unsaid(parts: Sequence[Sequence[Unsaid]], weights: Sequence[Floats]) -> tuple[Unsaid, ...]:
    """Facts of a step that is composed of several, each with its weight row by row."""
    nothing = np.array([[0.0], [1.0], [1.0]])
    unsaid_by_fact: dict[str, Unsaid] = {}
    for unsaid, weight in zip(parts, weights, strict=True):
        for each in unsaid:
            before = unsaid_by_fact[each.fact].effects if each.fact in unsaid_by_fact else nothing
            unsaid_by_fact[each.fact] = replace(each, effects=before + weight * (each.effects - nothing))
    return tuple(unsaid_by_fact.values())


def unsaid_notices(unsaid: Sequence[Unsaid], log_spread: Floats) -> tuple[Notice, ...]:
    """What widens the interval of rows, and which fact would narrow it most; ``log_spread`` holds their doubt."""
    relevant = [each for each in unsaid if each.deviation.max(initial=0.0) >= LEAST_EFFECT]
    if not relevant:
        return ()
    if len(relevant) > 1:
        relevant.sort(key=lambda each: -float(np.square(each.deviation).mean()))
    texts = [
        f"{each.fact} ({each.taken}; {each.effects[1].min():.2f} to {each.effects[2].max():.2f} times the step)"
        for each in relevant
    ]
    width, deviation = _middle(log_spread), _middle(relevant[0].deviation)
    without = math.sqrt(max(width * width - deviation * deviation, 0.0))
    before, after = (math.exp(2.0 * DEVIATIONS * each) for each in (width, without))
    text = f"not stated, so the interval allows for: {', '.join(texts)}"
    narrowed = f"from an upper bound of {before:.3g} times the lower one to {after:.3g} times"
    return (Notice("UNSAID", f"{text}. Stating {relevant[0].fact} would narrow the interval most: {narrowed}"),)


def _middle(column: Floats) -> float:
    """The median, of few rows the upper one."""
    if len(column) > FEW:
        return float(np.median(column))
    return float(sorted(column.tolist())[len(column) // 2])
