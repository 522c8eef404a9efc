"""How much longer steps take than the equations say, by what runs share, and how sure that is.

    ln(measured / predicted) = installation + device + model + replica + growth ln(nodes) + rest

Installation (cluster and stack), device with its number format, model, and replica (a split with its micro-batches,
whose number may grow) have normal priors; the rest has heavy tails, so that a run that something disturbed pulls
little. What runs of a job say therefore reaches other models and devices of its owner as far as it is shared, and an
interval narrows as what it rests on is measured.

Deviations are those between published sources, each left out of what the equations were fitted to, or within them.
Mean ln of nine published sources deviate by 0.087, jobs within a source by 0.12 in the root of the mean square (0.06 in
BigScience, 0.20 in torchtitan), which device, model and replica share (`research/source_deviations.py`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.plugin import Floats, Ints, as_ints, catalogue_key
from nodewise_partitioning import imbalance
from nodewise_partitioning.calibration import Runs
from nodewise_partitioning.hardware import Device
from nodewise_partitioning.layout import Layout
from nodewise_partitioning.workload import Dimensions

__all__ = ["Levels", "levels_of"]

INSTALLATION: Final = 0.085
UNKNOWN_INSTALLATION: Final = 0.14
"""With a framework that is not known: its switches may be any."""
DEVICE: Final = 0.05
OTHER_DEVICE: Final = 0.25
"""On devices of which no source was seen but V100, whose runs take 1.3 to 2.5 times as long as predicted."""
MODEL: Final = 0.06
REPLICA: Final = 0.10
"""Between replicas of one model on one installation that are split otherwise, or take other micro-batches."""
GROWTH: Final = 0.02
"""Of what a replica's steps lengthen by with each e-fold of its nodes, beside what the equations say: MPT, GPT-3 and
InternEvo differ by 1 to 3 % a doubling."""
WITHIN: Final = 0.035
"""Between runs of one replica: what is left of runs that were repeated."""
WITHIN_RUNS: Final = 8.0
"""Runs that this counts for beside measured ones."""
TAIL: Final = 4.0
"""Degrees of freedom of the rest (Student)."""
ROUNDS: Final = 8

_REPLICA: Final = (
    "tensor",
    "pipeline",
    "context",
    "expert",
    "expert_fold",
    "sequence_parallel",
    "interleave",
    "zero_stage",
    "recomputation",
    "micro_batch",
    "micro_batches",
)
"""Columns of a layout that are alike where only the number of replicas differs."""


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """What runs say of ln(measured / predicted).

    Attributes
    ----------
    places : mapping
        Where each effect that was seen stands in ``means`` and ``covariance``.
    within : float
        Deviation of the rest.
    installation : float
        Prior deviation of the installation.
    across_nodes : frozenset
        Devices (with number formats) of which some run was on several nodes.
    """

    places: Mapping[Hashable, int]
    means: Floats
    covariance: Floats
    within: float
    installation: float
    across_nodes: frozenset[tuple[str, str]] = frozenset()

    def factor_of(self, device: Device, dimensions: Dimensions, layout: Layout) -> Floats | float:
        """Factor on steps of a model on a device: of each row, one number where no row's replica was measured."""
        common = self._common(device, dimensions)
        mean = float(self.means[common].sum())
        seen = self._seen(device, dimensions, layout)
        if not seen:
            return float(np.exp(mean))
        means = np.full(len(layout), mean)
        for replica, rows in seen:
            means[rows] += self.means[self._both(replica)] @ _design(layout, rows)
        return np.asarray(np.exp(means))

    def log_spread_of(self, device: Device, dimensions: Dimensions, layout: Layout) -> Floats:
        """Deviation of ln(step) of each row."""
        common = self._common(device, dimensions)
        shared = _shared(device, dimensions, self.installation)
        unseen = sum(deviation**2 for effect, deviation in shared.items() if effect not in self.places)
        known = self.covariance[np.ix_(common, common)].sum() + unseen + self.within**2
        uneven = imbalance.log_spread_of(dimensions, layout) ** 2
        variances = np.asarray(known + uneven + REPLICA**2 + (GROWTH * np.log(_nodes(layout))) ** 2)
        for replica, rows in self._seen(device, dimensions, layout):
            both, design = self._both(replica), _design(layout, rows)
            variances[rows] = known + 2.0 * self.covariance[np.ix_(common, both)].sum(axis=0) @ design
            variances[rows] += np.einsum("er,ef,fr->r", design, self.covariance[np.ix_(both, both)], design)
        if (catalogue_key(device.name), device.number_format) not in self.across_nodes:
            # Runs inside one node identify nothing of the network between nodes: there, facts alone count.
            growth = (GROWTH * np.log(_nodes(layout))) ** 2
            facts = sum(deviation**2 for deviation in shared.values()) + WITHIN**2 + REPLICA**2 + growth + uneven
            variances = np.where(_nodes(layout) > 1.0, np.maximum(variances, facts), variances)
        return np.asarray(np.sqrt(variances))

    def least_of(self, device: Device, dimensions: Dimensions, layout: Layout) -> Floats:
        """What no factor is below, however the rows of a space's prefixes are completed."""
        replicas = [effect[1] for effect in self.places if isinstance(effect, tuple) and effect[0] == "growth"]
        design = _design(layout, as_ints(np.arange(len(layout)))) if replicas else np.zeros((2, len(layout)))
        least = np.zeros(len(layout))
        for replica in replicas:
            least = np.minimum(least, self.means[self._both(replica)] @ design)
        return np.asarray(np.exp(self.means[self._common(device, dimensions)].sum() + least))

    def _common(self, device: Device, dimensions: Dimensions) -> list[int]:
        """Places of what all runs of a model on a device share."""
        shared = _shared(device, dimensions, self.installation)
        return [self.places[effect] for effect in shared if effect in self.places]

    def _both(self, replica: Hashable) -> list[int]:
        """Places of a replica's level and growth."""
        return [self.places[replica], self.places[("growth", replica)]]

    def _seen(self, device: Device, dimensions: Dimensions, layout: Layout) -> list[tuple[Hashable, Ints]]:
        """Replicas of a model on a device that were measured, and their rows."""
        own = (catalogue_key(device.name), device.number_format, dimensions)
        found: list[tuple[Hashable, Ints]] = []
        for effect in self.places:
            if isinstance(effect, tuple) and effect[:3] == own:
                alike = np.ones(len(layout), dtype=bool)
                for column, value in zip(_REPLICA, effect[3:], strict=True):
                    alike &= getattr(layout, column) == value
                if alike.any():
                    found.append((effect, as_ints(np.flatnonzero(alike))))
        return found


def levels_of(runs: Sequence[Runs], residuals: Floats, *, known: bool) -> Levels:
    """The most likely effects.

    Parameters
    ----------
    residuals : (rows,) float
        Ln(predicted / measured) of all runs, in order.
    known : bool
        Whether the framework is.
    """
    installation = INSTALLATION if known else UNKNOWN_INSTALLATION
    rows = [row for each in runs for row in _effects(each, installation)]
    deviations: dict[Hashable, float] = {}
    for row in rows:
        deviations |= {effect: deviation for effect, (deviation, _) in row.items()}
    places = {effect: place for place, effect in enumerate(deviations)}
    design = np.zeros((len(rows), len(places)))
    for number, row in enumerate(rows):
        for effect, (_, weight) in row.items():
            design[number, places[effect]] = weight
    prior = np.diag([deviation**-2.0 for deviation in deviations.values()])
    weights = np.ones(len(rows))
    means: Floats = np.zeros(len(places))
    covariance: Floats = np.zeros((len(places), len(places)))
    rest = -residuals
    for _ in range(ROUNDS if rows else 0):
        weighed = design * (weights / WITHIN**2)[:, None]
        covariance = np.asarray(np.linalg.inv(weighed.T @ design + prior))
        means = np.asarray(covariance @ (weighed.T @ -residuals))
        rest = np.asarray(-residuals - design @ means)
        weights = (TAIL + 1.0) / (TAIL + (rest / WITHIN) ** 2)
    squares = WITHIN_RUNS * WITHIN**2 + float(rest @ rest)
    within = float(np.sqrt(squares / (WITHIN_RUNS + len(rest))))
    across_nodes = frozenset(
        (catalogue_key(each.device.name), each.device.number_format)
        for each in runs
        if (_nodes(each.layout) > 1.0).any()
    )
    return Levels(places, means, covariance, within, installation, across_nodes)


def _shared(device: Device, dimensions: Dimensions, installation: float) -> dict[Hashable, float]:
    """What all runs of a model on a device share with others, with prior deviations."""
    key = catalogue_key(device.name)
    seen = device.after_ampere or key.startswith("a100")
    return {
        "installation": installation,
        (key, device.number_format): DEVICE if seen else OTHER_DEVICE,
        dimensions: MODEL,
    }


def _effects(runs: Runs, installation: float) -> Iterator[dict[Hashable, tuple[float, float]]]:
    """Effects of each run: prior deviation, and how much of it the run has."""
    shared = {
        effect: (deviation, 1.0) for effect, deviation in _shared(runs.device, runs.dimensions, installation).items()
    }
    own = (catalogue_key(runs.device.name), runs.device.number_format, runs.dimensions)
    columns = np.stack([getattr(runs.layout, column) for column in _REPLICA], axis=1).tolist()
    for values, grown in zip(columns, np.log(_nodes(runs.layout)).tolist(), strict=True):
        replica = (*own, *values)
        yield shared | {replica: (REPLICA, 1.0), ("growth", replica): (GROWTH, grown)}


def _design(layout: Layout, rows: Ints) -> Floats:
    """How much rows have of a replica's level and of its growth."""
    return np.stack([np.ones(len(rows)), np.log(_nodes(layout)[rows])])


def _nodes(layout: Layout) -> Floats:
    return np.maximum(layout.devices / layout.devices_per_node, 1.0)
