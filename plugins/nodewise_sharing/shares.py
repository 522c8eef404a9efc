"""The share of its solo speed that each of two jobs keeps on one device: learned from pairs that were measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import scipy

from nodewise.plugin import Budget, Floats, NodewiseError, PairRun, Reason, ShareBasis, SoloJob, freeze
from nodewise_laws import RandomEffects, fit_random_effects
from nodewise_sharing.jobs import busy_of

__all__ = ["PairShares", "ShareModel", "fit_shares"]

FEATURES: Final = ("constant", "contention", "overload", "busy", "step_ratio")
WEIGHTS: Final = np.array([1.0, -0.25, -0.25, 0.0, 0.06])
"""Before any pair. Two saturated jobs of equal steps keep a half each, an idle partner takes nothing; half of the loss
comes from chance meetings and half from what exceeds the device. A job of e times the other's step keeps 6 points more:
Gavel's pairs give 6.2 (K80), 4.0 (P100) and 7.5 (V100); Narayanan et al., OSDI'20, stanford-futuredata/gavel, MIT."""
WEIGHT_SDS: Final = np.array([0.1, 0.25, 0.25, 0.15, 0.05])
MAX_JOBS: Final = 300
"""Jobs with an effect of their own, those of most pairs first; others have their model's. Bounds the fit's time."""
KINDS: Final = 4
EXPECTED_SD: Final = 0.05
"""What each kind of effect, and what is left, is expected to come to before data: repeated runs, and models of one
kind, differ by some points of share."""
LOOK_EVERY: Final = 512
"""Rows between two looks at the time that is left: some milliseconds."""
FOLDS: Final = 10
CALIBRATED_AT: Final = 0.9
FEWEST_MODELS: Final = 3


@dataclass(frozen=True, slots=True)
class PairShares:
    """Shares of solo speed, (pairs x 2): the middle of a range and its ends. Measured pairs have no range."""

    low: Floats
    middle: Floats
    high: Floats
    basis: tuple[ShareBasis, ...]
    total_low: Floats
    """Ends of the range of both shares' sum, (pairs,)."""
    total_high: Floats


@dataclass(frozen=True, slots=True)
class ShareModel:
    """Fitted effects of one device and one mode of sharing."""

    effects: RandomEffects
    columns: dict[tuple[int, str], int]
    measured: dict[tuple[str, str], tuple[float, float]]
    widening: float = 1.0
    """How much wider than their own spread ranges must be, from models left out of the fit; see `fit_shares`."""

    def predict(self, pairs: Sequence[tuple[SoloJob, SoloJob]], coverage: float = 0.9) -> PairShares:
        """Shares of each pair, the first job's first; `coverage` of the ranges shall hold the truth."""
        rows = [row for one, other in pairs for row in ((one, other), (other, one))]
        x, unseen = _design(rows, self.columns, self.effects.mean.size)
        mean, variance, freedom = self.effects.predict(x, unseen)
        reach = (
            self.widening * scipy.special.stdtrit(freedom, 0.5 + coverage / 2) * np.sqrt(variance + self.effects.rest)
        )
        middle, reach = np.maximum(mean, 0.0).reshape(-1, 2), reach.reshape(-1, 2)
        # Two sides of one pair err almost independently once the fixed part is known: their sum's range says so.
        total, total_reach = middle.sum(axis=1), np.hypot(reach[:, 0], reach[:, 1])
        low, high = np.maximum(middle - reach, 0.0), middle + reach
        basis = []
        for index, (one, other) in enumerate(pairs):
            ran = self.measured.get((one.name, other.name))
            if ran is not None:
                low[index] = middle[index] = high[index] = ran
                total[index], total_reach[index] = sum(ran), 0.0
            basis.append(ShareBasis.MEASURED if ran is not None else self._basis(one, other))
        ends = np.maximum(total - total_reach, 0.0), total + total_reach
        return PairShares(freeze(low), freeze(middle), freeze(high), tuple(basis), freeze(ends[0]), freeze(ends[1]))

    def _basis(self, one: SoloJob, other: SoloJob) -> ShareBasis:
        known_count = sum((0, job.family) in self.columns for job in (one, other))
        return (ShareBasis.SOLO, ShareBasis.PARTNER, ShareBasis.COMPLETED)[known_count]


def fit_shares(runs: Sequence[PairRun], budget: Budget | None = None) -> ShareModel:
    """Learn from pairs that ran on one device in one mode of sharing; none at all leaves what holds before data.

    The share of a victim beside an aggressor is a sum: contention of two independent jobs (the product of their busy
    shares: the chance that one finds the other at work, as the arrival theorem has it for two customers of a closed
    network), overload (what both need beyond the whole device), how busy they are, which has the longer steps (kernels
    that take turns, turn by turn, favour the longer ones), and effects of the victim's and the aggressor's model and
    job.

    Normal ranges do not fit where a driver is unfair. So each model is left out in turn, and all ranges are scaled
    until those of the pairs left out hold 90 % of them, each model counting alike (cross-conformal prediction: Vovk,
    "Cross-conformal predictors", Annals of Mathematics and Artificial Intelligence 74, 2015).

    Raises NodewiseError DEADLINE_EXCEEDED when the budget has nothing left.
    """

    def check_time() -> None:
        if budget is not None and budget.remaining_s() <= 0:
            text = (
                "the deadline passed while the model was fitted to the measured pairs; send fewer pairs, or allow "
                "more time"
            )
            raise NodewiseError(Reason.DEADLINE_EXCEEDED, text)

    model = _fit(runs, check_time)
    return replace(model, widening=_widening(runs, check_time))


def _widening(runs: Sequence[PairRun], check_time: Callable[[], None]) -> float:
    models = sorted({job.family for run in runs for job in run.jobs})
    if len(models) < FEWEST_MODELS:
        return 1.0
    # The model to come is one more, of which nothing else is known than that its own spread may be right.
    reaches, counts = [np.ones(1)], [np.ones(1)]
    for fold in range(min(len(models), FOLDS)):
        out = frozenset(models[fold::FOLDS])
        left = [run for run in runs if out & {job.family for job in run.jobs}]
        runs_left = [run for run in runs if not out & {job.family for job in run.jobs}]
        shares = _fit(runs_left, check_time).predict([run.jobs for run in left], CALIBRATED_AT)
        error = np.abs(shares.middle - [run.shares for run in left])
        reaches.append((error / (shares.high - shares.middle)).ravel())
        counts.append(np.full(error.size, 1.0 / error.size))
    reach, weight = np.concatenate(reaches), np.concatenate(counts)
    order = np.argsort(reach, kind="stable")
    weight = np.cumsum(weight[order])
    return float(reach[order][np.searchsorted(weight, CALIBRATED_AT * weight[-1])])


def _fit(runs: Sequence[PairRun], check_time: Callable[[], None]) -> ShareModel:
    rows = [row for run in runs for row in (run.jobs, run.jobs[::-1])]
    shares = np.array([share for run in runs for share in run.shares], dtype=np.float64)
    check_time()
    columns = _columns(rows)
    size = len(FEATURES) + len(columns)
    kinds = np.full(size, -1)
    for (kind, _), column in columns.items():
        kinds[column] = kind
    x, _ = _design(rows, columns, size, check_time)
    measured: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for run in runs:
        (one, other), (share, others) = run.jobs, run.shares
        measured.setdefault((one.name, other.name), []).append((share, others))
        measured.setdefault((other.name, one.name), []).append((others, share))  # two copies of a job share alike
    means = {pair: tuple(np.mean(values, axis=0).tolist()) for pair, values in measured.items()}
    effects = fit_random_effects(
        x, shares, kinds, WEIGHTS, WEIGHT_SDS, np.full(KINDS, EXPECTED_SD), EXPECTED_SD, check_time
    )
    return ShareModel(effects, columns, means)


def _columns(rows: Sequence[tuple[SoloJob, SoloJob]]) -> dict[tuple[int, str], int]:
    """Column of each effect: kinds 0 and 1 are victim and aggressor by model, 2 and 3 by job."""
    often: dict[str, int] = {}
    for victim, _ in rows:
        often[victim.name] = often.get(victim.name, 0) + 1
    own = set(sorted(often, key=lambda name: (-often[name], name))[:MAX_JOBS])
    columns = {
        (kind, level)
        for victim, aggressor in rows
        for kind, level in _levels(victim, aggressor)
        if kind < 2 or level in own
    }
    return {key: len(FEATURES) + index for index, key in enumerate(sorted(columns))}


def _levels(victim: SoloJob, aggressor: SoloJob) -> tuple[tuple[int, str], ...]:
    return (0, victim.family), (1, aggressor.family), (2, victim.name), (3, aggressor.name)


def _design(
    rows: Sequence[tuple[SoloJob, SoloJob]],
    columns: dict[tuple[int, str], int],
    size: int,
    check_time: Callable[[], None] = lambda: None,
) -> tuple[Floats, Floats]:
    """Columns of each row, and which of its effects have none."""
    x, unseen = np.zeros((len(rows), size)), np.zeros((len(rows), KINDS))
    busy = {id(job): busy_of(job) for row in rows for job in row}
    for index, (victim, aggressor) in enumerate(rows):
        if not index % LOOK_EVERY:
            check_time()
        x[index, : len(FEATURES)] = _features(victim, aggressor, busy[id(victim)], busy[id(aggressor)])
        for kind, level in _levels(victim, aggressor):
            column = columns.get((kind, level))
            if column is None:
                unseen[index, kind] = 1.0
            else:
                x[index, column] = 1.0
    return x, unseen


def _features(victim: SoloJob, aggressor: SoloJob, busy: float, others: float) -> tuple[float, ...]:
    own_s, other_s = victim.step_seconds, aggressor.step_seconds
    ratio = 0.0 if own_s is None or other_s is None else math.log(own_s) - math.log(other_s)
    if victim.device_utilisation is not None and aggressor.device_utilisation is not None:
        ratio *= busy * others  # jobs that seldom meet hardly take turns
    return 1.0, busy * others, max(0.0, busy + others - 1.0), busy + others - 2.0, ratio
