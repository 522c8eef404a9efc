"""Fill in what a question leaves open, from the profile's evidence. What the evidence does not tell is not guessed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nodewise.domain.columns import Ints, constant_ints, freeze
from nodewise.domain.configurations import UNSTATED, Configurations, SyncMode
from nodewise.domain.errors import NodewiseError, Violation
from nodewise.domain.profile import Profile
from nodewise.estimation.derived import KEPT_ROWS
from nodewise.ports.cache import LruCache

__all__ = ["Defaults", "defaults_of", "resolved"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """What a job's evidence says where a question does not.

    Attributes
    ----------
    sync_modes, devices, batches_per_worker, parameter_servers : tuple
        Distinct values in the evidence, ascending. One value is a default; several have to be told apart by the asker
        (a batch stays unknown instead).
    workers_per_node : int
        Largest number seen on one node; 1 without evidence.
    link_bytes_per_s : float
        0 = not known.
    """

    sync_modes: tuple[int, ...]
    devices: tuple[str, ...]
    batches_per_worker: tuple[int, ...]
    parameter_servers: tuple[int, ...]
    workers_per_node: int
    link_bytes_per_s: float


def defaults_of(profile: Profile) -> Defaults:
    """Read the defaults off a profile's phase timings and observations."""
    evidence = [profile.phase_timings.configurations, profile.observations.configurations]

    def distinct(name: str, unstated: int) -> tuple[int, ...]:
        values: set[int] = set()
        for configurations in evidence:
            values.update(getattr(configurations, name).tolist())
        values.discard(unstated)
        return tuple(sorted(values))

    devices = sorted({name for part in evidence if len(part) for name in part.device_names() if name})
    per_node = [
        -(-workers // nodes)
        for part in evidence
        for workers, nodes in zip(part.workers.tolist(), part.nodes.tolist(), strict=True)
        if nodes > 0
    ]
    return Defaults(
        sync_modes=distinct("sync_mode", SyncMode.UNSPECIFIED),
        devices=tuple(devices),
        batches_per_worker=distinct("batch_per_worker", 0),
        parameter_servers=tuple(count for count in distinct("parameter_servers", UNSTATED) if count > 0),
        workers_per_node=max(per_node, default=1),
        link_bytes_per_s=profile.network.link_bytes_per_s or 0.0,
    )


_kept: LruCache[tuple[Configurations, Defaults], Configurations] = LruCache(KEPT_ROWS)


def resolved(configurations: Configurations, defaults: Defaults) -> Configurations:
    """The same rows with nothing left open that the evidence can tell.

    Remembered by the identity of the configurations: the wire hands out one object per distinct question.

    Raises
    ------
    NodewiseError
        INVALID_FIELD where the evidence holds several values and the question does not choose.
    """
    key = (configurations, defaults)
    known = _kept.get(key)
    if known is None:
        known = _resolve(configurations, defaults)
        _kept.put(key, known, len(configurations) or 1)
    return known


def _resolve(configurations: Configurations, defaults: Defaults) -> Configurations:
    changes: dict[str, object] = {}

    sync_mode = configurations.sync_mode
    if (sync_mode == SyncMode.UNSPECIFIED).any():
        mode = _only(
            [SyncMode(value).name for value in defaults.sync_modes],
            "configurations.sync_modes",
            SyncMode.ALLREDUCE.name,
        )
        sync_mode = _filled(sync_mode, sync_mode == SyncMode.UNSPECIFIED, SyncMode[mode])
        changes["sync_mode"] = sync_mode

    if "" in configurations.devices and defaults.devices:
        index = configurations.devices.index("")
        if (configurations.device_index == index).any():
            device = _only(defaults.devices, "configurations.device_names", "")
            changes["devices"] = tuple(device if name == "" else name for name in configurations.devices)

    workers, nodes = configurations.workers, configurations.nodes
    per_node = defaults.workers_per_node
    if (workers == 0).any():
        workers = freeze(np.where(workers == 0, nodes * per_node, workers))
        changes["workers"] = workers
    if (nodes == 0).any():
        nodes = freeze(np.where(nodes == 0, -(-workers // per_node), nodes))
        changes["nodes"] = nodes

    servers = configurations.parameter_servers
    if (servers == UNSTATED).any():
        seen = defaults.parameter_servers[0] if len(defaults.parameter_servers) == 1 else 1
        wanted = np.where(sync_mode == SyncMode.ALLREDUCE, 0, seen)
        changes["parameter_servers"] = freeze(np.where(servers == UNSTATED, wanted, servers))

    batch = configurations.batch_per_worker
    if (batch == 0).any():
        changes["batch_per_worker"] = _batch(configurations, workers, defaults)

    if defaults.link_bytes_per_s and (configurations.link_bytes_per_s == 0.0).any():
        link = configurations.link_bytes_per_s
        changes["link_bytes_per_s"] = freeze(np.where(link == 0.0, defaults.link_bytes_per_s, link))
    return configurations.replaced(**changes) if changes else configurations


def _batch(configurations: Configurations, workers: Ints, defaults: Defaults) -> Ints:
    """Batch per worker: stated, else the share of a stated global batch (rounded up), else the only one in evidence."""
    degrees = configurations.tensor_parallel * configurations.pipeline_parallel * configurations.context_parallel
    replicas = np.where(
        configurations.data_parallel > 0, configurations.data_parallel, np.maximum(workers // degrees, 1)
    )
    shares = -(-configurations.global_batch // (replicas * configurations.accumulation))
    seen = defaults.batches_per_worker[0] if len(defaults.batches_per_worker) == 1 else 0
    derived = np.where(configurations.global_batch > 0, shares, seen)
    return freeze(np.where(configurations.batch_per_worker == 0, derived, configurations.batch_per_worker))


def _filled(column: Ints, where: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], value: int) -> Ints:
    return constant_ints(len(column), int(value)) if where.all() else freeze(np.where(where, int(value), column))


def _only(seen: list[str] | tuple[str, ...], path: str, otherwise: str) -> str:
    if len(seen) > 1:
        listed = ", ".join(seen)
        raise NodewiseError.invalid(
            [Violation(path, f"must be stated: the profile's evidence holds several values ({listed})")]
        )
    return seen[0] if seen else otherwise
