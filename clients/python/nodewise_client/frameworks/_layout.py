"""A layout of a plan, and what a framework needs to run it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import gcd
from typing import Any

from nodewise_values import Recomputation, SyncMode, Transformer, Workload

__all__ = ["Launch", "Layout", "LayoutError", "refuse", "torchrun", "yaml_lines"]

Settings = Mapping[str, Mapping[str, Any]]
"""Values by section and name."""

_OF_SCRIPT = ("execution", "fused_loss", "optimizer", "offload", "adapter_rank", "expert_capacity", "document_tokens")
"""Facts of a workload that change time or memory, and that only some frameworks state beside the layout."""


class LayoutError(ValueError):
    """A framework cannot express a layout; the text names what it lacks."""

    def __init__(self, framework: str, lacks: Iterable[str]) -> None:
        self.framework, self.lacks = framework, tuple(lacks)
        super().__init__(f"{framework} cannot express this layout: {'; '.join(self.lacks)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How a transformer is trained on devices. The degrees of expert parallelism divide those of the others."""

    workload: Workload
    nodes: int
    devices_per_node: int
    micro_batch: int
    """Samples that one replica processes at once."""
    global_batch: int
    """Samples of a step over all replicas."""
    tensor: int = 1
    pipeline: int = 1
    context: int = 1
    expert: int = 1
    interleave: int = 1
    """Model chunks of a pipeline stage."""
    recomputation: Recomputation = Recomputation.NONE
    sequence_parallel: bool = False
    zero_stage: int = 0
    precision: str = "bf16"

    @classmethod
    def of(cls, configuration: Mapping[str, Any], workload: Workload) -> Layout:
        """The layout of a configuration of a plan, such as ``plan.best.configuration``.

        Raises
        ------
        LayoutError
            For what is not a transformer on equal devices, or not stated.
        """

        def value(name: str, otherwise: Any = 1) -> Any:
            stated = configuration.get(name)
            return otherwise if stated in (None, "", 0) else stated

        transformer, precision = workload.transformer, value("precisions", "") or workload.precision
        nodes, workers = int(value("nodes", 0)), int(value("workers", 0))
        micro_batch, batch = value("batch_per_worker_samples", 0), value("global_batch_samples", 0)
        lacks = [
            *([] if transformer else ["the model is not a transformer"]),
            *(["it has parameter servers"] if value("parameter_servers", 0) else []),
            *([] if value("sync_modes", SyncMode.ALLREDUCE) == SyncMode.ALLREDUCE else ["it is not all-reduce"]),
            *([] if precision else ["its precision is not stated (workload.precision)"]),
            *([] if nodes and workers and workers % nodes == 0 else ["its nodes do not have equal numbers of devices"]),
            *([] if micro_batch and batch else ["its batch is not stated"]),
        ]
        if lacks:
            raise LayoutError("a training framework", lacks)
        return cls(
            workload=workload,
            nodes=nodes,
            devices_per_node=workers // nodes,
            micro_batch=int(micro_batch),
            global_batch=int(batch),
            tensor=int(value("tensor_parallel_degrees")),
            pipeline=int(value("pipeline_parallel_degrees")),
            context=int(value("context_parallel_degrees")),
            expert=int(value("expert_parallel_degrees")),
            interleave=int(value("interleave_degrees")),
            recomputation=value("recomputations", Recomputation.NONE),
            sequence_parallel=bool(value("sequence_parallel", otherwise=False)),
            zero_stage=int(value("zero_stages", 0)),
            precision=str(precision),
        )

    def configuration(self, device_name: str) -> dict[str, Any]:
        """The layout on a device, by the names that `configurations` takes."""
        return {
            "nodes": self.nodes,
            "workers": self.devices,
            "devices": device_name,
            "batch_per_worker_samples": self.micro_batch,
            "accumulation_steps": self.accumulation,
            "global_batch_samples": self.global_batch,
            "tensor_parallel_degrees": self.tensor,
            "pipeline_parallel_degrees": self.pipeline,
            "data_parallel_degrees": self.data,
            "context_parallel_degrees": self.context,
            "expert_parallel_degrees": self.expert,
            "interleave_degrees": self.interleave,
            "recomputations": self.recomputation,
            "sequence_parallel": self.sequence_parallel,
            "zero_stages": self.zero_stage,
            "precisions": self.precision,
        }

    @property
    def transformer(self) -> Transformer:
        """The model's dimensions."""
        assert self.workload.transformer is not None
        return self.workload.transformer

    @property
    def devices(self) -> int:
        """All devices."""
        return self.nodes * self.devices_per_node

    @property
    def data(self) -> int:
        """Data-parallel replicas."""
        return self.devices // (self.tensor * self.pipeline * self.context)

    @property
    def accumulation(self) -> int:
        """Micro-batches of a replica in a step."""
        return self.global_batch // (self.micro_batch * self.data)

    @property
    def sharding_stage(self) -> int:
        """Stage of ZeRO where there is more than one replica to shard over; else 0."""
        return self.zero_stage if self.data > 1 else 0

    @property
    def expert_tensor(self) -> int:
        """Tensor-parallel degree of the experts.

        Parallel folding (D. Liu et al., "MoE parallel folding", 2025): ranks of tensor parallelism hold experts of
        their own where there are fewer replicas than the degree of expert parallelism.
        """
        folded = self.expert // gcd(self.expert, self.data * self.context)
        return max(self.tensor // folded, 1)

    def notes_on_workload(self, *stated: str) -> tuple[str, ...]:
        """A note on what the workload says and the settings do not, apart from the facts that they state."""
        names = [name for name in _OF_SCRIPT if name not in stated and getattr(self.workload, name)]
        return (f"not among these settings: {', '.join(names)} of the workload",) if names else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What to paste to run a layout."""

    framework: str
    """Name for people, with the release that the settings are for."""
    command: str
    """For each node, with the first one's address in HEAD_NODE."""
    settings: Settings = field(default_factory=dict)
    """Values by section and name, as the files or the command have them."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Text by file name."""
    code: tuple[str, ...] = ()
    """What the training script must state, because no setting does."""
    notes: tuple[str, ...] = ()


def refuse(framework: str, lacks: Iterator[str]) -> None:
    """Raise LayoutError if something is lacking."""
    reasons = tuple(lacks)
    if reasons:
        raise LayoutError(framework, reasons)


def torchrun(layout: Layout, *arguments: str, environment: str = "") -> str:
    """The command for each node, one argument with its value to a line."""
    nodes = (
        "--standalone"
        if layout.nodes == 1
        else f"--nnodes {layout.nodes} --rdzv-backend c10d --rdzv-endpoint $HEAD_NODE:29500"
    )
    start = f"{environment} torchrun {nodes} --nproc-per-node {layout.devices_per_node}".lstrip()
    return " \\\n    ".join((start, *arguments))


def yaml_lines(values: Mapping[str, Any], indent: str = "") -> str:
    """Nested objects of scalars as YAML."""
    lines = [
        f"{indent}{name}:\n{yaml_lines(value, indent + '  ')}"
        if isinstance(value, Mapping)
        else f"{indent}{name}: {json.dumps(value)}\n"
        for name, value in values.items()
    ]
    return "".join(lines)
