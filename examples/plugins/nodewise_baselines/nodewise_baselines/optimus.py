"""Optimus: speed functions of w workers and p parameter servers, and what they make of all-reduce.

References
----------
Y. Peng et al., "Optimus: An efficient dynamic resource scheduler for deep learning clusters", EuroSys 2018, with M the
global batch and constants >= 0:

    synchronous    speed = 1 / (a M/w + b + c w/p + d w + e p)     global steps/s
    asynchronous   speed = w / (a + b w/p + c w + d p)             mini-batches/s of all workers

The equations are the paper's; no code of its repository, which has no licence, was used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np

from nodewise.plugin import Floats, SyncMode, as_floats

from .form import Curve, lacks_batch, lacks_scale
from .linear_form import LinearCurve, non_negative
from .points import Points
from .rows import Rows

__all__ = ["Optimus", "asynchronous", "synchronous", "with_node_servers", "with_worker_servers"]

Servers = Callable[[Rows], Floats]
"""Which number takes the place of p in all-reduce rows, which have no servers."""

_MODES: Final = frozenset({SyncMode.ALLREDUCE, SyncMode.SYNC, SyncMode.ASYNC})
_NEEDED: Final[Mapping[SyncMode, int]] = MappingProxyType({SyncMode.SYNC: 5, SyncMode.ASYNC: 4})
"""Distinct points from which on the published scheduler fits: as many as there are constants."""


def with_worker_servers(rows: Rows) -> Floats:
    """``p = w``: as many servers as workers, as Optimus profiles jobs."""
    return rows.workers


def with_node_servers(rows: Rows) -> Floats:
    """``p = n``: a server on each node."""
    return rows.nodes


def synchronous(rows: Rows, servers: Floats) -> Floats:
    """Terms of the global step: ``[M/w, 1, w/p, w, p]``."""
    w, m = rows.workers, rows.batch_samples
    return as_floats(np.stack([m, np.ones(len(w)), w / servers, w, servers], axis=1))


def asynchronous(rows: Rows) -> Floats:
    """Terms of one worker's cycle, w over the speed: ``[1, w/p, w, p]``. The batch is the job's one batch."""
    w, p = rows.workers, rows.servers
    return as_floats(np.stack([np.ones(len(w)), w / p, w, p], axis=1))


@dataclass(frozen=True, slots=True)
class Optimus:
    """Optimus' speed functions, fitted to step times in seconds by non-negative least squares.

    A configuration that was measured is answered with its measurement, as the scheduler does. Parameter-server jobs are
    refused below the scheduler's number of distinct points (5 synchronous, 4 asynchronous). All-reduce jobs, which the
    paper does not have, are fitted from two numbers of workers on.
    """

    servers: Servers
    sync_modes: frozenset[SyncMode] = _MODES
    reach: str = "rows of a known batch (ASYNC: the one that was measured) and, but for all-reduce, of known servers"

    def lacks(self, points: Points, mode: SyncMode) -> str:
        """Batches, servers, and as many points as the scheduler asks for."""
        needed = _NEEDED.get(mode, 2)
        if len(points) < needed:
            return f"{needed} different configurations"
        if mode != SyncMode.ALLREDUCE and not bool((points.rows.servers > 0).all()):
            return "the number of parameter servers of every run"
        if mode == SyncMode.ASYNC:
            one_batch = len(np.unique(points.rows.batch_samples)) == 1
            return (
                lacks_scale(points) if one_batch else "runs of one batch, which the asynchronous form has no term for"
            )
        return lacks_batch(points) or lacks_scale(points)

    def fitted(self, points: Points, mode: SyncMode) -> Curve:
        """NNLS, with what was measured beside it."""
        if mode == SyncMode.ASYNC:
            only = float(points.rows.batch_samples[0])
            curve = LinearCurve(asynchronous, non_negative(asynchronous, points, relative=False), needs_batch=False)
            return _Measured(curve, _steps_by_key(points), only, servers=True)

        def features(rows: Rows) -> Floats:
            return synchronous(rows, self.servers(rows) if mode == SyncMode.ALLREDUCE else rows.servers)

        curve = LinearCurve(features, non_negative(features, points, relative=False))
        return _Measured(curve, _steps_by_key(points), None, servers=mode == SyncMode.SYNC)


@dataclass(frozen=True, slots=True, eq=False)
class _Measured:
    """Measurements where there are some, else the fit; NaN where the fit has no variables for the row."""

    curve: LinearCurve
    step_s: Mapping[tuple[float, ...], float]
    only_batch: float | None
    servers: bool

    def __call__(self, rows: Rows) -> Floats:
        answered = (rows.servers > 0) | (not self.servers)
        if self.only_batch is not None:
            answered &= rows.batch_samples == self.only_batch
        found = np.full(len(rows), np.nan)
        at = np.flatnonzero(answered)
        found[at] = self.curve(rows.take(at))
        for row, key in enumerate(rows.keys()):
            found[row] = self.step_s.get(key, found[row])
        return as_floats(found)


def _steps_by_key(points: Points) -> Mapping[tuple[float, ...], float]:
    return MappingProxyType(dict(zip(points.rows.keys(), points.step_s.tolist(), strict=True)))
