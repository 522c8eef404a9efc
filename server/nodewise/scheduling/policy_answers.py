"""Checks of a policy's answer: whole grants, finite shares, memory of bytes."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, Final

import numpy as np

from nodewise.domain.schedule import Allocation, ClusterState, Grant, Shares
from nodewise.hosting.calls import ImpossibleAnswerError

__all__ = ["MAX_MEMORY_BYTES", "sound_answer"]

MAX_MEMORY_BYTES: Final = 1024 * 1024
"""Most memory that a policy may return: a quarter of gRPC's default limit of 4 MiB per message."""
SHARE_SLACK: Final = 1e-6
"""The most by which a job's shares may exceed 1; solvers of linear programs stop at about 1e-8."""

_devices, _pool, _shares_with = attrgetter("devices"), attrgetter("pool"), attrgetter("shares_with")


def sound_answer(answer: Any, state: ClusterState) -> Allocation | Shares:
    """A policy's answer, if it has the right form.

    Callers check that counts are on the curves and that everything fits, since they know the free devices.

    Raises
    ------
    ImpossibleAnswerError
        With the reason.
    """
    if not isinstance(answer, Allocation | Shares):
        raise ImpossibleAnswerError(f"it must return an Allocation or Shares, found {type(answer).__name__}")
    memory: object = answer.memory
    if not isinstance(memory, bytes) or len(memory) > MAX_MEMORY_BYTES:
        raise ImpossibleAnswerError(f"memory must be at most {MAX_MEMORY_BYTES:,} bytes")
    if isinstance(answer, Shares):
        _require_shares(answer, state)
    else:
        _require_grants(answer, state)
    return answer


def _require_grants(answer: Allocation, state: ClusterState) -> None:
    """One grant of whole devices per job."""
    grants: object = answer.grants
    if not isinstance(grants, tuple | list) or len(grants) != len(state.jobs):
        raise ImpossibleAnswerError(f"grants must have one entry per job, {len(state.jobs)} in all")
    # Sets of types are fast: a simulation checks thousands of answers about thousands of jobs.
    are_grants = set(map(type, grants)) <= {Grant}
    beside: set[object] = set(map(_shares_with, grants)) if are_grants else set()
    whole = are_grants and all(
        issubclass(kind, int | np.integer)
        for kind in {*map(type, beside), *map(type, map(_devices, grants)), *map(type, map(_pool, grants))}
    )
    if not whole:
        job = next((job for job, grant in zip(state.jobs, grants) if not _is_whole(grant)), state.jobs[0])
        raise ImpossibleAnswerError(f"the grant of {job.job_id!r} must be a Grant with integers")
    if state.sharing is None and beside - {-1}:
        raise ImpossibleAnswerError("it granted two jobs one device, but the request has no shared_pairs")


def _is_whole(grant: object) -> bool:
    return isinstance(grant, Grant) and all(
        isinstance(each, int | np.integer) for each in (grant.devices, grant.pool, grant.shares_with)
    )


def _require_shares(answer: Shares, state: ClusterState) -> None:
    shape = (len(state.jobs), len(state.pools))
    shares: object = answer.shares
    if not isinstance(shares, np.ndarray) or shares.shape != shape or shares.dtype.kind != "f":
        raise ImpossibleAnswerError(f"shares must be a float array of shape {shape}")
    if not np.isfinite(shares).all() or (shares < -SHARE_SLACK).any():
        raise ImpossibleAnswerError("shares must be finite and 0 or more")
    if (shares.sum(axis=1) > 1 + SHARE_SLACK).any():
        raise ImpossibleAnswerError("shares of one job must sum to at most 1")
    if not (0 < answer.round_s < np.inf and 0 <= answer.hold_s < np.inf):
        raise ImpossibleAnswerError("round_s must be above 0 and hold_s 0 or more, both finite")
    if answer.shuffle_seed is not None and not isinstance(answer.shuffle_seed, int | np.integer):
        raise ImpossibleAnswerError("shuffle_seed must be an integer or None")
