"""Configurations: candidate answers as columns, one row each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from functools import lru_cache
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.columns import (
    SHARED_ROWS,
    Floats,
    Ints,
    as_ints,
    constant,
    constant_floats,
    constant_ints,
    freeze,
    only_value,
    take_rows,
)
from nodewise.domain.facts import CONFIGURATION_DEFAULTS, UNSTATED
from nodewise.domain.groups import WorkerGroup, WorkerGroups
from nodewise.domain.ragged_workers import RaggedWorkers, offsets_of

__all__ = [
    "COLUMNS",
    "DEGREES",
    "UNSTATED",
    "Configurations",
    "Placement",
    "PlacementRule",
    "Recomputation",
    "SyncMode",
    "WorkerGroup",
    "WorkerGroups",
    "packed_nodes",
]


class SyncMode(IntEnum):
    """How workers exchange gradients. ``step`` means one worker's mini-batch if ASYNC or HYBRID, else one global batch.

    HYBRID: the mini-batches of each worker first synchronously (BSP), then asynchronously (ASP); a step time is the
    cycle of one worker, averaged over both.
    """

    UNSPECIFIED = 0
    ASYNC = 1
    SYNC = 2
    ALLREDUCE = 3
    HYBRID = 4


# Plain integers, as comparing columns with them is faster.
_ASYNC: Final = int(SyncMode.ASYNC)
_HYBRID: Final = int(SyncMode.HYBRID)


class PlacementRule(IntEnum):
    """How workers are placed on nodes."""

    PACKED = 1
    SPREAD = 2


class Recomputation(IntEnum):
    """Which activations are computed again in the backward pass."""

    UNSPECIFIED = 0
    NONE = 1
    SELECTIVE = 2
    FULL = 3


DEGREES: Final = (
    "tensor_parallel",
    "pipeline_parallel",
    "data_parallel",
    "expert_parallel",
    "context_parallel",
    "sequence_parallel",
    "interleave",
    "zero_stage",
    "recomputation",
)
"""Columns of Configurations that say how a model is partitioned."""


@dataclass(frozen=True, slots=True, eq=False)
class Placement(RaggedWorkers):
    """Workers on each node of each row; an empty range means packed."""

    def row(self, row: int) -> tuple[int, ...]:
        """Workers on each node of one row; empty means packed."""
        return tuple(self.workers[self.offsets[row] : self.offsets[row + 1]].tolist())

    def nodes_and_workers(self) -> tuple[Ints, Ints]:
        """Nodes and workers that each row places; 0 where it is packed."""
        return self.counts(), self.row_workers()

    @staticmethod
    def of(rows: Iterable[Sequence[int]]) -> Placement:
        """Placements from one sequence per row."""
        parts = [tuple(row) for row in rows]
        return Placement(offsets_of(map(len, parts)), as_ints([count for part in parts for count in part]))


class _Remembering:
    """A slot for a value that is computed from the fields."""

    __slots__ = ("_rates",)

    _rates: Rates


@dataclass(frozen=True, slots=True, eq=False)
class Rates:
    """Columns that turn a step time into rates; they follow from resolved configurations alone.

    Attributes
    ----------
    cycles_per_step : float
        Steps per step time: workers (replicas where workers share one) if ASYNC or HYBRID, else 1.
    samples_per_step, minibatches_per_step : float
        Samples (0 = not known) and workers' mini-batches in one step.
    batch_known : bool
        Whether every row's batch is known.
    """

    cycles_per_step: Floats
    samples_per_step: Floats
    minibatches_per_step: Floats
    batch_known: bool

    @property
    def global_batch(self) -> Floats:
        """Samples of one mini-batch from every worker, also of asynchronous ones; 0 where the batch is not known."""
        return self.samples_per_step * self.cycles_per_step


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Configurations(_Remembering):
    """Configurations as columns; all arrays are read-only and have one entry per row.

    Before a question reaches an estimator every "not stated" is resolved from the profile's evidence
    (``estimation.resolution``), except a batch that is not known.

    Attributes
    ----------
    nodes, workers : int
        Machines that run workers; workers in total, one per device. 0 = not stated.
    parameter_servers : int
        Parameter servers; ``UNSTATED`` (-1) = not stated.
    devices, device_index : tuple of str, int
        Dictionary of accelerators and the entry of each row; ``""`` = not stated.
    sync_mode : int
        Values of :class:`SyncMode`.
    batch_per_worker, accumulation, global_batch : int
        Samples per worker and micro-step (0 = not known), micro-steps, samples per step over all workers (0 = derived
        or not known).
    link_bytes_per_s : float
        Link of a server or node per direction; 0 = the job's own.
    tensor_parallel ... recomputation : int
        How the model is partitioned; ``data_parallel`` 0 = derived.
    precisions, precision_index : tuple of str, int
        Dictionary of number formats; ``""`` = the job's own.
    backup_workers : int
        Synchronous training: workers whose results a step does not wait for; its batch is that of the other workers.
    hybrid_sync_fraction, hybrid_switch_s : float
        Hybrid training: share of each worker's mini-batches run synchronously; seconds lost once at the switch.
    placement : Placement or None
        Explicit placement; None = every row is packed.
    worker_groups : WorkerGroups or None
        Workers that differ; None = the workers of each row are alike. Read them with :meth:`groups`. Estimators that
        take them into account list ``groups`` among their columns.
    """

    nodes: Ints
    workers: Ints
    parameter_servers: Ints
    devices: tuple[str, ...]
    device_index: Ints
    sync_mode: Ints
    batch_per_worker: Ints
    accumulation: Ints
    global_batch: Ints
    link_bytes_per_s: Floats
    tensor_parallel: Ints
    pipeline_parallel: Ints
    data_parallel: Ints
    expert_parallel: Ints
    context_parallel: Ints
    sequence_parallel: Ints
    interleave: Ints
    zero_stage: Ints
    recomputation: Ints
    precisions: tuple[str, ...]
    precision_index: Ints
    backup_workers: Ints
    hybrid_sync_fraction: Floats
    hybrid_switch_s: Floats
    placement: Placement | None = None
    worker_groups: WorkerGroups | None = None

    def __len__(self) -> int:
        return len(self.workers)

    @staticmethod
    def of(
        rows: int,
        *,
        nodes: Sequence[int] | NDArray[np.integer] | int = 0,
        workers: Sequence[int] | NDArray[np.integer] | int = 0,
        device: str = "",
        sync_mode: int = SyncMode.UNSPECIFIED,
        parameter_servers: int = UNSTATED,
        batch_per_worker: int = 0,
        global_batch: int = 0,
        link_bytes_per_s: float = 0.0,
    ) -> Configurations:
        """Rows that differ in nodes and workers only; ``replaced`` sets the rest."""
        return _defaults(rows).replaced(
            nodes=constant_ints(rows, nodes) if isinstance(nodes, int) else as_ints(nodes),
            workers=constant_ints(rows, workers) if isinstance(workers, int) else as_ints(workers),
            parameter_servers=constant_ints(rows, parameter_servers),
            devices=(device,),
            sync_mode=constant_ints(rows, int(sync_mode)),
            batch_per_worker=constant_ints(rows, batch_per_worker),
            global_batch=constant_ints(rows, global_batch),
            link_bytes_per_s=constant_floats(rows, link_bytes_per_s),
        )

    @staticmethod
    def defaults(rows: int) -> Configurations:
        """Rows of which nothing is stated; ``replaced`` sets what is."""
        return _defaults(rows)

    def replaced(self, **columns: object) -> Configurations:
        """The same rows with some columns replaced; raises KeyError for an unknown column."""
        # Slot by slot: the constructor of a frozen class takes three times as long, most of what few rows take.
        copy = object.__new__(Configurations)
        for put, column in zip(_SLOTS.values(), _VALUES(self)):
            put(copy, column)
        for name, column in columns.items():
            _SLOTS[name](copy, column)
        return copy

    def take(self, rows: Ints) -> Configurations:
        """Some rows, in the given order."""
        if len(rows) == len(self) and np.array_equal(rows, np.arange(len(self))):
            return self
        columns = {name: take_rows(getattr(self, name), rows) for name in COLUMNS}
        placement = None if self.placement is None else self.placement.take(rows)
        groups = None if self.worker_groups is None else self.worker_groups.take(rows)
        return self.replaced(**columns, placement=placement, worker_groups=groups)

    @staticmethod
    def concatenated(parts: Sequence[Configurations]) -> Configurations:
        """The rows of all parts, one after the other."""
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return _defaults(0)
        columns: dict[str, object] = {
            name: freeze(np.concatenate([getattr(part, name) for part in parts])) for name in COLUMNS
        }
        has_groups, groups = any(part.worker_groups is not None for part in parts), []
        for names, index in (("devices", "device_index"), ("precisions", "precision_index")):
            dictionary: dict[str, int] = {}
            codes_of_parts = []
            for part in parts:
                codes = np.array([dictionary.setdefault(name, len(dictionary)) for name in getattr(part, names)])
                codes_of_parts.append(codes[getattr(part, index)])
                if has_groups and names == "devices":
                    groups.append((part.worker_groups or WorkerGroups.of([()] * len(part), ())).recode(codes))
            columns[names] = tuple(dictionary)
            columns[index] = freeze(np.concatenate(codes_of_parts))
        placement = None
        if any(part.placement is not None for part in parts):
            placement = Placement.concatenated([part.placement or Placement.of([()] * len(part)) for part in parts])
        worker_groups = WorkerGroups.concatenated(groups) if has_groups else None
        return parts[0].replaced(**columns, placement=placement, worker_groups=worker_groups)

    def device_names(self) -> list[str]:
        """The accelerator of each row."""
        return [self.devices[index] for index in self.device_index.tolist()]

    def placement_of(self, row: int) -> tuple[int, ...]:
        """Workers on each node of a resolved row."""
        explicit = () if self.placement is None else self.placement.row(row)
        return explicit or packed_placement(int(self.workers[row]), int(self.nodes[row]))

    @property
    def has_groups(self) -> bool:
        """Whether the workers of any row may differ."""
        return self.worker_groups is not None

    def groups(self, row: int) -> tuple[WorkerGroup, ...]:
        """Groups of alike workers of a resolved row, at least one: as stated, else all workers on the row's device."""
        own = () if self.worker_groups is None else self.worker_groups.row(row, self.devices)
        return own or (WorkerGroup(self.devices[self.device_index[row]], int(self.workers[row])),)

    def grouped(self) -> NDArray[np.bool_]:
        """Rows that state groups which say more than the row: another device, or another compute time."""
        mask = np.zeros(len(self), dtype=bool)
        if self.worker_groups is not None:
            groups, rows = self.worker_groups, self.worker_groups.row_of_group()
            mask[rows[(groups.compute_factor != 1.0) | (groups.device_index != self.device_index[rows])]] = True
        return mask

    def cycles_per_step(self) -> Floats:
        """Steps in a step time: ASYNC and HYBRID, one of each worker (of each replica that workers share); else one."""
        if self.is_whole() and only_value(self.sync_mode) == _ASYNC:
            return np.maximum(self.workers, 1).astype(np.float64)
        replicas = np.maximum(np.floor(self.workers / np.maximum(self.degree(), 1.0)), 1.0)
        return self.steps_by_worker() * (replicas - 1.0) + 1.0

    @property
    def rates(self) -> Rates:
        """Columns that turn step times into rates; cached, as the same rows are used repeatedly."""
        try:
            return self._rates
        except AttributeError:
            rates = self._alike_rates()
            if rates is None:
                samples = freeze(self.samples_per_step())
                minibatches = freeze(self.minibatches_per_step().astype(np.float64))
                rates = Rates(freeze(self.cycles_per_step()), samples, minibatches, bool((samples > 0).all()))
            object.__setattr__(self, "_rates", rates)
            return rates

    def _alike_rates(self) -> Rates | None:
        """Rates of few asynchronous rows with equal batches, a fast path; None = the rows are not such rows."""
        rows = len(self)
        if rows > SHARED_ROWS or only_value(self.sync_mode) != _ASYNC or not self.is_whole():
            return None
        batch, accumulation = only_value(self.batch_per_worker), only_value(self.accumulation)
        if batch is None or accumulation is None:
            return None
        samples = float(batch) * accumulation
        cycles = freeze(np.maximum(self.workers, 1).astype(np.float64))
        return Rates(cycles, constant_floats(rows, samples), constant_floats(rows, 1.0), samples > 0.0)

    def steps_by_worker(self) -> NDArray[np.bool_]:
        """Rows whose step is one worker's mini-batch: ASYNC and HYBRID."""
        mask: NDArray[np.bool_] = (self.sync_mode == _ASYNC) | (self.sync_mode == _HYBRID)
        return mask

    def degree(self) -> Floats:
        """Workers that hold one copy of the model together: tensor x pipeline x context parallelism.

        A float, as a product of three stated numbers may exceed any integer type.
        """
        return self.tensor_parallel.astype(np.float64) * self.pipeline_parallel * self.context_parallel

    def replicas(self) -> Ints:
        """Data-parallel replicas whose batches count in a step, at least 1.

        The stated degree of data parallelism, else workers over the degrees that split the model; less the backup
        workers, whose results a synchronous step does not wait for. Needs resolved workers.
        """
        if self.is_whole():
            return np.maximum(self.workers, 1)
        quotient = np.floor(self.workers / np.maximum(self.degree(), 1.0))
        replicas = np.where(self.data_parallel > 0, self.data_parallel, quotient).astype(np.int64)
        backup = np.where(self.sync_mode == _ASYNC, 0, self.backup_workers)
        return np.maximum(replicas - backup, 1)

    def is_whole(self) -> bool:
        """Whether every worker is certainly a replica that each step waits for: no row states anything else."""
        rows = len(self.workers)
        one, none = constant_ints(rows, 1), constant_ints(rows, 0)
        return (
            self.tensor_parallel is one
            and self.pipeline_parallel is one
            and self.context_parallel is one
            and self.data_parallel is none
            and self.backup_workers is none
        )

    def samples_per_step(self) -> Floats:
        """Samples of one step, 0 = not known. ASYNC, HYBRID: one worker's mini-batch; else the global batch."""
        per_worker = self.batch_per_worker.astype(np.float64) * self.accumulation
        if self.steps_by_worker().all():
            return per_worker
        everyone = np.where(self.global_batch > 0, self.global_batch, per_worker * self.replicas())
        return np.where(self.steps_by_worker(), per_worker, everyone)

    def minibatches_per_step(self) -> Ints:
        """Workers' mini-batches in one step: 1 where ASYNC or HYBRID, else the number of workers waited for."""
        return np.where(self.steps_by_worker(), 1, np.maximum(self.workers - self.backup_workers, 1))

    def nodes_held(self) -> Ints:
        """Nodes that a row occupies: those of its workers, and one for each parameter server.

        Prices and budgets of nodes use this count.
        """
        return self.nodes + np.maximum(self.parameter_servers, 0)

    def devices_held(self) -> Ints:
        """Devices that a row occupies: one for each worker, and as much again for each parameter server.

        The objective of fewest devices uses this count, so that parameter servers are not free.
        """
        return self.workers + np.maximum(self.parameter_servers, 0)


_NAMES: Final = tuple(field.name for field in fields(Configurations))
_VALUES: Final = attrgetter(*_NAMES)
_SLOTS: Final[Mapping[str, Callable[[Configurations, Any], None]]] = MappingProxyType(
    {name: getattr(Configurations, name).__set__ for name in _NAMES}
)
COLUMNS: Final = tuple(name for name in _NAMES if name not in ("devices", "precisions", "placement", "worker_groups"))
"""Names of the columns with one number in each row."""


def _defaults(rows: int) -> Configurations:
    return _shared_defaults(rows) if rows <= SHARED_ROWS else _new_defaults(rows)


_DEFAULT_NUMBERS: Final = {name: (type(value), value) for name, value in CONFIGURATION_DEFAULTS.items()}
"""Numbers with their types, as 0 and 0.0 differ here."""


def _new_defaults(rows: int) -> Configurations:
    first = constant_ints(rows, 0)
    columns_by_number = {number: constant(rows, number[1]) for number in set(_DEFAULT_NUMBERS.values())}
    columns: dict[str, Any] = {name: columns_by_number[number] for name, number in _DEFAULT_NUMBERS.items()}
    return Configurations(devices=("",), device_index=first, precisions=("",), precision_index=first, **columns)


_shared_defaults = lru_cache(maxsize=SHARED_ROWS)(_new_defaults)


def packed_nodes(workers: int, workers_per_node: int) -> int:
    """Nodes that hold the workers when each takes ``workers_per_node``."""
    return -(-workers // workers_per_node)


def packed_placement(workers: int, nodes: int) -> tuple[int, ...]:
    """Workers on each of ``nodes`` nodes, full ones first: the fullest node holds ceil(workers / nodes)."""
    if workers < 1 or nodes < 1:
        return ()
    per_node = packed_nodes(workers, nodes)
    counts = []
    left = workers
    for node in range(nodes):
        # Every later node keeps at least one worker.
        count = min(per_node, left - (nodes - node - 1))
        counts.append(count)
        left -= count
    return tuple(counts)
