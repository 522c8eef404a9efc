"""What the rules see of a job: samples per worker and step times of runs under one setting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Configurations, Floats, Network, Profile, SyncMode, as_floats, as_ints

__all__ = [
    "KEPT",
    "MOST_KEPT_ROWS",
    "PARTITION",
    "Asked",
    "Near",
    "Points",
    "Rows",
    "Setting",
    "asked_of",
    "near",
    "points_of",
    "rows_of",
    "whole",
]

Mask = NDArray[np.bool_]

PARTITION: Final = (
    "tensor_parallel",
    "pipeline_parallel",
    "context_parallel",
    "expert_parallel",
    "sequence_parallel",
    "interleave",
    "zero_stage",
    "recomputation",
)
"""Columns that say how a replica is made: as long as they stay as they were measured, a replica may be opaque."""

KEPT: Final = 32
"""Profiles, questions, and pairs of their settings that are kept as read: several rules are asked about each, one after
the other, first to assess it and then to answer."""

MOST_KEPT_ROWS: Final = 512
"""Rows of what is kept: with more of them reading is a small part of an answer."""


class Setting(NamedTuple):
    """What no rule has a term for: rows are answered from runs that are alike in all of it.

    Attributes
    ----------
    device : str
    link_bytes_per_s : float
        Link of a node; 0 = not stated.
    precision : str
        "" = the job's own.
    partition : tuple of int
        Columns of PARTITION.
    """

    device: str
    link_bytes_per_s: float
    precision: str
    partition: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Configurations as the rules' variables, one entry per row.

    Attributes
    ----------
    workers, nodes, accumulation : float
    samples : float
        Samples of a step over all workers, accumulation included; 0 = not known.
    """

    workers: Floats
    nodes: Floats
    accumulation: Floats
    samples: Floats

    def __len__(self) -> int:
        return len(self.workers)

    @property
    def samples_per_worker(self) -> Floats:
        """A fraction where several workers share a sample."""
        return self.samples / self.workers

    @property
    def keys(self) -> Floats:
        """(rows, 4) what tells configurations of one setting apart."""
        return np.stack([self.workers, self.nodes, self.samples, self.accumulation], axis=1)

    def take(self, rows: NDArray[np.int64] | Mask) -> Rows:
        """Some of them."""
        return Rows(self.workers[rows], self.nodes[rows], self.accumulation[rows], self.samples[rows])


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """Measured step times of one setting: equal configurations averaged, sorted by workers."""

    rows: Rows
    step_s: Floats

    def __len__(self) -> int:
        return len(self.step_s)


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A question's rows as the rules see them.

    Attributes
    ----------
    usable : (rows,) bool
        Those that a rule may speak of.
    places : mapping of Setting to (places, Rows)
        The usable ones by setting, with their places among all.
    """

    usable: Mask
    places: Mapping[Setting, tuple[NDArray[np.int64], Rows]]


@dataclass(frozen=True, slots=True, eq=False)
class Near:
    """How rows of one setting lie beside its runs, one entry per row.

    Attributes
    ----------
    measured : bool
        Whether it ran.
    point : int
        Which point it is, where it ran.
    reach : float
        Ln of the factors in workers and in samples per worker by which it lies beyond the runs; -1 of what was run.
    """

    measured: Mask
    point: NDArray[np.int64]
    reach: Floats


def rows_of(configurations: Configurations) -> Rows:
    """The rules' variables; a stated global batch is shared by the workers evenly."""
    return Rows(
        workers=as_floats(np.maximum(configurations.workers, 1)),
        nodes=as_floats(np.maximum(configurations.nodes, 1)),
        accumulation=as_floats(np.maximum(configurations.accumulation, 1)),
        samples=as_floats(configurations.samples_per_step()),
    )


def whole(configurations: Configurations) -> Mask:
    """Rows that a rule may speak of: all-reduce of alike workers that are all waited for, of a known batch.

    With parameter servers what a step takes hangs on how many workers share a server, and asynchronous workers do not
    wait for each other: a step time at one scale, or a line through two, is no hypothesis of either.
    """
    exchanged = configurations.sync_mode == SyncMode.ALLREDUCE
    if not exchanged.any():
        return np.asarray(exchanged)
    known = (configurations.workers >= 1) & (configurations.nodes >= 1) & (configurations.samples_per_step() > 0.0)
    alike = (configurations.backup_workers == 0) & ~configurations.grouped()
    return np.asarray(exchanged & known & alike)


def asked_of(configurations: Configurations, network: Network, precision: str) -> Asked:
    """A question's rows by setting; what is not stated is the job's own."""
    read = _asked if len(configurations) <= MOST_KEPT_ROWS else _asked.__wrapped__
    return read(configurations, network, precision)


@lru_cache(KEPT)
def _asked(configurations: Configurations, network: Network, precision: str) -> Asked:
    usable = whole(configurations)
    if not usable.any():
        return Asked(usable, {})
    rows = rows_of(configurations)
    places: dict[Setting, list[int]] = {}
    for row, setting in enumerate(_settings(configurations, network, precision)):
        if usable[row]:
            places.setdefault(setting, []).append(row)
    return Asked(usable, {setting: (as_ints(at), rows.take(np.array(at))) for setting, at in places.items()})


def _settings(configurations: Configurations, network: Network, precision: str) -> list[Setting]:
    """The setting of each row; what is not stated is the job's own."""
    links = np.where(
        configurations.link_bytes_per_s > 0, configurations.link_bytes_per_s, network.link_bytes_per_s or 0
    )
    named = [name or precision for name in configurations.precisions]
    formats = [named[index] for index in configurations.precision_index.tolist()]
    degrees = np.stack([getattr(configurations, name) for name in PARTITION], axis=1)
    columns = zip(configurations.device_names(), links.tolist(), formats, degrees.tolist(), strict=True)
    return [Setting(device, link, number, tuple(partition)) for device, link, number, partition in columns]


def points_of(profile: Profile) -> Mapping[Setting, Points]:
    """A job's runs by setting; runs that no rule has variables for are left out."""
    read = _points if len(profile.observations) <= MOST_KEPT_ROWS else _points.__wrapped__
    return read(profile)


@lru_cache(KEPT)
def _points(profile: Profile) -> Mapping[Setting, Points]:
    observations = profile.observations
    usable = np.flatnonzero(whole(observations.configurations) & (observations.steps_per_s > 0.0))
    if not len(usable):
        return {}
    ran = observations.configurations.take(usable)
    rows, step_s = rows_of(ran), 1.0 / observations.steps_per_s[usable]
    places: dict[Setting, list[int]] = {}
    for row, setting in enumerate(_settings(ran, profile.network, profile.workload.precision or "")):
        places.setdefault(setting, []).append(row)
    return {setting: _averaged(rows.take(np.array(at)), step_s[at]) for setting, at in places.items()}


def near(points: Points, rows: Rows) -> Near:
    """How rows of one setting lie beside its runs."""
    read = _near if len(points) + len(rows) <= MOST_KEPT_ROWS else _near.__wrapped__
    return read(points, rows)


@lru_cache(KEPT)
def _near(points: Points, rows: Rows) -> Near:
    together, inverse = np.unique(np.concatenate([points.rows.keys, rows.keys]), axis=0, return_inverse=True)
    place = np.full(len(together), -1)
    place[inverse.ravel()[: len(points)]] = np.arange(len(points))
    point = place[inverse.ravel()[len(points) :]]
    samples, asked = points.rows.samples_per_worker, rows.samples_per_worker
    outside = np.maximum(samples.min() / asked, asked / samples.max())
    workers = points.rows.workers
    beyond = np.maximum(rows.workers / workers.max(), workers.min() / rows.workers)
    reach = np.log(np.maximum(outside, 1.0)) + np.log(np.maximum(beyond, 1.0))
    measured = point >= 0
    return Near(measured, point, np.where(measured, -1.0, reach))


def _averaged(rows: Rows, step_s: Floats) -> Points:
    keys, inverse = np.unique(rows.keys, axis=0, return_inverse=True)
    # Sums are taken in one order, whatever order the runs came in.
    order = np.lexsort((step_s, inverse.ravel()))
    counts = np.bincount(inverse.ravel())
    sums = np.add.reduceat(step_s[order], np.concatenate([[0], np.cumsum(counts)[:-1]]))
    workers, nodes, samples, accumulation = keys.T
    return Points(Rows(workers, nodes, accumulation, samples), sums / counts)
