"""The parameters of the form, what is thought of them before any job is seen, and their physical bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.plugin import Floats, freeze

__all__ = [
    "BATCH_SHARE", "COUNT", "HYPER_MEAN", "HYPER_SD", "INTER", "INTRA", "JOB_SHARE", "LEAST", "LEVEL", "MOST", "NAMES",
    "PARAMETERS", "Parameter",
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One dimensionless parameter.

    Attributes
    ----------
    name, meaning : str
    mean, sd : float
        Hyper-prior over all jobs and clusters: set by hand, wide; what profiles teach replaces it.
    job_share : float
        Share of its variance that lies between the jobs of one cluster; the rest lies between clusters.
    least, most : float
        Physical bounds, or where the form no longer changes.
    """

    name: str
    meaning: str
    mean: float
    sd: float
    job_share: float
    least: float
    most: float


PARAMETERS: Final = (
    Parameter(name="level", meaning="ln of one worker's compute at the smallest batch, in the job's own unit",
              mean=0.0, sd=0.3, job_share=0.97, least=-2.0, most=2.0),
    Parameter(name="batch_share", meaning="logit of the share of compute that grows with the batch",
              mean=-1.5, sd=2.5, job_share=0.97, least=-9.0, most=3.5),
    Parameter(name="contention", meaning="ln of compute's growth by workers of one node that share its host",
              mean=0.05, sd=0.05, job_share=0.97, least=0.0, most=1.0),
    Parameter(name="overlap", meaning="ln(p - 1) of the p-norm by which exchange hides behind compute",
              mean=0.5, sd=0.4, job_share=0.97, least=-3.0, most=2.5),
    Parameter(name="intra", meaning="ln of the exchange inside 8 workers' node over compute that no batch changes",
              mean=-0.5, sd=1.2, job_share=0.5, least=-6.0, most=6.0),
    Parameter(name="intra_slope", meaning="power of the workers of a node in it, besides the ring's share",
              mean=0.8, sd=0.4, job_share=0.97, least=0.0, most=2.0),
    Parameter(name="inter", meaning="ln of the exchange across 4 nodes of 8 workers over that inside a node",
              mean=-0.5, sd=1.2, job_share=0.5, least=-6.0, most=6.0),
    Parameter(name="inter_slope", meaning="power of nodes in it, besides the ring's share: latency, contention",
              mean=0.2, sd=0.2, job_share=0.97, least=0.0, most=1.0),
    Parameter(name="inter_workers", meaning="power of workers per node in it: they share the node's link",
              mean=0.2, sd=0.4, job_share=0.97, least=-1.0, most=2.0),
    Parameter(name="two_nodes", meaning="ln of what exactly two nodes cost more than the curve",
              mean=0.2, sd=0.3, job_share=0.2, least=-1.0, most=2.0),
    Parameter(name="two_nodes_workers", meaning="the same per ln of workers per node over 8",
              mean=0.0, sd=0.2, job_share=0.2, least=-0.5, most=1.0),
)  # fmt: skip

NAMES: Final = tuple(each.name for each in PARAMETERS)
COUNT: Final = len(PARAMETERS)
LEVEL, BATCH_SHARE, INTRA, INTER = (NAMES.index(name) for name in ("level", "batch_share", "intra", "inter"))
"""Indexes of the parameters that are transferred from other devices and links."""


def _column(name: str) -> Floats:
    return freeze(np.array([getattr(each, name) for each in PARAMETERS]))


HYPER_MEAN: Final = _column("mean")
HYPER_SD: Final = _column("sd")
JOB_SHARE: Final = _column("job_share")
LEAST: Final = _column("least")
MOST: Final = _column("most")
"""Exchange grows at most in proportion to the nodes, as where one node serves all others: faster growth is noise."""
