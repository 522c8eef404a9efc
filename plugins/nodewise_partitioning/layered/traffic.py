"""Bytes between the machines of one replica: which part of a layer reads what of which part of the layer before.

An output is sent once to each machine that reads it. Parts of a layer are equal shares of its outputs, which need all
of the input, or equal strips of its area, which need their strip of the input and a halo beyond each edge.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from nodewise.plugin import Floats, freeze
from nodewise_partitioning.layered.costs import LayerCosts

__all__ = ["Exchange", "exchange_of", "exchange_seconds"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Exchange:
    """Traffic of one layer's forward pass per sample; the errors of the backward pass go the same ways back.

    Attributes
    ----------
    received_bytes, received_messages : (P,) of each part of the layer.
    sent_bytes, sent_messages : (P',) of each part of the layer before.
    among_bytes, among_messages : (P,) that each part of a recurrent layer sends to the others, and receives from them.
    """

    received_bytes: Floats
    received_messages: Floats
    sent_bytes: Floats
    sent_messages: Floats
    among_bytes: float
    among_messages: float

    def seconds(self, message_s: float, bytes_per_s: float) -> float:
        """Until the last part has what it reads: each machine's network is busy with one message after the other."""
        received = self.received_messages * message_s + self.received_bytes / bytes_per_s
        sent = self.sent_messages * message_s + self.sent_bytes / bytes_per_s
        among = self.among_messages * message_s + self.among_bytes / bytes_per_s
        return float(max(received.max(), sent.max()) + among)


def exchange_of(costs: LayerCosts, layer: int, before: int, parts: int, *, together: bool) -> Exchange:
    """Traffic into a layer of ``parts`` parts from one of ``before`` parts.

    ``together``: part i of both is on one machine, so that its bytes cross no network; else no machine has both. The
    first layer reads samples, which are there already.
    """
    reads = shares_read(
        before,
        parts,
        strips_before=bool(costs.strips[layer - 1]) if layer else False,
        strips=bool(costs.strips[layer]),
        halo=float(costs.halo_bytes[layer] / costs.input_bytes[layer]) if costs.input_bytes[layer] > 0.0 else 0.0,
    )
    sent = reads * costs.input_bytes[layer]
    if together:
        sent = sent.copy()
        np.fill_diagonal(sent, 0.0)
    crosses = sent > 0.0
    among = parts > 1 and bool(costs.recurrent[layer])
    return Exchange(
        received_bytes=freeze(sent.sum(axis=0)),
        received_messages=freeze(crosses.sum(axis=0).astype(np.float64)),
        sent_bytes=freeze(sent.sum(axis=1)),
        sent_messages=freeze(crosses.sum(axis=1).astype(np.float64)),
        among_bytes=float(costs.activation_bytes[layer]) * (parts - 1) / parts if among else 0.0,
        among_messages=float(parts - 1) if among else 0.0,
    )


def exchange_seconds(
    costs: LayerCosts, layer: int, most: int, *, together: bool, message_s: float, bytes_per_s: float
) -> Floats:
    """(most, most) ``Exchange.seconds`` for each number of parts of the layer before, and of the layer."""
    parts = np.arange(1, most + 1)
    if costs.strips[layer]:
        return np.array(
            [
                [
                    exchange_of(costs, layer, before, count, together=together).seconds(message_s, bytes_per_s)
                    for count in parts.tolist()
                ]
                for before in parts.tolist()
            ]
        )
    before, after = parts[:, np.newaxis], parts[np.newaxis, :]
    # Every part reads of every part of the layer before alike; of the one on its own machine nothing is sent.
    received = before - (together & (after <= before))
    sent = after - (together & (before <= after))
    each_s = message_s + costs.input_bytes[layer] / before / bytes_per_s
    seconds = np.maximum(received, sent) * each_s * (costs.input_bytes[layer] > 0.0)
    if costs.recurrent[layer]:
        seconds = seconds + (after - 1) * (message_s + costs.activation_bytes[layer] / after / bytes_per_s)
    return np.asarray(seconds)


@lru_cache(maxsize=4096)
def shares_read(before: int, parts: int, *, strips_before: bool, strips: bool, halo: float) -> Floats:
    """(P', P) share of the layer's whole input that part q reads of part r of the layer before.

    ``halo``: what a strip reads beyond an edge, as a share of the whole input.
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
    return freeze(np.where(overlap > 1e-12, overlap, 0.0))
