"""Candidates of a job: every allowed number of worker devices in every allowed pool, as columns to predict.

Columns are shared: jobs (and calls) with the same counts, pools and settings get the same ``Configurations`` object,
which is the key of caches downstream.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from nodewise.domain.columns import Ints, as_floats, as_ints, constant, freeze
from nodewise.domain.configurations import COLUMNS, Configurations, Placement
from nodewise.domain.errors import NodewiseError, Reason, Violation
from nodewise.domain.schedule import ClusterState, JobState
from nodewise.scheduling.request import JobQuestion

__all__ = ["CandidateRows", "Candidates", "check_rows"]

_Settings = tuple[str, tuple[int | float, ...]]
_Part = tuple[int, str, bytes, float, int, int, int]
"""Pool, its device, devices per node (as bytes), link in bytes/s, most worker devices in it, the step of numbers of
devices in it, and the server devices modulo that step."""
MAX_SHARED_ROWS: Final = 4_096
"""Most rows of a set of candidates that is cached between calls; 256 sets of that size take some 50 MB."""


@dataclass(frozen=True, slots=True, eq=False)
class CandidateRows:
    """Rows to predict for one job, by pool, then by ascending worker devices, which are packed on ``nodes``."""

    pool: Ints
    devices: Ints
    nodes: Ints
    configurations: Configurations

    def __len__(self) -> int:
        return len(self.devices)


class Candidates:
    """Makes the candidate rows of one call's jobs."""

    def __init__(self, state: ClusterState) -> None:
        self._quotas = state.quotas
        self._pools = [
            (index, pool.device, pool.available_devices.tobytes(), pool.link_bytes_per_s, pool.total_devices)
            for index, pool in enumerate(state.pools)
        ]
        self._steps = [pool.step for pool in state.pools]
        self._uneven = {index for index, pool in enumerate(state.pools) if _is_uneven(pool.available_devices)}
        self._wide: dict[tuple[object, ...], CandidateRows] = {}
        self._settled: dict[int, tuple[Configurations, _Settings]] = {}

    def _key_of(self, settings: Configurations) -> _Settings:
        """The settings' values as a key; cached, since jobs of one call often share the object."""
        entry = self._settled.get(id(settings))
        if entry is None:
            entry = self._settled[id(settings)] = (settings, _key(settings))
        return entry[1]

    def count(self, job: JobState) -> int:
        """How many rows the job has."""
        return sum(self._counts(job, pool) for pool in job.allowed_pools)

    def _counts(self, job: JobState, pool: int) -> int:
        fitting, step = bisect_right(job.allowed_devices, self._most(job, pool)), self._steps[pool]
        if step == 1:
            return fitting
        return sum((count + job.server_devices) % step == 0 for count in job.allowed_devices[:fitting])

    def _most(self, job: JobState, pool: int) -> int:
        """Most worker devices that fit the empty pool and the queue's quota beside the job's servers."""
        total = self._pools[pool][4]
        return min(total, self._quotas.get(job.queue, total)) - job.server_devices

    def placed_nodes(self, jobs: Sequence[JobState]) -> int:
        """Nodes that the jobs' distinct candidates in pools of uneven nodes are spread over, together."""
        distinct = {
            (pool, job.allowed_devices, self._most(job, pool))
            for job in jobs
            for pool in job.allowed_pools
            if pool in self._uneven
        }
        total = 0
        for pool, counts_allowed, most in distinct:
            counts = np.asarray(counts_allowed[: bisect_right(counts_allowed, most)], dtype=np.int64)
            total += int(_packed_nodes(np.frombuffer(self._pools[pool][2], dtype=np.int64), counts).sum())
        return total

    def rows(self, job: JobState, settings: Configurations | None) -> CandidateRows:
        """Every allowed (pool, devices) that fits the empty cluster and the queue's quota, servers included."""
        parts = tuple(
            (*self._pools[pool][:4], self._most(job, pool), self._steps[pool], job.server_devices % self._steps[pool])
            for pool in job.allowed_pools
        )
        settings_key = None if settings is None else self._key_of(settings)
        if len(job.allowed_devices) * len(parts) <= MAX_SHARED_ROWS:
            return _shared_rows(parts, job.allowed_devices, settings_key)
        key = (parts, job.allowed_devices, settings_key)
        if key not in self._wide:
            self._wide[key] = _rows(parts, job.allowed_devices, settings_key)
        return self._wide[key]


def check_rows(
    candidates: Candidates,
    state: ClusterState,
    questions: tuple[JobQuestion, ...],
    order: tuple[int, ...],
    most: int,
    most_placed_nodes: int,
) -> None:
    """Refuse a question with more candidate rows, or rows spread over more nodes, than one call may have.

    Raises
    ------
    NodewiseError
        LIMIT_EXCEEDED, which names the job with the most counts.
    """
    counts = [candidates.count(job) for job in state.jobs]
    if sum(counts) <= most:
        placed_nodes = candidates.placed_nodes(state.jobs)
        if placed_nodes > most_placed_nodes:
            text = (
                f"have nodes of different sizes, and the jobs' counts are spread over {placed_nodes:,} of them, of at "
                f"most {most_placed_nodes:,}: state fewer allowed_devices, or a pool for each size of node"
            )
            raise NodewiseError.invalid([Violation("cluster.pools", text)], Reason.LIMIT_EXCEEDED)
        return
    widest = order[counts.index(max(counts))]
    name = "allowed_devices" if questions[widest].allowed_devices else "max_devices"
    violation = Violation(
        f"jobs[{widest}].{name}",
        f"allows {max(counts):,} counts, and the call asks for {sum(counts):,} predictions of at most {most:,}: "
        "state fewer allowed_devices or a smaller max_devices",
    )
    raise NodewiseError.invalid([violation], Reason.LIMIT_EXCEEDED)


def _key(settings: Configurations) -> _Settings:
    precision = settings.precisions[int(settings.precision_index[0])]
    return precision, tuple(getattr(settings, name)[0].item() for name in COLUMNS)


def _rows(parts: tuple[_Part, ...], allowed_devices: tuple[int, ...], settings: _Settings | None) -> CandidateRows:
    counts = np.asarray(allowed_devices, dtype=np.int64)
    pools, devices, nodes, links, placements = [], [], [], [], []
    for index, _, available_bytes, link, most, step, servers in parts:
        available = np.frombuffer(available_bytes, dtype=np.int64)
        fitting = counts[: np.searchsorted(counts, most, side="right")]
        if step > 1:
            fitting = fitting[(fitting + servers) % step == 0]
        pools.append(np.full(len(fitting), index))
        devices.append(fitting)
        nodes.append(_packed_nodes(available, fitting))
        links.append(np.full(len(fitting), link))
        placements.append(_placements(available, fitting))
    pool, count = _join(pools), _join(devices)
    names = tuple(dict.fromkeys(part[1] for part in parts))
    codes = {part[0]: names.index(part[1]) for part in parts}
    index_of = as_ints([codes[index] for index in pool.tolist()])
    rows = _fill(len(count), settings)
    link_column = as_floats(np.concatenate([*links, np.zeros(0)]))
    placement = None
    if any(part is not None for part in placements):
        placement = Placement.of(row for part, n in zip(placements, devices) for row in part or [()] * len(n))
    configurations = rows.replaced(
        nodes=_join(nodes),
        workers=count,
        devices=names or ("",),
        device_index=index_of,
        # The pool's link where it is known, else that of the settings.
        link_bytes_per_s=freeze(np.where(link_column > 0, link_column, rows.link_bytes_per_s)),
        placement=placement,
    )
    return CandidateRows(pool, count, configurations.nodes, configurations)


_shared_rows = lru_cache(maxsize=256)(_rows)


def _join(parts: list[Ints]) -> Ints:
    return as_ints(np.concatenate([*parts, np.zeros(0, dtype=np.int64)]))


def _fill(rows: int, settings: _Settings | None) -> Configurations:
    """Rows with the values of the settings."""
    plain = Configurations.of(rows)
    if settings is None:
        return plain
    precision, values = settings
    columns = {name: constant(rows, value) for name, value in zip(COLUMNS, values)}
    return plain.replaced(**{**columns, "precisions": (precision,), "precision_index": constant(rows, 0)})


def _packed_nodes(available: Ints, counts: Ints) -> Ints:
    """The fewest nodes of the empty pool that hold each number of workers; the largest nodes come first."""
    capacity = np.cumsum(np.sort(available)[::-1])
    return np.searchsorted(capacity, counts, side="left") + 1


def _is_uneven(available: Ints) -> bool:
    """Whether nodes that have devices have different numbers of them."""
    return len(np.unique(available[available > 0])) > 1


def _placements(available: Ints, counts: Ints) -> list[tuple[int, ...]] | None:
    """Workers per node, full nodes first; None where nodes are even, so that the number of nodes says it all."""
    if not _is_uneven(available):
        return None
    sizes = np.sort(available[available > 0])[::-1]
    node_sizes, capacity = sizes.tolist(), np.cumsum(sizes)
    full = np.searchsorted(capacity, counts, side="right")
    left = counts - np.concatenate(([0], capacity))[full]
    # Row by row: a table of counts by nodes would take gigabytes where both are many.
    pairs = zip(full.tolist(), left.tolist(), strict=True)
    return [(*node_sizes[:nodes], rest) if rest else tuple(node_sizes[:nodes]) for nodes, rest in pairs]
