"""The numbers of parts per layer that give one sample the least latency through a replica.

The latency of a sample is a sum over layers. Each term depends only on the parts of a layer and of the previous layer,
so dynamic programming over layers is exact. It takes L K^2 steps for K numbers of parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from nodewise.plugin import Floats, as_ints
from nodewise_partitioning.layered.costs import LayerCosts
from nodewise_partitioning.layered.traffic import exchange_seconds

__all__ = ["MOST_CHOICES", "Latencies", "choices_of", "fastest_shapes"]

MOST_CHOICES: Final = 32
"""Numbers of parts that are compared exactly: strips of layers with halos take K^4 steps."""


class Latencies:
    """Latency that each layer adds, by its parts and those of the previous layer. Each value is computed once.

    Parameters
    ----------
    choices : sequence of int
        Possible numbers of parts of a layer, ascending from 1.
    thread_flops_per_s, message_s, bytes_per_s : float
        Rate of one thread; latency of a message; rate of a machine's link per direction.
    """

    def __init__(
        self,
        costs: LayerCosts,
        choices: Sequence[int],
        *,
        thread_flops_per_s: float,
        message_s: float,
        bytes_per_s: float,
    ) -> None:
        self.costs = costs
        self.choices = as_ints(np.asarray(choices))
        self._thread_flops_per_s = thread_flops_per_s
        self.message_s, self.bytes_per_s = message_s, bytes_per_s
        self._known: dict[tuple[int, bool], Floats] = {}

    def of(self, layer: int, *, together: bool) -> Floats:
        """Return (K, K) seconds, by the choices of parts of the previous layer and of this layer.

        ``together``: part i of both is on one machine.
        """
        latency = self._known.get((layer, together))
        if latency is None:
            sends_s = exchange_seconds(
                self.costs,
                layer,
                self.choices,
                together=together,
                message_s=self.message_s,
                bytes_per_s=self.bytes_per_s,
            )
            computes_s = self.costs.flops[layer] / (self._thread_flops_per_s * self.choices)
            # Errors go the same ways back.
            latency = self._known[layer, together] = computes_s + 2.0 * sends_s
        return latency


def choices_of(width: int) -> list[int]:
    """Return the possible numbers of parts on so many machines: all, or a geometric sequence if there are many."""
    if width <= MOST_CHOICES:
        return list(range(1, width + 1))
    return sorted({round(each) for each in np.geomspace(1.0, width, MOST_CHOICES).tolist()})


def fastest_shapes(latencies: Latencies, stage: Sequence[int], most: int) -> tuple[int, ...]:
    """Return the numbers of parts of least latency, one per layer. Ties go to those that split later layers less.

    Parameters
    ----------
    stage : (L,) pipeline stage of each layer.
    most : largest number of parts of a layer, one of the choices of ``latencies``.
    """
    choices = latencies.choices[latencies.choices <= most].tolist()
    few = slice(len(choices))
    best = latencies.of(0, together=True)[0, few]
    came_from: list[list[int]] = []
    for layer in range(1, len(latencies.costs)):
        step = latencies.of(layer, together=stage[layer] == stage[layer - 1])[few, few]
        total = best[:, np.newaxis] + step
        came_from.append(total.argmin(axis=0).tolist())
        best = total.min(axis=0)
    shapes = [int(best.argmin())]
    for predecessors in reversed(came_from):
        shapes.append(predecessors[shapes[-1]])
    return tuple(choices[index] for index in reversed(shapes))
