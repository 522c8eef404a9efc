"""What the rules see of a job: samples per worker and step times of runs under one setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Configurations, Floats, Network, Profile, SyncMode, as_floats, as_ints
from nodewise_simple.settings import Setting, by_setting

__all__ = [
    "KEPT",
    "KEPT_JOBS",
    "MOST_KEPT_ROWS",
    "Near",
    "Points",
    "Rows",
    "RuleRows",
    "asked_of",
    "boundaries",
    "more_replicas",
    "near",
    "points_of",
    "rows_of",
    "whole",
]

Mask = NDArray[np.bool_]

KEPT: Final = 32
"""Questions, and pairs of their settings and runs that are kept as read: several rules are asked about each, one after
the other, first to assess it and then to answer."""

KEPT_JOBS: Final = 512
"""Jobs whose runs are kept as read, and the curves through them: a scheduler asks about as many round after round,
and each takes some 2 kB, at most 60 kB, beside its profile."""

MOST_KEPT_ROWS: Final = 512
"""Rows of what is kept: with more of them reading is a small part of an answer."""


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
    def columns(self) -> tuple[Floats, Floats, Floats, Floats]:
        """What tells configurations of one setting apart."""
        return self.workers, self.nodes, self.samples, self.accumulation

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
class RuleRows:
    """A question's rows as the rules see them.

    Attributes
    ----------
    usable : (rows,) bool
        Those that a rule can predict.
    places : mapping of Setting to (places, Rows)
        The usable ones by setting, with their places among all.
    """

    usable: Mask
    places: Mapping[Setting, tuple[NDArray[np.int64], Rows]]


@dataclass(frozen=True, slots=True, eq=False)
class Near:
    """How rows of one setting compare with its runs, one entry per row.

    Attributes
    ----------
    measured : bool
        Whether it ran.
    point : int
        Which point it is, where it ran.
    reach : float
        Ln of the factors in workers and in samples per worker by which a row exceeds the runs; -1 for measured rows.
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
    """Rows that a rule can predict: all-reduce of alike workers without backups, with a known batch.

    With parameter servers what a step takes hangs on how many workers share a server, and asynchronous workers do not
    wait for each other: a step time at one scale, or a line through two, is no hypothesis of either.
    """
    exchanged = configurations.sync_mode == SyncMode.ALLREDUCE
    if not exchanged.any():
        return np.asarray(exchanged)
    is_known = (configurations.workers >= 1) & (configurations.nodes >= 1) & (configurations.samples_per_step() > 0.0)
    alike = (configurations.backup_workers == 0) & ~configurations.grouped()
    return np.asarray(exchanged & is_known & alike)


def asked_of(configurations: Configurations, network: Network, precision: str) -> RuleRows:
    """A question's rows by setting; what is not stated is the job's own."""
    read = _query_rows if len(configurations) <= MOST_KEPT_ROWS else _query_rows.__wrapped__
    return read(configurations, network, precision)


@lru_cache(KEPT)
def _query_rows(configurations: Configurations, network: Network, precision: str) -> RuleRows:
    usable = whole(configurations)
    if not usable.any():
        return RuleRows(usable, {})
    rows = rows_of(configurations)
    places = by_setting(configurations, network, precision, np.flatnonzero(usable))
    return RuleRows(usable, {setting: (as_ints(at), rows.take(at)) for setting, at in places.items()})


def points_of(profile: Profile) -> Mapping[Setting, Points]:
    """A job's runs by setting; runs that no rule has variables for are left out."""
    rows = len(profile.observations) + len(profile.phase_timings)  # of all that is kept with a profile
    return (_points if rows <= MOST_KEPT_ROWS else _points.__wrapped__)(profile)


@lru_cache(KEPT_JOBS)
def _points(profile: Profile) -> Mapping[Setting, Points]:
    observations = profile.observations
    usable = np.flatnonzero(whole(observations.configurations) & (observations.steps_per_s > 0.0))
    if not len(usable):
        return {}
    ran = observations.configurations.take(usable)
    rows, step_s = rows_of(ran), 1.0 / observations.steps_per_s[usable]
    places = by_setting(ran, profile.network, profile.workload.precision or "", np.arange(len(ran)))
    return {setting: _average(rows.take(at), step_s[at]) for setting, at in places.items()}


def near(points: Points, rows: Rows) -> Near:
    """How rows of one setting compare with its runs."""
    read = _near if len(points) + len(rows) <= MOST_KEPT_ROWS else _near.__wrapped__
    return read(points, rows)


@lru_cache(KEPT)
def _near(points: Points, rows: Rows) -> Near:
    point = _run_of(points, rows)
    samples, row_samples = points.rows.samples_per_worker, rows.samples_per_worker
    outside = np.maximum(samples.min() / row_samples, row_samples / samples.max())
    workers = points.rows.workers
    beyond = np.maximum(rows.workers / workers.max(), workers.min() / rows.workers)
    reach = np.log(np.maximum(outside, 1.0)) + np.log(np.maximum(beyond, 1.0))
    measured = point >= 0
    return Near(measured, point, np.where(measured, -1.0, reach))


def more_replicas(points: Points, rows: Rows) -> Mask:
    """Rows that differ from a run of the largest scale that is no larger in nothing but how many replicas there are."""
    runs = points.rows
    scales = np.unique(runs.workers)
    scale = scales[np.maximum(np.searchsorted(scales, rows.workers, side="right") - 1, 0)]
    alike = (runs.workers == scale[:, np.newaxis]) & (runs.workers < rows.workers[:, np.newaxis])
    alike &= runs.accumulation == rows.accumulation[:, np.newaxis]
    for own, asked in (
        (runs.samples_per_worker, rows.samples_per_worker),
        (runs.workers / runs.nodes, rows.workers / rows.nodes),
    ):
        alike &= np.isclose(own, asked[:, np.newaxis])
    return np.asarray(alike.any(axis=1))


def boundaries(rows: Rows) -> Floats:
    """What the exchange of each row crosses: 0 = nothing, 1 = devices of one node, 2 = nodes."""
    return np.where(rows.nodes > 1.0, 2.0, np.where(rows.workers > 1.0, 1.0, 0.0))


def _run_of(points: Points, rows: Rows) -> NDArray[np.int64]:
    """Which point each row is; -1 = it did not run."""
    ran = np.ones(len(rows), dtype=bool)
    places = np.zeros(len(rows), dtype=np.int64)
    levels, numbers = _levels(points) if len(points) <= MOST_KEPT_ROWS else _levels.__wrapped__(points)
    for column, (values, levels_before) in zip(rows.columns, levels, strict=True):
        at = _place(values, column, ran)
        places = _place(levels_before, places * len(values) + at, ran)
    return np.where(ran, numbers[places], -1)


@lru_cache(KEPT_JOBS)
def _levels(points: Points) -> tuple[Sequence[tuple[Floats, NDArray[np.int64]]], NDArray[np.int64]]:
    """By column: its values, and the pairs that there are of what stands before with them. Then the points of the last.

    Pairs are numbered again after each column: their codes stay below the square of how many points there are.
    """
    levels = []
    own = np.zeros(len(points), dtype=np.int64)
    for column in points.rows.columns:
        values, codes = np.unique(column, return_inverse=True)
        known, own = np.unique(own * len(values) + codes, return_inverse=True)
        levels.append((values, known))
    return levels, np.unique(own, return_index=True)[1]


def _place(values: NDArray[Any], column: NDArray[Any], known: Mask) -> NDArray[np.int64]:
    """Where each number stands among sorted values; ``known`` no longer holds where it does not."""
    places = np.minimum(values.searchsorted(column), len(values) - 1)
    known &= values[places] == column
    return places


def _average(rows: Rows, step_s: Floats) -> Points:
    keys, inverse = np.unique(np.stack(rows.columns, axis=1), axis=0, return_inverse=True)
    # Sums are taken in one order, whatever order the runs came in.
    order = np.lexsort((step_s, inverse.ravel()))
    counts = np.bincount(inverse.ravel())
    sums = np.add.reduceat(step_s[order], np.concatenate([[0], np.cumsum(counts)[:-1]]))
    workers, nodes, samples, accumulation = keys.T
    return Points(Rows(workers, nodes, accumulation, samples), sums / counts)
