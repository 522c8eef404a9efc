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
"""Numbers of 0 or more, by their paths in the contract; a number that is not stated is 0."""
_numbers_of: Final = attrgetter(*_NUMBERS.values())
LEAST_WEIGHT: Final = 1e-9
"""A smaller weight can only be a mistake, and quotients by it would leave the range of a double."""


class JobReader:
    """Reads one job after the other against the same cluster.

    Parameters
    ----------
    most_counts : int
        Counts that jobs without ``allowed_devices`` may have together; jobs of the same bounds share theirs.
    """

    def __init__(self, question: ScheduleQuestion, findings: Findings, most_counts: int) -> None:
        self._findings = findings
        self._pools = question.pools
        self._pool_index = {pool.name: index for index, pool in enumerate(question.pools)}
        self._sizes = [pool.total_devices for pool in question.pools]
        self._available = [pool.available_devices.tolist() for pool in question.pools]
        self._everywhere = tuple(range(len(question.pools)))
        self._devices_in_use: dict[tuple[int, int], int] = {}
        self._counted_jobs: set[str] = set()
        pairs = [(job.job_id, job.current.shares_with) for job in question.jobs if job.current is not None]
        self._partner_of = {name: other for one, two in pairs if two for name, other in ((one, two), (two, one))}
        self._ids: dict[str, int] = {}
        self._ranges: dict[tuple[int, int], tuple[int, ...]] = {}
        self._most_counts = self._counts_left = most_counts

    def read(self, place: int, job: JobQuestion) -> JobState:
        """The job's state; errors are collected."""
        findings, path = self._findings, f"jobs[{place}]"
        findings.name(f"{path}.job_id", job.job_id)
        if self._ids.setdefault(job.job_id, place) != place:
            findings.wrong(f"{path}.job_id", f"must be unique, also the id of jobs[{self._ids[job.job_id]}]")
        findings.number(f"{path}.remaining_samples", job.remaining_samples, above_zero=True)
        for name, value in zip(_NUMBERS, _numbers_of(job), strict=True):
            if value:
                findings.number(f"{path}.{name}", value)
        if job.initial_batch_samples is not None:
            findings.number(f"{path}.efficiency.initial_batch_samples", job.initial_batch_samples, above_zero=True)
        if 0 < job.weight < LEAST_WEIGHT:
            findings.wrong(f"{path}.weight", f"must be at least {LEAST_WEIGHT:g}, found {job.weight:g}")
        for name, moment in (("submit_time", job.submit_time_s), ("deadline", job.deadline_s)):
            if moment is not None and not math.isfinite(moment):
                findings.wrong(f"{path}.{name}", "must be a time")
        pools = self._allowed_pools(path, job)
        allowed_devices, requested_devices = self._allowed_devices(path, job, pools)
        return JobState(
            **job.facts(),
            allowed_devices=allowed_devices,
            allowed_pools=pools,
            requested_devices=requested_devices,
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
        names = ", ".join(repr(pool.name) for pool in self._pools[:10])
        self._findings.wrong(path, f"must name a pool of the cluster ({names}), found {name!r}")

    def _allowed_devices(self, path: str, job: JobQuestion, pools: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
        """Allowed counts, ascending, and the requested one."""
        findings, least, most = self._findings, max(job.min_devices, 1), job.max_devices
        if most and least > most:
            findings.contradicts(f"{path}.min_devices", f"must be at most max_devices ({most}), found {least}")
            return (), least
        for index, count in enumerate(job.allowed_devices):
            if count < 1:
                findings.wrong(f"{path}.allowed_devices[{index}]", f"must be 1 or more, found {count}")
        if job.allowed_devices:
            counts = tuple(sorted({n for n in job.allowed_devices if n >= least and (not most or n <= most)}))
            if not counts:
                bounds = f"min_devices, {least}, to max_devices, {most}" if most else f"min_devices, {least}"
                findings.contradicts(f"{path}.allowed_devices", f"must contain a count from {bounds}")
                return (), least
            largest = counts[-1]
        else:
            here = max((self._sizes[pool] for pool in pools), default=0)
            counts = self._range(least, min(most, here) if most else here, f"{path}.max_devices")
            largest = most or max(here, least)
        request = job.requested_devices or (counts[0] if counts else least)
        if job.requested_devices and not least <= request <= largest and (job.allowed_devices or most):
            findings.contradicts(f"{path}.requested_devices", f"must be {least} to {largest}, found {request}")
        return counts, request

    def _range(self, least: int, most: int, path: str) -> tuple[int, ...]:
        """The counts of all jobs with these bounds; empty when the least is more than any pool has.

        Raises
        ------
        NodewiseError
            LIMIT_EXCEEDED; raised before the counts are listed, since a cluster of many devices has as many counts.
        """
        if (least, most) not in self._ranges:
            counts = max(most - least + 1, 0)
            self._counts_left -= counts
            if self._counts_left < 0:
                text = (
                    f"allows {counts:,} counts, and jobs without allowed_devices may have {self._most_counts:,} "
                    "together: state allowed_devices or a smaller max_devices"
                )
                raise NodewiseError.invalid([Violation(path, text)], Reason.LIMIT_EXCEEDED)
            self._ranges[least, most] = tuple(range(least, most + 1))
        return self._ranges[least, most]

    def _current(self, path: str, job: JobQuestion) -> CurrentAllocation | None:
        holding, findings = job.current, self._findings
        if holding is None:
            return None
        findings.number(f"{path}.age_seconds", holding.age_s)
        pool = self._pool_index.get(holding.pool)
        if pool is None:
            self._unknown_pool(f"{path}.pool", holding.pool)
            return None
        if not holding.placement:
            findings.wrong(f"{path}.placement", "must contain a node; omit current_allocation if the job does not run")
            return None
        # Devices that two jobs share are counted with the first of them.
        self._counted_jobs.add(job.job_id)
        if self._partner_of.get(job.job_id) not in self._counted_jobs:
            self._check_placement(path, holding.placement, pool)
        current = CurrentAllocation(
            pool=pool, placement=holding.placement, age_s=holding.age_s, shares_with=holding.shares_with
        )
        if current.devices <= job.server_devices:
            findings.contradicts(
                f"{path}.placement",
                f"must contain more devices than server_devices, {job.server_devices}, found {current.devices}",
            )
        return current

    def _check_placement(self, path: str, placement: tuple[tuple[int, int], ...], pool: int) -> None:
        findings, available = self._findings, self._available[pool]
        nodes: set[int] = set()
        for index, (node, count) in enumerate(placement):
            entry = f"{path}.placement[{index}]"
            if not 0 <= node < len(available):
                findings.wrong(f"{entry}.node_index", f"must be 0 to {len(available) - 1}, found {node}")
                continue
            if node in nodes:
                findings.wrong(f"{entry}.node_index", f"must be unique, found node {node} twice")
            if count < 1:
                findings.wrong(f"{entry}.devices_count", f"must be 1 or more, found {count}")
                continue
            whole = self._pools[pool].devices_per_node
            if whole and count != whole:
                findings.wrong(
                    f"{entry}.devices_count",
                    f"must be devices_per_node, {whole}, since nodes are granted whole; found {count}",
                )
            nodes.add(node)
            in_use = self._devices_in_use.get((pool, node), 0) + count
            self._devices_in_use[pool, node] = in_use
            if in_use > available[node]:
                findings.contradicts(
                    f"{entry}.devices_count",
                    f"must leave the jobs on node {node} of {self._pools[pool].name!r} within its available_devices, "
                    f"{available[node]}, found {in_use} devices in use",
                )
