"""Configurations: the candidate answers, as columns and as ranges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from nodewise_client._columns import broadcast, frozen
from nodewise_client._enums import (
    PLACEMENT_RULES,
    RECOMPUTATIONS,
    SYNC_MODES,
    PlacementRule,
    PlacementRuleWord,
    Recomputation,
    RecomputationWord,
    SyncMode,
    SyncModeWord,
    to_number,
    to_word,
)
from nodewise_protos.v1 import configuration_pb2

# Columns whose values go to the wire as they are: attribute here -> field there.
PLAIN_COLUMNS: Final = {
    "nodes": "nodes",
    "workers": "workers",
    "parameter_servers": "parameter_servers",
    "batch_per_worker": "batch_per_worker_samples",
    "accumulation": "accumulation_steps",
    "global_batch": "global_batch_samples",
    "link_bytes_per_s": "link_bytes_per_second",
    "tensor_parallel": "tensor_parallel_degrees",
    "pipeline_parallel": "pipeline_parallel_degrees",
    "data_parallel": "data_parallel_degrees",
    "expert_parallel": "expert_parallel_degrees",
    "context_parallel": "context_parallel_degrees",
    "sequence_parallel": "sequence_parallel",
    "interleave": "interleave_degrees",
    "zero_stage": "zero_stages",
    "precision": "precisions",
    "backup_workers": "backup_workers",
    "hybrid_sync_fraction": "hybrid_sync_fractions",
    "hybrid_switch_s": "hybrid_switch_seconds",
}
COLUMNS: Final = (*PLAIN_COLUMNS, "device", "sync", "recompute", "placement", "groups")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerGroup:
    """Workers of a configuration that are alike: `WorkerGroup(workers=2, compute_factor=1.5)` are two stragglers."""

    workers: int
    device: str | None = None
    """Their accelerator; None = the row's. Either every group of some configurations names one, or none does."""
    compute_factor: float = 1.0
    """Their compute time relative to what the evidence says of their device; above 1 = slower."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Configurations:
    """Configurations by columns: `Configurations(nodes=[1, 2, 4], sync="async")`.

    A column is a value for all rows, one value per row, or absent, and then what the job's evidence says holds. The
    longest column sets the number of rows. Rows are read once, so generators are fine.
    """

    nodes: int | Iterable[int] = ()
    """Machines that run workers."""
    workers: int | Iterable[int] = ()
    """Training processes in total, one per device."""
    device: str | Iterable[str] = ()
    """Accelerator, e.g. "V100"."""
    sync: SyncMode | SyncModeWord | Iterable[SyncMode | SyncModeWord | None] = ()
    """How gradients are exchanged; None in a row = as in the job's evidence."""
    parameter_servers: int | Iterable[int] = ()
    placement: Iterable[Sequence[int]] = ()
    """Workers on each node, one sequence per row, e.g. `[(4, 4), (4, 2)]`; an empty one means packed."""
    batch_per_worker: int | Iterable[int] = ()
    """Samples per worker and micro-step."""
    accumulation: int | Iterable[int] = ()
    """Micro-steps whose gradients are added before an exchange."""
    global_batch: int | Iterable[int] = ()
    """Samples per step over all workers."""
    link_bytes_per_s: float | Iterable[float] = ()
    tensor_parallel: int | Iterable[int] = ()
    pipeline_parallel: int | Iterable[int] = ()
    data_parallel: int | Iterable[int] = ()
    expert_parallel: int | Iterable[int] = ()
    context_parallel: int | Iterable[int] = ()
    sequence_parallel: bool | Iterable[bool] = ()
    interleave: int | Iterable[int] = ()
    """Model chunks per pipeline stage."""
    zero_stage: int | Iterable[int] = ()
    recompute: Recomputation | RecomputationWord | Iterable[Recomputation | RecomputationWord | None] = ()
    """What is computed again in the backward pass; None in a row = the job's own setting."""
    precision: str | Iterable[str] = ()
    """Number format of weights and activations, e.g. "fp16"."""
    backup_workers: int | Iterable[int] = ()
    """Synchronous training: workers of each step whose result is not waited for."""
    hybrid_sync_fraction: float | Iterable[float] = ()
    """Hybrid training: share of each worker's mini-batches run synchronously."""
    hybrid_switch_s: float | Iterable[float] = ()
    """Hybrid training: seconds lost once at the switch."""
    groups: Iterable[Sequence[WorkerGroup]] = ()
    """Workers that are not alike, one sequence of groups per row; an empty one means that all are alike."""

    def __post_init__(self) -> None:
        for name in COLUMNS:
            object.__setattr__(self, name, frozen(getattr(self, name)))
        object.__setattr__(self, "placement", tuple(tuple(row) for row in self.placement))
        object.__setattr__(self, "groups", tuple(tuple(row) for row in self.groups))

    def __len__(self) -> int:
        return max(len(getattr(self, name)) for name in COLUMNS)

    def __bool__(self) -> bool:
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class _Range:
    first: int
    """First value, at least 1."""
    last: int
    """Last value, itself included."""
    step: int = 1
    powers_of_two: bool = False
    """Only the powers of two between first and last."""
    workers_per_node: int = 0
    """Devices used on each node; 0 = as in the job's evidence."""
    placement: PlacementRule | PlacementRuleWord = PlacementRule.PACKED
    """How workers are laid over nodes."""
    template: Configurations | None = None
    """Everything else, as one row without nodes, workers and placement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRange(_Range):
    """One configuration per number of nodes: `NodeRange(first=1, last=16)` is sixteen rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRange(_Range):
    """One configuration per number of workers; nodes follow from the placement."""


def columns_of(configurations: Configurations, rows: int) -> dict[str, tuple[Any, ...]]:
    """The columns that are present, each with one value per row, in the words of this side."""
    found: dict[str, tuple[Any, ...]] = {}
    for name in COLUMNS:
        values: tuple[Any, ...] = getattr(configurations, name)
        if values:
            found[name] = broadcast(values, rows, name)
    return found


def configurations_to_wire(configurations: Configurations) -> configuration_pb2.Configurations:
    """Configurations as their message."""
    return columns_to_wire({name: getattr(configurations, name) for name in COLUMNS})


def columns_to_wire(columns: Mapping[str, Sequence[Any]]) -> configuration_pb2.Configurations:
    """Columns by their names here, as a message."""
    message = configuration_pb2.Configurations()
    for name, field in PLAIN_COLUMNS.items():
        if columns.get(name):
            getattr(message, field).extend(columns[name])
    devices = columns.get("device", ())
    groups = [group for row in columns.get("groups", ()) for group in row]
    of_groups = [group.device for group in groups if group.device is not None]
    if of_groups and len(of_groups) < len(groups):
        raise ValueError("either every group names its device, or none does")
    names = {name: index for index, name in enumerate(dict.fromkeys((*devices, *of_groups)))}
    if names:
        message.device_names.extend(names)
        if len(devices) > 1 or (devices and of_groups):
            message.device_indexes.extend(names[name] for name in devices)
    message.sync_modes.extend(
        configuration_pb2.SYNC_MODE_UNSPECIFIED if word is None else to_number(SYNC_MODES, word)
        for word in columns.get("sync", ())
    )
    message.recomputations.extend(
        configuration_pb2.RECOMPUTATION_UNSPECIFIED if word is None else to_number(RECOMPUTATIONS, word)
        for word in columns.get("recompute", ())
    )
    placements = columns.get("placement", ())
    if placements:
        message.placement_offsets.append(0)
        for placement in placements:
            message.placement_workers.extend(placement)
            message.placement_offsets.append(len(message.placement_workers))
    if groups:
        message.group_offsets.append(0)
        for row in columns["groups"]:
            message.group_workers.extend(group.workers for group in row)
            message.group_offsets.append(len(message.group_workers))
        message.group_device_indexes.extend(names[name] for name in of_groups)
        if any(group.compute_factor != 1 for group in groups):
            message.group_compute_factors.extend(group.compute_factor for group in groups)
    return message


def configurations_from_wire(message: configuration_pb2.Configurations) -> Configurations:
    """The configurations that a message holds."""
    columns: dict[str, Any] = {name: getattr(message, field) for name, field in PLAIN_COLUMNS.items()}
    offsets = message.placement_offsets
    return Configurations(
        **columns,
        device=_devices_from_wire(message),
        sync=[to_word(SYNC_MODES, number) for number in message.sync_modes],
        recompute=[to_word(RECOMPUTATIONS, number) for number in message.recomputations],
        placement=[message.placement_workers[begin:end] for begin, end in pairwise(offsets)],
        groups=_groups_from_wire(message),
    )


def _devices_from_wire(message: configuration_pb2.Configurations) -> Sequence[str]:
    names = message.device_names
    if message.device_indexes:
        return [names[index] for index in message.device_indexes]
    return () if message.group_device_indexes else names[:1]


def _groups_from_wire(message: configuration_pb2.Configurations) -> list[list[WorkerGroup]]:
    factors = message.group_compute_factors
    groups = [
        WorkerGroup(
            workers=workers,
            device=message.device_names[message.group_device_indexes[at]] if message.group_device_indexes else None,
            compute_factor=(factors[at] if len(factors) > 1 else factors[0]) if factors else 1.0,
        )
        for at, workers in enumerate(message.group_workers)
    ]
    return [groups[begin:end] for begin, end in pairwise(message.group_offsets)]


def ranges_to_wire(ranges: Iterable[NodeRange | WorkerRange]) -> list[configuration_pb2.ConfigurationRange]:
    """Ranges as their messages."""
    messages = []
    for given in ranges:
        message = configuration_pb2.ConfigurationRange(
            workers_per_node=given.workers_per_node,
            placement_rule=to_number(PLACEMENT_RULES, given.placement),
            template=None if given.template is None else configurations_to_wire(given.template),
        )
        axis = message.nodes if isinstance(given, NodeRange) else message.workers
        axis.first = given.first
        axis.last = given.last
        axis.powers_of_two = given.powers_of_two
        if given.step != 1:
            axis.step = given.step
        messages.append(message)
    return messages
