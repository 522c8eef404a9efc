"""The form of a step: compute, and exchange inside and across nodes, partly hidden behind it.

::

    T = (C^p + X^p)^(1/p),   X = (X_i^2 + X_n^2)^(1/2)
    C   = acc e^a ((1 - s) + s m) e^(k (1 - 1/f))                                   s = logistic(batch_share)
    X_i = c e^(a + u) r(f) / r(8) (f / 8)^e1                                  0 where f = 1
    X_n = c e^(a + u + v) r(n) / r(4) (n / 4)^v1 (g / 8)^v2                   0 where n = 1
          times e^(v3 + v4 ln(g / 8)) where n = 2;   r(N) = (N - 1) / N
    c   = 1 - s where exchange was seen, the least of 1 and 2.5 (1 - s), rounded off, where it was not

in units of the job itself: m samples per worker over its smallest batch, times over its step time at one worker and
that batch. n nodes, f workers that share a node's host, g workers per node, acc micro-steps. 8 workers on each of 4
nodes are the reference at which levels are stated; any other would do as well.

The shapes: a ring all-reduce moves 2 (N - 1) / N of the bytes over each link and takes 2 (N - 1) hops (P. Patarasuk and
X. Yuan, J. Parallel Distrib. Comput. 69(2), 2009), so its time saturates in the nodes but for latency. A ring is as
slow as its slowest link, one level after another takes the sum of both: the root of the squares lies between. A p-norm
between sum (p = 1, nothing hidden) and maximum is how Pollux (A. Qiao et al., OSDI 2021) overlaps exchange with
compute. Exchange is stated relative to the compute that does not grow with the batch: its bytes are the parameters',
and so is the work of updating them, and runs whose batch shrinks as workers join do not separate the two. Where no run
had a second worker, both parts of compute are known, the part that does not grow includes launches and hosts, and
exchange is stated relative to all of it; but at a large batch there is more compute, and no more exchange than at a
small one (research/scaling.md has the errors of each). The level of every term, the powers, and what is special of two
nodes come from measurements.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.plugin import Floats
from nodewise_scaling.parameters import COUNT

__all__ = ["Parts", "Places", "log_steps", "parts_of", "slopes_of"]

REFERENCE_NODES: Final = 4.0
REFERENCE_WORKERS: Final = 8.0
"""Nodes, and workers per node, at which levels of exchange are stated; runs of the job may not include them."""

SMALL: Final = 2.5
SHARPNESS: Final = 4.0
"""Compute over its fixed part up to which a batch counts as small, so that unseen exchange is stated relative to all
compute; and how sharply that ends. The smallest batches of the jobs that the prior was learned from have 1 to 2."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Places:
    """Configurations in a job's own units, one entry per row.

    Attributes
    ----------
    nodes, sharing, per_node, batch : float
        Nodes; workers that share a node's host; mean workers per node; samples per worker over the smallest batch.
    log_accumulation : float
        ln of the micro-steps per exchange.
    over_fixed : bool
        Whether exchange is stated relative to the compute that no batch changes, or to all compute at the smallest
        batch, as far as that is a small one.
    """

    nodes: Floats
    sharing: Floats
    per_node: Floats
    batch: Floats
    log_accumulation: Floats
    over_fixed: bool = True

    def __len__(self) -> int:
        return len(self.nodes)


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """ln of the step, ln of compute, and the exchange inside and across nodes, in the job's unit.

    ``exchange`` is both together; ``excess`` is p times its ln over compute, and ``soft`` the p-norm's share of that.
    """

    log_step: Floats
    log_compute: Floats
    intra: Floats
    inter: Floats
    exchange: Floats
    excess: Floats
    soft: Floats


def parts_of(theta: Floats, at: Places) -> Parts:
    """The form at some places."""
    level, batch_share, contention, overlap, intra, intra_slope, inter, v1, v2, v3, v4 = theta.tolist()
    log_fixed = -np.logaddexp(0.0, batch_share)
    if not at.over_fixed:
        log_fixed = -np.log1p((SMALL * np.exp(log_fixed)) ** -SHARPNESS) / SHARPNESS
    share = 1.0 / (1.0 + np.exp(-batch_share))
    compute = level + np.log((1.0 - share) + share * at.batch) + contention * (1.0 - 1.0 / at.sharing)
    compute = compute + at.log_accumulation
    inside, across = np.zeros(len(at)), np.zeros(len(at))
    many = at.sharing > 1.0
    ring, crowd = _inside(at)
    inside[many] = np.exp(level + log_fixed + intra + ring + intra_slope * crowd)[many]
    far = at.nodes > 1.0
    ring, hops, workers, two = _across(at)
    exponent = level + log_fixed + intra + inter + ring + v1 * hops + v2 * workers + two * (v3 + v4 * workers)
    across[far] = np.exp(exponent[far])
    p = 1.0 + np.exp(overlap)
    exchange = np.hypot(inside, across)
    excess = p * (np.log(np.maximum(exchange, 1e-12)) - compute)
    soft = np.logaddexp(0.0, excess)
    return Parts(compute + soft / p, compute, inside, across, exchange, excess, soft)


def log_steps(theta: Floats, at: Places) -> Floats:
    """Ln of the step over the job's unit."""
    return parts_of(theta, at).log_step


def slopes_of(theta: Floats, at: Places, known: Parts | None = None) -> tuple[Parts, Floats]:
    """The form, ``known`` if it was evaluated, and (parameters, rows) the derivatives of ln of the step."""
    parts = parts_of(theta, at) if known is None else known
    share = 1.0 / (1.0 + np.exp(-theta[1]))
    p = 1.0 + np.exp(theta[3])
    exchange, excess, soft = np.maximum(parts.exchange, 1e-150), parts.excess, parts.soft
    weight = np.exp(np.minimum(excess - soft, 0.0))  # of the exchange in d ln T; compute has the rest
    rest = 1.0 - weight
    inside, across = weight * (parts.intra / exchange) ** 2, weight * (parts.inter / exchange) ** 2
    _, crowd = _inside(at)
    _, hops, workers, two = _across(at)
    grown = (1.0 - share) * (at.batch - 1.0) / ((1.0 - share) + share * at.batch)
    slopes = np.empty((COUNT, len(at)))
    slopes[0] = 1.0
    fixed_share = 1.0 if at.over_fixed else 1.0 / (1.0 + (SMALL * (1.0 - share)) ** SHARPNESS)
    slopes[1] = share * (rest * grown - weight * fixed_share)
    slopes[2] = rest * (1.0 - 1.0 / at.sharing)
    slopes[3] = (p - 1.0) * (weight * excess - soft) / p**2
    slopes[4] = weight
    slopes[5] = inside * crowd
    slopes[6] = across
    slopes[7] = across * hops
    slopes[8] = across * workers
    slopes[9] = across * two
    slopes[10] = across * two * workers
    return parts, slopes


def _inside(at: Places) -> tuple[Floats, Floats]:
    """Ln of a node's ring over that of the reference, and of its workers over the reference's."""
    # What a node with one worker has is not used: it exchanges nothing inside.
    ring = np.log(np.maximum(1.0 - 1.0 / at.sharing, 1e-12) / (1.0 - 1.0 / REFERENCE_WORKERS))
    return ring, np.log(at.sharing / REFERENCE_WORKERS)


def _across(at: Places) -> tuple[Floats, Floats, Floats, Floats]:
    """Ln of the ring of nodes over that of the reference, of nodes, of workers per node, and whether two nodes."""
    nodes = np.maximum(at.nodes, 2.0)
    return (
        np.log((1.0 - 1.0 / nodes) / (1.0 - 1.0 / REFERENCE_NODES)),
        np.log(nodes / REFERENCE_NODES),
        np.log(at.per_node / REFERENCE_WORKERS),
        (at.nodes == 2.0).astype(np.float64),
    )
