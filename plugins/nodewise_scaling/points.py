"""What a profile says that the form can use: mean step times by configuration, per device, in the job's own units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.plugin import Configurations, Floats, Ints, Profile, SyncMode
from nodewise_scaling.form import Places

__all__ = ["KEYS", "MEASUREMENT_LOG_SPREAD", "Points", "averaged", "keys_of", "points_of"]

KEYS: Final = ("nodes", "workers", "fullest", "batch", "accumulation")
"""What tells configurations apart: nodes, workers, workers on the fullest node, samples per worker, micro-steps."""

MEASUREMENT_LOG_SPREAD: Final = 0.05
"""Standard deviation of one measured ln T: equal configurations differ by 2.6 to 8.7 % on average (A100, 2080Ti, T4,
V100)."""

REPEATS: Final = 4
"""Repeats beyond which a mean gets no surer: what they share, a placement or a day, does not average out."""

LARGEST_FIT: Final = 300
"""Configurations of one device that are fitted, evenly thinned: time grows with the cube."""

NODE_SHARE: Final = 0.9
"""Of the mean workers per node in what shares a host; the fullest node has the rest: the slowest node is waited for."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Points:
    """Observations of one device, equal configurations averaged, sorted.

    Attributes
    ----------
    keys : (rows, 5) float
        Columns of KEYS of every configuration.
    step_s : (rows,) float
        Mean step time.
    runs : (rows,) int
        Measurements behind it.
    smallest_batch, unit_s, full_node : float
        The job's own units: samples per worker, step time at the fewest workers and that batch, workers on the fullest
        node.
    """

    keys: Floats
    step_s: Floats
    runs: Ints
    smallest_batch: float
    unit_s: float
    full_node: float

    def __len__(self) -> int:
        return len(self.step_s)

    def places(self, keys: Floats) -> Places:
        """Configurations in the job's units."""
        nodes, workers, fullest, batch, accumulation = keys.T
        mean = workers / nodes
        return Places(
            nodes=nodes,
            sharing=NODE_SHARE * mean + (1.0 - NODE_SHARE) * fullest,
            per_node=mean,
            batch=batch / self.smallest_batch,
            log_accumulation=np.log(accumulation),
            full_node=self.full_node,
        )

    def thinned(self) -> Points:
        """At most LARGEST_FIT of them, evenly over the sorted configurations."""
        if len(self) <= LARGEST_FIT:
            return self
        kept = np.unique(np.linspace(0, len(self) - 1, LARGEST_FIT).astype(np.int64))
        return Points(
            keys=self.keys[kept],
            step_s=self.step_s[kept],
            runs=self.runs[kept],
            smallest_batch=self.smallest_batch,
            unit_s=self.unit_s,
            full_node=self.full_node,
        )

    @property
    def noise_variance(self) -> Floats:
        """Variance of each mean ln T."""
        return np.asarray(MEASUREMENT_LOG_SPREAD**2 / np.minimum(self.runs, REPEATS) + 1e-9)


def points_of(profile: Profile) -> dict[str, Points]:
    """By device; "" where none is stated. Observations of other sync modes and degrees are left out."""
    observations = profile.observations
    if not len(observations):
        return {}
    configurations = observations.configurations
    usable = (
        (configurations.sync_mode == SyncMode.ALLREDUCE)
        & (configurations.tensor_parallel <= 1)
        & (configurations.pipeline_parallel <= 1)
        & (configurations.workers >= 1)
        & (configurations.nodes >= 1)
        & (observations.steps_per_s > 0.0)
    )
    devices = np.array(configurations.device_names())
    keys, step_s = keys_of(configurations), 1.0 / np.where(usable, observations.steps_per_s, 1.0)
    return {
        device: averaged(keys[rows], step_s[rows])
        for device in sorted(set(devices[usable].tolist()))
        for rows in (np.flatnonzero(usable & (devices == device)),)
    }


def keys_of(configurations: Configurations) -> Floats:
    """(rows, 5) columns of KEYS; a batch that is not known counts as 1 sample."""
    workers, nodes = configurations.workers, np.maximum(configurations.nodes, 1)
    fullest = np.ceil(workers / nodes)
    if configurations.placement is not None:
        for row in range(len(configurations)):
            stated = configurations.placement.row(row)
            if stated:
                fullest[row] = max(stated)
    columns = (
        nodes,
        workers,
        fullest,
        np.maximum(configurations.batch_per_worker, 1),
        np.maximum(configurations.accumulation, 1),
    )
    return np.stack([np.asarray(column, dtype=np.float64) for column in columns], axis=1)


def averaged(keys: Floats, step_s: Floats) -> Points:
    """Equal configurations averaged; the very same measurement sent twice counts once."""
    rows = np.unique(np.column_stack([keys, step_s]), axis=0)
    distinct, inverse = np.unique(rows[:, :-1], axis=0, return_inverse=True)
    inverse = inverse.ravel()
    runs = np.bincount(inverse)
    means = np.bincount(inverse, rows[:, -1]) / runs
    workers, batch = distinct[:, 1], distinct[:, 3]
    smallest = float(batch.min())
    fewest = np.flatnonzero(workers == workers.min())
    lone = int(fewest[np.argmin(batch[fewest])])
    # Far from the smallest batch the lone worker's time is another unit than the others': the least time is nearer.
    unit = float(means[lone]) if batch[lone] <= 1.5 * smallest else float(means.min())
    return Points(
        keys=distinct,
        step_s=means,
        runs=runs.astype(np.int64),
        smallest_batch=smallest,
        unit_s=unit,
        full_node=float(distinct[:, 2].max()),
    )
