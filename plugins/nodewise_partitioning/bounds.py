"""What no completion of a prefix is below: the same equations, each term at the completion where it is least.

The time of a layer shrinks with sequence parallelism, and the schedule waits least with most interleaving. The exchange
of replicas is taken at the allowed ZeRO stage where it is least. A longer backward pass hides more of the gradients,
but never more than it is longer; with stage 3 a micro-batch takes the longer of its computation and its gathers: in
both the sum grows with the time of a layer. Memory is least with sequence parallelism, one chunk a stage and the
highest stage of ZeRO, which need not be the completion of least time; it is the first stage's, with the cache.

All equations are chains of operations that grow with these terms, but for powers: a margin of rounding is taken off.
What a layer takes depends on few of the columns, and is computed once for rows that agree in them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Floats, PlanConstraints, Recomputation, added, as_ints
from nodewise_partitioning.block import block_of
from nodewise_partitioning.data_parallel import data_parallel_of
from nodewise_partitioning.hardware import Device
from nodewise_partitioning.layout import Layout
from nodewise_partitioning.memory import cache_of, needed_of_first_stage
from nodewise_partitioning.pipeline import ends_of, pipeline_of
from nodewise_partitioning.software import Software
from nodewise_partitioning.space import PIPELINED_STAGES, ZERO_STAGES, divisors
from nodewise_partitioning.workload import Dimensions

__all__ = ["least_of"]

FULL: Final = float(Recomputation.FULL)
MARGIN: Final = 1.0 - 1e-12
"""Rounding of some hundred operations."""


def least_of(
    dimensions: Dimensions,
    layouts: Layout,
    recomputations: list[int],
    device: Device,
    software: Software,
    constraints: PlanConstraints,
) -> Iterator[tuple[Floats, Floats]]:
    """Seconds of a step and bytes on each device that no completion is below, for each way to recompute in turn."""
    split = _split(dimensions, layouts, constraints)
    plain = _constant(layouts, 1.0)
    most = plain if software.zero_bubble else _most_interleaved(dimensions, layouts, constraints)
    quickest = replace(layouts, sequence_parallel=split, interleave=most)
    smallest = replace(layouts, sequence_parallel=split, interleave=_least_interleaved(constraints, layouts))
    if software.eager_memory:
        smallest = replace(smallest, narrow_loss=plain)
    states = _least_states(dimensions, smallest, device, software, constraints)
    ends = ends_of(dimensions, quickest, device, software)
    alike = quickest.alike(beyond_nodes=device.domain_nodes > 1.0)
    stages = _stages(constraints)
    alone = layouts.data * layouts.context == 1.0
    even = np.mod(dimensions.layers, layouts.pipeline) == 0.0
    for recomputation in recomputations:
        chosen = replace(quickest, recomputation=_constant(layouts, recomputation))
        block = block_of(dimensions, chosen if alike is None else chosen.take(alike[0]), device, software)
        block = block if alike is None else block.take(alike[1])
        pipeline = pipeline_of(dimensions, chosen, block, ends, device, software)
        least = np.full(len(layouts), np.inf)
        for stage in stages:
            pipelined = stage in PIPELINED_STAGES or constraints.zero_stages is not None
            rows = np.flatnonzero(alone | (layouts.pipeline == 1.0) | pipelined)
            staged = replace(chosen, zero_stage=_constant(layouts, stage))
            if len(rows) < len(layouts):
                staged = staged.take(as_ints(rows))
                its_block, its_pipeline = block.take(rows), pipeline.take(rows)
            else:
                its_block, its_pipeline = block, pipeline
            replicas = data_parallel_of(dimensions, staged, its_block, its_pipeline, device, software)
            once = replicas.exchange_s + replicas.optimizer_s + replicas.delay_s
            least[rows] = np.minimum(least[rows], once)
        slots = layouts.micro_batches * pipeline.slowest_layers
        step_s = slots * block.layer_s + layouts.micro_batches * pipeline.slowest_ends_s
        step_s = step_s + pipeline.bubble_s + pipeline.transfer_s + software.fixed_s
        step_s = step_s + np.where(np.isfinite(least), least, 0.0)
        held = needed_of_first_stage(
            dimensions, replace(smallest, recomputation=chosen.recomputation), device, software
        ).terms
        activations = held["activations"] + held["logits"]
        yield step_s * MARGIN, _least_held(states, activations, even, device, software) * MARGIN


def _least_held(
    states: list[tuple[Floats, Floats, Floats]],
    activations: Floats,
    even: NDArray[np.bool_],
    device: Device,
    software: Software,
) -> Floats:
    """Bytes held at the stage of ZeRO where they are least: activations and the update are not needed at once.

    Of stages that are not even, the second may need more, and leave less to cache.
    """
    found = np.full(len(activations), np.inf)
    for held, gathered, update in states:
        now = activations + gathered
        needed = held + np.maximum(now, update)
        left = 0.0 if software.eager_memory else np.where(even, np.minimum(now, update), 0.0)
        cache = cache_of(needed, left, device, software)
        found = np.minimum(found, needed + cache)
    return found


def _least_states(
    dimensions: Dimensions, layouts: Layout, device: Device, software: Software, constraints: PlanConstraints
) -> list[tuple[Floats, Floats, Floats]]:
    """Weights, gradients, optimizer states and buffers; layers gathered; the update: at each stage that may hold least.

    Stages above 0 have buckets, and 3 gathers layers; 1 never holds less than 2. States in 16 bits hold less.
    """
    allowed = _allowed(constraints)
    tried = {min(allowed), max(allowed), max((stage for stage in allowed if stage < 3), default=max(allowed))}
    found = []
    for stage in sorted(tried):
        staged = replace(layouts, zero_stage=_constant(layouts, stage), recomputation=_constant(layouts, FULL))
        ways = [staged]
        masters = dimensions.training.master_weights
        if masters is False or (masters is None and software.eager_memory):
            narrow = (layouts.devices == 1.0) | (_constant(layouts, stage) >= 3.0) | (masters is False)
            ways.append(replace(staged, narrow_states=np.where(narrow, 1.0, 0.0)))
        for way in ways:
            needed = needed_of_first_stage(dimensions, way, device, software)
            gathered = needed.terms["gathered"]
            now = needed.terms["activations"] + needed.terms["logits"] + gathered
            found.append((added(needed.terms.values()) - np.maximum(now, needed.later), gathered, needed.later))
    return found


def _allowed(constraints: PlanConstraints) -> list[int]:
    """Allowed ZeRO stages; all, where none is: such prefixes have no completions."""
    return [stage for stage in ZERO_STAGES if constraints.allows("zero_stages", stage)] or list(ZERO_STAGES)


def _stages(constraints: PlanConstraints) -> list[int]:
    """ZeRO stages of which the time differs: 1 and 2 exchange the same."""
    allowed = _allowed(constraints)
    return [stage for stage in allowed if not (stage == 2 and 1 in allowed)]


def _constant(layouts: Layout, value: float) -> Floats:
    return np.broadcast_to(np.float64(value), len(layouts))


def _split(dimensions: Dimensions, layouts: Layout, constraints: PlanConstraints) -> Floats:
    """Sequence parallelism where it is possible."""
    possible = (layouts.tensor > 1.0) & (np.mod(dimensions.sequence, layouts.tensor) == 0.0)
    return np.where(possible & constraints.allows("sequence_parallel", 1), 1.0, 0.0)


def _whole(layouts: Layout) -> NDArray[np.bool_]:
    """Layouts that may be interleaved."""
    found: NDArray[np.bool_] = np.mod(layouts.micro_batches, layouts.pipeline) == 0.0
    return found & (layouts.pipeline > 1.0)


def _most_interleaved(dimensions: Dimensions, layouts: Layout, constraints: PlanConstraints) -> Floats:
    """The largest interleaving of each layout."""
    found = np.ones(len(layouts))
    whole = _whole(layouts)
    for stages in np.unique(layouts.pipeline[whole]).tolist():
        chunks = divisors(int(dimensions.layers // stages)) if dimensions.layers % stages == 0 else [1]
        allowed = [v for v in chunks if constraints.allows("interleave", v)]
        found[whole & (layouts.pipeline == stages)] = max(allowed, default=1)
    return found


def _least_interleaved(constraints: PlanConstraints, layouts: Layout) -> Floats:
    """Chunks a stage with the fewest micro-batches in flight: one, else the most."""
    if constraints.allows("interleave", 1):
        return _constant(layouts, 1.0)
    return np.where(_whole(layouts), float(max(constraints.interleave or (1,))), 1.0)
