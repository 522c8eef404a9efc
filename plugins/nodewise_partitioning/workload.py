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
from nodewise_partitioning.training import ALL_TRAINED, Training

__all__ = ["Dimensions"]

VOCABULARY_MULTIPLE: Final = 128
"""Megatron pads the vocabulary to a multiple of this, times the tensor parallelism, so that shards stay aligned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimensions:
    """A transformer's dimensions, as floats.

    Layers with experts and dense ones may alternate or stand in blocks, which no fact tells: what a layer costs and
    holds is the average of all of them.

    Attributes
    ----------
    key_value_heads : float
        Heads of keys and values; fewer than ``heads`` where queries share them.
    feed_forward : float
        Inner size of a dense feed-forward layer.
    stated_head_size : float
        0 = hidden size / heads.
    gated : bool
        The feed-forward layer has a third matrix (SwiGLU), and positions are taken as rotary: they hold no parameters.
    untied : bool
        The output layer has a matrix of its own.
    experts, experts_per_token : float
        0 and 1 for a dense feed-forward layer.
    expert_feed_forward, shared_feed_forward : float
        Inner size of one expert, 0 = ``feed_forward``; of the experts that every token visits, together.
    expert_layers : float
        Layers with experts; 0 = all, where there are experts.
    training : Training
        What of it is trained, and how.
    """

    layers: float
    hidden: float
    heads: float
    key_value_heads: float
    sequence: float
    vocabulary: float
    feed_forward: float
    stated_head_size: float = 0.0
    gated: bool = False
    untied: bool = False
    experts: float = 0.0
    experts_per_token: float = 1.0
    expert_feed_forward: float = 0.0
    shared_feed_forward: float = 0.0
    expert_layers: float = 0.0
    training: Training = ALL_TRAINED

    @staticmethod
    def of(transformer: Transformer, training: Training = ALL_TRAINED) -> Dimensions:
        """From a workload's facts; sizes that it leaves at 0 are the usual ones."""
        return Dimensions(
            layers=float(transformer.layers),
            hidden=float(transformer.hidden_size),
            heads=float(transformer.attention_heads),
            key_value_heads=float(transformer.key_value_heads or transformer.attention_heads),
            sequence=float(transformer.sequence_length),
            vocabulary=float(transformer.vocabulary_size),
            feed_forward=float(transformer.feed_forward_size or 4 * transformer.hidden_size),
            stated_head_size=float(transformer.head_size),
            gated=transformer.gated_feed_forward,
            untied=transformer.untied_embeddings,
            experts=float(transformer.experts),
            experts_per_token=float(max(transformer.experts_per_token, 1) if transformer.experts else 1),
            expert_feed_forward=float(transformer.expert_feed_forward_size),
            shared_feed_forward=float(transformer.shared_expert_feed_forward_size),
            expert_layers=float(transformer.expert_layers),
            training=training,
        )

    @property
    def head_size(self) -> float:
        """Size of one attention head."""
        return self.stated_head_size or self.hidden / self.heads

    @property
    def attention_size(self) -> float:
        """All heads together: what attention puts out for a token."""
        return self.heads * self.head_size

    @property
    def query_key_value(self) -> float:
        """Columns of the projection to queries, keys and values."""
        return self.attention_size * (1.0 + 2.0 * self.key_value_heads / self.heads)

    @property
    def matrices(self) -> float:
        """Matrices of one feed-forward layer."""
        return 3.0 if self.gated else 2.0

    @property
    def expert_share(self) -> float:
        """Part of the layers that has experts."""
        if not self.experts:
            return 0.0
        return (self.expert_layers or self.layers) / self.layers

    @property
    def routed(self) -> float:
        """Experts that a token is sent to, in the average layer."""
        return self.expert_share * self.experts_per_token

    @property
    def visited(self) -> float:
        """Inner size of all feed-forward layers that every token visits, in the average layer."""
        return (1.0 - self.expert_share) * self.feed_forward + self.expert_share * self.shared_feed_forward

    @property
    def expert_size(self) -> float:
        """Inner size of one expert."""
        return self.expert_feed_forward or self.feed_forward

    @property
    def active(self) -> float:
        """Inner size of all that a token goes through, in the average layer."""
        return self.visited + self.routed * self.expert_size

    @property
    def attention_parameters(self) -> float:
        """Matrix elements of a layer's attention."""
        return self.hidden * (self.query_key_value + self.attention_size)

    @property
    def replicated_parameters(self) -> float:
        """What every tensor-parallel rank of a layer holds: two norms, the output biases, the router."""
        return 6.0 * self.hidden + self.expert_share * self.hidden * self.experts

    @property
    def positions(self) -> float:
        """Learned positions."""
        return 0.0 if self.gated else self.sequence

    def feed_forward_parameters(self, inner: float) -> float:
        """Matrix elements of feed-forward layers of an inner size."""
        return self.matrices * self.hidden * inner

    def products(self, held_experts: Floats) -> Floats:
        """Matrix products of the average layer but those of attention itself; every expert has its own."""
        share = self.expert_share
        always = 1.0 - share + (share if self.shared_feed_forward else 0.0)
        return 2.0 + self.matrices * (always + share * held_experts)

    def padded_vocabulary(self, tensor: Floats) -> Floats:
        """Vocabulary as stored: the shards of all tensor-parallel ranks are alike and aligned."""
        multiple = VOCABULARY_MULTIPLE * tensor
        return np.ceil(self.vocabulary / multiple) * multiple

    def embedding_rows(self, tensor: Floats, pipeline: Floats) -> Floats:
        """Rows of h that the fullest stage holds outside of its layers.

        The first stage has the embedding, the last the output layer: a copy of it, or its own. One stage has both.
        """
        words = self.padded_vocabulary(tensor) / tensor
        if self.untied:
            words = np.where(pipeline == 1.0, 2.0, 1.0) * words
        return words + self.positions

    def layer_parameters(self, tensor: Floats, expert: Floats) -> tuple[Floats, Floats]:
        """Matrix elements of one layer on one device: those that all data-parallel ranks share, and experts'."""
        shared = (self.attention_parameters + self.feed_forward_parameters(self.visited)) / tensor
        one = self.expert_share * self.feed_forward_parameters(self.expert_size)
        return shared, one * self.experts / (expert * tensor)

    def parameters(self) -> float:
        """All parameters of the model."""
        inner = self.visited + self.expert_share * self.experts * self.expert_size
        layer = self.attention_parameters + self.feed_forward_parameters(inner) + self.replicated_parameters
        embeddings = (2.0 if self.untied else 1.0) * self.vocabulary + self.positions
        return self.layers * layer + self.hidden * embeddings

    def forward_flops(self) -> float:
        """Of one sample, with full attention scores: 24 s h^2 + 4 s^2 h a layer where f = 4 h, and 2 s h V."""
        tokens = self.sequence
        active = self.attention_parameters + self.feed_forward_parameters(self.active)
        scores = 4.0 * tokens * tokens * self.attention_size
        return self.layers * (2.0 * tokens * active + scores) + 2.0 * tokens * self.hidden * self.vocabulary
