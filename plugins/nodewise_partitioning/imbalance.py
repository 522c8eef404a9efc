"""How much more work the busiest device's experts have than the average one's, where a job does not state it.

All devices of a group wait for the busiest in every layer. What its experts get more than their share has two causes:

    chance     tokens choose for themselves: the load of a device that expects n of them deviates by sqrt(n)
    routers    what experts have learned: with an auxiliary loss the busiest of 64 experts gets 0.72 (1B parameters) and
               0.52 (3B) more than its share of a validation set, with biases that are steered in its place 0.04

The busiest of 64 independent normal loads lies 2.37 deviations above their mean, so that experts deviate by 0.26
(0.62 / 2.37) with the loss. There tokens choose 6 of 64. A token chooses an expert where its score is among the k best,
so that scores that lie d of their deviations higher bring d g(q) / q more of a share q = k/E, g(q) the normal density
where q lies above: experts that are chosen often have less to gain. The 0.26 are a d of 0.147.

A device's e experts together deviate by 1/sqrt(e) of it, and the busiest of x devices lies as far above the mean as the
largest of x normal variables. Both kinds of routers are as likely: those that are
steered, and benchmarks, which draw experts at random (Megatron's `moe_router_force_load_balancing`), have chance alone.
What is expected lies halfway; half of the difference is the deviation.

Source: L. Wang et al., "Auxiliary-loss-free load balancing strategy for mixture-of-experts", 2024, table 2 (MaxVio).
"""

from __future__ import annotations

from statistics import NormalDist
from typing import Final

import numpy as np

from nodewise.plugin import Floats
from nodewise_partitioning.layout import Layout
from nodewise_partitioning.workload import Dimensions

__all__ = ["busiest", "log_spread_of"]

LEARNED: Final = 0.147
"""Deviation of experts' mean scores, with an auxiliary loss, in deviations of a token's."""


def busiest(dimensions: Dimensions, layout: Layout) -> Floats:
    """Load of the busiest device's experts by the average one's: as stated, else what is expected.

    The other experts of the device that has the busiest one share alike what that one leaves.
    """
    chance, learned = _over(dimensions, layout)
    factor = 1.0 + 0.5 * (chance + learned)
    training, experts = dimensions.training, dimensions.experts
    if training.busiest_expert_share and experts > 1.0:
        ranks = layout.expert * layout.expert_fold
        others = (1.0 - training.busiest_expert_share) / (experts - 1.0)
        factor = ranks * (training.busiest_expert_share + (experts / ranks - 1.0) * others)
    if training.expert_capacity:
        factor = np.minimum(factor, training.expert_capacity)
    return np.asarray(factor)


def log_spread_of(dimensions: Dimensions, layout: Layout) -> Floats:
    """Deviation of ln(step) that this brings: that of the experts' part, by its share of a layer's operations."""
    chance, learned = _over(dimensions, layout)
    if dimensions.training.busiest_expert_share:
        return np.zeros(len(layout))
    experts = dimensions.feed_forward_parameters(dimensions.routed_experts * dimensions.expert_size)
    others = dimensions.attention_parameters + dimensions.feed_forward_parameters(dimensions.common_inner_size)
    scores = 2.0 * dimensions.sequence * dimensions.scores_size * dimensions.attended_share
    share = experts / (experts + others + scores)
    return share * 0.5 * (learned - chance) / (1.0 + 0.5 * (chance + learned))


def _over(dimensions: Dimensions, layout: Layout) -> tuple[Floats, Floats]:
    """The busiest device's excess over its share, by chance only, and with what routers have learned as well."""
    ranks = layout.expert * layout.expert_fold
    if not dimensions.experts or not np.any(ranks > 1.0):
        return np.zeros(len(layout)), np.zeros(len(layout))
    every, place = np.unique(ranks, return_inverse=True)
    above = np.array([_largest(each) for each in every.tolist()])[place]
    tokens = layout.micro_batch * dimensions.sequence * dimensions.experts_per_token / layout.context
    by_chance = 1.0 / (tokens / layout.expert_fold)
    by_router = _router_deviation(dimensions) ** 2 * ranks / dimensions.experts
    return above * np.sqrt(by_chance), above * np.sqrt(by_chance + by_router)


def _router_deviation(dimensions: Dimensions) -> float:
    """Deviation of an expert's load by its share, from what routers have learned."""
    expert_share = dimensions.experts_per_token / dimensions.experts
    if expert_share >= 1.0:
        return 0.0
    normal = NormalDist()
    return LEARNED * normal.pdf(normal.inv_cdf(expert_share)) / expert_share


def _largest(count: float) -> float:
    """Mean of the largest of so many standard normal variables (G. Blom, 1958)."""
    return NormalDist().inv_cdf((count - 0.375) / (count + 0.25)) if count > 1.0 else 0.0
