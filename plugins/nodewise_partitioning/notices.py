"""Notices of rows that have predictions: what was assumed, and which runs may fail."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Catalogue, Configurations, Floats, Ints, Notice, Recomputation, as_ints
from nodewise_partitioning.groups import Group
from nodewise_partitioning.hardware import node_link_of
from nodewise_partitioning.knowledge import Knowledge
from nodewise_partitioning.links import domain_of
from nodewise_partitioning.micro_batches import is_open
from nodewise_partitioning.rows import QueryRows
from nodewise_partitioning.unsaid import stack_notice

__all__ = ["assumption_notices", "memory_notices"]

LEAST_TRAINED: Final = 0.01
"""Share of the weights from which the format of their states is worth a word."""


def assumption_notices(
    knowledge: Knowledge,
    query: QueryRows,
    groups: list[Group],
    configurations: Configurations,
    unfit: NDArray[np.bool_],
    searched: Ints,
) -> Iterator[Notice]:
    """Assumptions in place of facts that the job and single rows do not state.

    Parameters
    ----------
    configurations : Configurations
        As they are stated.
    unfit : bool
        Which of the asked rows do not fit into memory.
    searched : int
        Rows of which a split was searched.
    """
    split = np.isin(query.rows, searched)
    for what, rows in _describe(query, split & ~unfit):
        devices = ", ".join(f"{each:.0f}" for each in np.unique(query.layout.devices[np.isin(query.rows, rows)]))
        text = (
            f"how the model is split over {devices} devices is not stated: the fastest split that fits is assumed: "
            f"{what}"
        )
        yield Notice("PARTITION_CHOSEN", text, rows)
    open_rows = is_open(configurations)[query.rows] & ~split
    for batch in np.unique(query.layout.micro_batch[open_rows & ~unfit]).tolist():
        rows = query.rows[open_rows & ~unfit & (query.layout.micro_batch == batch)]
        text = f"the micro-batch is not stated: {batch:.0f} is assumed, the fastest that fits"
        yield Notice("MICRO_BATCH_CHOSEN", text, tuple(rows.tolist()))
    yield from _nearest(query, unfit)
    unsaid = (configurations.recomputation[query.rows] == 0) & ~split
    stack_notices = (
        stack_notice(knowledge.framework, knowledge.dimensions, each.device, each.stack) for each in groups
    )
    yield from dict.fromkeys(notice for notice in stack_notices if notice is not None)
    for way, text in _RECOMPUTATION_TEXTS.items():
        rows = query.rows[unsaid & (query.layout.recomputation == way)]
        if len(rows):
            yield Notice("RECOMPUTATION_ASSUMED", f"recomputation is not stated: {text}", tuple(rows.tolist()))
    narrow = query.rows[query.layout.narrow_states > 0.0]
    training = knowledge.dimensions.training
    places = [group.rows for group in groups if group.software.reduces_in_place]
    in_place = np.isin(narrow, query.rows[np.concatenate(places)]) if places else np.zeros(len(narrow), dtype=bool)
    if in_place.any() and training.master_weights is None:
        text = "the format of gradients and weights is not stated, and these rows do not fit with 32-bit gradients"
        yield Notice(
            "STATES_ASSUMED",
            f"{text}: 16-bit gradients are assumed, with weights in the format of the matrix products",
            tuple(narrow[in_place].tolist()),
        )
    narrow = narrow[~in_place]
    if len(narrow) and training.trained_share > LEAST_TRAINED and training.master_weights is None:
        text = "without 32-bit master weights, as is usual on one device or where master weights do not fit"
        yield Notice(
            "STATES_ASSUMED",
            (
                "the format of weights and optimizer states is not stated: the 16-bit format of training is assumed, "
                f"{text}"
            ),
            tuple(narrow.tolist()),
        )
    narrow = query.rows[query.layout.narrow_loss > 0.0]
    if len(narrow):
        text = "the format of logits is not stated, and these rows do not fit with three copies in 32 bits"
        yield Notice(
            "LOSS_ASSUMED", f"{text}: a fused or compiled loss with 16-bit logits is assumed", tuple(narrow.tolist())
        )
    stated_values = (configurations.sequence_parallel[query.rows], configurations.zero_stage[query.rows])
    changed = (
        (query.layout.sequence_parallel != stated_values[0]) | (query.layout.zero_stage != stated_values[1])
    ) & ~split
    if changed.any():
        text = (
            "the software stack is not stated, and these rows do not fit without further sharding: sequence parallelism"
        )
        yield Notice(
            "SPLIT_ASSUMED",
            (f"{text}, and a ZeRO stage where needed, are assumed"),
            tuple(query.rows[changed].tolist()),
        )


def _nearest(query: QueryRows, unfit: NDArray[np.bool_]) -> Iterator[Notice]:
    """Notices of rows that do not fit: of all configurations tried, the one that exceeds memory least."""
    for what, rows in _describe(query, unfit):
        yield Notice(
            "NEAREST_TRIED",
            (f"these rows do not fit; the configuration tried that exceeds memory least has {what}"),
            rows,
        )


def _describe(query: QueryRows, which: NDArray[np.bool_]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """How some rows are split and trained, in words, and the rows that are so."""
    if not which.any():
        return
    degrees = ("tensor", "pipeline", "context", "expert")
    names = (*degrees, "expert_fold", "interleave", "micro_batch", "recomputation", "zero_stage", "sequence_parallel")
    columns = np.stack([getattr(query.layout, name) for name in names], axis=1)
    for values in np.unique(columns[which], axis=0):
        of = dict(zip(names, values.tolist()))
        of["expert"] *= of["expert_fold"]
        parts = [f"{name} parallelism of {of[name]:.0f}" for name in degrees if of[name] > 1.0]
        parts += [f"{of['interleave']:.0f} chunks per stage"] * (of["interleave"] > 1.0)
        parts += [f"a micro-batch of {of['micro_batch']:.0f}", _RECOMPUTED[Recomputation(int(of["recomputation"]))]]
        parts += [f"ZeRO stage {of['zero_stage']:.0f}"] * (of["zero_stage"] > 0.0)
        parts += ["sequence parallelism"] * (of["sequence_parallel"] > 0.0)
        yield ", ".join(parts), tuple(query.rows[which & (columns == values).all(axis=1)].tolist())


_RECOMPUTED: Final = {
    Recomputation.UNSPECIFIED: "no recomputation stated",
    Recomputation.NONE: "no recomputation",
    Recomputation.SELECTIVE: "selective recomputation",
    Recomputation.FULL: "full recomputation",
}

_RECOMPUTATION_TEXTS: Final = {
    Recomputation.NONE: "none is assumed, as these rows fit without it",
    Recomputation.FULL: "full recomputation is assumed, as attention scores are stored or not all activations fit",
}


def memory_notices(
    query: QueryRows,
    catalogue: Catalogue,
    groups: list[Group],
    needed: Floats,
    available: Floats,
    named: Floats,
    factor: Floats,
    rows: int,
) -> Iterator[Notice]:
    """Notices about single rows.

    Parameters
    ----------
    needed, available, named : float
        Bytes that must be there, that there are, and on the smallest board of the device's name.
    factor : float
        From bytes to the upper bound of their interval.
    rows : int
        Number of asked rows.
    """

    def rows_of(members: Ints) -> tuple[int, ...]:
        return () if len(members) == rows else tuple(members.tolist())

    for name, members in _rows_by_unstated_link(query, groups).items():
        bytes_per_s, why = node_link_of(catalogue, name)
        text = (
            f"the link of a node is not stated: {bytes_per_s / 1e9:g} GB/s in each direction are assumed for all its "
        )
        yield Notice("LINK_ASSUMED", f"{text}adapters together: {why}", rows_of(members))
    fits = needed <= available
    beyond = query.rows[fits & (needed > named)]
    if len(beyond):
        yield Notice(
            "DEVICE_MEMORY_ASSUMED",
            (
                "the device's name does not state its memory: these rows need more than the smallest board of that "
                "name has"
            ),
            rows_of(as_ints(beyond)),
        )
    tight = query.rows[fits & (needed * factor > available)]
    if len(tight):
        yield Notice(
            "MEMORY_TIGHT",
            "the 90 % interval of the memory needed exceeds the device's memory: such runs may fail",
            rows_of(as_ints(tight)),
        )


def _rows_by_unstated_link(query: QueryRows, groups: list[Group]) -> dict[str, Ints]:
    """By device the rows that communicate beyond their link domain over adapters whose bandwidth is not stated."""
    rows_by_device: dict[str, list[NDArray[np.int64]]] = {}
    assumed_link = np.isin(query.rows, query.assumed_link)
    for group in groups:
        layout = query.layout.take(group.rows)
        leaving = assumed_link[group.rows] & (layout.devices > domain_of(layout, group.device))
        if leaving.any():
            rows_by_device.setdefault(group.device.name, []).append(query.rows[group.rows[leaving]])
    return {name: as_ints(np.sort(np.concatenate(rows))) for name, rows in rows_by_device.items()}
