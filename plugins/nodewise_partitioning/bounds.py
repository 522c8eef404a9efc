"""What no completion of a prefix is below: the same equations, each term at the completion where it is least.

The time of a layer grows from no over selective to full recomputation, and shrinks with sequence parallelism; the
schedule waits least with most interleaving. The exchange of replicas is taken at every ZeRO stage that is allowed, and
at the least of them; gradients hide behind the longest backward pass that is allowed. With stage 3 a micro-batch takes
the longer of its computation and its gathers, so that the sum grows with the computation. Memory is least with the
least activations and the least states, which need not be of one completion.

All equations are chains of operations that grow with these terms, but for powers: a margin of rounding is taken off.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Floats, PlanConstraints
from nodewise_partitioning.block import block_of
from nodewise_partitioning.data_parallel import data_parallel_of
from nodewise_partitioning.hardware import Device
from nodewise_partitioning.layout import Layout
from nodewise_partitioning.memory import memory_of
from nodewise_partitioning.pipeline import ends_of, pipeline_of
from nodewise_partitioning.software import Software
from nodewise_partitioning.space import RECOMPUTATIONS, ZERO_STAGES, divisors
from nodewise_partitioning.workload import Dimensions

__all__ = ["least_memory_bytes", "least_time_s"]

MARGIN: Final = 1.0 - 1e-12
"""Rounding of some hundred operations."""


def least_time_s(
    dimensions: Dimensions, prefixes: Layout, device: Device, software: Software, constraints: PlanConstraints
) -> Floats:
    """Seconds of a step that no completion of each prefix is below."""
    quickest = replace(
        prefixes,
        recomputation=_constant(prefixes, min(_allowed(constraints, "recomputations", RECOMPUTATIONS))),
        sequence_parallel=_split(dimensions, prefixes, constraints),
        interleave=_most_interleaved(dimensions, prefixes, constraints),
    )
    block = block_of(dimensions, quickest, device, software)
    pipeline = pipeline_of(
        dimensions, quickest, block, ends_of(dimensions, quickest, device, software), device, software
    )
    hiding = block
    if software.overlaps_gradients:
        slowest = replace(
            prefixes,
            recomputation=_constant(prefixes, max(_allowed(constraints, "recomputations", RECOMPUTATIONS))),
            sequence_parallel=_constant(prefixes, 0.0),
        )
        hiding = block_of(dimensions, slowest, device, software)
    least = np.full(len(prefixes), np.inf)
    alone = prefixes.data * prefixes.context == 1.0
    for stage in _stages(constraints):
        staged = replace(quickest, zero_stage=_constant(prefixes, stage))
        replicas = data_parallel_of(dimensions, staged, hiding, pipeline, device, software)
        possible = alone | (prefixes.pipeline == 1.0) | (stage <= 1)
        least = np.where(possible, np.minimum(least, replicas.exchange_s + replicas.optimizer_s), least)
    slots = prefixes.micro_batches * pipeline.slowest_layers
    busy = slots * block.layer_s + prefixes.micro_batches * pipeline.slowest_ends_s
    step_s = busy + pipeline.bubble_s + pipeline.transfer_s + least + software.fixed_s
    return np.where(np.isfinite(step_s), step_s, busy) * MARGIN


def least_memory_bytes(
    dimensions: Dimensions, prefixes: Layout, device: Device, software: Software, constraints: PlanConstraints
) -> Floats:
    """Bytes on each device that no completion of each prefix is below."""
    split = _split(dimensions, prefixes, constraints)
    plain = replace(prefixes, sequence_parallel=split, interleave=_least_interleaved(constraints, prefixes))
    activations = np.full(len(prefixes), np.inf)
    states = np.full(len(prefixes), np.inf)
    logits = np.zeros(len(prefixes))
    for recomputation in _allowed(constraints, "recomputations", RECOMPUTATIONS):
        held = memory_of(dimensions, replace(plain, recomputation=_constant(plain, recomputation)), device, software)
        activations, logits = np.minimum(activations, held.activations), held.logits
    for stage in _allowed(constraints, "zero_stages", ZERO_STAGES):
        held = memory_of(dimensions, replace(plain, zero_stage=_constant(plain, stage)), device, software)
        states = np.minimum(states, held.weights + held.gradients + held.optimizer + held.buffers)
    return (activations + states + logits) * MARGIN


def _allowed(constraints: PlanConstraints, name: str, values: tuple[int, ...]) -> list[int]:
    """Allowed values; all, where none is: such prefixes have no completions."""
    return [value for value in values if constraints.allows(name, value)] or list(values)


def _stages(constraints: PlanConstraints) -> list[int]:
    """ZeRO stages of which the time differs: 1 and 2 exchange the same."""
    allowed = _allowed(constraints, "zero_stages", ZERO_STAGES)
    return [stage for stage in allowed if not (stage == 2 and 1 in allowed)]


def _constant(prefixes: Layout, value: float) -> Floats:
    return np.broadcast_to(np.float64(value), len(prefixes))


def _split(dimensions: Dimensions, prefixes: Layout, constraints: PlanConstraints) -> Floats:
    """Sequence parallelism where it is possible."""
    possible = (prefixes.tensor > 1.0) & (np.mod(dimensions.sequence, prefixes.tensor) == 0.0)
    return (possible & constraints.allows("sequence_parallel", 1)).astype(np.float64)


def _whole(prefixes: Layout) -> NDArray[np.bool_]:
    """Prefixes that may be interleaved."""
    return (prefixes.pipeline > 1.0) & (np.mod(prefixes.micro_batches, prefixes.pipeline) == 0.0)


def _most_interleaved(dimensions: Dimensions, prefixes: Layout, constraints: PlanConstraints) -> Floats:
    """The largest interleaving of each prefix."""
    found = np.ones(len(prefixes))
    whole = _whole(prefixes)
    for stages in np.unique(prefixes.pipeline[whole]).tolist():
        allowed = [v for v in divisors(int(dimensions.layers // stages)) if constraints.allows("interleave", v)]
        found[whole & (prefixes.pipeline == stages)] = max(allowed, default=1)
    return found


def _least_interleaved(constraints: PlanConstraints, prefixes: Layout) -> Floats:
    """Chunks a stage with the fewest micro-batches in flight: one, else the most."""
    if constraints.allows("interleave", 1):
        return _constant(prefixes, 1.0)
    return np.where(_whole(prefixes), float(max(constraints.interleave or (1,))), 1.0)
