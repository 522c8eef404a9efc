"""Clusters, jobs that request devices, throughput curves, and a policy's decisions."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.columns import Floats, Ints, as_floats, as_ints, freeze
from nodewise.domain.configurations import Configurations
from nodewise.domain.shared_pairs import SharedPairs

__all__ = [
    "CURVE_COLUMNS",
    "Allocation",
    "ClusterState",
    "CurrentAllocation",
    "Curves",
    "Grant",
    "JobColumns",
    "JobFacts",
    "JobState",
    "NodePool",
    "Requests",
    "Shares",
    "submission_order",
]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class NodePool:
    """Nodes of one kind.

    Attributes
    ----------
    available_devices : (nodes,) int
        Allocatable devices of each node; those that the request's jobs hold are included.
    link_bytes_per_s : float
        0 = not known.
    price_per_node_hour : float or None
        None = not known.
    node_names : tuple of str
        One per node, unique; empty = nodes have indexes alone.
    devices_per_node : int
        Nodes are allocated whole, each with so many devices; 0 = devices are allocated one by one.
    max_nodes : int or None
        Nodes that the pool may grow to; None = it does not grow.
    device_hours, restart_s : float or None
        Mean hours of one device between failures, and seconds from a failure until the job runs again; None = failures
        are not considered, and the usual seconds.
    """

    name: str
    device: str
    available_devices: Ints
    link_bytes_per_s: float = 0.0
    price_per_node_hour: float | None = None
    node_names: tuple[str, ...] = ()
    devices_per_node: int = 0
    max_nodes: int | None = None
    device_hours: float | None = None
    restart_s: float | None = None
    _node_indexes: dict[str, int] | None = field(init=False, default=None, repr=False)

    @property
    def node_indexes(self) -> Mapping[str, int]:
        """Index of each node by its name, made once; of equal names the first."""
        if self._node_indexes is None:
            indexes = {name: index for index, name in reversed(tuple(enumerate(self.node_names)))}
            object.__setattr__(self, "_node_indexes", indexes)
        assert self._node_indexes is not None
        return self._node_indexes

    @property
    def total_devices(self) -> int:
        """Allocatable devices."""
        return int(self.available_devices.sum())

    @property
    def step(self) -> int:
        """Granularity: a job's devices here, servers included, are a multiple of it."""
        return max(self.devices_per_node, 1)

    @property
    def most_nodes(self) -> int:
        """Most nodes of the pool."""
        return len(self.available_devices) if self.max_nodes is None else self.max_nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentAllocation:
    """The allocation of a running job: pool, (node index, devices) pairs with those of servers, and its age.

    ``shares_with`` is the id of the job that runs on the same devices; empty = none.
    """

    pool: int
    placement: tuple[tuple[int, int], ...]
    age_s: float = 0.0
    shares_with: str = ""

    @property
    def devices(self) -> int:
        """Devices held, those of servers included."""
        return sum(count for _, count in self.placement)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class JobFacts:
    """Facts of a job that do not depend on the cluster; times in seconds since 1970 or as durations.

    Attributes
    ----------
    remaining_samples : float
        Samples left (mini-batches where the batch is not known); above 0.
    server_devices : int
        Devices of its servers, besides the workers', in the same pool.
    restarts : int
        How often it was restarted so far.
    preemptible : bool
        Whether it may be stopped or moved while it runs. A policy gets a job that may not without rows, like any that
        it cannot change.
    gradient_noise_scale_samples, initial_batch_samples : float or None
        Inputs of its statistical efficiency: the gradient noise scale, and the global batch that remaining
        samples are counted at. None = not known.
    checkpoint_s : float or None
        Seconds of a checkpoint, where pools state failures; None = not known.
    """

    job_id: str
    remaining_samples: float
    submit_time_s: float = 0.0
    server_devices: int = 0
    attained_service_device_s: float = 0.0
    restart_cost_s: float = 0.0
    queue: str = ""
    deadline_s: float | None = None
    minimum_run_s: float = 0.0
    restarts: int = 0
    preemptible: bool = True
    gradient_noise_scale_samples: float | None = None
    initial_batch_samples: float | None = None
    checkpoint_s: float | None = None

    def facts(self) -> dict[str, Any]:
        """These facts by name, for another value that holds them."""
        return dict(zip(_JOB_FACTS, _facts_of(self), strict=True))


_JOB_FACTS: Final = tuple(each.name for each in fields(JobFacts))
_facts_of: Final = attrgetter(*_JOB_FACTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobState(JobFacts):
    """A job that requests devices; see the contract's ScheduleJob.

    ``allowed_devices`` is ascending and holds numbers of worker devices; ``allowed_pools`` holds indexes.
    """

    allowed_devices: tuple[int, ...]
    allowed_pools: tuple[int, ...]
    requested_devices: int = 1
    current: CurrentAllocation | None = None
    weight: float = 1.0


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class JobColumns:
    """Facts of jobs as arrays of shape (jobs,), for vectorised policies.

    Attributes
    ----------
    submit_time_s, remaining_samples, weight, restart_cost_s, server_devices, requested_devices
        As in ``JobState``.
    pool, held_devices : int
        Pool and devices of a running job, servers included; -1 and 0 where it does not run.
    has_run : bool
        Whether the job has state to restore when it starts anew.
    order : int
        Indexes of the jobs by submit time, then by id: the order that breaks every tie.
    """

    submit_time_s: Floats
    remaining_samples: Floats
    weight: Floats
    restart_cost_s: Floats
    server_devices: Ints
    requested_devices: Ints
    pool: Ints
    held_devices: Ints
    has_run: NDArray[np.bool_]
    order: Ints

    @classmethod
    def of(cls, jobs: Sequence[JobState]) -> JobColumns:
        """The columns of some jobs."""
        return cls(
            submit_time_s=as_floats([job.submit_time_s for job in jobs]),
            remaining_samples=as_floats([job.remaining_samples for job in jobs]),
            weight=as_floats([job.weight for job in jobs]),
            restart_cost_s=as_floats([job.restart_cost_s for job in jobs]),
            server_devices=as_ints([job.server_devices for job in jobs]),
            requested_devices=as_ints([job.requested_devices for job in jobs]),
            pool=as_ints([-1 if job.current is None else job.current.pool for job in jobs]),
            held_devices=as_ints([0 if job.current is None else job.current.devices for job in jobs]),
            has_run=freeze(
                np.array([job.current is not None or job.attained_service_device_s > 0 for job in jobs], dtype=bool)
            ),
            order=submission_order(jobs),
        )


def submission_order(jobs: Sequence[JobState]) -> Ints:
    """Indexes of jobs by submit time, then by id."""
    # Not by sorted(), which would stop all other threads for as long as it compares.
    return as_ints(np.lexsort(([job.job_id for job in jobs], [job.submit_time_s for job in jobs])))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ClusterState:
    """Everything that a policy may know besides the curves. ``memory`` is its last returned memory.

    ``sharing`` None = every job has its devices to itself.
    """

    now_s: float
    pools: tuple[NodePool, ...]
    jobs: tuple[JobState, ...]
    quotas: Mapping[str, int] = field(default_factory=dict)
    parameters: Mapping[str, float] = field(default_factory=dict)
    memory: bytes = b""
    sharing: SharedPairs | None = None
    _columns: JobColumns | None = field(init=False, default=None, repr=False)

    @property
    def columns(self) -> JobColumns:
        """Facts of the jobs as columns, computed at the first use."""
        if self._columns is None:
            self.knows(JobColumns.of(self.jobs))
        assert self._columns is not None
        return self._columns

    def knows(self, columns: JobColumns) -> None:
        """Use existing columns of exactly these jobs, instead of computing them."""
        object.__setattr__(self, "_columns", columns)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Requests:
    """Requested devices of every job in every pool, of shape (jobs, pools); 0 where a job cannot run.

    Attributes
    ----------
    workers, devices : int
        Worker devices; those of servers included.
    samples_per_s : float
        Throughput there.
    """

    workers: Ints
    devices: Ints
    samples_per_s: Floats


CURVE_COLUMNS: Final = ("pool", "devices", "nodes", "samples_per_s")
"""Columns of curves with one number in each row."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Curves:
    """Throughput of every job on every allowed (pool, devices), in compressed sparse rows.

    Rows of job j are ``offsets[j]:offsets[j + 1]``, by pool, then by ascending devices. Only answered configurations
    that fit the empty cluster are listed; a job without rows has no answer and gets nothing.

    Attributes
    ----------
    offsets : (jobs + 1,) int
    pool : int
        Index into the cluster's pools.
    devices, nodes : int
        Worker devices, and nodes that they are packed on.
    samples_per_s : float
        Throughput; mini-batches/s for a job whose batch is not known.
    configurations : Configurations
        The configuration behind each row.
    """

    offsets: Ints
    pool: Ints
    devices: Ints
    nodes: Ints
    samples_per_s: Floats
    configurations: Configurations
    _lists: tuple[list[int], list[int], list[int]] | None = field(init=False, default=None, repr=False)

    def rows(self, job: int) -> slice:
        """Rows of one job."""
        return slice(int(self.offsets[job]), int(self.offsets[job + 1]))

    @property
    def lists(self) -> tuple[list[int], list[int], list[int]]:
        """``offsets``, ``pool`` and ``devices`` as lists, made once: loops over many jobs read them faster."""
        if self._lists is None:
            object.__setattr__(self, "_lists", (self.offsets.tolist(), self.pool.tolist(), self.devices.tolist()))
        assert self._lists is not None
        return self._lists

    def rows_in(self, job: int, pool: int) -> range:
        """Rows of one job in one pool."""
        offsets, pools, _ = self.lists
        first = bisect_left(pools, pool, offsets[job], offsets[job + 1])
        return range(first, bisect_right(pools, pool, first, offsets[job + 1]))

    def row_of(self, job: int, pool: int, devices: int) -> int | None:
        """The row of one job on so many worker devices of a pool; None = there is none."""
        rows, counts = self.rows_in(job, pool), self.lists[2]
        row = bisect_left(counts, devices, rows.start, rows.stop)
        return row if row < rows.stop and counts[row] == devices else None

    def at_requests(self, state: ClusterState) -> Requests:
        """Devices and throughput of every job in every pool, at its requested devices or the next larger count."""
        shape = (len(state.jobs), len(state.pools))
        workers, rates = np.zeros(shape, dtype=np.int64), np.zeros(shape)
        requests, servers = state.columns.requested_devices, state.columns.server_devices
        lengths = np.diff(self.offsets)
        job = np.repeat(np.arange(shape[0]), lengths)
        large = self.devices >= np.repeat(requests, lengths)
        # Rows come by job, pool and count: the first large enough one of a job and pool is the smallest.
        first = large.copy()
        first[1:] &= ~large[:-1] | (job[1:] != job[:-1]) | (self.pool[1:] != self.pool[:-1])
        rows = np.flatnonzero(first)
        workers[job[rows], self.pool[rows]] = self.devices[rows]
        rates[job[rows], self.pool[rows]] = self.samples_per_s[rows]
        devices = np.where(workers > 0, workers + servers[:, np.newaxis], 0)
        return Requests(workers=workers, devices=devices, samples_per_s=rates)


@dataclass(frozen=True, slots=True)
class Grant:
    """Worker devices for one job in one pool; ``devices`` 0 = nothing. ``why`` is for people.

    ``shares_with`` is the job (its index) on whose device this one runs beside it; -1 = on devices of its own. Both
    have one worker device in the same pool and no servers, and are a pair of ``ClusterState.sharing``; only one of two
    jobs that share states it.
    """

    devices: int
    pool: int = -1
    why: str = ""
    shares_with: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """A policy's decision: one grant per job, in order. The core places devices on nodes.

    ``complete`` False = the budget ended first and this is the best feasible allocation so far.
    """

    grants: tuple[Grant, ...]
    complete: bool = True
    memory: bytes = b""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Shares:
    """A policy's decision as shares of time: (jobs, pools). The core turns it into devices, round by round.

    Attributes
    ----------
    shares : (jobs, pools) float
        Share of time that each job gets on its requested devices of each pool; a row adds up to at most 1.
    round_s : float
        Seconds of a round.
    hold_s : float
        Least seconds that shares stay valid although jobs come and go; the policy is not called before.
    shuffle_seed : int or None
        Not None = no pool is preferred: the order of the pools is random in each round.
    leftovers : bool
        Whether jobs run on free devices of a pool of which they have no share.
    """

    shares: NDArray[np.float64]
    complete: bool = True
    memory: bytes = b""
    round_s: float = 360.0
    hold_s: float = 1920.0
    shuffle_seed: int | None = None
    leftovers: bool = True
