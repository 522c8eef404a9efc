"""Lower bounds over all completions of a prefix: the same equations, each term at the completion where it is least.

The time of a layer shrinks with sequence parallelism (but for what PyTorch's recomputation by operation gathers once
more, so that both ways are tried), and the schedule waits least with most interleaving. The exchange
of replicas is taken at the allowed ZeRO stage where it is least. A longer backward pass hides more of the gradients,
but never more than it is longer; with stage 3 a micro-batch takes the longer of its computation and its gathers: in
both the sum grows with the time of a layer. Memory is least with sequence parallelism, one chunk a stage and the
highest stage of ZeRO, which need not be the completion of least time; it is the first stage's, with the cache.

What transfers in the steady state exceed the work by shrinks as layers take longer, and is left out.

All equations are chains of operations that grow with these terms, except for powers: a margin for rounding is
subtracted. The time of a layer depends on few of the columns, and is computed once for rows that agree in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Floats, PlanConstraints, sum_columns
from nodewise_partitioning.data_parallel import data_parallel_of
from nodewise_partitioning.hardware import Device
from nodewise_partitioning.layout import FULL, SELECTIVE, Layout
from nodewise_partitioning.memory import cache_of, needed_of_first_stage
from nodewise_partitioning.pipeline import pipeline_of
from nodewise_partitioning.software import Software
from nodewise_partitioning.space import PIPELINED_STAGES, ZERO_STAGES, divisors
from nodewise_partitioning.step import layer_and_ends
from nodewise_partitioning.workload import Dimensions

__all__ = ["least_of"]

MARGIN: Final = 1.0 - 1e-12
"""Rounding of some hundred operations."""


def least_of(
    dimensions: Dimensions,
    layouts: Layout,
    recomputations: list[int],
    device: Device,
    software: Software,
    constraints: PlanConstraints,
) -> tuple[Floats, Floats]:
    """(recomputations, rows) lower bounds of seconds of a step and bytes on each device."""
    split = _sequence_split(dimensions, layouts, constraints)
    plain = _constant(layouts, 1.0)
    most = plain if software.zero_bubble else _most_interleaving(dimensions, layouts, constraints)
    smallest = replace(layouts, sequence_parallel=split, interleave=_least_interleaving(constraints, layouts))
    if software.eager_memory:
        smallest = replace(smallest, narrow_loss=plain)
    states = _least_states(dimensions, smallest, device, software, constraints)
    quickest = _each(replace(layouts, sequence_parallel=split, interleave=most), recomputation=recomputations)
    step_s = _least_seconds(dimensions, quickest, device, software, constraints)
    if software.eager_memory and SELECTIVE in recomputations and constraints.allows("sequence_parallel", 0):
        # Recomputation by operation repeats gathers along sequences.
        whole = replace(quickest, sequence_parallel=_constant(quickest, 0.0))
        step_s = np.minimum(step_s, _least_seconds(dimensions, whole, device, software, constraints))
    candidates = _each(smallest, recomputation=recomputations)
    first_stage = needed_of_first_stage(dimensions, candidates, device, software).terms
    activations = (first_stage["activations"] + first_stage["logits"]).reshape(len(recomputations), -1)
    even = np.mod(dimensions.layers, layouts.pipeline) == 0.0
    memory = np.array([_least_held(states, each, even, device, software) for each in activations])
    return step_s.reshape(memory.shape) * MARGIN, memory * MARGIN


def _least_seconds(
    dimensions: Dimensions, quickest: Layout, device: Device, software: Software, constraints: PlanConstraints
) -> Floats:
    """Seconds of a step at the stage of ZeRO where the exchange of replicas is least."""
    block, ends = layer_and_ends(dimensions, quickest, device, software)
    pipeline = pipeline_of(dimensions, quickest, block, ends, device, software)
    slots = quickest.micro_batches * pipeline.slowest_layers
    step_s = slots * block.layer_s + quickest.micro_batches * pipeline.slowest_ends_s
    step_s = step_s + pipeline.bubble_s + pipeline.transfer_s + software.fixed_s
    stages = _stages(constraints)
    staged, rows = _each(quickest, zero_stage=stages), np.tile(np.arange(len(quickest)), len(stages))
    replicas = data_parallel_of(dimensions, staged, block.take(rows), pipeline.take(rows), device, software)
    pipelined = np.isin(staged.zero_stage, PIPELINED_STAGES) | (constraints.zero_stages is not None)
    allowed = (staged.data * staged.context == 1.0) | (staged.pipeline == 1.0) | pipelined
    once = np.where(allowed, replicas.exchange_s + replicas.optimizer_s + replicas.delay_s, np.inf)
    least = once.reshape(len(stages), -1).min(axis=0)
    return step_s + np.where(np.isfinite(least), least, 0.0)


def _each(layouts: Layout, **columns: Sequence[float]) -> Layout:
    """The layouts with each of some values of a column, one after the other."""
    ((name, values),) = columns.items()
    return Layout.concatenate([replace(layouts, **{name: _constant(layouts, value)}) for value in values])


def _least_held(
    states: list[tuple[Floats, Floats, Floats]],
    activations: Floats,
    even: NDArray[np.bool_],
    device: Device,
    software: Software,
) -> Floats:
    """Bytes at the ZeRO stage where they are least: activations and the update are not needed at once.

    Of stages that are not even, the second may need more, and leave less to cache.
    """
    least = np.full(len(activations), np.inf)
    for state_bytes, gathered, update in states:
        now = activations + gathered
        needed = state_bytes + np.maximum(now, update)
        left = 0.0 if software.eager_memory else np.where(even, np.minimum(now, update), 0.0)
        cache = cache_of(needed, left, device, software)
        least = np.minimum(least, needed + cache)
    return least


def _least_states(
    dimensions: Dimensions, layouts: Layout, device: Device, software: Software, constraints: PlanConstraints
) -> list[tuple[Floats, Floats, Floats]]:
    """Weights, gradients, optimizer states and buffers; layers gathered; the update: at each stage that may hold least.

    Stages above 0 have buckets, and 3 gathers layers; 1 never holds less than 2. States in 16 bits hold less.
    """
    allowed = _allowed_zero_stages(constraints)
    zero_stages = {min(allowed), max(allowed), max((stage for stage in allowed if stage < 3), default=max(allowed))}
    ways = _each(replace(layouts, recomputation=_constant(layouts, FULL)), zero_stage=sorted(zero_stages))
    masters = dimensions.training.master_weights
    if masters is False or (masters is None and software.eager_memory):
        narrow = (ways.devices == 1.0) | (ways.zero_stage >= 3.0) | (masters is False)
        ways = Layout.concatenate([ways, replace(ways, narrow_states=np.where(narrow, 1.0, 0.0))])
    needed = needed_of_first_stage(dimensions, ways, device, software)
    gathered = needed.terms["gathered"]
    now = needed.terms["activations"] + needed.terms["logits"] + gathered
    columns = (sum_columns(needed.terms.values()) - np.maximum(now, needed.end_bytes), gathered, needed.end_bytes)
    state_bytes, gathered, later = (each.reshape(-1, len(layouts)) for each in columns)
    return list(zip(state_bytes, gathered, later, strict=True))


def _allowed_zero_stages(constraints: PlanConstraints) -> list[int]:
    """Allowed ZeRO stages; all, where none is: such prefixes have no completions."""
    return [stage for stage in ZERO_STAGES if constraints.allows("zero_stages", stage)] or list(ZERO_STAGES)


def _stages(constraints: PlanConstraints) -> list[int]:
    """ZeRO stages of which the time differs: 1 and 2 exchange the same."""
    allowed = _allowed_zero_stages(constraints)
    return [stage for stage in allowed if not (stage == 2 and 1 in allowed)]


def _constant(layouts: Layout, value: float) -> Floats:
    return np.broadcast_to(np.float64(value), len(layouts))


def _sequence_split(dimensions: Dimensions, layouts: Layout, constraints: PlanConstraints) -> Floats:
    """Sequence parallelism where it is possible."""
    possible = (layouts.tensor > 1.0) & (np.mod(dimensions.sequence, layouts.tensor) == 0.0)
    return np.where(possible & constraints.allows("sequence_parallel", 1), 1.0, 0.0)


def _whole(layouts: Layout) -> NDArray[np.bool_]:
    """Layouts that may be interleaved."""
    is_whole: NDArray[np.bool_] = np.mod(layouts.micro_batches, layouts.pipeline) == 0.0
    return is_whole & (layouts.pipeline > 1.0)


def _most_interleaving(dimensions: Dimensions, layouts: Layout, constraints: PlanConstraints) -> Floats:
    """The largest interleaving of each layout."""
    most = np.ones(len(layouts))
    whole = _whole(layouts)
    for stages in np.unique(layouts.pipeline[whole]).tolist():
        chunks = divisors(int(dimensions.layers // stages)) if dimensions.layers % stages == 0 else [1]
        allowed = [v for v in chunks if constraints.allows("interleave", v)]
        most[whole & (layouts.pipeline == stages)] = max(allowed, default=1)
    return most


def _least_interleaving(constraints: PlanConstraints, layouts: Layout) -> Floats:
    """Chunks a stage with the fewest micro-batches in flight: one, else the most."""
    if constraints.allows("interleave", 1):
        return _constant(layouts, 1.0)
    return np.where(_whole(layouts), float(max(constraints.interleave or (1,))), 1.0)
