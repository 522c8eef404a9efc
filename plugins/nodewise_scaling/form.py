"""The form of a step: compute, and exchange inside and across nodes, partly hidden behind it.

::

    T = (C^p + X^p)^(1/p),   X = X_i + X_n
    C   = acc e^a ((1 - s) + s m) e^(k (1 - 1/f))                                   s = logistic(batch_share)
    X_i = e^(a + u) ((f - 1) / (F - 1))^e1                                          0 where f = 1
    X_n = e^(a + u + v) (n / 4)^v1 (((n - 1) / n) / (3 / 4))^v5 (g / F)^v2          0 where n = 1
          times e^(v3 + v4 ln(g / F)) where n = 2

in units of the job itself: m samples per worker over its smallest batch, F its workers on the fullest node, times
over its step time at one worker and that batch. n nodes, f workers that share a node's host, g workers per node, acc
micro-steps.

The shapes: a ring all-reduce moves 2 (N - 1) / N of the bytes over each link and takes 2 (N - 1) hops (P. Patarasuk and
X. Yuan, J. Parallel Distrib. Comput. 69(2), 2009), so its time saturates in the nodes but for latency; a p-norm between
sum (p = 1, nothing hidden) and maximum is how Pollux (A. Qiao et al., OSDI 2021) overlaps both. The level of every
term, the powers, and what is special of two nodes come from measurements.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nodewise.plugin import Floats
from nodewise_scaling.parameters import COUNT

__all__ = ["Parts", "Places", "log_steps", "parts_of", "slopes_of"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Places:
    """Configurations in a job's own units, one entry per row.

    Attributes
    ----------
    nodes, sharing, per_node, batch : float
        Nodes; workers that share a node's host; mean workers per node; samples per worker over the smallest batch.
    log_accumulation : float
        ln of the micro-steps per exchange.
    full_node : float
        Workers on the fullest node that was seen.
    """

    nodes: Floats
    sharing: Floats
    per_node: Floats
    batch: Floats
    log_accumulation: Floats
    full_node: float

    def __len__(self) -> int:
        return len(self.nodes)


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """ln of the step, ln of compute, and the exchange inside and across nodes, in the job's unit."""

    log_step: Floats
    log_compute: Floats
    intra: Floats
    inter: Floats


def parts_of(theta: Floats, at: Places) -> Parts:
    """The form at some places."""
    level, batch_share, contention, overlap, intra, intra_slope, inter, v1, v2, v3, v4, v5 = theta.tolist()
    share = 1.0 / (1.0 + np.exp(-batch_share))
    compute = level + np.log((1.0 - share) + share * at.batch) + contention * (1.0 - 1.0 / at.sharing)
    compute = compute + at.log_accumulation
    inside, across = np.zeros(len(at)), np.zeros(len(at))
    many = at.sharing > 1.0
    inside[many] = np.exp(level + intra + intra_slope * _crowd(at)[many])
    far = at.nodes > 1.0
    hops, ring, workers, two = _distances(at)
    exponent = level + intra + inter + v1 * hops + v5 * ring + v2 * workers + two * (v3 + v4 * workers)
    across[far] = np.exp(exponent[far])
    p = 1.0 + np.exp(overlap)
    excess = p * (np.log(np.maximum(inside + across, 1e-12)) - compute)
    return Parts(compute + np.logaddexp(0.0, excess) / p, compute, inside, across)


def log_steps(theta: Floats, at: Places) -> Floats:
    """Ln of the step over the job's unit."""
    return parts_of(theta, at).log_step


def slopes_of(theta: Floats, at: Places) -> tuple[Floats, Floats]:
    """Ln of the step, and (parameters, rows) its derivatives."""
    parts = parts_of(theta, at)
    share = 1.0 / (1.0 + np.exp(-theta[1]))
    p = 1.0 + np.exp(theta[3])
    exchange = np.maximum(parts.intra + parts.inter, 1e-300)
    excess = p * (np.log(np.maximum(exchange, 1e-12)) - parts.log_compute)
    soft = np.logaddexp(0.0, excess)
    weight = np.exp(np.minimum(excess - soft, 0.0))  # of the exchange in d ln T; compute has the rest
    rest = 1.0 - weight
    inside, across = weight * parts.intra / exchange, weight * parts.inter / exchange
    hops, ring, workers, two = _distances(at)
    slopes = np.empty((COUNT, len(at)))
    slopes[0] = 1.0
    slopes[1] = rest * share * (1.0 - share) * (at.batch - 1.0) / ((1.0 - share) + share * at.batch)
    slopes[2] = rest * (1.0 - 1.0 / at.sharing)
    slopes[3] = (p - 1.0) * (weight * excess - soft) / p**2
    slopes[4] = weight
    slopes[5] = np.where(at.sharing > 1.0, inside * _crowd(at), 0.0)
    slopes[6] = across
    slopes[7] = across * hops
    slopes[8] = across * workers
    slopes[9] = across * two
    slopes[10] = across * two * workers
    slopes[11] = across * ring
    return parts.log_step, slopes


def _crowd(at: Places) -> Floats:
    """Ln of the other workers of a node over those of the fullest."""
    return np.asarray(np.log(np.maximum(at.sharing - 1.0, 1e-9) / max(at.full_node - 1.0, 1.0)))


def _distances(at: Places) -> tuple[Floats, Floats, Floats, Floats]:
    """Ln of nodes over 4, of the ring's share over that of 4, of workers per node over the fullest, and two nodes."""
    nodes = np.maximum(at.nodes, 2.0)
    return (
        np.log(nodes / 4.0),
        np.log1p(-1.0 / nodes) - np.log(0.75),
        np.log(at.per_node / at.full_node),
        (at.nodes == 2.0).astype(np.float64),
    )
