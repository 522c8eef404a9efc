"""Mean step times by configuration and device, in the job's own units, from a profile's observations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Configurations, Floats, Ints, Profile, SyncMode
from nodewise_scaling.form import Places

__all__ = [
    "KEYS",
    "MEASUREMENT_LOG_SPREAD",
    "SPLITTING",
    "Points",
    "Setting",
    "Split",
    "average",
    "keys_of",
    "points_of",
    "splits_of",
]

Mask = NDArray[np.bool_]

KEYS: Final = ("nodes", "workers", "fullest", "batch", "accumulation")
"""What tells configurations apart: nodes, workers, workers on the fullest node, samples per worker, micro-steps.

Of workers that share a replica each has a fraction of its samples."""

MEASUREMENT_LOG_SPREAD: Final = 0.05
"""Standard deviation of one measured ln T: equal configurations differ by 2.6 to 8.7 % on average (A100, 2080Ti, T4,
V100)."""

DRIFT_DEVIATIONS: Final = 4.0
"""Deviations of a measurement by which a newer one of the same configuration must differ to take the older ones' place:
what ran then is not what runs now."""

REPEATS: Final = 4
"""Repeats beyond which a mean gets no surer: what they share, a placement or a day, does not average out."""

LARGEST_FIT: Final = 300
"""Configurations of one device that are fitted, evenly thinned: time grows with the cube."""

LONE_BATCH: Final = 1.5
"""Multiple of the smallest batch up to which the step of the fewest workers is the job's unit."""

NODE_SHARE: Final = 0.9
"""Of the mean workers per node in what shares a host; the fullest node has the rest: the slowest node is waited for."""


SPLITTING: Final[Mapping[str, int]] = {
    "tensor_parallel": 1,
    "pipeline_parallel": 1,
    "expert_parallel": 1,
    "context_parallel": 1,
    "sequence_parallel": 0,
    "interleave": 1,
    "zero_stage": 0,
    "recomputation": 0,
}
"""Columns that tell how the workers of a replica share a model, and the values that state nothing. Where they stay as
they are a replica is one worker to data parallelism, whatever happens inside of it."""

Split = tuple[int, ...]
"""Values of SPLITTING."""


class Setting(NamedTuple):
    """Where runs were made: what differs in either is never averaged nor fitted together.

    Attributes
    ----------
    device : str
        "" = not stated.
    link_bytes_per_s : float
        Link of a node; 0 = not stated.
    """

    device: str
    link_bytes_per_s: float = 0.0


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Points:
    """Observations of one device over one link, equal configurations averaged, sorted.

    Attributes
    ----------
    keys : (rows, 5) float
        Columns of KEYS of every configuration.
    step_s : (rows,) float
        Mean step time.
    runs : (rows,) int
        Measurements behind it.
    drifted : int
        Configurations whose older measurements contradict newer ones; the older ones are ignored.
    smallest_batch, unit_s : float
        The job's own units: samples per worker, and the time of a micro-step of them at the fewest workers.
    over_fixed : bool
        As ``Places.over_fixed``; of the prior that they are fitted under.
    """

    keys: Floats
    step_s: Floats
    runs: Ints
    smallest_batch: float
    unit_s: float
    drifted: int = 0
    over_fixed: bool = True

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
            over_fixed=self.over_fixed,
        )

    def find(self, keys: Floats) -> tuple[Ints, Ints]:
        """Rows of ``keys`` that are among these configurations, and the point of each."""
        rows = np.arange(len(keys))
        codes, own = np.zeros(len(keys), dtype=np.int64), np.zeros(len(self), dtype=np.int64)
        for column, own_column in zip(keys.T, self.keys.T, strict=True):
            values = np.unique(own_column)
            place = np.searchsorted(values, column[rows])
            near = np.minimum(place, len(values) - 1)
            is_equal = values[near] == column[rows] if len(values) else np.zeros(len(rows), dtype=bool)
            rows, codes = rows[is_equal], codes[is_equal] * len(values) + near[is_equal]
            own = own * len(values) + np.searchsorted(values, own_column)
        order = np.argsort(own, kind="stable")
        place = np.minimum(np.searchsorted(own[order], codes), len(own) - 1)
        is_equal = own[order][place] == codes
        return rows[is_equal], order[place[is_equal]]

    def thin(self) -> Points:
        """At most LARGEST_FIT of them, evenly over the sorted configurations."""
        if len(self) <= LARGEST_FIT:
            return self
        rows = np.unique(np.linspace(0, len(self) - 1, LARGEST_FIT).astype(np.int64))
        return replace(self, keys=self.keys[rows], step_s=self.step_s[rows], runs=self.runs[rows])

    @property
    def exchange_seen(self) -> bool:
        """Whether any run had a second worker."""
        return bool(np.any(self.keys[:, 1] > 1.0))

    @property
    def noise_variance(self) -> Floats:
        """Variance of each mean ln T."""
        return np.asarray(MEASUREMENT_LOG_SPREAD**2 / np.minimum(self.runs, REPEATS) + 1e-9)


def points_of(profile: Profile) -> dict[Split, dict[Setting, Points]]:
    """By how replicas are split, and by device and link, sorted.

    Left out are observations of other sync modes, of workers that differ, and of another number format than the job's.
    """
    observations = profile.observations
    if not len(observations):
        return {}
    configurations = observations.configurations
    usable = (
        (configurations.sync_mode == SyncMode.ALLREDUCE)
        & (configurations.backup_workers == 0)
        & (configurations.workers >= 1)
        & (configurations.nodes >= 1)
        & (observations.steps_per_s > 0.0)
        & ~configurations.grouped()
        & _of_the_job(configurations, profile.workload.precision or "")
    )
    devices = np.array(configurations.device_names())
    link_bytes_per_s = configurations.link_bytes_per_s
    links = np.where(link_bytes_per_s == 0.0, profile.network.link_bytes_per_s or 0.0, link_bytes_per_s)
    keys, step_s = keys_of(configurations), 1.0 / np.where(usable, observations.steps_per_s, 1.0)
    when = observations.measured_at_s
    points_by_split: dict[Split, dict[Setting, Points]] = {}
    for split, alike in splits_of(configurations).items():
        members = usable & alike
        for device in sorted(set(devices[members].tolist())):
            for link in sorted(set(links[members & (devices == device)].tolist())):
                rows = np.flatnonzero(members & (devices == device) & (links == link))
                settings = points_by_split.setdefault(split, {})
                settings[Setting(device, link)] = average(keys[rows], step_s[rows], when[rows])
    return points_by_split


def splits_of(configurations: Configurations) -> dict[Split, Mask]:
    """The rows of every way to split a replica, sorted; a model that is not split first."""
    if not len(configurations):
        return {}
    columns = [getattr(configurations, name) for name in SPLITTING]
    if all(column.min() == column.max() for column in columns):
        return {tuple(int(column[0]) for column in columns): np.ones(len(configurations), dtype=bool)}
    values, places = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    return {tuple(split): places.ravel() == place for place, split in enumerate(values.tolist())}


def _of_the_job(configurations: Configurations, precision: str) -> Mask:
    """Rows of the job's number format, as far as both are stated."""
    alike = np.array([not precision or name in {"", precision} for name in configurations.precisions], dtype=bool)
    return np.asarray(alike[configurations.precision_index])


def keys_of(configurations: Configurations) -> Floats:
    """(rows, 5) columns of KEYS; a batch that is not known, nor follows from the global one, counts as 1 sample.

    A global batch of less than a sample for each replica tells which fraction: what replicas have is rounded up.
    """
    workers, nodes = np.maximum(configurations.workers, 1), np.maximum(configurations.nodes, 1)
    accumulation = np.maximum(configurations.accumulation, 1)
    replicas = configurations.replicas()
    shared = configurations.global_batch / (replicas * accumulation)
    # From one sample on a replica has a whole number, rounded up as data loaders do.
    told = np.where(shared < 1.0, shared, np.ceil(shared))
    batch = np.where(configurations.global_batch > 0, told, configurations.batch_per_worker) * (replicas / workers)
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
        np.where(batch > 0.0, batch, 1.0),
        accumulation,
    )
    return np.stack([np.asarray(column, dtype=np.float64) for column in columns], axis=1)


def average(keys: Floats, step_s: Floats, measured_at_s: Floats | None = None) -> Points:
    """Equal configurations averaged; the very same measurement sent twice counts once.

    ``measured_at_s`` (0 = not known) tells newer from older measurements.
    """
    when = np.zeros(len(step_s)) if measured_at_s is None else measured_at_s
    rows = np.unique(np.column_stack([keys, when, step_s]), axis=0)
    is_current, drifted = _current(rows)
    rows = rows[is_current]
    distinct, inverse = np.unique(rows[:, : len(KEYS)], axis=0, return_inverse=True)
    inverse = inverse.ravel()
    runs = np.bincount(inverse)
    means = np.bincount(inverse, rows[:, -1]) / runs
    workers, batch, micro_step_s = distinct[:, 1], distinct[:, 3], means / distinct[:, 4]
    smallest = float(batch.min())
    fewest = np.flatnonzero(workers == workers.min())
    lone = int(fewest[np.argmin(batch[fewest])])
    # Far from the smallest batch the lone worker's time is another unit than the others': the least time is nearer.
    unit = float(micro_step_s[lone]) if batch[lone] <= LONE_BATCH * smallest else float(micro_step_s.min())
    return Points(
        keys=distinct,
        step_s=means,
        runs=runs.astype(np.int64),
        smallest_batch=smallest,
        unit_s=unit,
        drifted=drifted,
    )


def _current(rows: Floats) -> tuple[Mask, int]:
    """Measurements that the newest of their configuration do not contradict, and configurations that have others.

    Sorted rows of key, time and step; from the newest back, as long as they agree.
    """
    is_current = np.ones(len(rows), dtype=bool)
    drifted = 0
    is_dated = rows[:, len(KEYS)] > 0.0
    starts = np.flatnonzero(np.concatenate(([True], np.any(np.diff(rows[:, : len(KEYS)], axis=0) != 0.0, axis=1))))
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(rows)], strict=True):
        if end - start < 2 or not is_dated[start:end].all():
            continue
        logs = np.log(rows[start:end, -1])
        first = end - start - 1
        times = rows[start:end, len(KEYS)]
        while first > 0:
            apart = abs(logs[first - 1] - logs[first:].mean())
            if times[first - 1] < times[first] and apart > DRIFT_DEVIATIONS * MEASUREMENT_LOG_SPREAD:
                break
            first -= 1
        is_current[start : start + first] = False
        drifted += first > 0
    return is_current, drifted
