"""Traffic between the machines of one replica: bytes that a part of a layer reads of each part of the previous layer.

An output is sent once to each machine that reads it. The parts of a layer are equal shares of its outputs, which read
the whole input, or equal strips of its area, which read their strip of the input and a halo beyond each edge.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from nodewise.plugin import Floats, Ints, freeze
from nodewise_partitioning.layered.costs import LayerCosts

__all__ = ["Exchange", "exchange_of", "exchange_seconds"]

OVERLAP: Final = 1e-12
"""Share of an input below which two strips only touch: their edges coincide but for rounding."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Exchange:
    """Traffic of one layer's forward pass per sample. The backward pass sends the same bytes in reverse.

    Attributes
    ----------
    received_bytes, received_messages : (P,) received by each part of the layer.
    sent_bytes, sent_messages : (P',) sent by each part of the previous layer.
    among_bytes, among_messages : (P,) exchanged by each part of a recurrent layer with the other parts.
    """

    received_bytes: Floats
    received_messages: Floats
    sent_bytes: Floats
    sent_messages: Floats
    among_bytes: float
    among_messages: float

    def seconds(self, message_s: float, bytes_per_s: float) -> float:
        """Return the seconds until the last part has its input. The messages of a machine follow each other."""
        received = self.received_messages * message_s + self.received_bytes / bytes_per_s
        send_s = self.sent_messages * message_s + self.sent_bytes / bytes_per_s
        among = self.among_messages * message_s + self.among_bytes / bytes_per_s
        return float(max(received.max(), send_s.max()) + among)


def exchange_of(costs: LayerCosts, layer: int, before: int, parts: int, *, together: bool) -> Exchange:
    """Return the traffic into a layer of ``parts`` parts from a layer of ``before`` parts.

    ``together``: part i of both layers is on one machine, so these bytes do not cross the network; otherwise no machine
    has parts of both. The first layer reads local samples.
    """
    reads = shares_read(
        before,
        parts,
        strips_before=bool(costs.strips[layer - 1]) if layer else False,
        strips=bool(costs.strips[layer]),
        halo=float(costs.halo_bytes[layer] / costs.input_bytes[layer]) if costs.input_bytes[layer] > 0.0 else 0.0,
    )
    bytes_sent = reads * costs.input_bytes[layer]
    if together:
        bytes_sent = bytes_sent.copy()
        np.fill_diagonal(bytes_sent, 0.0)
    crosses = bytes_sent > 0.0
    among = parts > 1 and bool(costs.recurrent[layer])
    return Exchange(
        received_bytes=freeze(bytes_sent.sum(axis=0)),
        received_messages=freeze(crosses.sum(axis=0).astype(np.float64)),
        sent_bytes=freeze(bytes_sent.sum(axis=1)),
        sent_messages=freeze(crosses.sum(axis=1).astype(np.float64)),
        among_bytes=float(costs.activation_bytes[layer]) * (parts - 1) / parts if among else 0.0,
        among_messages=float(parts - 1) if among else 0.0,
    )


def exchange_seconds(
    costs: LayerCosts, layer: int, choices: Ints, *, together: bool, message_s: float, bytes_per_s: float
) -> Floats:
    """Return (K, K) ``Exchange.seconds`` for each of K numbers of parts of the previous layer and of this layer."""
    if costs.strips[layer]:
        seconds = np.stack(
            [
                _strips_seconds(
                    costs, layer, before, choices, together=together, message_s=message_s, bytes_per_s=bytes_per_s
                )
                for before in choices.tolist()
            ]
        )
    else:
        before, after = choices[:, np.newaxis], choices[np.newaxis, :]
        # Every part reads of every part of the layer before alike; of the one on its own machine nothing is sent.
        received = before - (together & (after <= before))
        send_counts = after - (together & (before <= after))
        each_s = message_s + costs.input_bytes[layer] / before / bytes_per_s
        seconds = np.maximum(received, send_counts) * each_s * (costs.input_bytes[layer] > 0.0)
    if costs.recurrent[layer]:
        seconds = seconds + (choices - 1) * (message_s + costs.activation_bytes[layer] / choices / bytes_per_s)
    return np.asarray(seconds)


def _strips_seconds(
    costs: LayerCosts, layer: int, before: int, choices: Ints, *, together: bool, message_s: float, bytes_per_s: float
) -> Floats:
    """Return (K,) seconds of :func:`exchange_of` for so many strips each, computed at once by padding."""
    counts = choices[:, np.newaxis]
    part = np.arange(int(choices.max()))[np.newaxis, :]
    source = np.arange(before)[:, np.newaxis, np.newaxis]
    whole = float(costs.input_bytes[layer])
    halo = float(costs.halo_bytes[layer]) / whole if whole > 0.0 else 0.0
    first = np.maximum(part / counts - halo, 0.0)
    last = np.minimum((part + 1) / counts + halo, 1.0)
    if layer and costs.strips[layer - 1]:
        reads = np.minimum((source + 1) / before, last) - np.maximum(source / before, first)
        reads = np.where(reads > OVERLAP, reads, 0.0)
    else:
        reads = np.broadcast_to((last - first) / before, (before, *first.shape))
    crosses = (reads * whole > 0.0) & (part < counts)
    if together:
        crosses = crosses & (source != part)
    seconds = np.where(crosses, message_s + reads * whole / bytes_per_s, 0.0)
    busiest: Floats = np.maximum(seconds.sum(axis=0).max(axis=1), seconds.sum(axis=2).max(axis=0))
    return busiest


@lru_cache(maxsize=4096)
def shares_read(before: int, parts: int, *, strips_before: bool, strips: bool, halo: float) -> Floats:
    """Return (P', P): the share of the layer's whole input that part q reads of part r of the previous layer.

    ``halo``: the part that a strip reads beyond an edge, as a share of the whole input.
    """
    if not strips:
        return freeze(np.full((before, parts), 1.0 / before))
    first = np.maximum(np.arange(parts) / parts - halo, 0.0)
    last = np.minimum(np.arange(1, parts + 1) / parts + halo, 1.0)
    if not strips_before:
        # Every part of the layer before holds some of each place.
        return freeze(np.tile((last - first) / before, (before, 1)))
    low, high = np.arange(before)[:, np.newaxis] / before, np.arange(1, before + 1)[:, np.newaxis] / before
    overlap = np.minimum(high, last) - np.maximum(low, first)
    # Edges that coincide must not overlap by rounding.
    return freeze(np.where(overlap > OVERLAP, overlap, 0.0))
