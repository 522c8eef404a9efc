"""Pairs of jobs that share a device, in the grants of a policy and in the current allocation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nodewise.domain.schedule import Grant, JobState
from nodewise.domain.shared_pairs import SharedPairs
from nodewise.hosting.calls import ImpossibleAnswerError

__all__ = ["both_ways", "hosts_of", "running_pairs"]


def hosts_of(grants: Sequence[Grant], jobs: Sequence[JobState], sharing: SharedPairs | None) -> dict[int, int]:
    """The host of every guest: a job that is granted a share of another job's device.

    Raises
    ------
    ImpossibleAnswerError
        For jobs that cannot share a device, with the reason.
    """
    hosts: dict[int, int] = {}
    for index, grant in enumerate(grants):
        host = int(grant.shares_with)
        if host < 0 or not grant.devices:
            continue
        name = jobs[index].job_id
        assert sharing is not None, "policy_answers refuses pairs without a table of pairs"
        if host >= len(jobs) or host == index or grants[host].devices == 0:
            raise ImpossibleAnswerError(f"it granted {name!r} a share of the device of job {host}, which has none")
        other = grants[host]
        if other.shares_with >= 0 or host in hosts.values():
            raise ImpossibleAnswerError(f"it granted {name!r} a share of a device that two jobs share already")
        servers = jobs[index].server_devices + jobs[host].server_devices
        if (grant.devices, other.devices, servers) != (1, 1, 0) or grant.pool != other.pool:
            text = "jobs that share must have the same device, one each, and no parameter servers"
            raise ImpossibleAnswerError(f"it granted {name!r} a share of the device of {jobs[host].job_id!r}: {text}")
        if sharing.of(grant.pool, index, host) is None:
            text = "shared_pairs does not list the pair"
            raise ImpossibleAnswerError(f"it granted {name!r} a share of the device of {jobs[host].job_id!r}: {text}")
        hosts[index] = host
    return hosts


def both_ways(hosts: Mapping[int, int]) -> dict[int, int]:
    """Each job's partner."""
    return {**hosts, **{host: guest for guest, host in hosts.items()}}


def running_pairs(jobs: Sequence[JobState]) -> dict[int, int]:
    """Each job's partner in the current allocation."""
    places = {job.job_id: index for index, job in enumerate(jobs)}
    return {
        index: places[job.current.shares_with]
        for index, job in enumerate(jobs)
        if job.current is not None and job.current.shares_with
    }
