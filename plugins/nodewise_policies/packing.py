"""First come, first served, with two jobs on a device where that does more than one after the other.

The packing of Gavel (Narayanan et al., "Heterogeneity-aware cluster scheduling policies for deep learning workloads",
OSDI'20, section 3.1) as a greedy rule: pairs by the total of their shares of solo speed, of jobs with one device each.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from nodewise.plugin import Allocation, Budget, ClusterState, Curves, Grant, Ints, Requests

__all__ = ["Packing"]

BUDGET_STRIDE: Final = 32
"""Jobs between two looks at the clock."""


class Packing:
    """Serves rigid requests by submission; a job that finds no free device shares one.

    - A job that runs on what it requested, or within its minimum run, keeps that, and the job that it shares with:
      no job is stopped for another.
    - Then, by submission, each other job gets the devices it requested, where it is fastest of the pools with room; one
      that does not fit is passed over (backfill).
    - Then, by submission, each waiting job of one device is put beside the lone job with which the total of shares is
      greatest, if that is above ``least_total`` and each keeps ``least_share``.
    - Where devices are left and no job waits for them, pairs part, least total first, if what the later one gains is
      more than its restart costs.
    - Quotas count a job that shares like any other. Weights are not used.

    With ``pack`` 0, or where no pairs are known, the first two steps are all there is: what packing is worth shows
    beside it.
    """

    def decide(self, state: ClusterState, curves: Curves, budget: Budget) -> Allocation:
        """Four passes over the jobs; what was granted when the time is over stands."""
        round_ = _Round(state, curves)
        order = state.columns.order.tolist()
        round_.keep([job for job in order if state.columns.pool[job] >= 0])
        complete = round_.serve([job for job in order if not round_.has_devices(job)], budget)
        if complete and state.sharing is not None and state.parameters["pack"] >= 0.5:
            complete = round_.pack([job for job in order if not round_.has_devices(job)], budget)
            round_.part()
        return Allocation(grants=tuple(round_.grants), complete=complete, memory=state.memory)


@dataclass(eq=False)
class _Round:
    """One decision: grants so far, and what is left."""

    state: ClusterState
    curves: Curves
    grants: list[Grant] = field(init=False)

    def __post_init__(self) -> None:
        state = self.state
        self.grants = [Grant(0)] * len(state.jobs)
        self.free = [pool.total_devices for pool in state.pools]
        self.quota = dict(state.quotas)
        self.at: Requests = self.curves.at_requests(state)
        self.partners: dict[int, int] = {}
        self.least_total = state.parameters["least_total"]
        self.least_share = state.parameters["least_share"]

    def has_devices(self, job: int) -> bool:
        """Whether the job has devices."""
        return self.grants[job].devices > 0

    def keep(self, running: list[int]) -> None:
        """Jobs that run keep their devices, and the jobs they share with."""
        places = {self.state.jobs[job].job_id: job for job in running}
        for job in running:
            current = self.state.jobs[job].current
            assert current is not None
            count = current.devices - self.state.jobs[job].server_devices
            rows = self.curves.rows(job)
            listed = (self.curves.pool[rows] == current.pool) & (self.curves.devices[rows] == count)
            settled = count == self.at.workers[job, current.pool] or self.state.jobs[job].minimum_run_s > current.age_s
            if not (listed.any() and settled):
                continue
            host = places.get(current.shares_with, -1)
            if host >= 0 and self.has_devices(host):
                if self.grants[host].pool == current.pool and self.total(current.pool, job, host) is not None:
                    self._beside(job, host)
            elif self._has_room(job, current.pool, count):
                self._take(job, current.pool, count, "runs")

    def serve(self, waiting: list[int], budget: Budget) -> bool:
        """Devices of their own, by submission; False when the time ran out."""
        for turn, job in enumerate(waiting):
            if turn % BUDGET_STRIDE == 0 and budget.remaining_s() <= 0:
                return False
            if not any(self.free):
                return True
            counts = self.at.workers[job].tolist()
            fitting = [pool for pool, count in enumerate(counts) if count and self._has_room(job, pool, count)]
            if fitting:
                pool = max(fitting, key=self.at.samples_per_s[job].__getitem__)
                self._take(job, pool, counts[pool], f"requested {self.state.jobs[job].requested_devices}")
        return True

    def pack(self, waiting: list[int], budget: Budget) -> bool:
        """Devices of others, by submission; False when the time ran out."""
        sharing = self.state.sharing
        assert sharing is not None
        hosts: Ints = np.array([job for job in range(len(self.grants)) if self._may_host(job)], dtype=np.int64)
        hopeless: set[tuple[int, tuple[int, ...]]] = set()
        for turn, job in enumerate(waiting):
            if turn % BUDGET_STRIDE == 0 and budget.remaining_s() <= 0:
                return False
            kind, counts = int(sharing.kinds[job]), tuple(self.at.workers[job].tolist())
            if not len(hosts):
                return True
            if (
                kind < 0
                or self.state.jobs[job].server_devices
                or not self._quota_left(job)
                or (kind, counts) in hopeless
            ):
                continue
            totals = [
                (total if counts[self.grants[host].pool] == 1 else None)
                for host in hosts.tolist()
                for total in [self.total(self.grants[host].pool, job, host)]
            ]
            best = max(range(len(totals)), key=lambda place: totals[place] or 0.0)
            if not totals[best]:
                hopeless.add((kind, counts))  # hosts only become fewer
                continue
            self._beside(job, int(hosts[best]))
            hosts = np.delete(hosts, best)
        return True

    def part(self) -> None:
        """Pairs come apart onto devices that no job waits for, least total first."""
        pairs = sorted(
            ((self.total(self.grants[job].pool, job, host) or 0.0, job) for job, host in self.partners.items())
        )
        for _, job in pairs:
            pool, host = self.grants[job].pool, self.partners[job]
            asker, sharing = self.state.jobs[job], self.state.sharing
            assert sharing is not None
            shares = sharing.of(pool, job, host)
            rate = float(self.at.samples_per_s[job, pool])
            if shares is None or shares[0] >= 1.0 or self.free[pool] < 1 or rate <= 0.0:
                continue
            alone_s = asker.remaining_samples / rate
            runs = asker.current is not None
            if not runs or alone_s / shares[0] - alone_s > asker.restart_cost_s:
                self.free[pool] -= 1
                self.grants[job] = Grant(1, pool, "a device is free: the job does not share any more")

    def total(self, pool: int, job: int, host: int) -> float | None:
        """What two jobs do together, if that is worth it."""
        sharing = self.state.sharing
        shares = None if sharing is None else sharing.of(pool, job, host)
        if shares is None or min(shares) < self.least_share or sum(shares) <= self.least_total:
            return None
        return sum(shares)

    def _may_host(self, job: int) -> bool:
        alone = job not in self.partners and job not in self.partners.values()
        grant = self.grants[job]
        return grant.devices == 1 and grant.shares_with < 0 and alone and not self.state.jobs[job].server_devices

    def _beside(self, job: int, host: int) -> None:
        pool = self.grants[host].pool
        total = self.total(pool, job, host)
        self.partners[job] = host
        self._spend(job, 1)
        self.grants[job] = Grant(
            1, pool, (f"shares a device: both jobs together run at {total:.3g} of the speed of one alone"), host
        )

    def _has_room(self, job: int, pool: int, count: int) -> bool:
        needs = count + self.state.jobs[job].server_devices
        return needs <= self.free[pool] and needs <= self._quota_left(job)

    def _quota_left(self, job: int) -> int:
        return self.quota.get(self.state.jobs[job].queue, sum(pool.total_devices for pool in self.state.pools))

    def _take(self, job: int, pool: int, count: int, why: str) -> None:
        devices = count + self.state.jobs[job].server_devices
        self.free[pool] -= devices
        self._spend(job, devices)
        self.grants[job] = Grant(count, pool, why)

    def _spend(self, job: int, devices: int) -> None:
        queue = self.state.jobs[job].queue
        if queue in self.quota:
            self.quota[queue] -= devices
