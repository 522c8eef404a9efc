"""Jobs that share a device: who is beside whom in what a policy granted, and in what runs now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nodewise.domain.schedule import Grant, JobState
from nodewise.domain.shared_pairs import SharedPairs
from nodewise.hosting.calls import ImpossibleAnswerError

__all__ = ["both_ways", "hosts_of", "running_pairs"]


def hosts_of(grants: Sequence[Grant], jobs: Sequence[JobState], sharing: SharedPairs | None) -> dict[int, int]:
    """The job whose device is shared, by each job that runs beside one.

    Raises
    ------
    ImpossibleAnswerError
        For jobs that cannot share, saying why.
    """
    found: dict[int, int] = {}
    for index, grant in enumerate(grants):
        host = int(grant.shares_with)
        if host < 0 or not grant.devices:
            continue
        name = jobs[index].job_id
        assert sharing is not None, "checked with the answer"
        if host >= len(jobs) or host == index or grants[host].devices == 0:
            raise ImpossibleAnswerError(f"it put {name!r} beside job {host}, which has no devices of its own")
        other = grants[host]
        if other.shares_with >= 0 or host in found.values():
            raise ImpossibleAnswerError(f"it put {name!r} on a device that two jobs share already")
        servers = jobs[index].server_devices + jobs[host].server_devices
        if (grant.devices, other.devices, servers) != (1, 1, 0) or grant.pool != other.pool:
            text = (
                f"it put {name!r} beside {jobs[host].job_id!r}: both must have one device of one pool, and no servers"
            )
            raise ImpossibleAnswerError(text)
        if sharing.of(grant.pool, index, host) is None:
            raise ImpossibleAnswerError(f"it put {name!r} beside {jobs[host].job_id!r}, which may not share a device")
        found[index] = host
    return found


def both_ways(hosts: Mapping[int, int]) -> dict[int, int]:
    """Each job's partner."""
    return {**hosts, **{host: guest for guest, host in hosts.items()}}


def running_pairs(jobs: Sequence[JobState]) -> dict[int, int]:
    """Each job's partner on the devices that it holds now."""
    places = {job.job_id: index for index, job in enumerate(jobs)}
    return {
        index: places[job.current.shares_with]
        for index, job in enumerate(jobs)
        if job.current is not None and job.current.shares_with
    }
