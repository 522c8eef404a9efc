"""What a job leaves unsaid has likely values: how far each moves a step, and how much that widens the interval.

A step is computed with the most likely value. The deviation of ln(step) from the others is the root of the mean square
of their effects by weight, and at least what leaves 5 % of the probability beyond the interval's bound where another
value may hold: of a value of weight w and effect d, the bound is d + z s, with s the model's own deviation and z the
quantile of 1 - 0.05 / w of a normal variable. Partitioned transformers are treated alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np

from nodewise.plugin import Floats, Ints, Notice, freeze

__all__ = ["Unsaid", "mean_square", "mixed_unsaid", "unsaid_notices", "unsaid_of"]

BEYOND: Final = 0.05
"""Probability beyond each bound of a 90 % interval; values of less weight lie outside of it."""
DEVIATIONS: Final = 1.645
"""From the middle to the bounds of a 90 % interval of a normal variable."""
TOLD: Final = 0.02
"""Ln of the effect from which a fact is told."""

_NORMAL: Final = NormalDist()

Effects = Sequence[tuple[Floats, float]]
"""Ln of how many times as long steps take with each other value, row by row, and the value's weight."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Unsaid:
    """One fact that is not stated, row by row.

    Attributes
    ----------
    fact : str
        As tables call it.
    taken : str
        What it is taken as and why, in words.
    deviation : (n,) float
        Of ln(step).
    least, most : (n,) float
        Times the step, over the likely values.
    """

    fact: str
    taken: str
    deviation: Floats
    least: Floats
    most: Floats

    def take(self, rows: Ints) -> Unsaid:
        """Some rows, in the given order."""
        return self._over(lambda column: column[rows])

    def counted(self) -> Unsaid:
        """The same with a row of no effect before the others."""
        return self._over(lambda column: np.concatenate((column[:1], column)))

    def repeated(self, rows: int) -> Unsaid:
        """One row for several that ask the same."""
        return self._over(lambda column: column.repeat(rows))

    def read_between(self, workers: Ints, nodes: Ints) -> Unsaid:
        """Rows for all numbers of workers, read off between some."""
        return self._over(lambda column: np.interp(workers, nodes, column))

    def _over(self, change: Callable[[Floats], Floats]) -> Unsaid:
        columns = (freeze(np.asarray(change(column))) for column in (self.deviation, self.least, self.most))
        deviation, least, most = columns
        return Unsaid(fact=self.fact, taken=self.taken, deviation=deviation, least=least, most=most)


def mean_square(effects: Effects) -> Floats | float:
    """Mean square of the effects by weight."""
    return sum((weight * np.square(effect) for effect, weight in effects), start=0.0)


def unsaid_of(fact: str, taken: str, effects: Effects, log_spread: Floats) -> Unsaid:
    """What a fact does to rows whose model alone has a deviation of ``log_spread``."""
    bound = np.zeros(np.shape(log_spread))
    for effect, weight in effects:
        if weight > BEYOND:
            quantile = _NORMAL.inv_cdf(1.0 - BEYOND / weight)
            reached = np.abs(effect) + quantile * log_spread * (np.abs(effect) > 0.0)
            bound = np.maximum(bound, reached)
    beside = np.square(bound / DEVIATIONS) - np.square(log_spread)
    moved = np.stack([np.zeros(np.shape(log_spread)), *(effect for effect, _ in effects)])
    return Unsaid(
        fact=fact,
        taken=taken,
        deviation=np.sqrt(np.maximum(np.maximum(mean_square(effects), beside), 0.0)),
        least=np.exp(moved.min(axis=0)),
        most=np.exp(moved.max(axis=0)),
    )


def mixed_unsaid(parts: Sequence[Sequence[Unsaid]], weights: Sequence[Floats]) -> tuple[Unsaid, ...]:
    """Facts of a step that is made of several, each of which is so much of it row by row."""
    found: dict[str, Unsaid] = {}
    for unsaid, weight in zip(parts, weights, strict=True):
        for each in unsaid:
            before = found.get(each.fact)
            deviation = weight * each.deviation
            least, most = (1.0 + weight * (column - 1.0) for column in (each.least, each.most))
            if before is not None:
                deviation = deviation + before.deviation
                least, most = least + before.least - 1.0, most + before.most - 1.0
            found[each.fact] = Unsaid(fact=each.fact, taken=each.taken, deviation=deviation, least=least, most=most)
    return tuple(found.values())


def unsaid_notices(unsaid: Sequence[Unsaid], log_spread: Floats) -> Iterator[Notice]:
    """What widens the interval of rows, and which fact would narrow it most; ``log_spread`` holds their doubt."""
    told = [each for each in unsaid if each.deviation.max(initial=0.0) >= TOLD]
    if not told:
        return
    told.sort(key=lambda each: -float(np.square(each.deviation).mean()))
    without = np.sqrt(np.maximum(np.square(log_spread) - np.square(told[0].deviation), 0.0))
    texts = [
        f"{each.fact} ({each.taken}; {each.least.min():.2f} to {each.most.max():.2f} times the step)" for each in told
    ]
    before, after = (float(np.exp(2.0 * DEVIATIONS * np.median(each))) for each in (log_spread, without))
    text = f"not stated, and so in the interval: {', '.join(texts)}"
    narrowed = f"from upper bounds {before:.3g} times the lower ones to {after:.3g} times"
    yield Notice("UNSAID", f"{text}. Stating {told[0].fact} narrows the interval most, {narrowed}")
