"""Checks of one job of a schedule question against the cluster."""

from __future__ import annotations

import math
from operator import attrgetter
from typing import Final

from nodewise.domain.errors import NodewiseError, Reason, Violation
from nodewise.domain.schedule import CurrentAllocation, JobState
from nodewise.scheduling.findings import Findings
from nodewise.scheduling.request import JobQuestion, ScheduleQuestion

__all__ = ["JobReader"]

_SAME: Final = ("min_devices", "max_devices", "server_devices", "requested_devices", "weight")
_NUMBERS: Final = dict(zip(_SAME, _SAME)) | {
    "attained_service_device_seconds": "attained_service_device_s",
    "restart_cost_seconds": "restart_cost_s",
    "minimum_run_seconds": "minimum_run_s",
    "restarts_count": "restarts",
    "efficiency.gradient_noise_scale_samples": "gradient_noise_scale_samples",
}
"""Numbers of 0 or more, by their paths in the contract; what is not stated is as good as 0."""
_numbers_of: Final = attrgetter(*_NUMBERS.values())
LEAST_WEIGHT: Final = 1e-9
"""A smaller weight can only be a slip, and would leave the range of a double when divided by."""


class JobReader:
    """Reads one job after the other against the same cluster.

    Parameters
    ----------
    most_counts : int
        Numbers of devices that jobs which state none may list together; those of the same bounds are listed once.
    """

    def __init__(self, question: ScheduleQuestion, found: Findings, most_counts: int) -> None:
        self._found = found
        self._pools = question.pools
        self._pool_index = {pool.name: index for index, pool in enumerate(question.pools)}
        self._sizes = [pool.total_devices for pool in question.pools]
        self._available = [pool.available_devices.tolist() for pool in question.pools]
        self._everywhere = tuple(range(len(question.pools)))
        self._held: dict[tuple[int, int], int] = {}
        self._counted: set[str] = set()
        said = [(job.job_id, job.current.shares_with) for job in question.jobs if job.current is not None]
        self._beside = {name: other for one, two in said if two for name, other in ((one, two), (two, one))}
        self._ids: dict[str, int] = {}
        self._ranges: dict[tuple[int, int], tuple[int, ...]] = {}
        self._most_counts = self._counts_left = most_counts

    def read(self, place: int, job: JobQuestion) -> JobState:
        """The job's state; what is wrong is collected."""
        found, path = self._found, f"jobs[{place}]"
        found.name(f"{path}.job_id", job.job_id)
        if self._ids.setdefault(job.job_id, place) != place:
            found.wrong(f"{path}.job_id", f"must be unique, {job.job_id!r} is also jobs[{self._ids[job.job_id]}]")
        found.number(f"{path}.remaining_samples", job.remaining_samples, above_zero=True)
        for name, value in zip(_NUMBERS, _numbers_of(job), strict=True):
            if value:
                found.number(f"{path}.{name}", value)
        if job.initial_batch_samples is not None:
            found.number(f"{path}.efficiency.initial_batch_samples", job.initial_batch_samples, above_zero=True)
        if 0 < job.weight < LEAST_WEIGHT:
            found.wrong(f"{path}.weight", f"must be at least {LEAST_WEIGHT:g}, found {job.weight:g}")
        for name, moment in (("submit_time", job.submit_time_s), ("deadline", job.deadline_s)):
            if moment is not None and not math.isfinite(moment):
                found.wrong(f"{path}.{name}", "must be a time")
        pools = self._allowed_pools(path, job)
        allowed, requested = self._allowed_devices(path, job, pools)
        return JobState(
            **job.facts(),
            allowed_devices=allowed,
            allowed_pools=pools,
            requested_devices=requested,
            current=self._current(f"{path}.current_allocation", job),
            weight=job.weight or 1.0,
        )

    def _allowed_pools(self, path: str, job: JobQuestion) -> tuple[int, ...]:
        if not job.allowed_pools:
            return self._everywhere
        for index, name in enumerate(job.allowed_pools):
            if name not in self._pool_index:
                self._unknown_pool(f"{path}.allowed_pools[{index}]", name)
        return tuple(sorted({self._pool_index[name] for name in job.allowed_pools if name in self._pool_index}))

    def _unknown_pool(self, path: str, name: str) -> None:
        listed = ", ".join(repr(pool.name) for pool in self._pools[:10])
        self._found.wrong(path, f"must name a pool of the cluster ({listed}), found {name!r}")

    def _allowed_devices(self, path: str, job: JobQuestion, pools: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
        """Allowed counts, ascending, and the requested one."""
        found, least, most = self._found, max(job.min_devices, 1), job.max_devices
        if most and least > most:
            found.contradicts(f"{path}.min_devices", f"is {least}, more than max_devices, {most}")
            return (), least
        for index, count in enumerate(job.allowed_devices):
            if count < 1:
                found.wrong(f"{path}.allowed_devices[{index}]", f"must be 1 or more, found {count}")
        if job.allowed_devices:
            allowed = tuple(sorted({n for n in job.allowed_devices if n >= least and (not most or n <= most)}))
            if not allowed:
                bounds = f"min_devices, {least}, to max_devices, {most}" if most else f"min_devices, {least}"
                found.contradicts(f"{path}.allowed_devices", f"holds no count from {bounds}")
                return (), least
            largest = allowed[-1]
        else:
            here = max((self._sizes[pool] for pool in pools), default=0)
            allowed = self._range(least, min(most, here) if most else here, f"{path}.max_devices")
            largest = most or max(here, least)
        requested = job.requested_devices or (allowed[0] if allowed else least)
        if job.requested_devices and not least <= requested <= largest and (job.allowed_devices or most):
            found.contradicts(f"{path}.requested_devices", f"is {requested}, not within {least} to {largest}")
        return allowed, requested

    def _range(self, least: int, most: int, path: str) -> tuple[int, ...]:
        """Shared by all jobs of the same bounds; empty when the least is more than any pool has.

        Raises
        ------
        NodewiseError
            LIMIT_EXCEEDED: counted before they are listed, since a cluster of many devices has as many counts.
        """
        if (least, most) not in self._ranges:
            counts = max(most - least + 1, 0)
            self._counts_left -= counts
            if self._counts_left < 0:
                text = (
                    f"allows {counts:,} counts, and jobs that state no allowed_devices may list {self._most_counts:,} "
                    "together: state allowed_devices or a smaller max_devices"
                )
                raise NodewiseError.invalid([Violation(path, text)], Reason.LIMIT_EXCEEDED)
            self._ranges[least, most] = tuple(range(least, most + 1))
        return self._ranges[least, most]

    def _current(self, path: str, job: JobQuestion) -> CurrentAllocation | None:
        held, found = job.current, self._found
        if held is None:
            return None
        found.number(f"{path}.age_seconds", held.age_s)
        pool = self._pool_index.get(held.pool)
        if pool is None:
            self._unknown_pool(f"{path}.pool", held.pool)
            return None
        if not held.placement:
            found.wrong(f"{path}.placement", "must hold a node; leave current_allocation out when the job does not run")
            return None
        # Devices that two jobs share are counted with the first of them.
        self._counted.add(job.job_id)
        if self._beside.get(job.job_id) not in self._counted:
            self._check_placement(path, held.placement, pool)
        current = CurrentAllocation(pool=pool, placement=held.placement, age_s=held.age_s, shares_with=held.shares_with)
        if current.devices <= job.server_devices:
            found.contradicts(
                f"{path}.placement",
                f"holds {current.devices} devices, no worker beside {job.server_devices} for servers",
            )
        return current

    def _check_placement(self, path: str, placement: tuple[tuple[int, int], ...], pool: int) -> None:
        found, available = self._found, self._available[pool]
        seen: set[int] = set()
        for index, (node, count) in enumerate(placement):
            entry = f"{path}.placement[{index}]"
            if not 0 <= node < len(available):
                found.wrong(f"{entry}.node_index", f"must be 0 to {len(available) - 1}, found {node}")
                continue
            if node in seen:
                found.wrong(f"{entry}.node_index", f"must be unique, node {node} is listed twice")
            if count < 1:
                found.wrong(f"{entry}.devices_count", f"must be 1 or more, found {count}")
                continue
            whole = self._pools[pool].devices_per_node
            if whole and count != whole:
                found.wrong(
                    f"{entry}.devices_count",
                    f"must be devices_per_node, {whole}, since nodes are given out whole; found {count}",
                )
            seen.add(node)
            held = self._held.get((pool, node), 0) + count
            self._held[pool, node] = held
            if held > available[node]:
                found.contradicts(
                    f"{entry}.devices_count",
                    f"makes {held} devices held by the jobs on node {node} of {self._pools[pool].name!r}, "
                    f"where available_devices says {available[node]}",
                )
