"""Into how many parts to split each layer: the shapes that give one sample the shortest way through a replica.

The latency of a sample is a sum over layers whose terms depend on a layer's parts and on those of the layer before
alone, so dynamic programming over layers is exact, in L K^2 steps for K numbers of parts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nodewise_partitioning.layered.costs import LayerCosts
from nodewise_partitioning.layered.traffic import exchange_of

__all__ = ["fastest_shapes", "layer_latency_s"]


def layer_latency_s(
    costs: LayerCosts,
    layer: int,
    before: int,
    parts: int,
    *,
    thread_flops_per_s: float,
    message_s: float,
    bytes_per_s: float,
    together: bool = True,
) -> float:
    """What a layer of ``parts`` parts adds to a sample's latency after one of ``before`` parts."""
    seconds = exchange_of(costs, layer, before, parts, together=together).seconds(message_s, bytes_per_s)
    return float(costs.flops[layer]) / (thread_flops_per_s * parts) + 2.0 * seconds


def fastest_shapes(
    costs: LayerCosts,
    stage: Sequence[int],
    choices: Sequence[int],
    *,
    thread_flops_per_s: float,
    message_s: float,
    bytes_per_s: float,
) -> tuple[int, ...]:
    """The numbers of parts of least latency, one per layer; of equal ones those that split the later layers less.

    Parameters
    ----------
    stage : (L,) stage of the pipeline of each layer.
    choices : numbers of parts that any layer may have, ascending.
    """

    def latency_s(layer: int, before: int, parts: int, *, together: bool) -> float:
        return layer_latency_s(
            costs,
            layer,
            before,
            parts,
            thread_flops_per_s=thread_flops_per_s,
            message_s=message_s,
            bytes_per_s=bytes_per_s,
            together=together,
        )

    best = np.array([latency_s(0, 1, parts, together=True) for parts in choices])
    came_from: list[list[int]] = []
    for layer in range(1, len(costs)):
        together = stage[layer] == stage[layer - 1]
        step = np.array(
            [[latency_s(layer, before, parts, together=together) for parts in choices] for before in choices]
        )
        total = best[:, np.newaxis] + step
        came_from.append(total.argmin(axis=0).tolist())
        best = total.min(axis=0)
    chosen = [int(best.argmin())]
    for predecessors in reversed(came_from):
        chosen.append(predecessors[chosen[-1]])
    return tuple(choices[index] for index in reversed(chosen))
