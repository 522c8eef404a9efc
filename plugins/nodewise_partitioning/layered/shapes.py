"""Into how many parts to split each layer: the shapes that give one sample the shortest way through a replica.

The latency of a sample is a sum over layers whose terms depend on a layer's parts and on those of the layer before
alone, so dynamic programming over layers is exact, in L K^2 steps for K numbers of parts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nodewise.plugin import Floats
from nodewise_partitioning.layered.costs import LayerCosts
from nodewise_partitioning.layered.traffic import exchange_seconds

__all__ = ["Latencies", "fastest_shapes"]


class Latencies:
    """What each layer adds to a sample's latency, by its parts and those of the layer before; each computed once.

    Parameters
    ----------
    most : int
        Most parts of a layer.
    thread_flops_per_s, message_s, bytes_per_s : float
        One thread; seconds per message besides its bytes; rate of a machine's link per direction.
    """

    def __init__(
        self, costs: LayerCosts, most: int, *, thread_flops_per_s: float, message_s: float, bytes_per_s: float
    ) -> None:
        self.costs = costs
        self.most = most
        self._thread_flops_per_s = thread_flops_per_s
        self._message_s, self._bytes_per_s = message_s, bytes_per_s
        self._known: dict[tuple[int, bool], Floats] = {}

    def of(self, layer: int, *, together: bool) -> Floats:
        """(most, most) seconds, by parts of the layer before and of the layer, less one each.

        ``together``: part i of both is on one machine.
        """
        known = self._known.get((layer, together))
        if known is None:
            sends_s = exchange_seconds(
                self.costs,
                layer,
                self.most,
                together=together,
                message_s=self._message_s,
                bytes_per_s=self._bytes_per_s,
            )
            computes_s = self.costs.flops[layer] / (self._thread_flops_per_s * np.arange(1, self.most + 1))
            # Errors go the same ways back.
            known = self._known[layer, together] = computes_s + 2.0 * sends_s
        return known


def fastest_shapes(latencies: Latencies, stage: Sequence[int], choices: Sequence[int]) -> tuple[int, ...]:
    """The numbers of parts of least latency, one per layer; of equal ones those that split the later layers less.

    Parameters
    ----------
    stage : (L,) stage of the pipeline of each layer.
    choices : numbers of parts that any layer may have, ascending.
    """
    chosen_from = np.asarray(choices) - 1
    best = latencies.of(0, together=True)[0, chosen_from]
    came_from: list[list[int]] = []
    for layer in range(1, len(latencies.costs)):
        step = latencies.of(layer, together=stage[layer] == stage[layer - 1])[np.ix_(chosen_from, chosen_from)]
        total = best[:, np.newaxis] + step
        came_from.append(total.argmin(axis=0).tolist())
        best = total.min(axis=0)
    chosen = [int(best.argmin())]
    for predecessors in reversed(came_from):
        chosen.append(predecessors[chosen[-1]])
    return tuple(choices[index] for index in reversed(chosen))
