"""How much longer steps take than the equations predict, by effects that runs share, and the uncertainty of that.

    ln(measured / predicted) = installation + software + training + device + model + job
                             + split + replica + growth ln(nodes) + rest

Installation (cluster), software (as it is declared, switches included), training (what is frozen), device with its
number format, model, job, split, and replica (a split with its micro-batches, whose number may grow) have normal
priors; the rest has heavy tails, so that a disturbed run has little weight. Runs of a job therefore inform predictions
of other models and devices of the same owner by the effects that they share, and effects of the job itself inform no
other job. The interval narrows as more of the effects are measured.

The first four are not one number for all models: small matrices miss the peak for other reasons than large ones.
Between two models each of the four correlates by the ratio of the work in a layer's products,

    (smaller / larger hidden size)^2 x (fewer / more tokens of a row),

an exponential kernel in both logarithms (C. Rasmussen and C. Williams, Gaussian Processes for Machine Learning, 2006,
section 4.2). Runs of unlike models therefore neither bend a prediction nor narrow it (`research/score_calibration.py`).

Deviations are a judgement, near the most likely ones of all runs but V100's of nine published tables, from facts alone,
with normal effects: device 0.09, software 0.14, training 0.08, model 0.05, job 0.02, split 0.06, replica 0.06, rest
0.02. Source and software are nearly one in these tables, and share what both are given here. Between sources, each left
out of what the equations were fitted to, mean ln deviate by 0.087 (`research/source_deviations.py`). Those of split and
rest are wider: with the most likely ones, one run of each job of two of these tables (dgxc, foundry) predicted the
others less well.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Floats, catalogue_key
from nodewise_partitioning import imbalance
from nodewise_partitioning.calibration import Job, Runs
from nodewise_partitioning.hardware import Device
from nodewise_partitioning.layout import Layout
from nodewise_partitioning.training import ALL_TRAINED
from nodewise_partitioning.workload import Dimensions

__all__ = ["OWN_VARIANCE", "Levels", "fitted_of", "levels_of"]

INSTALLATION: Final = 0.05
SOFTWARE: Final = 0.08
UNKNOWN_SOFTWARE: Final = 0.13
"""Deviation for an unknown framework, whose switches are unknown too."""
TRAINING: Final = 0.08
"""Deviation for adapters beside frozen weights; the equations were fitted to training of all weights."""
DEVICE: Final = 0.07
OTHER_DEVICE: Final = 0.25
"""On devices without a published source except V100, whose runs take 1.3 to 2.5 times as long as predicted."""
MODEL: Final = 0.05
JOB: Final = 0.03
SPLIT: Final = 0.08
"""Deviation between ways to split one job."""
REPLICA: Final = 0.06
"""Deviation between micro-batches of one split."""
GROWTH: Final = 0.02
"""Deviation of the extra growth of a replica's steps per e-fold of its nodes: MPT, GPT-3 and InternEvo differ by 1 to
3 % per doubling."""
WITHIN: Final = 0.035
"""Deviation between repeated runs of one replica."""
OWN_VARIANCE: Final = SPLIT**2 + REPLICA**2 + WITHIN**2
"""Variance of effects that no other run of the job has, unless it is of the same split."""
WITHIN_RUNS: Final = 8.0
"""Weight of WITHIN beside measured deviations, in runs."""
TAIL: Final = 4.0
"""Degrees of freedom of the rest (Student)."""
ROUNDS: Final = 8
WORK: Final = (2.0, 1.0)
"""Powers of the hidden size and of the tokens of a row in the work of a layer's products."""

_SPLIT: Final = (
    "tensor",
    "pipeline",
    "context",
    "expert",
    "expert_fold",
    "sequence_parallel",
    "interleave",
    "zero_stage",
    "recomputation",
)
_REPLICA: Final = (*_SPLIT, "micro_batch", "micro_batches")
"""Columns of a layout that are alike where only the number of replicas differs; of a split, all but the last two."""


NO_JOB: Final = Job()


@dataclass(frozen=True, slots=True)
class _Own:
    """An effect of one job on a device: of a split, of a replica of it (``growth``: by ln of its nodes)."""

    job: Job
    device: tuple[str, str]
    dimensions: Dimensions
    values: tuple[float, ...]
    growth: bool = False

    @property
    def deviation(self) -> float:
        """Prior deviation."""
        return GROWTH if self.growth else SPLIT if len(self.values) == len(_SPLIT) else REPLICA

    def rows(self, layout: Layout) -> NDArray[np.bool_]:
        """Rows that have it."""
        alike = np.ones(len(layout), dtype=bool)
        for column, value in zip(_REPLICA, self.values, strict=False):
            alike &= getattr(layout, column) == value
        return alike

    def share(self, layout: Layout) -> Floats:
        """Amount of the effect in each row."""
        return np.asarray(self.rows(layout) * (np.log(_nodes(layout)) if self.growth else 1.0))


@dataclass(frozen=True, slots=True)
class _CommonEffect:
    """An effect of all runs with a common cause, for models of one size: hidden size and tokens of a row."""

    cause: Hashable
    size: tuple[float, float]


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """Estimates of ln(measured / predicted) by runs.

    Attributes
    ----------
    job : Job
        The job to predict.
    dimensions : Dimensions
        Dimensions of its model.
    places : mapping
        Index in ``means`` and ``covariance`` of each effect with runs that belongs to no other job.
    within : float
        Deviation of the rest.
    known : bool
        Whether the job's framework is known.
    across_nodes : frozenset
        Devices (with number formats) of which some run was on several nodes.
    """

    job: Job
    dimensions: Dimensions
    places: Mapping[Hashable, int]
    means: Floats
    covariance: Floats
    within: float
    known_framework: bool
    across_nodes: frozenset[tuple[str, str]] = frozenset()

    def factor_of(self, device: Device, layout: Layout) -> Floats | float:
        """Factor on steps on a device: of each row, or one number where no split of the job was run."""
        common = float(self.means[self._common(device)].sum())
        places, shares = self._split_effects(device, layout)
        return np.asarray(np.exp(common + self.means[places] @ shares)) if places else float(np.exp(common))

    def log_spread_of(self, device: Device, layout: Layout) -> Floats:
        """Deviation of ln(step) of each row."""
        common = self._common(device)
        shared = _common_effects(self.job, device, self.dimensions, known_framework=self.known_framework)
        unseen = sum(deviation**2 for effect, deviation in shared.items() if effect not in self.places)
        variance = self.covariance[np.ix_(common, common)].sum() + unseen + self.within**2
        uneven = imbalance.log_spread_of(self.dimensions, layout) ** 2
        growth = (GROWTH * np.log(_nodes(layout))) ** 2
        prior = SPLIT**2 + REPLICA**2 + growth
        variances = np.asarray(variance + uneven + prior)
        places, shares = self._split_effects(device, layout)
        if places:
            effects = [effect for effect, place in self.places.items() if place in places]
            deviations = np.array([effect.deviation for effect in effects if isinstance(effect, _Own)])
            variances -= np.square(deviations) @ np.square(shares)
            variances += 2.0 * self.covariance[np.ix_(common, places)].sum(axis=0) @ shares
            variances += np.einsum("er,ef,fr->r", shares, self.covariance[np.ix_(places, places)], shares)
        if (catalogue_key(device.name), device.number_format) not in self.across_nodes:
            # Runs inside one node identify nothing of the network between nodes: there, only facts count.
            facts = sum(deviation**2 for deviation in shared.values()) + WITHIN**2 + prior + uneven
            variances = np.where(_nodes(layout) > 1.0, np.maximum(variances, facts), variances)
        return np.asarray(np.sqrt(variances))

    def least_of(self, device: Device, layout: Layout) -> Floats:
        """A lower bound of the factor, however the rows of a space's prefixes are completed."""
        least = np.full(len(layout), self.means[self._common(device)].sum())
        grown = np.log(_nodes(layout))
        for effect, place in self.places.items():
            # A row has one split and one replica: the sum of all negative effects is below any of them.
            if isinstance(effect, _Own):
                least += np.minimum(self.means[place] * (grown if effect.growth else 1.0), 0.0)
        return np.asarray(np.exp(least))

    def _common(self, device: Device) -> list[int]:
        """Places of the effects that all runs of the job's model on a device share."""
        shared = _common_effects(self.job, device, self.dimensions, known_framework=self.known_framework)
        return [self.places[effect] for effect in shared if effect in self.places]

    def _split_effects(self, device: Device, layout: Layout) -> tuple[list[int], Floats]:
        """Places of effects of the job's splits that some rows have, and (places, rows) amounts."""
        own = (self.job, (catalogue_key(device.name), device.number_format), self.dimensions)
        places: list[int] = []
        shares: list[Floats] = []
        for effect, place in self.places.items():
            if isinstance(effect, _Own) and (effect.job, effect.device, effect.dimensions) == own:
                share = effect.share(layout)
                if share.any():
                    places.append(place)
                    shares.append(share)
        return places, np.array(shares)


def levels_of(
    dimensions: Dimensions, runs: Sequence[Runs], residuals: Floats, *, known_framework: bool, job: Job = NO_JOB
) -> Levels:
    """The most likely effects.

    Parameters
    ----------
    dimensions : Dimensions
        Of the asked model.
    residuals : (rows,) float
        Ln(predicted / measured) of all runs, in order.
    known : bool
        Whether the framework is known.
    job : Job
        The job to predict: effects of other jobs' splits are dropped.
    """
    if not runs:
        return Levels(job, dimensions, {}, np.zeros(0), np.zeros((0, 0)), WITHIN, known_framework)
    effects = _Effects.of(runs, known_framework=known_framework, asked=dimensions)
    weights, within = effects.weights(residuals)
    size = _size_of(dimensions)
    own_places = [
        place
        for effect, place in effects.places.items()
        if getattr(effect, "job", job) == job and getattr(effect, "size", size) == size
    ]
    across_nodes = frozenset(
        (catalogue_key(each.device.name), each.device.number_format)
        for each in runs
        if (_nodes(each.layout) > 1.0).any()
    )
    means, covariance = effects.posterior(-residuals, weights, own_places)
    numbers = {place: number for number, place in enumerate(own_places)}
    places = {effect: numbers[place] for effect, place in effects.places.items() if place in numbers}
    return Levels(job, dimensions, places, means, covariance, within, known_framework, across_nodes)


def fitted_of(runs: Sequence[Runs], residuals: Floats, *, known_framework: bool) -> Floats:
    """Ln of the factor by each run's effects, in order; parameters as :func:`levels_of`."""
    effects = _Effects.of(runs, known_framework=known_framework)
    weights, _ = effects.weights(residuals)
    return effects.fit(-residuals, weights)


@dataclass(frozen=True, slots=True, eq=False)
class _Effects:
    """Effects of runs.

    Attributes
    ----------
    places : mapping
        Index of each effect.
    variances : (effects,) float
        Prior variance.
    shares : (effects, runs) float
        Covariance of each effect with the sum of a run's effects.
    covariance : (runs, runs) float
        Covariance of the sums of two runs' effects.
    """

    places: Mapping[Hashable, int]
    variances: Floats
    shares: Floats
    covariance: Floats

    @staticmethod
    def of(runs: Sequence[Runs], *, known_framework: bool, asked: Dimensions | None = None) -> _Effects:
        """Effects of runs, in order; also those shared with models of the asked size."""
        rows = [row for each in runs for row in _effects(each, known_framework=known_framework)]
        deviations: dict[Hashable, float] = {}
        for row in rows:
            deviations |= {effect: deviation for effect, (deviation, _) in row.items()}
        if asked is not None:
            for seen in [effect for effect in deviations if isinstance(effect, _CommonEffect)]:
                deviations[replace(seen, size=_size_of(asked))] = deviations[seen]
        shared = [effect for effect in deviations if isinstance(effect, _CommonEffect)]
        others = [effect for effect in deviations if not isinstance(effect, _CommonEffect)]
        places: dict[Hashable, int] = {effect: place for place, effect in enumerate((*shared, *others))}
        design = np.zeros((len(places), len(rows)))
        for number, row in enumerate(rows):
            for effect, (_, share) in row.items():
                design[places[effect], number] = share
        variances = np.square(np.array([deviations[effect] for effect in places], dtype=np.float64))
        shares = variances[:, np.newaxis] * design
        shares[: len(shared)] = _covariance(shared, np.sqrt(variances[: len(shared)])) @ design[: len(shared)]
        return _Effects(places, variances, shares, design.T @ shares)

    def weights(self, residuals: Floats) -> tuple[Floats, float]:
        """Posterior of the effects by the residuals of runs, and the deviation of the rest."""
        weights, rest = np.ones(len(residuals)), residuals
        for _ in range(ROUNDS if len(residuals) else 0):
            rest = residuals + self.fit(-residuals, weights)
            weights = (TAIL + 1.0) / (TAIL + (rest / WITHIN) ** 2)
        squares = WITHIN_RUNS * WITHIN**2 + float(rest @ rest)
        return weights, float(np.sqrt(squares / (WITHIN_RUNS + len(rest))))

    def fit(self, levels: Floats, weights: Floats) -> Floats:
        """Sums of the effects in the levels of all runs."""
        return np.asarray(self.covariance @ np.linalg.solve(self.covariance + np.diag(WITHIN**2 / weights), levels))

    def posterior(self, levels: Floats, weights: Floats, places: Sequence[int]) -> tuple[Floats, Floats]:
        """Means and covariance of some effects, each of another cause."""
        ours = self.shares[places]
        solved = np.linalg.solve(self.covariance + np.diag(WITHIN**2 / weights), np.column_stack([levels, ours.T]))
        return np.asarray(ours @ solved[:, 0]), np.asarray(np.diag(self.variances[places]) - ours @ solved[:, 1:])


def _covariance(effects: Sequence[_CommonEffect], deviations: Floats) -> Floats:
    """Correlation of effects of one cause by the similarity of their sizes; 0 between causes."""
    causes = {cause: number for number, cause in enumerate(dict.fromkeys(effect.cause for effect in effects))}
    cause = np.array([causes[effect.cause] for effect in effects])
    sizes = np.log(np.array([effect.size for effect in effects], dtype=np.float64).reshape(-1, len(WORK)))
    apart = np.abs(sizes[:, np.newaxis] - sizes) @ np.array(WORK)
    return np.asarray(np.outer(deviations, deviations) * (cause[:, np.newaxis] == cause) * np.exp(-apart))


def _size_of(dimensions: Dimensions) -> tuple[float, float]:
    return dimensions.hidden_size, dimensions.sequence


def _common_effects(
    job: Job, device: Device, dimensions: Dimensions, *, known_framework: bool
) -> dict[Hashable, float]:
    """Effects that all runs of a job's model on a device share, some also with other jobs, with prior deviations."""
    key = catalogue_key(device.name)
    has_source = device.after_ampere or key.startswith("a100")
    training = dimensions.training
    causes: dict[Hashable, float] = {
        "installation": INSTALLATION,
        ("software", job.software): SOFTWARE if known_framework else UNKNOWN_SOFTWARE,
        (key, device.number_format): DEVICE if has_source else OTHER_DEVICE,
    }
    if training.frozen_share:
        causes[training] = TRAINING
    size = _size_of(dimensions)
    shared: dict[Hashable, float] = {_CommonEffect(cause, size): deviation for cause, deviation in causes.items()}
    return shared | {replace(dimensions, training=ALL_TRAINED): MODEL, job: JOB}


def _effects(runs: Runs, *, known_framework: bool) -> Iterator[dict[Hashable, tuple[float, float]]]:
    """Effects of each run: prior deviation, and amount."""
    shared = {
        effect: (deviation, 1.0)
        for effect, deviation in _common_effects(
            runs.job, runs.device, runs.dimensions, known_framework=known_framework
        ).items()
    }
    device = (catalogue_key(runs.device.name), runs.device.number_format)
    columns = np.stack([getattr(runs.layout, column) for column in _REPLICA], axis=1).tolist()
    for values, grown in zip(columns, np.log(_nodes(runs.layout)).tolist(), strict=True):
        split = _Own(runs.job, device, runs.dimensions, tuple(values[: len(_SPLIT)]))
        replica = replace(split, values=tuple(values))
        growth = replace(replica, growth=True)
        yield shared | {split: (SPLIT, 1.0), replica: (REPLICA, 1.0), growth: (GROWTH, grown)}


def _nodes(layout: Layout) -> Floats:
    return np.maximum(layout.devices / layout.devices_per_node, 1.0)
