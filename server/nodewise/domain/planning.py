"""Plans: the configurations that a search may choose from, and the reasons why others are excluded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from nodewise.domain.configurations import Recomputation

__all__ = ["DIMENSIONS", "Exclusion", "PlanConstraints", "PlanPool"]

DIMENSIONS: Final = (
    "device_index",
    "nodes",
    "workers",
    "global_batch",
    "tensor_parallel",
    "pipeline_parallel",
    "context_parallel",
    "expert_parallel",
    "data_parallel",
    "batch_per_worker",
    "interleave",
    "recomputation",
    "sequence_parallel",
    "zero_stage",
    "precision_index",
    "sync_mode",
    "parameter_servers",
)
"""Columns of Configurations that distinguish the configurations of a space, in their canonical order: the last tie of a
search is broken by the smaller value of the first of them that differs; devices and precisions count by the
alphabet of their names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanPool:
    """Nodes of one kind.

    Attributes
    ----------
    device : str
        Accelerator.
    nodes : tuple of int
        Numbers of nodes that may be used.
    workers_per_node : int
        Devices of each node, all of which are used.
    link_bytes_per_s : float
        Network of one node per direction; 0 = the catalogue's value for the device.
    """

    device: str
    nodes: tuple[int, ...]
    workers_per_node: int
    link_bytes_per_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanConstraints:
    """The values that a search may choose. ``None`` = every valid value; tuples are ascending and hold each value once.

    Attributes
    ----------
    pools : tuple of PlanPool
        Devices; a configuration uses one pool.
    global_batches : tuple of int
        Samples of one step, all replicas together (asynchronous: of one mini-batch from each); empty = every replica
        takes one of ``micro_batches``, which is not None then.
    tensor_parallel ... interleave : tuple of int or None
        Degrees.
    micro_batches : tuple of int or None
        Samples of one replica that go through the model at once.
    recomputations, zero_stages, sequence_parallel : tuple of int or None
        Values of :class:`Recomputation`; 0 to 3; 0 and 1.
    precisions : tuple of str
        Number formats; ``""`` = the job's own.
    parameter_servers : tuple of int or None
        Numbers of servers of configurations with servers; None = as many as ``max_nodes`` leaves.
    sync_modes : tuple of int or None
        Values of :class:`SyncMode`: ASYNC, SYNC, ALLREDUCE.
    max_nodes : int or None
        Most nodes of a configuration, those of parameter servers included.
    memory_headroom_bytes : float
        Memory of each device that must stay free.
    upper_memory : bool
        Whether the upper bound of the memory's interval must fit, where the estimator gives one.
    memory_factor, link_factor : float
        Factors of every device's memory and every node's network, for questions such as "with twice the bandwidth".
    """

    pools: tuple[PlanPool, ...]
    global_batches: tuple[int, ...]
    tensor_parallel: tuple[int, ...] | None = None
    pipeline_parallel: tuple[int, ...] | None = None
    data_parallel: tuple[int, ...] | None = None
    context_parallel: tuple[int, ...] | None = None
    expert_parallel: tuple[int, ...] | None = None
    micro_batches: tuple[int, ...] | None = None
    interleave: tuple[int, ...] | None = None
    recomputations: tuple[int, ...] | None = None
    zero_stages: tuple[int, ...] | None = None
    sequence_parallel: tuple[int, ...] | None = None
    precisions: tuple[str, ...] = ("",)
    parameter_servers: tuple[int, ...] | None = None
    sync_modes: tuple[int, ...] | None = None
    max_nodes: int | None = None
    memory_headroom_bytes: float = 0.0
    upper_memory: bool = False
    memory_factor: float = 1.0
    link_factor: float = 1.0

    def allows(self, name: str, value: int) -> bool:
        """Whether a value of one of the optional columns may be chosen."""
        values: tuple[int, ...] | None = getattr(self, name)
        return values is None or value in values


RECOMPUTATIONS: Final = tuple(int(value) for value in Recomputation if value != Recomputation.UNSPECIFIED)
"""All ways to recompute, used where the constraints state none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion:
    """Configurations that the constraints allow but that are invalid, or that violate a limit.

    Attributes
    ----------
    constraint : str
        What they violate: a column (``tensor_parallel``), ``memory``, or a limit of the objective
        (``deadline_seconds``).
    message : str
        How, with the numbers, in one sentence.
    count : int
        How many; 0 = not counted.
    numbers : mapping of name to float
        The numbers; names carry units.
    """

    constraint: str
    message: str
    count: int = 0
    numbers: Mapping[str, float] = field(default_factory=dict)
