"""What a transformer computes, holds and sends: counts from its dimensions alone.

Sources: D. Narayanan et al., "Efficient large-scale language model training on GPU clusters using Megatron-LM", SC 2021
(operations of a layer, padded vocabulary); V. Korthikanti et al., "Reducing activation recomputation in large
transformer models", MLSys 2023 (what each operator keeps); J. Ainslie et al., "GQA", EMNLP 2023; N. Shazeer, "GLU
variants improve transformer", 2020.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.plugin import Floats, Transformer

__all__ = ["Dimensions"]

VOCABULARY_MULTIPLE: Final = 128
"""Megatron pads the vocabulary to a multiple of this, times the tensor parallelism, so that shards stay aligned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimensions:
    """A transformer's dimensions, as floats.

    Attributes
    ----------
    key_value_heads : float
        Heads of keys and values; fewer than ``heads`` where queries share them.
    feed_forward : float
        Inner size of the feed-forward layer; of one expert where there are experts.
    gated : bool
        The feed-forward layer has a third matrix (SwiGLU).
    experts, experts_per_token : float
        0 and 1 for a dense feed-forward layer.
    """

    layers: float
    hidden: float
    heads: float
    key_value_heads: float
    sequence: float
    vocabulary: float
    feed_forward: float
    gated: bool = False
    experts: float = 0.0
    experts_per_token: float = 1.0

    @staticmethod
    def of(transformer: Transformer) -> Dimensions:
        """From a workload's facts; sizes that it leaves at 0 are the usual ones."""
        return Dimensions(
            layers=float(transformer.layers),
            hidden=float(transformer.hidden_size),
            heads=float(transformer.attention_heads),
            key_value_heads=float(transformer.key_value_heads or transformer.attention_heads),
            sequence=float(transformer.sequence_length),
            vocabulary=float(transformer.vocabulary_size),
            feed_forward=float(transformer.feed_forward_size or 4 * transformer.hidden_size),
            experts=float(transformer.experts),
            experts_per_token=float(max(transformer.experts_per_token, 1) if transformer.experts else 1),
        )

    @property
    def head_size(self) -> float:
        """Size of one attention head."""
        return self.hidden / self.heads

    @property
    def query_key_value(self) -> float:
        """Columns of the projection to queries, keys and values."""
        return self.hidden * (1.0 + 2.0 * self.key_value_heads / self.heads)

    @property
    def matrices(self) -> float:
        """Matrices of one feed-forward layer."""
        return 3.0 if self.gated else 2.0

    @property
    def attention_parameters(self) -> float:
        """Matrix elements of a layer's attention."""
        return self.hidden * (self.query_key_value + self.hidden)

    @property
    def feed_forward_parameters(self) -> float:
        """Matrix elements of one feed-forward layer, or of one expert."""
        return self.matrices * self.hidden * self.feed_forward

    @property
    def replicated_parameters(self) -> float:
        """What every tensor-parallel rank of a layer holds: two norms, the output biases, the router."""
        return 6.0 * self.hidden + self.hidden * self.experts

    def padded_vocabulary(self, tensor: Floats) -> Floats:
        """Vocabulary as stored: the shards of all tensor-parallel ranks are alike and aligned."""
        multiple = VOCABULARY_MULTIPLE * tensor
        return np.ceil(self.vocabulary / multiple) * multiple

    def layer_parameters(self, tensor: Floats, expert: Floats) -> tuple[Floats, Floats]:
        """Matrix elements of one layer on one device: those that all data-parallel ranks share, and experts'."""
        if self.experts:
            held = self.feed_forward_parameters * self.experts / (expert * tensor)
            return self.attention_parameters / tensor, held
        return (self.attention_parameters + self.feed_forward_parameters) / tensor, np.zeros_like(tensor)

    def parameters(self) -> float:
        """All parameters of the model; input and output embedding are one."""
        layer = self.attention_parameters + self.feed_forward_parameters * max(self.experts, 1.0)
        return self.layers * (layer + self.replicated_parameters) + self.hidden * (self.vocabulary + self.sequence)

    def forward_flops(self) -> float:
        """Of one sample, with full attention scores: 24 s h^2 + 4 s^2 h a layer where f = 4 h, and 2 s h V."""
        tokens = self.sequence
        active = self.attention_parameters + self.feed_forward_parameters * self.experts_per_token
        scores = 4.0 * tokens * tokens * self.hidden
        return self.layers * (2.0 * tokens * active + scores) + 2.0 * tokens * self.hidden * self.vocabulary
