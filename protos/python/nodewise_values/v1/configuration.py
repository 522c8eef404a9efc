"""Configurations: the candidate answers, as columns.

One rule for absence holds in all messages. An `optional` field without presence, an absent message, an empty list, map
or text, and an enum's UNSPECIFIED state nothing; the field's comment says what then holds. No number means absence,
except in the rows of a column. There, 0 means that the row states nothing if 0 is not a valid value of the column
(counts, sizes, rates). If 0 is a valid value, a column of booleans beside it says in which rows the value is known. An
index into a dictionary always names an entry; an entry may be the empty text. Rows of Predictions that are not answered
hold 0.
"""

from __future__ import annotations

from dataclasses import dataclass

from nodewise_values.value import LazyValue, Value, Word

__all__ = [
    "ConfigurationRange",
    "ConfigurationSettings",
    "Configurations",
    "CountRange",
    "PlacementRule",
    "Recomputation",
    "SyncMode",
]


class SyncMode(Word):
    """How workers exchange gradients, and what a "step" means."""

    ASYNC = "async"
    """Asynchronous parameter server. A step is one worker's mini-batch applied."""
    SYNC = "sync"
    """Synchronous parameter server. A step is one global batch."""
    ALLREDUCE = "allreduce"
    """Synchronous all-reduce. A step is one global batch."""
    HYBRID = "hybrid"
    """Synchronous parameter server first (BSP), asynchronous afterwards (ASP).

    A step is one worker's mini-batch, as in ASYNC: step_seconds is the cycle of one worker, averaged over its
    mini-batches. If a share f of the mini-batches runs synchronously, step_seconds is f times the synchronous cycle
    plus (1 - f) times the asynchronous cycle. Steps per second are workers / step_seconds, and N mini-batches take N /
    workers x step_seconds plus the single cost of the switch.
    """


class PlacementRule(Word):
    """How workers are placed on nodes when no explicit placement is given."""

    PACKED = "packed"
    """On as few nodes as can hold the workers; the last node holds the remainder."""
    SPREAD = "spread"
    """As evenly as possible over the nodes. In a range over workers, each worker has a node of its own."""


class Recomputation(Word):
    """Which activations the backward pass recomputes."""

    NONE = "none"
    """Nothing is recomputed."""
    SELECTIVE = "selective"
    """Only attention's activations are recomputed."""
    FULL = "full"
    """Every layer is recomputed."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Configurations(LazyValue):
    """Candidate configurations as columns.

    The longest column sets the number of rows. Every other column is empty (its default holds for all rows), has one
    entry (which holds for all rows) or has one entry per row.
    """

    nodes: tuple[int, ...] = ()
    """Machines that run workers. Default: as many as the workers need, packed at the job's workers per node."""
    workers: tuple[int, ...] = ()
    """Training processes in total, one per device.

    Default: the sum of the row's placement or groups, else nodes times the job's workers per node.
    """
    parameter_servers: tuple[int, ...] = ()
    """Parameter servers.

    Default 0 for all-reduce, otherwise as in the job's evidence, or 1 where the evidence does not say.
    """
    device_names: tuple[str, ...] = ()
    """Dictionary of accelerator names, e.g. "V100". One name without indexes holds for all rows."""
    device_indexes: tuple[int, ...] = ()
    """For each row, an index into device_names.

    Empty: the device of the row's first group, else entry 0. No names at all: the device of the job's evidence.
    """
    sync_modes: tuple[SyncMode | None, ...] = ()
    """How gradients are exchanged. Default: as in the job's evidence."""
    placement_offsets: tuple[int, ...] = ()
    """Explicit placement in compressed sparse rows.

    Explicit placement in compressed sparse rows: row r uses entries placement_offsets[r] to placement_offsets[r + 1] of
    placement_workers. Empty: all rows are packed. An empty range: that row is packed.
    """
    placement_workers: tuple[int, ...] = ()
    """Workers on each node of a row's placement; the sum is the row's workers, the number of entries its nodes."""
    batch_per_worker_samples: tuple[float, ...] = ()
    """Samples per worker and micro-step.

    Empty or 0 in a row: as in the job's evidence, where that says. Whole numbers only; the type allows for fractions,
    for samples that several workers share.
    """
    accumulation_steps: tuple[int, ...] = ()
    """Micro-steps whose gradients are accumulated before an exchange. Default 1."""
    global_batch_samples: tuple[float, ...] = ()
    """Samples per step over all workers (asynchronous and hybrid: of one mini-batch from each worker).

    Empty or 0 in a row: replicas times batch per worker times accumulation steps. If it is given without a batch per
    worker (strong scaling), the batch per worker is rounded up.
    """
    link_bytes_per_second: tuple[float, ...] = ()
    """Link of a parameter server or node, bytes per second in each direction. Empty or 0 in a row: the job's own."""
    tensor_parallel_degrees: tuple[int, ...] = ()
    """Tensor-parallel degree. Default 1."""
    pipeline_parallel_degrees: tuple[int, ...] = ()
    """Pipeline stages. Default 1."""
    data_parallel_degrees: tuple[int, ...] = ()
    """Data-parallel replicas. Empty or 0 in a row: workers divided by the product of the other degrees."""
    expert_parallel_degrees: tuple[int, ...] = ()
    """Expert-parallel degree. Default 1."""
    context_parallel_degrees: tuple[int, ...] = ()
    """Context-parallel (sequence-dimension) degree. Default 1."""
    sequence_parallel: tuple[bool, ...] = ()
    """Whether layer norms and dropouts are split along the sequence. Default false."""
    interleave_degrees: tuple[int, ...] = ()
    """Model chunks per pipeline stage. Default 1."""
    zero_stages: tuple[int, ...] = ()
    """ZeRO stage, 0 to 3. Default 0."""
    recomputations: tuple[Recomputation | None, ...] = ()
    """Which activations the backward pass recomputes. Default: the job's own setting."""
    precisions: tuple[str, ...] = ()
    """Number format of weights and activations, e.g. "fp16". An empty text is the job's own."""
    backup_workers: tuple[int, ...] = ()
    """Synchronous training: the number of workers whose results each step does not wait for. Default 0."""
    hybrid_sync_fractions: tuple[float, ...] = ()
    """Hybrid training: share of each worker's mini-batches that runs synchronously, 0 to 1. Other modes: 0."""
    hybrid_switch_seconds: tuple[float, ...] = ()
    """Hybrid training: seconds lost once at the switch from synchronous to asynchronous. Default 0. Other modes: 0."""
    group_offsets: tuple[int, ...] = ()
    """Groups of unequal workers, in compressed sparse rows.

    Groups of unequal workers, in compressed sparse rows: row r uses entries group_offsets[r] to group_offsets[r + 1] of
    the group columns. Empty: no row has groups. An empty range: all workers of that row are equal and run on the row's
    device.
    """
    group_workers: tuple[int, ...] = ()
    """Workers of each group; the sum is the row's workers."""
    group_device_indexes: tuple[int, ...] = ()
    """For each group, an index into device_names. Empty: each group runs on its row's device."""
    group_compute_factors: tuple[float, ...] = ()
    """Compute time of each group's workers relative to that of their device in the evidence.

    Compute time of each group's workers relative to that of their device in the evidence, e.g. 2 for stragglers that
    take twice as long. Empty: 1. One entry holds for all groups.
    """
    offer_names: tuple[str, ...] = ()
    """Dictionary of names of the question's offers. One name without indexes holds for all rows."""
    offer_indexes: tuple[int, ...] = ()
    """For each row, an index into offer_names."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ConfigurationSettings(Value):
    """How a job runs, independent of its scale.

    How a job runs, independent of its scale: one value for every column except nodes, workers, placement and groups.
    """

    parameter_servers: int | None = None
    """Parameter servers.

    Absent = 0 for all-reduce, otherwise as in the job's evidence, or 1 where the evidence does not say.
    """
    device_name: str = ""
    """Accelerator, e.g. "V100". Empty = that of the job's evidence."""
    sync_mode: SyncMode | None = None
    """How gradients are exchanged. Absent = as in the job's evidence."""
    batch_per_worker_samples: float | None = None
    """Samples per worker and micro-step. Absent = as in the job's evidence, where that says. Whole numbers only."""
    accumulation_steps: int | None = None
    """Micro-steps whose gradients are accumulated before an exchange. Absent = 1."""
    global_batch_samples: float | None = None
    """Samples per step over all workers (asynchronous and hybrid: of one mini-batch from each worker).

    Absent = replicas times batch per worker times accumulation steps. If it is given without a batch per worker (strong
    scaling), the batch per worker is rounded up.
    """
    link_bytes_per_second: float | None = None
    """Link of a parameter server or node, bytes per second in each direction. Absent = the job's own."""
    tensor_parallel_degree: int | None = None
    """Tensor-parallel degree. Absent = 1."""
    pipeline_parallel_degree: int | None = None
    """Pipeline stages. Absent = 1."""
    data_parallel_degree: int | None = None
    """Data-parallel replicas. Absent = workers divided by the product of the other degrees."""
    expert_parallel_degree: int | None = None
    """Expert-parallel degree. Absent = 1."""
    context_parallel_degree: int | None = None
    """Context-parallel (sequence-dimension) degree. Absent = 1."""
    sequence_parallel: bool | None = None
    """Whether layer norms and dropouts are split along the sequence. Absent = false."""
    interleave_degree: int | None = None
    """Model chunks per pipeline stage. Absent = 1."""
    zero_stage: int | None = None
    """ZeRO stage, 0 to 3. Absent = 0."""
    recomputation: Recomputation | None = None
    """Which activations the backward pass recomputes. Absent = the job's own setting."""
    precision: str = ""
    """Number format of weights and activations, e.g. "fp16". Empty = the job's own."""
    backup_workers: int | None = None
    """Synchronous training: the number of workers whose results each step does not wait for. Absent = 0."""
    hybrid_sync_fraction: float | None = None
    """Hybrid training: share of each worker's mini-batches that runs synchronously, 0 to 1.

    Absent = 0. Other modes: 0.
    """
    hybrid_switch_seconds: float | None = None
    """Hybrid training: seconds lost once at the switch from synchronous to asynchronous. Absent = 0. Other modes: 0."""
    offer_name: str = ""
    """Name of one of the question's offers. Empty = the offer that Offer's rule assigns."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CountRange(Value):
    """The whole numbers first, first + step, ... up to last."""

    first: int = 0
    """First value."""
    last: int = 0
    """Last value, at least first."""
    step: int | None = None
    """Increment. Absent = 1. Must not be given with powers_of_two."""
    powers_of_two: bool = False
    """Only the powers of two between first and last."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ConfigurationRange(Value):
    """A range of configurations that differ in scale only."""

    nodes: CountRange | None = None
    """One row per number of nodes; workers = nodes times workers per node."""
    workers: CountRange | None = None
    """One row per number of workers; nodes follow from the placement rule."""
    workers_per_node: int | None = None
    """Devices used on each node. Absent = as in the job's evidence, or 1 where the evidence does not say."""
    placement_rule: PlacementRule | None = None
    """How workers are placed on nodes."""
    settings: ConfigurationSettings | None = None
    """All other settings. A global batch here means strong scaling, a batch per worker weak scaling."""
