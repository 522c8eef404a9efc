"""Rows as the published models see them: numbers of nodes, workers, servers and samples, and nothing else.

Rows of one *kind* share what no model here has a term for: the accelerator, how gradients are exchanged, and the link.
A model is fitted to each kind apart and answers for that kind alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Configurations, Floats, Ints, Network, SyncMode, as_floats

__all__ = ["Kind", "Rows", "Truths", "kinds_of", "plain", "rows_of"]

Truths = NDArray[np.bool_]


class Kind(NamedTuple):
    """What all rows behind one fitted curve have in common."""

    device: str
    sync_mode: SyncMode
    link_bytes_per_s: float


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Rows:
    """Configurations as the models' variables; floats, one entry per row.

    Attributes
    ----------
    nodes, workers, servers : float
        Machines that run workers; workers in total; parameter servers (0 = none).
    batch_samples : float
        Samples of one worker's step; 0 = not known.
    """

    nodes: Floats
    workers: Floats
    servers: Floats
    batch_samples: Floats

    def __len__(self) -> int:
        return len(self.workers)

    def take(self, rows: Ints) -> Rows:
        """Some rows, in the given order."""
        return Rows(
            nodes=self.nodes[rows],
            workers=self.workers[rows],
            servers=self.servers[rows],
            batch_samples=self.batch_samples[rows],
        )

    def keys(self) -> list[tuple[float, ...]]:
        """Each row as a value that can be looked up."""
        columns = np.stack([self.nodes, self.workers, self.servers, self.batch_samples], axis=1)
        return [tuple(row) for row in columns.tolist()]


def rows_of(configurations: Configurations) -> Rows:
    """The variables of plain rows; a stated global batch is shared by the workers evenly."""
    samples = configurations.samples_per_step() / configurations.minibatches_per_step()
    return Rows(
        nodes=as_floats(configurations.nodes),
        workers=as_floats(configurations.workers),
        servers=as_floats(np.maximum(configurations.parameter_servers, 0)),
        batch_samples=as_floats(samples),
    )


def plain(configurations: Configurations) -> Truths:
    """Rows that the models have variables for: whole copies of the model, alike workers, one micro-step per step.

    What else a row may state is refused by the server before an estimator sees it; observations come as they are.
    """
    c = configurations
    simple: Truths = (c.nodes > 0) & (c.workers > 0) & (c.accumulation == 1) & (c.backup_workers == 0)
    whole: Truths = (c.degree() == 1) & (c.expert_parallel == 1) & (c.sync_mode != SyncMode.HYBRID)
    return simple & whole & ~c.grouped()


def kinds_of(configurations: Configurations, network: Network) -> list[Kind]:
    """The kind of each row; what is not stated is the job's own link, and all-reduce."""
    modes = np.where(configurations.sync_mode == SyncMode.UNSPECIFIED, SyncMode.ALLREDUCE, configurations.sync_mode)
    stated = configurations.link_bytes_per_s
    links = np.where(stated > 0, stated, network.link_bytes_per_s or 0.0)
    columns = zip(configurations.device_names(), modes.tolist(), links.tolist(), strict=True)
    return [Kind(device, SyncMode(mode), link) for device, mode, link in columns]
