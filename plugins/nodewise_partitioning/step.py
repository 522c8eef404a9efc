"""One step: blocks, ends, schedule, exchange and update put together, with a breakdown that adds up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from nodewise.plugin import Floats
from nodewise_partitioning.block import Block, block_of
from nodewise_partitioning.data_parallel import data_parallel_of
from nodewise_partitioning.hardware import Device
from nodewise_partitioning.layout import Layout
from nodewise_partitioning.pipeline import Ends, ends_of, pipeline_of
from nodewise_partitioning.software import Software
from nodewise_partitioning.workload import Dimensions

__all__ = ["CHUNK_ROWS", "PARTS", "chunks", "layer_and_ends", "step_parts_s"]

PARTS: Final = (
    "compute",
    "host",
    "tensor_parallel",
    "context_parallel",
    "expert_parallel",
    "pipeline_bubble",
    "pipeline_transfer",
    "data_parallel",
    "optimizer",
    "framework_overhead",
)
"""Parts of a step: the slowest stage's kernels and launches, what it waits for others, and what comes once."""

CHUNK_ROWS: Final = 8_192
"""Rows computed at a time: what caches hold."""


def chunks(rows: int, ways: int = 1) -> Iterator[slice]:
    """Slices of at most :data:`CHUNK_ROWS` rows, of which so many ways are computed at once."""
    most = CHUNK_ROWS // ways
    for start in range(0, rows, most):
        yield slice(start, min(start + most, rows))


def layer_and_ends(dimensions: Dimensions, layout: Layout, device: Device, software: Software) -> tuple[Block, Ends]:
    """One layer and both ends of every row: computed once for rows that agree in what they depend on."""
    alike = layout.alike(beyond_nodes=device.domain_nodes > 1.0)
    kinds = layout if alike is None else layout.take(alike[0])
    block = block_of(dimensions, kinds, device, software)
    ends = ends_of(dimensions, kinds, device, software)
    return (block, ends) if alike is None else (block.take(alike[1]), ends.take(alike[1]))


def step_parts_s(dimensions: Dimensions, layout: Layout, device: Device, software: Software) -> Floats:
    """(parts, rows) seconds of :data:`PARTS`; their sum is the step."""
    block, ends = layer_and_ends(dimensions, layout, device, software)
    pipeline = pipeline_of(dimensions, layout, block, ends, device, software)
    replicas = data_parallel_of(dimensions, layout, block, pipeline, device, software)
    slots = layout.micro_batches * pipeline.slowest_layers
    busy = block.compute_s + block.tensor_s + block.context_s + block.expert_s
    parts = np.empty((len(PARTS), len(layout)))
    parts[0] = slots * block.compute_s + layout.micro_batches * pipeline.slowest_ends_s
    parts[1] = slots * (block.layer_s - busy)
    parts[2] = slots * block.tensor_s
    parts[3] = slots * block.context_s
    parts[4] = slots * block.expert_s
    parts[5] = pipeline.bubble_s
    parts[6] = pipeline.transfer_s + pipeline.excess_s
    parts[7] = replicas.exchange_s
    parts[8] = replicas.optimizer_s
    parts[9] = software.fixed_s + replicas.delay_s
    return parts
