"""Two laws side by side: one of FLOPs and family, which every run teaches, and one of whatever else some runs tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.plugin import Floats, freeze
from nodewise_unseen.columns import StepFacts, StepRuns
from nodewise_unseen.steps import EXTRAS, PredictedSteps, Row, StepLaw, learn_steps

__all__ = ["Laws", "learn_laws"]

FEWEST_WITH_FACTS: Final = 10
"""Runs that must tell a fact before a law rests on it: of fewer none is beyond the end that one in ten is beyond."""


@dataclass(frozen=True, slots=True, eq=False)
class Laws:
    """Laws that were fitted to the runs.

    Attributes
    ----------
    every : StepLaw
        Of FLOPs and family alone.
    fuller : StepLaw or None
        Of tensors and activation bytes as well, learned from the runs that tell both; None = too few do.
    """

    every: StepLaw
    fuller: StepLaw | None = None

    def predict(self, facts: StepFacts, device: str, peak_flops: float, coverage: float) -> PredictedSteps:
        """Step seconds of each architecture on one worker of a device; each row by the law with the narrower range."""
        first = self.every.predict(facts, device, peak_flops, coverage)
        if self.fuller is None:
            return first
        second = self.fuller.predict(facts, device, peak_flops, coverage)
        by_second = _widths(second) < _widths(first)
        apart = by_second[:, np.newaxis]

        def of(name: str) -> Floats:
            return freeze(np.where(by_second, getattr(second, name), getattr(first, name)))

        shared = np.hstack([np.where(apart, 0.0, first.shared), np.where(apart, second.shared, 0.0)])
        return PredictedSteps(
            seconds=of("seconds"),
            low=of("low"),
            high=of("high"),
            rows=freeze(np.where(by_second, second.rows, first.rows)),
            shared=freeze(shared),
            own=of("own"),
            beyond=of("beyond"),
        )


def _widths(steps: PredictedSteps) -> Floats:
    """Logarithm of the upper end over the step; infinite where nothing is answered."""
    answered = steps.rows != Row.REFUSED
    ratio = np.divide(steps.high, steps.seconds, out=np.full(len(answered), np.inf), where=answered)
    return np.asarray(np.log(ratio))


def learn_laws(runs: StepRuns) -> Laws | None:
    """Learn from runs of one worker; None where they are too few."""
    every = learn_steps(runs, facts=()) if len(runs.facts) else None
    if every is None:
        return None
    has_facts = np.ones(len(runs.facts), dtype=bool)
    for name in EXTRAS:
        column = getattr(runs.facts, name)
        has_facts &= False if column is None else column > 0.0
    if np.count_nonzero(has_facts) < FEWEST_WITH_FACTS:
        return Laws(every)
    return Laws(every, learn_steps(runs.take(np.flatnonzero(has_facts))))
