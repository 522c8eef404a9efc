"""Rows of a question, sorted into those that share a curve over workers and those that no curve here describes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from nodewise.plugin import Configurations, Ints, Reason, Refusal, SyncMode, freeze

__all__ = ["MAX_WORKERS", "CurveKey", "Group", "Plan", "Setting", "plan_of", "setting_of"]

MAX_WORKERS: Final = 131_072
"""Largest number of workers that is answered: exact curves cost time and memory in proportion to it."""

_REMEMBERED_ROWS: Final = 256
"""Rows of a question that is remembered: 1,024 of them hold 50 MB at most. Sorting more costs little per row."""


@dataclass(frozen=True, slots=True, order=True)
class Setting:
    """Everything but the number of workers that a curve depends on.

    Attributes
    ----------
    servers : int
        Parameter servers, at least 1: somebody holds the parameters.
    link_bytes_per_s : float
        Rate of a server's link per direction; 0 = not known.
    batch_per_worker, accumulation : int
        Samples per worker and micro-step (0 = not known); micro-steps per exchange.
    """

    servers: int
    link_bytes_per_s: float
    batch_per_worker: int
    accumulation: int


@dataclass(frozen=True, slots=True)
class CurveKey:
    """One curve over workers: device, mode and setting."""

    device: str
    mode: SyncMode
    setting: Setting


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Rows of one curve; ``rows`` None = all rows of the question."""

    key: CurveKey
    rows: Ints | None
    workers: Ints
    largest: int


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """How the rows of a question fall apart."""

    groups: tuple[Group, ...]
    refused: tuple[tuple[tuple[int, ...], Refusal], ...]


def setting_of(configurations: Configurations, row: int, default_link_bytes_per_s: float) -> Setting:
    """The setting of one row; a link that is not stated is the job's own."""
    return Setting(
        servers=max(int(configurations.parameter_servers[row]), 1),
        link_bytes_per_s=float(configurations.link_bytes_per_s[row]) or default_link_bytes_per_s,
        batch_per_worker=int(configurations.batch_per_worker[row]),
        accumulation=max(int(configurations.accumulation[row]), 1),
    )


def plan_of(configurations: Configurations) -> Plan:
    """Sort the rows. Remembered by identity, one object stands for one question, unless it is large."""
    return _remembered(configurations) if len(configurations) <= _REMEMBERED_ROWS else _planned(configurations)


@lru_cache(maxsize=1024)
def _remembered(configurations: Configurations) -> Plan:
    return _planned(configurations)


def _planned(configurations: Configurations) -> Plan:
    rows = len(configurations)
    # Integers below 2**53 keep their value as floats, and so do the links.
    columns = np.array(
        [
            configurations.device_index,
            configurations.sync_mode,
            np.maximum(configurations.parameter_servers, 1),
            configurations.link_bytes_per_s,
            configurations.batch_per_worker,
            np.maximum(configurations.accumulation, 1),
            _unsupported(configurations),
        ],
        dtype=np.float64,
    )
    if rows and (columns == columns[:, :1]).all():
        classes, members = columns[:, :1].T, [np.arange(rows)]
    else:
        classes, inverse = np.unique(columns.T, axis=0, return_inverse=True)
        members = [np.flatnonzero(inverse.ravel() == index) for index in range(len(classes))]
    groups: list[Group] = []
    refused: list[tuple[tuple[int, ...], Refusal]] = []
    for values, found in zip(classes.tolist(), members, strict=True):
        device, mode, servers, link, batch, accumulation, unsupported = values
        if unsupported:
            refused.append((tuple(found.tolist()), _REFUSALS[int(unsupported)]))
            continue
        setting = Setting(int(servers), float(link), int(batch), int(accumulation))
        key = CurveKey(configurations.devices[int(device)], SyncMode(int(mode)), setting)
        workers = configurations.workers if len(found) == rows else freeze(configurations.workers[found])
        groups.append(Group(key, None if len(found) == rows else freeze(found), workers, int(workers.max())))
    return Plan(tuple(groups), tuple(refused))


def _unsupported(configurations: Configurations) -> Ints:
    """0 where the laws reach, else the number of the refusal; the first that applies."""
    workers = configurations.workers
    parallel = (configurations.tensor_parallel > 1) | (configurations.pipeline_parallel > 1)
    mode = configurations.sync_mode
    return np.asarray(
        np.select(
            [
                (mode != SyncMode.ASYNC) & (mode != SyncMode.SYNC),
                parallel,
                configurations.backup_workers > 0,
                (workers < 1) | (workers > MAX_WORKERS),
            ],
            [1, 2, 3, 4],
            0,
        ).astype(np.int64)
    )


_REFUSALS: Final = {
    1: Refusal(
        Reason.UNSUPPORTED_CONFIGURATION,
        "the queueing model describes parameter servers: sync modes ASYNC and SYNC, not all-reduce or hybrid training",
    ),
    2: Refusal(
        Reason.UNSUPPORTED_CONFIGURATION,
        "the queueing model describes data parallelism: tensor_parallel and pipeline_parallel must be 1",
    ),
    3: Refusal(
        Reason.UNSUPPORTED_CONFIGURATION,
        "the queueing model waits for every worker: backup_workers must be 0",
    ),
    4: Refusal(
        Reason.UNSUPPORTED_CONFIGURATION,
        f"the queueing model answers from 1 to {MAX_WORKERS} workers",
    ),
}
