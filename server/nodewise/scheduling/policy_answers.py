"""What a policy answers, read once and checked: whole grants, finite shares, memory of bytes."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, Final

import numpy as np

from nodewise.domain.schedule import Allocation, ClusterState, Grant, Shares
from nodewise.hosting.calls import ImpossibleAnswerError

__all__ = ["MAX_MEMORY_BYTES", "sound_answer"]

MAX_MEMORY_BYTES: Final = 1024 * 1024
"""Memory that a policy may hand to the caller: a quarter of gRPC's default of 4 MiB per message."""
SHARE_SLACK: Final = 1e-6
"""By how much a job's shares may exceed 1: solvers of linear programs stop at about 1e-8."""

_devices, _pool, _shares_with = attrgetter("devices"), attrgetter("pool"), attrgetter("shares_with")


def sound_answer(answer: Any, state: ClusterState) -> Allocation | Shares:
    """A policy's answer, if it is one.

    That counts are on the curves and that everything fits is for those who know what is free.

    Raises
    ------
    ImpossibleAnswerError
        Saying what is wrong.
    """
    if not isinstance(answer, Allocation | Shares):
        raise ImpossibleAnswerError(f"a {type(answer).__name__} instead of an Allocation or Shares")
    memory: object = answer.memory
    if not isinstance(memory, bytes) or len(memory) > MAX_MEMORY_BYTES:
        raise ImpossibleAnswerError(f"it must remember at most {MAX_MEMORY_BYTES:,} bytes")
    if isinstance(answer, Shares):
        _require_shares(answer, state)
    else:
        _require_grants(answer, state)
    return answer


def _require_grants(answer: Allocation, state: ClusterState) -> None:
    """One grant of whole devices per job."""
    grants: object = answer.grants
    if not isinstance(grants, tuple | list) or len(grants) != len(state.jobs):
        raise ImpossibleAnswerError(f"it must grant once per job, {len(state.jobs)} times")
    # Sets of types: as fast as counting, for a simulation asks thousands of times about thousands of jobs.
    are_grants = set(map(type, grants)) <= {Grant}
    beside: set[object] = set(map(_shares_with, grants)) if are_grants else set()
    whole = are_grants and all(
        issubclass(kind, int | np.integer)
        for kind in {*map(type, beside), *map(type, map(_devices, grants)), *map(type, map(_pool, grants))}
    )
    if not whole:
        job = next((job for job, grant in zip(state.jobs, grants) if not _is_whole(grant)), state.jobs[0])
        raise ImpossibleAnswerError(f"it granted {job.job_id!r} something that is no Grant of whole devices")
    if state.sharing is None and beside - {-1}:
        raise ImpossibleAnswerError("it put jobs on one device where none may share")


def _is_whole(grant: object) -> bool:
    return isinstance(grant, Grant) and all(
        isinstance(each, int | np.integer) for each in (grant.devices, grant.pool, grant.shares_with)
    )


def _require_shares(answer: Shares, state: ClusterState) -> None:
    wanted = (len(state.jobs), len(state.pools))
    shares: object = answer.shares
    if not isinstance(shares, np.ndarray) or shares.shape != wanted or shares.dtype.kind != "f":
        raise ImpossibleAnswerError(f"it must share in a float array of shape {wanted}")
    if not np.isfinite(shares).all() or (shares < -SHARE_SLACK).any():
        raise ImpossibleAnswerError("it shared out a negative or infinite share of time")
    if (shares.sum(axis=1) > 1 + SHARE_SLACK).any():
        raise ImpossibleAnswerError("it gave a job more than all of the time")
    if not (0 < answer.round_s < np.inf and 0 <= answer.hold_s < np.inf):
        raise ImpossibleAnswerError("it must have rounds of above 0 s and hold shares for 0 s or more")
    if answer.shuffle_seed is not None and not isinstance(answer.shuffle_seed, int | np.integer):
        raise ImpossibleAnswerError("its shuffle_seed is neither a whole number nor None")
