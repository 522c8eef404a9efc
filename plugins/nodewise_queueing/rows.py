"""Rows of a question, grouped into those that share a curve over workers and those outside of the laws."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Configurations, Ints, Refusal, SyncMode, as_ints, constant_ints, freeze
from nodewise_laws import MAX_MIXED_WORKERS

__all__ = [
    "MAX_WORKERS",
    "Class",
    "Clients",
    "CurveKey",
    "Group",
    "Plan",
    "Setting",
    "clients_of",
    "plan_of",
    "settings_of",
]

MAX_WORKERS: Final = 131_072
"""Largest number of workers that is supported: exact curves cost time and memory in proportion to it."""

_SMALL_ROWS: Final = 256
_REMEMBERED_ROWS: Final = 4096
"""Rows of a cached question: 1,024 small ones and 64 larger ones take 100 MB at most. Grouping even more costs little
per row."""


_PLAIN_MODES: Final = {int(mode): mode for mode in (SyncMode.ASYNC, SyncMode.SYNC)}
"""Modes with a single curve each."""


@dataclass(frozen=True, slots=True, order=True)
class Setting:
    """The parameters of a curve, without the number of workers.

    Attributes
    ----------
    servers : int
        Parameter servers, at least 1: some process holds the parameters.
    link_bytes_per_s : float
        Rate of a server's link per direction; 0 = not known.
    batch_per_worker, accumulation : int
        Samples per worker and micro-step (0 = not known); micro-steps per exchange.
    devices : int
        Devices that add up their gradients before they push them: together they are one client of the servers.
    node_shared : bool
        Whether several clients share a node.
    """

    servers: int
    link_bytes_per_s: float
    batch_per_worker: int
    accumulation: int
    devices: int = 1
    node_shared: bool = False


class Class(NamedTuple):
    """Workers of a row that are alike: their device, how many, and how much slower they compute (1 = not at all)."""

    device: str
    workers: int
    compute_factor: float


@dataclass(frozen=True, slots=True)
class CurveKey:
    """One curve over workers: device, mode and setting.

    Attributes
    ----------
    device : str
        Accelerator; ``""`` = not stated.
    mode : SyncMode
    setting : Setting
    backup_workers : int
        SYNC: workers that a round does not wait for.
    classes : tuple of Class
        Workers that are not alike, sorted; their number is the row's, and the curve one point. Empty = all are alike.
    """

    device: str
    mode: SyncMode
    setting: Setting
    backup_workers: int = 0
    classes: tuple[Class, ...] = ()

    def by_mode(self) -> tuple[CurveKey, ...]:
        """The curves of an answer: both modes of a hybrid, else the curve itself."""
        if self.mode != SyncMode.HYBRID:
            return (self,)
        return replace(self, mode=SyncMode.SYNC), replace(self, mode=SyncMode.ASYNC)


@dataclass(frozen=True, slots=True, eq=False)
class Clients:
    """Clients of the servers, row by row: how many, of how many devices each, and whether several share a node."""

    clients: Ints
    devices: Ints
    node_shared: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Rows of one curve; ``rows`` None = all rows of the question; ``workers``: those that exchange with servers."""

    key: CurveKey
    rows: Ints | None
    workers: Ints
    largest: int


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """The rows of a question by curve, and refused rows."""

    groups: tuple[Group, ...]
    refusals: tuple[tuple[tuple[int, ...], Refusal], ...]


def clients_of(configurations: Configurations, devices_per_worker: int) -> Clients:
    """The clients of rows whose devices sum their gradients within a node, at most so many of them.

    Where a node holds fewer devices than that, these are one client. ``devices`` is that of the largest client.
    """
    nodes, workers = configurations.nodes, configurations.workers
    if devices_per_worker == 1:
        return Clients(workers, constant_ints(len(workers), 1), (nodes > 0) & (workers > nodes))
    node_counts = np.maximum(nodes, 1)
    # Packed nodes: full ones, one with what is left, and a device on each of the others.
    most = -(-workers // node_counts)
    full, left = np.divmod(workers - node_counts, np.maximum(most - 1, 1))
    full = np.minimum(full, node_counts)
    others = np.where(full < node_counts, -(-(left + 1) // devices_per_worker) + node_counts - full - 1, 0)
    clients = np.where(most > 1, full * -(-most // devices_per_worker) + others, workers)
    if configurations.placement is not None:
        for row in range(len(workers)):
            counts = np.array(configurations.placement_of(row) or (workers[row],))
            clients[row], most[row] = (-(-counts // devices_per_worker)).sum(), counts.max()
    devices = np.clip(most, 1, devices_per_worker)
    return Clients(as_ints(clients), as_ints(devices), (nodes > 0) & (clients > nodes))


def settings_of(
    configurations: Configurations, clients: Clients, rows: Ints, default_link_bytes_per_s: float
) -> list[Setting]:
    """The settings of some rows; those that are equal are one object, which makes comparing them quick.

    A link that is not stated is the job's own.
    """
    columns = (
        configurations.parameter_servers,
        configurations.link_bytes_per_s,
        configurations.batch_per_worker,
        configurations.accumulation,
        clients.devices,
        clients.node_shared,
    )
    settings: dict[tuple[float, ...], Setting] = {}
    row_settings = []
    for values in zip(*(column[rows].tolist() for column in columns)):
        setting = settings.get(values)
        if setting is None:
            servers, link, batch, accumulation, devices, shared = values
            setting = Setting(
                max(servers, 1), link or default_link_bytes_per_s, batch, max(accumulation, 1), devices, shared
            )
            settings[values] = setting
        row_settings.append(setting)
    return row_settings


def plan_of(configurations: Configurations, devices_per_worker: int = 1) -> Plan:
    """Group the rows by curve. Cached by identity: one object is one question, unless it is large.

    ``devices_per_worker``: devices that add up their gradients before they push them.
    """
    rows = len(configurations)
    if rows > _REMEMBERED_ROWS:
        return _plan(configurations, devices_per_worker)
    remembered = _recall if rows <= _SMALL_ROWS else _remembered_large
    return remembered(configurations, devices_per_worker)


@lru_cache(maxsize=1024)
def _recall(configurations: Configurations, devices_per_worker: int) -> Plan:
    return _plan(configurations, devices_per_worker)


@lru_cache(maxsize=64)
def _remembered_large(configurations: Configurations, devices_per_worker: int) -> Plan:
    return _plan(configurations, devices_per_worker)


def _plan(configurations: Configurations, devices_per_worker: int) -> Plan:
    plan = _alike(configurations) if devices_per_worker == 1 else None
    return plan or _sort(configurations, clients_of(configurations, devices_per_worker))


def _alike(configurations: Configurations) -> Plan | None:
    """The plan of a few rows that differ only in workers and are within the laws; None = other rows.

    For the usual question: lists find it in a tenth of the time that grouping takes.
    """
    rows = len(configurations)
    if not 0 < rows <= _SMALL_ROWS or configurations.worker_groups is not None:
        return None
    shared = []
    for column in (
        configurations.tensor_parallel,
        configurations.pipeline_parallel,
        configurations.backup_workers,
        configurations.sync_mode,
        configurations.device_index,
        configurations.parameter_servers,
        configurations.link_bytes_per_s,
        configurations.batch_per_worker,
        configurations.accumulation,
    ):
        values = column.tolist()
        if values.count(values[0]) < rows:
            return None
        shared.append(values[0])
    tensor, pipeline, backup, mode, device, servers, link, batch, accumulation = shared
    workers = configurations.workers.tolist()
    largest = max(workers)
    if tensor > 1 or pipeline > 1 or backup or mode not in _PLAIN_MODES or min(workers) < 1 or largest > MAX_WORKERS:
        return None
    # A single worker shares its node with no other.
    shared_nodes = {count > held > 0 for count, held in zip(workers, configurations.nodes.tolist()) if count > 1}
    if len(shared_nodes) > 1:
        return None
    setting = Setting(max(servers, 1), link, batch, max(accumulation, 1), 1, True in shared_nodes)
    key = CurveKey(configurations.devices[device], _PLAIN_MODES[mode], setting)
    return Plan((Group(key, None, configurations.workers, largest),), ())


def _sort(configurations: Configurations, clients: Clients) -> Plan:
    rows = len(configurations)
    compositions, composed = _compositions(configurations)
    # Integers below 2**53 keep their value as floats, and so do the links.
    columns = np.array(
        [
            configurations.device_index,
            _modes(configurations),
            np.maximum(configurations.parameter_servers, 1),
            configurations.link_bytes_per_s,
            configurations.batch_per_worker,
            np.maximum(configurations.accumulation, 1),
            configurations.backup_workers,
            composed,
            clients.devices,
            clients.node_shared,
            _refusal_numbers(configurations, composed, clients),
        ],
        dtype=np.float64,
    )
    if rows and (columns == columns[:, :1]).all():
        alike, members = columns[:, :1].T, [np.arange(rows)]
    else:
        alike, inverse = np.unique(columns.T, axis=0, return_inverse=True)
        members = [np.flatnonzero(inverse.ravel() == index) for index in range(len(alike))]
    groups: list[Group] = []
    refusals: list[tuple[tuple[int, ...], Refusal]] = []
    for values, found in zip(alike.tolist(), members, strict=True):
        device, mode, servers, link, batch, accumulation, backup, composition, devices, shared, unsupported = values
        if unsupported:
            refusals.append((tuple(found.tolist()), _REFUSALS[int(unsupported)]))
            continue
        key = CurveKey(
            device=configurations.devices[int(device)],
            mode=SyncMode(int(mode)),
            setting=Setting(int(servers), float(link), int(batch), int(accumulation), int(devices), bool(shared)),
            backup_workers=int(backup // devices),
            classes=compositions[int(composition)],
        )
        workers = clients.clients if len(found) == rows else freeze(clients.clients[found])
        groups.append(Group(key, None if len(found) == rows else freeze(found), workers, int(workers.max())))
    return Plan(tuple(groups), tuple(refusals))


def _modes(configurations: Configurations) -> Ints:
    """Modes of the rows; a hybrid that never switches is one of its two modes."""
    mode, fraction = configurations.sync_mode, configurations.hybrid_sync_fraction
    hybrid = mode == SyncMode.HYBRID
    if not hybrid.any():
        return mode
    one = np.where(fraction >= 1.0, SyncMode.SYNC, SyncMode.ASYNC)
    return np.asarray(np.where(hybrid & ((fraction <= 0.0) | (fraction >= 1.0)), one, mode))


def _compositions(configurations: Configurations) -> tuple[list[tuple[Class, ...]], Ints]:
    """Distinct compositions of workers that are not alike, and which of them each row has; the first is none."""
    numbers: dict[tuple[Class, ...], int] = {(): 0}
    composed = np.zeros(len(configurations), dtype=np.int64)
    if configurations.has_groups:
        for row in np.flatnonzero(configurations.grouped()).tolist():
            counts: dict[tuple[str, float], int] = {}
            for group in configurations.groups(row):
                alike = group.device, group.compute_factor
                counts[alike] = counts.get(alike, 0) + group.workers
            classes = tuple(sorted(Class(device, count, factor) for (device, factor), count in counts.items()))
            composed[row] = numbers.setdefault(classes, len(numbers))
    return list(numbers), composed


def _refusal_numbers(configurations: Configurations, composed: Ints, clients: Clients) -> Ints:
    """0 where the laws apply, else the number of the refusal; the first that applies."""
    workers = configurations.workers
    parallel = (configurations.tensor_parallel > 1) | (configurations.pipeline_parallel > 1)
    mode, backup = configurations.sync_mode, configurations.backup_workers
    wrong = np.array(
        [
            (mode != SyncMode.ASYNC) & (mode != SyncMode.SYNC) & (mode != SyncMode.HYBRID),
            parallel,
            (backup > 0) & (mode != SyncMode.SYNC),
            backup >= np.maximum(workers, 1),
            (workers < 1) | (workers > MAX_WORKERS),
            (composed > 0) & (workers > MAX_MIXED_WORKERS),
            (composed > 0) & (clients.devices > 1),
            backup % clients.devices != 0,
        ]
    )
    return np.where(wrong.any(axis=0), wrong.argmax(axis=0) + 1, 0)


_MESSAGES: Final = {
    1: "the queueing model predicts parameter-server training: sync mode must be ASYNC, SYNC or HYBRID",
    2: "the queueing model predicts data parallelism only: tensor_parallel and pipeline_parallel must be 1",
    3: "backup_workers must be 0 unless sync mode is SYNC: only a synchronous round can leave workers out",
    4: "backup_workers must be fewer than workers: a round waits for at least one worker",
    5: f"workers must be from 1 to {MAX_WORKERS} in the queueing model",
    6: f"the queueing model predicts at most {MAX_MIXED_WORKERS} workers of different classes",
    7: "devices_per_worker must be 1 where workers are of different devices",
    8: "backup_workers must be a multiple of devices_per_worker: a round waits for all devices of a worker or for none",
}
_REFUSALS: Final = {number: Refusal.unsupported(message) for number, message in _MESSAGES.items()}
