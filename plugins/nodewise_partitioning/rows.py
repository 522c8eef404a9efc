"""From configurations to layouts: rows that describe a valid partition, and the reasons against the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import (
    Catalogue,
    Configurations,
    Floats,
    Ints,
    Network,
    Refusal,
    RowRefusal,
    SyncMode,
    as_ints,
)
from nodewise_partitioning.hardware import node_link_of
from nodewise_partitioning.layout import Layout
from nodewise_partitioning.workload import Dimensions

__all__ = ["QueryRows", "layout_of", "query_rows_of"]

Mask = NDArray[np.bool_]

_UNKNOWN_BATCH: Final = Refusal.missing(
    ("the micro-batch of a replica must be stated"), "batch_per_worker", "global_batch"
)


@dataclass(frozen=True, slots=True, eq=False)
class QueryRows:
    """Rows that can be answered.

    Attributes
    ----------
    rows : int
        Their indexes among the configurations.
    layout : Layout
        One entry for each of them.
    assumed_link : int
        Those of them whose link between nodes is not stated.
    refusals : tuple of RowRefusal
        Reasons of the other rows.
    """

    rows: Ints
    layout: Layout
    assumed_link: Ints
    refusals: tuple[RowRefusal, ...]


def query_rows_of(
    configurations: Configurations,
    dimensions: Dimensions,
    network: Network,
    catalogue: Catalogue,
    *,
    zero_bubble: bool = False,
) -> QueryRows:
    """Read the rows, and refuse those that are no valid partition of the model or that the schedule does not allow."""
    layout, states_link = _layout(configurations, network, catalogue)
    checks = _checks(configurations, dimensions, layout, zero_bubble=zero_bubble)
    problems = ((wrong, Refusal.unsupported(why) if isinstance(why, str) else why) for wrong, why in checks)
    refusals = RowRefusal.first(len(configurations), problems)
    left = RowRefusal.left(len(configurations), refusals)
    rows = as_ints(np.flatnonzero(left))
    across = (layout.devices > layout.devices_per_node) & ~states_link & left
    remaining = layout if len(rows) == len(configurations) else layout.take(rows)
    return QueryRows(rows, remaining, as_ints(np.flatnonzero(across)), refusals)


def layout_of(configurations: Configurations, network: Network, catalogue: Catalogue) -> Layout:
    """Rows that are known to describe partitions, such as those of a space."""
    return _layout(configurations, network, catalogue)[0]


def _layout(configurations: Configurations, network: Network, catalogue: Catalogue) -> tuple[Layout, Mask]:
    """All rows as they are, and which of them state the link between nodes."""
    workers = configurations.workers.astype(np.float64)
    model = configurations.tensor_parallel * configurations.pipeline_parallel.astype(np.float64)
    model = model * configurations.context_parallel
    data = np.where(configurations.data_parallel > 0, configurations.data_parallel, np.floor(workers / model))
    data = np.maximum(data, 1.0)
    batch, micro_batches = _batches(configurations, data)
    nodes = np.maximum(configurations.nodes, 1)
    per_node = np.ceil(workers / nodes)
    if configurations.placement is not None:
        explicit = [max(configurations.placement.row(row), default=0) for row in range(len(configurations))]
        per_node = np.maximum(per_node, explicit)
    link = np.where(
        configurations.link_bytes_per_s > 0.0, configurations.link_bytes_per_s, network.link_bytes_per_s or 0.0
    )
    states_link: Mask = link > 0.0
    if not states_link.all():
        likely = np.array([node_link_of(catalogue, name)[0] for name in configurations.devices])
        link = np.where(states_link, link, likely[configurations.device_index])
    columns = {name: getattr(configurations, column).astype(np.float64) for name, column in _SAME.items()}
    columns["expert"] = np.maximum(columns["expert"], 1.0)
    fold = _own_expert_ranks(columns["expert"], data * columns["context"], columns["tensor"])
    layout = Layout(
        **columns | {"expert": columns["expert"] / fold},
        expert_fold=fold,
        data=data,
        micro_batch=batch,
        micro_batches=micro_batches,
        devices_per_node=np.maximum(per_node, 1.0),
        devices=workers,
        node_link_bytes_per_s=link,
        narrow_states=np.zeros(len(configurations)),
        narrow_loss=np.zeros(len(configurations)),
    )
    return layout, states_link


_SAME: Final = {
    **{name: f"{name}_parallel" for name in ("tensor", "pipeline", "context", "expert")},
    **{name: name for name in ("sequence_parallel", "interleave", "zero_stage", "recomputation")},
}
"""Columns of layouts that are taken from configurations unchanged."""


def _own_expert_ranks(expert: Floats, replicas: Floats, tensor: Floats) -> Floats:
    """Tensor-parallel ranks that hold experts of their own, where there are too few replicas for expert parallelism.

    Megatron-Core's parallel folding (D. Liu et al., "MoE parallel folding", 2025): experts are spread over data,
    context and tensor parallel ranks together, and split over as many of the latter as are left.
    """
    fold = np.ones(len(expert))
    rows = np.flatnonzero(_leaves(replicas, expert))
    if len(rows):
        needed = expert[rows] / np.gcd(expert[rows].astype(np.int64), replicas[rows].astype(np.int64))
        fold[rows] = np.where(_leaves(tensor[rows], needed), 1.0, needed)
    return fold


def _batches(configurations: Configurations, data: Floats) -> tuple[Floats, Floats]:
    """Samples of a micro-batch (0 = not known), and micro-batches of a step: no whole number where they do not fit."""
    states_batch = configurations.global_batch > 0
    batch = configurations.batch_per_worker.astype(np.float64)
    accumulation = configurations.accumulation.astype(np.float64)
    batch = np.where((batch == 0.0) & states_batch, configurations.global_batch / (data * accumulation), batch)
    counted = configurations.global_batch / np.maximum(data * batch, 1.0)
    return batch, np.where(states_batch, counted, accumulation)


def _checks(
    configurations: Configurations, dimensions: Dimensions, layout: Layout, *, zero_bubble: bool
) -> Iterator[tuple[Mask, str | Refusal]]:
    """Masks of rows that cannot run, and what is wrong or missing; the first that applies is the row's reason."""
    not_synchronous = configurations.sync_mode != SyncMode.ALLREDUCE
    yield not_synchronous, "partitioned transformers train synchronously: sync mode must be ALLREDUCE"
    yield layout.devices < 1.0, "workers must be at least 1"
    yield (
        layout.tensor * layout.pipeline * layout.context * layout.data != layout.devices,
        "tensor_parallel x pipeline_parallel x context_parallel x data_parallel must be the number of workers",
    )
    heads, layers, tokens = dimensions.heads, dimensions.layers, dimensions.sequence
    yield _leaves(heads, layout.tensor), f"tensor_parallel must divide the {heads:.0f} attention heads"
    parts = f"must be at most the {layers:.0f} layers, the embedding and the output layer"
    yield layout.pipeline > layers + 2.0, f"pipeline_parallel {parts}"
    yield layout.micro_batch == 0.0, _UNKNOWN_BATCH
    whole = (np.floor(layout.micro_batch) == layout.micro_batch) & (
        np.floor(layout.micro_batches) == layout.micro_batches
    )
    uneven = ~whole | (layout.micro_batches < 1.0)
    cut = np.where(np.floor(layout.micro_batch) == layout.micro_batch, layout.micro_batch, configurations.accumulation)
    yield uneven, _uneven_batch(configurations.global_batch, layout.data * cut, uneven)
    several = layout.interleave > 1.0
    if zero_bubble:
        yield several, "interleave must be 1 with the zero-bubble schedule that the framework declares"
    if several.any():
        yield several & (layout.pipeline == 1.0), "interleave above 1 needs pipeline_parallel above 1"
        chunks = layout.pipeline * layout.interleave
        yield several & (chunks > layers + 2.0), f"pipeline_parallel x interleave {parts}"
    split = layout.context > 1.0
    if split.any():
        uneven = _leaves(tokens, 2.0 * layout.context)
        yield split & uneven, f"2 x context_parallel must divide the sequence of {tokens:.0f} tokens"
    split = layout.sequence_parallel > 0.0
    if split.any():
        uneven = _leaves(tokens, layout.tensor)
        text = f"with sequence_parallel, tensor_parallel must divide the sequence of {tokens:.0f} tokens"
        yield split & uneven, text
    split = layout.expert * layout.expert_fold > 1.0
    if split.any():
        uneven = _leaves(dimensions.experts or 1.0, layout.expert * layout.expert_fold)
        uneven |= _leaves(layout.data * layout.context, layout.expert)
        experts = f"the number of experts ({dimensions.experts:.0f})"
        ranks = "data_parallel x context_parallel, or that x tensor_parallel"
        yield split & uneven, f"expert_parallel must divide {experts} and {ranks}"


def _uneven_batch(global_batch: Ints, divisor: Floats, uneven: Mask) -> Refusal:
    """The refusal of global batches that replicas cannot share equally, and what the first of them could be."""
    text = "data_parallel x batch_per_worker (x accumulation where that is not stated) must divide the global batch"
    if uneven.any():
        row = int(uneven.argmax())
        batch, least = int(global_batch[row]), int(divisor[row])
        nearest = " or ".join(f"{each:,}" for each in (batch // least * least, (batch // least + 1) * least) if each)
        text += f": {batch:,} is no multiple of {least:,}; {nearest} is"
    return Refusal.unsupported(text, "global_batch")


def _leaves(whole: Floats | float, parts: Floats) -> Mask:
    """Where a whole number does not divide: faster than a remainder."""
    quotient = whole / parts
    return np.asarray(np.floor(quotient) != quotient)
