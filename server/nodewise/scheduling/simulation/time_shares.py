"""Shares of time, served round by round: each round goes to the jobs that received least of what they are due.

Source: the rounds of Gavel (Narayanan et al., OSDI'20). Per pool, jobs by descending share / time received there since
the shares were set (which starts at half a round, so that nobody's ratio is infinite), then by deficit and by share;
what does not fit is skipped, and a job runs in one pool. Jobs without a share (they came after the shares were set)
take what is left, so that no device idles that some job could use. When shares are set anew, a job's deficit grows by
what it was due since the last time and did not get.
"""

from __future__ import annotations

from collections.abc import Sequence

from nodewise.domain.columns import Floats
from nodewise.domain.schedule import Grant
from nodewise.scheduling.simulation.active import ActiveJob

__all__ = ["TimeShares"]


class TimeShares:
    """Turns the shares of the last decision into grants of requested devices, round after round."""

    def __init__(self, round_s: float) -> None:
        self._initial_s = round_s / 2

    def reset(self, jobs: Sequence[ActiveJob], shares: Floats, elapsed_s: float) -> None:
        """Begin anew with the shares (jobs, pools) of a decision, ``elapsed_s`` after the last one."""
        for job, row in zip(jobs, shares.tolist()):
            due = job.shares or (0.0,) * len(row)
            job.deficit_s = [
                deficit + share * elapsed_s - received
                for deficit, share, received in zip(job.deficit_s, due, job.received_s)
            ]
            job.received_s = [0.0] * len(row)
            job.shares = tuple(row)

    def grants(self, jobs: Sequence[ActiveJob], free: list[int]) -> list[Grant]:
        """A grant of the next round for each job."""
        granted = [Grant(0)] * len(jobs)
        for pool in range(len(free)):
            queue = []
            for index, job in enumerate(jobs):
                if granted[index].devices or (pool, job.spec.requested_devices) not in job.curve.rates:
                    continue
                share = job.shares[pool] if job.shares else 0.0
                ratio = share / (self._initial_s + job.received_s[pool])
                queue.append((-ratio, -job.deficit_s[pool], -share, index))
            queue.sort()
            left = free[pool]
            for _, _, _, index in queue:
                devices = jobs[index].spec.requested_devices + jobs[index].spec.server_devices
                if devices <= left:
                    left -= devices
                    granted[index] = Grant(jobs[index].spec.requested_devices, pool)
        return granted
