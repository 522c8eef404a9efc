"""Work, memory and traffic of a transformer: counts from its dimensions only.

Sources: D. Narayanan et al., "Efficient large-scale language model training on GPU clusters using Megatron-LM", SC 2021
(operations of a layer, padded vocabulary); V. Korthikanti et al., "Reducing activation recomputation in large
transformer models", MLSys 2023 (what each operator keeps); J. Ainslie et al., "GQA", EMNLP 2023; N. Shazeer, "GLU
variants improve transformer", 2020; DeepSeek-AI, "DeepSeek-V2", 2024, section 2.1 (multi-head latent attention);
T. Dao and A. Gu, "Transformers are SSMs", ICML 2024, sections 6 and 7 (state-space mixers, in chunks).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from nodewise.plugin import STATE_SIZE, Encoder, Floats, Transformer, Workload
from nodewise_partitioning.training import ALL_TRAINED, Training

__all__ = ["Dimensions"]

VOCABULARY_MULTIPLE: Final = 128
"""Megatron pads the vocabulary to a multiple of this, times the tensor parallelism, so that shards stay aligned."""


CHUNK_TOKENS: Final = 256.0
"""Tokens that a state-space mixer takes at a time (Mamba-2's kernels: `chunk_size` of its configurations)."""


@dataclass(frozen=True, kw_only=True)
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
    is_gated : bool
        The feed-forward layer has a third matrix (SwiGLU), and positions are taken as rotary: they hold no parameters.
    has_untied_embeddings : bool
        The output layer has a matrix of its own.
    experts, experts_per_token : float
        0 and 1 for a dense feed-forward layer.
    expert_feed_forward, shared_feed_forward : float
        Inner size of one expert, 0 = ``feed_forward``; of the experts that every token visits, together.
    expert_layers : float
        Layers with experts; 0 = all, where there are experts.
    value_head_size : float
        Size of a head's values; 0 = as its queries and keys.
    kept_by_attention : float
        Values of a token that a layer's attention keeps before its products: queries, keys, values, and their latents;
        0 = without latents.
    layer_elements : float
        Matrix elements of an attention layer; 0 = of plain attention.
    window, windowed_share : float
        Tokens that a token attends to at most, 0 = all before it; share of the layers with attention of which it holds.
    attention_share, feed_forward_share : float
        Shares of the layers that have attention, and a feed-forward part.
    state_space_share, channels, state_size : float
        Share of the layers that have a state-space mixer, its channels, and values of state for each channel.
    stage_layers : tuple of float
        Layers of each pipeline stage, for rows of so many stages; () = as even as possible.
    encoder : Dimensions or None
        Of the encoder; its sequence is what attends to each other.
    encoder_inputs : float
        Such sequences of the encoder in a sample.
    training : Training
        What of it is trained, and how.
    """

    layers: float
    hidden_size: float
    heads: float
    key_value_heads: float
    sequence: float
    vocabulary: float
    feed_forward: float
    stated_head_size: float = 0.0
    is_gated: bool = False
    has_untied_embeddings: bool = False
    experts: float = 0.0
    experts_per_token: float = 1.0
    expert_feed_forward: float = 0.0
    shared_feed_forward: float = 0.0
    expert_layers: float = 0.0
    value_head_size: float = 0.0
    kept_by_attention: float = 0.0
    layer_elements: float = 0.0
    window: float = 0.0
    windowed_share: float = 1.0
    attention_share: float = 1.0
    feed_forward_share: float = 1.0
    state_space_share: float = 0.0
    channels: float = 0.0
    state_size: float = 0.0
    stage_layers: tuple[float, ...] = ()
    encoder: Dimensions | None = None
    encoder_inputs: float = 0.0
    training: Training = ALL_TRAINED

    @staticmethod
    def of(transformer: Transformer, training: Training = ALL_TRAINED, workload: Workload | None = None) -> Dimensions:
        """From a workload's facts; sizes that it leaves at 0 are the usual ones."""
        layers = float(transformer.layers)
        attention = transformer.layers_with_attention
        latent = transformer.key_value_latent_size
        heads, (queries, values) = transformer.attention_heads, transformer.head_sizes
        stored_size = (
            latent + transformer.rotary_head_size + transformer.query_latent_size + heads * (2.0 * queries + values)
        )
        encoder = None if workload is None else workload.encoder
        dimensions = Dimensions(
            layers=layers,
            hidden_size=float(transformer.hidden_size),
            heads=float(heads),
            key_value_heads=float(transformer.key_value_heads or heads),
            sequence=float(transformer.sequence_length),
            vocabulary=float(transformer.vocabulary_size),
            feed_forward=float(transformer.feed_forward_size or 4 * transformer.hidden_size),
            stated_head_size=float(transformer.head_size),
            is_gated=transformer.gated_feed_forward,
            has_untied_embeddings=transformer.untied_embeddings,
            experts=float(transformer.experts),
            experts_per_token=float(max(transformer.experts_per_token, 1) if transformer.experts else 1),
            expert_feed_forward=float(transformer.expert_feed_forward_size),
            shared_feed_forward=float(transformer.shared_expert_feed_forward_size),
            expert_layers=float(transformer.expert_layers),
            value_head_size=float(transformer.value_head_size),
            kept_by_attention=float(stored_size) if latent else 0.0,
            layer_elements=transformer.attention_elements() if latent else 0.0,
            window=float(transformer.attention_window),
            windowed_share=(transformer.windowed_layers or attention) / max(attention, 1),
            attention_share=attention / layers,
            feed_forward_share=transformer.layers_with_feed_forward / layers,
            state_space_share=transformer.state_space_layers / layers,
            channels=float(transformer.channels) if transformer.state_space_layers else 0.0,
            state_size=float(transformer.state_size or STATE_SIZE),
            stage_layers=() if workload is None else tuple(map(float, workload.stage_layers or ())),
            encoder=None if encoder is None else _encoder(encoder, training),
            encoder_inputs=0.0 if encoder is None else encoder.tokens_per_sample / _attended_tokens(encoder),
            training=training,
        )
        if not training.adapter_rank or training.frozen_share:
            return dimensions
        adapters = dimensions.layers * training.adapter_rank * sum(dimensions.adapter_ends())
        frozen = dimensions.parameters() / (dimensions.parameters() + adapters)
        return replace(dimensions, training=replace(training, frozen_share=frozen))

    @cached_property
    def head_size(self) -> float:
        """Size of one attention head."""
        return self.stated_head_size or self.hidden_size / self.heads

    @cached_property
    def value_size(self) -> float:
        """Size of a head's values."""
        return self.value_head_size or self.head_size

    @cached_property
    def attention_size(self) -> float:
        """Output size of attention, or of a mixer in its place, per token in the average layer."""
        return self.attention_share * self.heads * self.value_size + self.state_space_share * self.channels

    @cached_property
    def scores_size(self) -> float:
        """All heads together, in the average layer: the mean of the sizes of scores and of values."""
        return self.attention_share * self.heads * 0.5 * (self.head_size + self.value_size)

    @cached_property
    def key_value_size(self) -> float:
        """Keys and values of a token in the average layer, as attention takes them."""
        return self.attention_share * self.key_value_heads * (self.head_size + self.value_size)

    @cached_property
    def query_key_value(self) -> float:
        """Columns of the projection to queries, keys and values, or to a mixer's channels, gates and states."""
        queries = self.heads * self.head_size + self.key_value_heads * (self.head_size + self.value_size)
        mixed = 2.0 * self.channels + 2.0 * self.state_size
        return self.attention_share * (self.kept_by_attention or queries) + self.state_space_share * mixed

    @cached_property
    def attended_share(self) -> float:
        """Scores that windows and the ends of documents leave, by those of all tokens before in a sequence.

        Of a window w within d tokens w d - w^2 / 2 are left of d^2 / 2.
        """
        document = min(self.training.document_tokens or self.sequence, self.sequence)
        window_share = min(self.window / document, 1.0) if self.window else 1.0
        within = 1.0 + self.windowed_share * (2.0 * window_share - window_share * window_share - 1.0)
        return within * document / self.sequence

    @cached_property
    def matrices(self) -> float:
        """Matrices of one feed-forward layer."""
        return 3.0 if self.is_gated else 2.0

    @cached_property
    def expert_share(self) -> float:
        """Part of the layers that has experts."""
        if not self.experts:
            return 0.0
        fed = self.feed_forward_share
        return min(self.expert_layers / self.layers, fed) if self.expert_layers else fed

    @cached_property
    def dense_share(self) -> float:
        """Part of the layers that has a dense feed-forward layer."""
        return self.feed_forward_share - self.expert_share

    @cached_property
    def routed_experts(self) -> float:
        """Experts that a token is sent to, in the average layer."""
        return self.expert_share * self.experts_per_token

    @cached_property
    def common_inner_size(self) -> float:
        """Inner size of all feed-forward layers that every token visits, in the average layer."""
        return self.dense_share * self.feed_forward + self.expert_share * self.shared_feed_forward

    @cached_property
    def expert_size(self) -> float:
        """Inner size of one expert."""
        return self.expert_feed_forward or self.feed_forward

    @cached_property
    def active(self) -> float:
        """Inner size of all that a token goes through, in the average layer."""
        return self.common_inner_size + self.routed_experts * self.expert_size

    @cached_property
    def attention_parameters(self) -> float:
        """Matrix elements of attention, or of the mixer in its place, of the average layer."""
        if not self.layer_elements:
            return self.hidden_size * (self.query_key_value + self.attention_size)
        mixed = 3.0 * self.channels + 2.0 * self.state_size
        return self.attention_share * self.layer_elements + self.state_space_share * self.hidden_size * mixed

    @cached_property
    def replicated_parameters(self) -> float:
        """What every tensor-parallel rank of a layer holds: two norms, the output biases, the router."""
        return 6.0 * self.hidden_size + self.expert_share * self.hidden_size * self.experts

    @cached_property
    def positions(self) -> float:
        """Learned positions."""
        return 0.0 if self.is_gated else self.sequence

    def feed_forward_parameters(self, inner: float) -> float:
        """Matrix elements of feed-forward layers of an inner size."""
        return self.matrices * self.hidden_size * inner

    def products(self, held_experts: Floats) -> Floats:
        """Matrix products of the average layer but those of attention itself; every expert has its own."""
        share = self.expert_share
        always = self.dense_share + (share if self.shared_feed_forward else 0.0)
        attention = (5.0 if self.layer_elements else 2.0) * self.attention_share + 2.0 * self.state_space_share
        return attention + self.matrices * (always + share * held_experts)

    def adapter_ends(self) -> tuple[float, float]:
        """Values of a token that go into the matrices of the average layer, and that come out of them.

        An adapter of rank r on each of the matrices has r elements for every one of these.
        """
        fed = self.dense_share + self.routed_experts + (self.expert_share if self.shared_feed_forward else 0.0)
        up = self.matrices - 1.0
        going_in = (self.attention_share * 3.0 + up * fed) * self.hidden_size + self.attention_size + self.active
        coming_out = self.query_key_value + self.hidden_size + up * self.active + fed * self.hidden_size
        return going_in, coming_out

    def mixed_flops(self) -> float:
        """Forward operations of a token in a state-space mixer, beside its projections, in the average layer.

        In chunks of Q tokens, Q / 2 of which come before a token in the mean: 2 N and 2 a channel for each of these,
        of N values of state the first ones once for all channels of a group, and 4 N a channel for the states.
        """
        before = 0.5 * CHUNK_TOKENS
        return self.state_space_share * (self.channels * (2.0 * before + 4.0 * self.state_size))

    def padded_vocabulary(self, tensor: Floats) -> Floats:
        """Vocabulary as stored: the shards of all tensor-parallel ranks are alike and aligned."""
        multiple = VOCABULARY_MULTIPLE * tensor
        return np.ceil(self.vocabulary / multiple) * multiple

    def embedding_rows(self, tensor: Floats, pipeline: Floats) -> Floats:
        """Rows of h that the fullest stage holds outside of its layers.

        The first stage has the embedding, the last the output layer: a copy of it, or its own. One stage has both.
        """
        words = self.padded_vocabulary(tensor) / tensor
        if self.has_untied_embeddings:
            words = np.where(pipeline == 1.0, 2.0, 1.0) * words
        return words + self.positions

    def layer_parameters(self, tensor: Floats, expert: Floats) -> tuple[Floats, Floats]:
        """Matrix elements of one layer on one device: those that all data-parallel ranks share, and experts'."""
        shared = (self.attention_parameters + self.feed_forward_parameters(self.common_inner_size)) / tensor
        one = self.expert_share * self.feed_forward_parameters(self.expert_size)
        return shared, one * self.experts / (expert * tensor)

    def parameters(self) -> float:
        """All parameters of the model."""
        inner = self.common_inner_size + self.expert_share * self.experts * self.expert_size
        layer = self.attention_parameters + self.feed_forward_parameters(inner) + self.replicated_parameters
        embeddings = (2.0 if self.has_untied_embeddings else 1.0) * self.vocabulary + self.positions
        return self.layers * layer + self.hidden_size * embeddings

    def forward_flops(self) -> float:
        """Of one sample, with full attention scores: 24 s h^2 + 4 s^2 h a layer where f = 4 h, and 2 s h V.

        Where windows or documents leave scores out, these do not count.
        """
        tokens = self.sequence
        active = self.attention_parameters + self.feed_forward_parameters(self.active)
        scores = 4.0 * tokens * tokens * self.scores_size * self.attended_share
        layer = 2.0 * tokens * active + scores + tokens * self.mixed_flops()
        encoder = 0.0 if self.encoder is None else self.encoder_inputs * self.encoder.forward_flops()
        return self.layers * layer + 2.0 * tokens * self.hidden_size * self.vocabulary + encoder


def _attended_tokens(encoder: Encoder) -> int:
    return encoder.attended_tokens or encoder.tokens_per_sample


def _encoder(encoder: Encoder, training: Training) -> Dimensions:
    """An encoder as a transformer without words; frozen, it has no gradients."""
    whole = Transformer(
        layers=encoder.layers,
        hidden_size=encoder.hidden_size,
        attention_heads=encoder.attention_heads,
        sequence_length=_attended_tokens(encoder),
        vocabulary_size=0,
        feed_forward_size=encoder.feed_forward_size,
    )
    return Dimensions.of(whole, replace(training, frozen_share=1.0, frozen_bytes=0.0) if encoder.frozen else training)
