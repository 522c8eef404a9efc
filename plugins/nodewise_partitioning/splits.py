"""The split of rows that state none and do not fit unsplit: the quickest of a plan's that fits, row by row."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import (
    Configurations,
    Floats,
    NodewiseError,
    PlanConstraints,
    PlanPool,
    Recomputation,
    SyncMode,
    as_ints,
    freeze,
)
from nodewise_partitioning.space import PartitionSpace, divisors

__all__ = ["Searchable", "is_splittable", "quickest", "states_no_split"]

COLUMNS: Final = (
    *("tensor_parallel", "pipeline_parallel", "data_parallel", "context_parallel", "expert_parallel"),
    *("batch_per_worker", "accumulation", "interleave", "sequence_parallel", "zero_stage", "recomputation"),
)
"""Columns that a search settles."""
FIRST_PREFIXES: Final = 32
"""Prefixes of a space that are completed first, in the order of their bounds, and then twice as many each time."""

FEWEST_LAYERS: Final = 4.0
"""Of a stage, where stages differ by a layer: with fewer, most stages would wait long for the largest."""
MOST_KNOWN: Final = 1024
"""Rows of a model whose splits are cached."""

_NOT_SEARCHED: Final = object()
_VALUES: Final = ("step_s", "memory_upper_bytes", "memory_capacity_bytes")


class Searchable(Protocol):
    """What a search asks of a model."""

    @property
    def layers(self) -> float:
        """Layers of the transformer."""

    def space(self, constraints: PlanConstraints) -> PartitionSpace:
        """Every partition within the constraints."""

    def evaluate(self, chunk: Configurations, columns: Sequence[str]) -> Mapping[str, Floats]:
        """Columns of partitions."""


def states_no_split(configurations: Configurations) -> NDArray[np.bool_]:
    """Rows that state a global batch and nothing of how the model is split."""
    is_without_split = (configurations.global_batch > 0) & (configurations.sync_mode == SyncMode.ALLREDUCE)
    is_without_split &= (configurations.accumulation == 1) & (configurations.zero_stage == 0)
    is_without_split &= (configurations.data_parallel == 0) & (configurations.workers > 1)
    is_without_split &= (configurations.nodes > 0) & (configurations.workers % np.maximum(configurations.nodes, 1) == 0)
    for name in ("tensor", "pipeline", "context", "expert"):
        is_without_split &= getattr(configurations, f"{name}_parallel") <= 1
    is_without_split &= (configurations.interleave <= 1) & (configurations.sequence_parallel == 0)
    if configurations.placement is not None:
        is_without_split &= configurations.placement.counts() == 0
    return np.asarray(is_without_split)


def _constraints(configurations: Configurations, row: int) -> PlanConstraints:
    """What a row leaves open, with stages of equally many layers."""
    nodes = int(configurations.nodes[row])
    micro_batch, recomputation = int(configurations.batch_per_worker[row]), int(configurations.recomputation[row])
    pool = PlanPool(
        device=configurations.devices[configurations.device_index[row]],
        nodes=(nodes,),
        workers_per_node=int(configurations.workers[row]) // nodes,
        link_bytes_per_s=float(configurations.link_bytes_per_s[row]),
    )
    return PlanConstraints(
        pools=(pool,),
        global_batches=(int(configurations.global_batch[row]),),
        micro_batches=(micro_batch,) if micro_batch else None,
        recomputations=None if recomputation == Recomputation.UNSPECIFIED else (recomputation,),
        precisions=(configurations.precisions[configurations.precision_index[row]],),
    )


def _space(model: Searchable, constraints: PlanConstraints) -> PartitionSpace:
    """The partitions within constraints; where there is none, those with stages that differ by a layer.

    Raises
    ------
    NodewiseError
        There are too many to search, or the device is not known.
    """
    space = model.space(constraints)
    if len(space.prefixes):
        return space
    workers = constraints.pools[0].nodes[0] * constraints.pools[0].workers_per_node
    stages = tuple(each for each in divisors(workers) if model.layers / each >= FEWEST_LAYERS)
    return model.space(replace(constraints, pipeline_parallel=stages))


def is_splittable(model: Searchable, configurations: Configurations, row: int) -> bool:
    """Whether some partition is what a row leaves open."""
    try:
        return bool(len(_space(model, _constraints(configurations, row)).prefixes))
    except NodewiseError:
        return False


def quickest(
    model: Searchable,
    configurations: Configurations,
    rows: Sequence[int],
    others: Configurations,
    cache: dict[Hashable, object],
) -> Configurations:
    """``others`` with these rows split as the quickest that fits, else as what lacks least; else as they are.

    Parameters
    ----------
    known : dict
        What earlier searches of the model found, to be added to.
    """
    columns = {name: getattr(others, name).copy() for name in COLUMNS}
    for row in rows:
        constraints = _constraints(configurations, row)
        split = cache.get(constraints, _NOT_SEARCHED)
        if split is _NOT_SEARCHED:
            split = _search(model, constraints)
            if len(cache) >= MOST_KNOWN:  # another thread may clear it too: nothing is read from it again
                cache.clear()
            cache[constraints] = split
        if isinstance(split, Configurations):
            for name, column in columns.items():
                column[row] = getattr(split, name)[0]
    return others.replaced(**{name: freeze(column) for name, column in columns.items()})


def _search(model: Searchable, constraints: PlanConstraints) -> Configurations | None:
    """The best split; None = there is none, or there are too many to search, or the row's device is not known."""
    try:
        return _best(model, _space(model, constraints))
    except NodewiseError:
        return None


def _best(model: Searchable, space: PartitionSpace) -> Configurations | None:
    """One row of a space; None = it is empty."""
    if not len(space.prefixes):
        return None
    bounds = space.lower_bound()
    fits = bounds["memory_bytes"] <= bounds["memory_capacity_bytes"]
    best = _least(model, space, np.flatnonzero(fits), bounds["step_s"], fitting=True)
    lacking = bounds["memory_bytes"] - bounds["memory_capacity_bytes"]
    return best or _least(model, space, np.arange(len(lacking)), lacking, fitting=False)


def _least(
    model: Searchable, space: PartitionSpace, prefixes: NDArray[np.int64], bounds: Floats, *, fitting: bool
) -> Configurations | None:
    """The row of least time of those that fit, or of least memory above what there is, best bounds first."""
    order = prefixes[np.argsort(bounds[prefixes], kind="stable")]
    best, least = None, np.inf
    start, end = 0, FIRST_PREFIXES
    while start < len(order) and bounds[order[start]] < least:
        rows = space.completed(as_ints(order[start:end]))
        start, end = end, 3 * end - 2 * start
        values = model.evaluate(rows, _VALUES)
        lacking = values["memory_upper_bytes"] - values["memory_capacity_bytes"]
        keys = np.where(lacking <= 0.0, values["step_s"], np.inf) if fitting else lacking
        place = int(keys.argmin())
        if keys[place] < least:
            best, least = rows.take(as_ints([place])), float(keys[place])
    return best
