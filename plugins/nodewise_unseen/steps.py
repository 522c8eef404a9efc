"""Step times of models that never ran, learned from those that did.

The step of one worker is (h + c F) / C: F the FLOPs of the step, C the device's peak, h what does not grow with the
model's size (launches, small layers that leave the device half empty), c what an operation takes beyond its time at
peak. Both differ by family and by device, as random effects: what a family or device never showed is in the range of
the answer. Tensors and activation bytes each add a column where every run tells them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final

import numpy as np
import scipy

from nodewise.plugin import Floats, Ints, freeze
from nodewise_laws import RandomEffects, fit_random_effects
from nodewise_unseen.columns import StepFacts, StepRuns

__all__ = [
    "CALIBRATED_AT",
    "DEVICE",
    "EXTRAS",
    "FARTHEST",
    "FEWEST_RUNS",
    "PredictedSteps",
    "Row",
    "StepLaw",
    "learn_steps",
]

EXTRAS: Final = ("tensors", "activation_bytes")
"""Parameters are not among them: within a family of networks they go with FLOPs."""
FEWEST_RUNS: Final = 4
"""Two coefficients, their scatter, and one to spare."""
WEIGHTS: Final = (0.5, 0.5)
"""Before runs: half of a middling step grows with FLOPs. Columns are scaled to 1 at the geometric mean of the runs."""
WEIGHT_SD: Final = 1.0
"""Of each weight: a middling step is known to its order before runs, and little more; a few runs outweigh it."""
EXPECTED_SDS: Final = (0.3, 0.3)
"""How much of a middling step families and devices are expected to differ by, in each coefficient; two of each kind
outweigh it."""
EXPECTED_REST: Final = 0.05
"""What is left: the noise between campaigns of one configuration is 5 to 15 %."""
EXPONENT_SD: Final = 12.0**-0.5
"""Outside of what was seen the local exponent of time in FLOPs is anywhere between 0 (h alone) and 1 (c F alone): the
standard deviation of a uniform law, per e-fold beyond the hull."""
DEVICE: Final = 2
"""First kind of a device's effects; those of families are 0 and 1."""
WIDEST: Final = float(np.log(100.0))
"""ln of the factor either way from which a range is no answer."""
FARTHEST: Final = float(np.log(10.0))
"""E-folds beyond all FLOPs that were seen at which no answer is given."""
CALIBRATED_AT: Final = 0.9
"""Coverage that ranges are scaled to hold of models left out."""
FOLDS: Final = 25
"""At most this many fits to scale ranges by."""


class Row(IntEnum):
    """What a row of an answer is."""

    INSIDE = 0
    """Between models of its family that ran."""
    OUTSIDE = 1
    """Smaller or larger than those, or of another family or device: the range is wider."""
    REFUSED = 2
    """Farther than any answer is worth, or a fact is missing that the law was learned with."""


@dataclass(frozen=True, slots=True, eq=False)
class PredictedSteps:
    """Steps of one device, one row each: seconds, the ends of their range, and what kind of answer each is.

    ``shared`` and ``own`` serve ranking: deviations of ln(seconds) by variables that all rows share (what is not known
    of the law's weights), and that of each row alone. ``beyond``: e-folds of FLOPs outside of what its family showed.
    """

    seconds: Floats
    low: Floats
    high: Floats
    rows: Ints
    shared: Floats
    own: Floats
    beyond: Floats
    missing: tuple[str, ...] = ()
    """Facts that the law was learned with and some rows do not tell: these are refused."""


@dataclass(frozen=True, slots=True, eq=False)
class StepLaw:
    """Effects that were fitted to the runs."""

    effects: RandomEffects
    scales: Floats
    extras: tuple[str, ...]
    columns: dict[tuple[int, str], int]
    hulls: dict[str, tuple[float, float]]
    """Family -> ln FLOPs of its smallest and largest model; "" = of all."""
    widening: float = 1.0
    """How much wider than their own spread ranges are, from models left out; see `learn_steps`."""

    def predict(self, facts: StepFacts, device: str, peak_flops: float, coverage: float = 0.9) -> PredictedSteps:
        """Step seconds of each architecture on one worker of a device."""
        fact_columns = {name: _fact_column(facts, name) for name in self.extras}
        lacking = (
            np.any([column <= 0.0 for column in fact_columns.values()], axis=0)
            if fact_columns
            else np.zeros(len(facts), bool)
        )
        names, codes = np.unique(np.asarray(facts.families, dtype=object), return_inverse=True)
        base = _base(facts, np.full(len(facts), peak_flops), self.extras) / self.scales
        x = np.zeros((len(facts), self.effects.mean.size))
        x[:, : base.shape[1]] = base
        unseen = np.zeros((len(facts), 4))
        for kind, levels, which in (
            (0, names, codes),
            (1, np.array([device], dtype=object), np.zeros(len(facts), np.intp)),
        ):
            for part in (0, 1):
                at = np.array([self.columns.get((2 * kind + part, level), -1) for level in levels])[which]
                is_known = at >= 0
                x[np.flatnonzero(is_known), at[is_known]] = base[is_known, part]
                unseen[~is_known, 2 * kind + part] = base[~is_known, part] ** 2
        mean, variance, freedom = self.effects.predict(x, unseen)
        outside, far = self._outside(np.log(facts.flops), names, codes)
        refused = (mean <= 0.0) | (far > FARTHEST) | lacking
        seconds = np.where(refused, 1.0, mean)
        own = self.effects.rest + (outside * EXPONENT_SD) ** 2 + unseen @ self.effects.variances / seconds**2
        spread = np.sqrt(variance / seconds**2 + self.effects.rest + (outside * EXPONENT_SD) ** 2)
        reach = self.widening * scipy.special.stdtrit(freedom, 0.5 + coverage / 2) * spread
        refused |= reach > WIDEST
        reach = np.exp(np.where(refused, 0.0, reach))
        rows = np.where(refused, Row.REFUSED, np.where((outside > 0) | unseen.any(axis=1), Row.OUTSIDE, Row.INSIDE))
        answer = np.where(refused, 0.0, seconds)
        asked_of = np.flatnonzero(x.any(axis=0))
        factor = np.linalg.cholesky(self.effects.covariance[np.ix_(asked_of, asked_of)])
        shared = (x[:, asked_of] / seconds[:, np.newaxis]) @ factor
        return PredictedSteps(
            seconds=freeze(answer),
            low=freeze(answer / reach),
            high=freeze(answer * reach),
            rows=freeze(rows),
            shared=freeze(np.where(refused[:, np.newaxis], 0.0, self.widening * shared)),
            own=freeze(np.where(refused, 0.0, self.widening * np.sqrt(own))),
            beyond=freeze(outside),
            missing=tuple(name for name, column in fact_columns.items() if (column <= 0.0).any()),
        )

    def _outside(self, sizes: Floats, names: Floats, codes: Ints) -> tuple[Floats, Floats]:
        """E-folds of FLOPs beyond what the family showed (all, for one that showed nothing), and beyond all runs."""
        ends = np.array([self.hulls.get(name, self.hulls[""]) for name in names])[codes]
        beyond = [np.maximum(0.0, np.maximum(low - sizes, sizes - high)) for low, high in (ends.T, self.hulls[""])]
        return beyond[0], beyond[1]


def learn_steps(runs: StepRuns, facts: Sequence[str] = EXTRAS) -> StepLaw | None:
    """Learn from runs of one worker; None where they are too few. `facts` are those that may count beside FLOPs.

    Residuals are relative, as noise is: rows are divided by the measured step. Then models are left out, about one at a
    time, and ranges scaled until those of what was left out hold 90 % (cross-conformal prediction: Vovk, Annals of
    Mathematics and Artificial Intelligence 74, 2015). A model is what has one family and one number of FLOPs.
    """
    law = _learn(runs, facts)
    if law is None:
        return None
    model_keys = np.column_stack([runs.facts.flops, _codes(runs.facts.families)])
    _, models = np.unique(model_keys, axis=0, return_inverse=True)
    folds = models.ravel() % FOLDS
    reaches = []
    for fold in np.unique(folds):
        out = np.flatnonzero(folds == fold)
        part = _learn(runs.take(np.flatnonzero(folds != fold)), law.extras)
        if part is None:
            return law
        for device in sorted({runs.devices[int(row)] for row in out}):
            left = runs.take(np.array([row for row in out if runs.devices[int(row)] == device]))
            steps = part.predict(left.facts, device, float(left.peak_flops[0]), CALIBRATED_AT)
            answered = steps.rows != Row.REFUSED
            error = np.abs(np.log(left.step_seconds[answered] / steps.seconds[answered]))
            reaches.append(error / np.log(steps.high[answered] / steps.seconds[answered]))
    reach = np.concatenate(reaches)
    if reach.size * (1.0 - CALIBRATED_AT) < 1.0:
        return law  # too few for an end that one in ten is beyond
    return replace(law, widening=float(np.quantile(reach, CALIBRATED_AT, method="higher")))


def _codes(families: Sequence[str]) -> Ints:
    return np.unique(np.asarray(families, dtype=object), return_inverse=True)[1]


def _learn(runs: StepRuns, facts: Sequence[str]) -> StepLaw | None:
    step_facts, seconds = runs.facts, runs.step_seconds
    if len(step_facts) < FEWEST_RUNS:
        return None
    extras = tuple(name for name in facts if step_facts.has(name))
    base = _base(step_facts, runs.peak_flops, extras)
    scales = np.exp(np.mean(np.log(base / seconds[:, np.newaxis]), axis=0))
    base = base / scales
    levels = sorted(
        {(part, family) for family in step_facts.families if family for part in (0, 1)}
        | {(2 + part, device) for device in runs.devices for part in (0, 1)}
    )
    columns = {level: base.shape[1] + index for index, level in enumerate(levels)}
    x = np.zeros((len(step_facts), base.shape[1] + len(columns)))
    x[:, : base.shape[1]] = base
    for row, (family, device) in enumerate(zip(step_facts.families, runs.devices, strict=True)):
        for kind, level in ((0, family), (2, device)):
            for part in (0, 1):
                if level:
                    x[row, columns[kind + part, level]] = base[row, part]
    kinds = np.append(np.full(base.shape[1], -1), [kind for kind, _ in levels]).astype(np.int64)
    weights = np.append(WEIGHTS, np.zeros(len(extras)))
    sds = np.repeat(EXPECTED_SDS, 2)
    effects = fit_random_effects(
        x / seconds[:, np.newaxis],
        np.ones(len(step_facts)),
        kinds,
        weights,
        np.full(weights.size, WEIGHT_SD),
        sds,
        EXPECTED_REST,
    )
    return StepLaw(effects, scales, extras, columns, _hulls(step_facts))


def _base(facts: StepFacts, peak_flops: Floats, extras: tuple[str, ...]) -> Floats:
    """Columns of the law before they are scaled: 1 / C, F / C, and what else is known over C."""
    parts = [np.ones(len(facts)), facts.flops, *(_fact_column(facts, name) for name in extras)]
    return np.column_stack(parts) / peak_flops[:, np.newaxis]


def _fact_column(facts: StepFacts, name: str) -> Floats:
    """A fact of each row; 0 = not known."""
    column: Floats | None = getattr(facts, name)
    return np.zeros(len(facts)) if column is None else column


def _hulls(facts: StepFacts) -> dict[str, tuple[float, float]]:
    sizes = np.log(facts.flops)
    hulls = {"": (float(sizes.min()), float(sizes.max()))}
    families = np.asarray(facts.families, dtype=object)
    for family in set(facts.families) - {""}:
        own = sizes[families == family]
        hulls[family] = float(own.min()), float(own.max())
    return hulls
