"""Options for how a job is trained: facts of its workload, each by the name of its field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, ClassVar

from typer import Option

from nodewise_client import Workload

__all__ = ["Training"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """How a job is trained; options override the file."""

    SECTION: ClassVar = "Training"
    framework: Annotated[
        str | None, Option(help="Training framework, such as pytorch, deepspeed or megatron-core.")
    ] = None
    optimizer: Annotated[str | None, Option(help="Optimizer, such as adamw, sgd, lion or adafactor.")] = None
    master_weights: Annotated[
        bool | None, Option("--master-weights/--no-master-weights", help="Keep a 32-bit copy of 16-bit weights.")
    ] = None
    fused_loss: Annotated[
        bool | None, Option("--fused-loss/--no-fused-loss", help="Compute output layer and loss in one kernel.")
    ] = None
    execution: Annotated[str | None, Option(help="How kernels are launched: eager, compiled or graphs.")] = None
    pipeline_schedule: Annotated[
        str | None, Option(help="Pipeline schedule: 1f1b, gpipe, zero-bubble or dualpipe.")
    ] = None

    @property
    def values(self) -> Mapping[str, Any]:
        """Values of the options, by field of the workload."""
        values = {field.name: getattr(self, field.name) for field in fields(Training)}
        return {name: value for name, value in values.items() if value is not None}

    def of(self, workload: Workload | None) -> Workload | None:
        """The workload with the options applied."""
        return replace(workload or Workload(), **self.values) if self.values else workload
