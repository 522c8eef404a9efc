"""A verdict: the checked decision of a policy, or the next round of its shares of time while they are valid."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np

from nodewise.domain.schedule import Allocation, ClusterState, Curves, Grant, Shares
from nodewise.hosting.calls import ImpossibleAnswerError, call, impossible
from nodewise.hosting.registry import LoadedPlugin
from nodewise.hosting.soundness import as_text
from nodewise.plugin import Budget, PolicyRecord
from nodewise.scheduling.memory import Memory
from nodewise.scheduling.packing import hosts_of
from nodewise.scheduling.policy_answers import MAX_MEMORY_BYTES, sound_answer
from nodewise.scheduling.rounding import first_round, make_offer, next_round

__all__ = ["Verdict", "verdict_of"]

MAX_WHY: Final = 200
"""Most characters of a policy's own explanation that callers get."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A policy's decision after every check: one grant per job of the state."""

    grants: tuple[Grant, ...]
    complete: bool
    memory: bytes


def verdict_of(policy: LoadedPlugin[PolicyRecord], state: ClusterState, curves: Curves, budget: Budget) -> Verdict:
    """Call a policy, unless its shares of time are still valid, and check its answer.

    Raises
    ------
    NodewiseError
        INVALID_FIELD when the caller sent a damaged memory, POLICY_FAILED when the policy raises,
        POLICY_INVALID_RESULT when its answer is not allowed.
    """
    memory, record = Memory.from_bytes(state.memory), policy.record
    policy_name, state = f"{record.name} {record.version}", replace(state, memory=memory.policy)
    try:
        if memory.rounds is not None:
            next_grants = next_round(memory.rounds, make_offer(state, curves), state, policy_name)
            if next_grants is not None:
                grants, after = next_grants
                return _verdict(_feasible(grants, state, curves), Memory(after, state.memory), complete=True)
        check = partial(_read_answer, state=state, curves=curves)
        answer = call(policy, record.policy, "decide", state, curves, budget, check=check)
        if isinstance(answer, Allocation):
            return _verdict(answer.grants, Memory(None, answer.memory), complete=answer.complete)
        grants, after = first_round(answer, memory.rounds, state, curves, policy_name)
        if not answer.complete:
            # Shares of a policy that had too little time are not kept: the next call makes new ones.
            after = replace(after, hold_s=0.0, work=b"")
        return _verdict(_feasible(grants, state, curves), Memory(after, answer.memory), complete=answer.complete)
    except ImpossibleAnswerError as error:
        raise impossible(policy, "decide", str(error)) from None


def _read_answer(answer: Any, state: ClusterState, curves: Curves) -> Allocation | Shares:
    """The policy's answer after every check, as values that the policy can no longer change."""
    sound = sound_answer(answer, state)
    if isinstance(sound, Allocation):
        grants = _feasible(sound.grants, state, curves)
        return Allocation(grants=grants, complete=bool(sound.complete), memory=sound.memory)
    return replace(sound, shares=np.clip(sound.shares, 0.0, 1.0), complete=bool(sound.complete))


def _feasible(grants: tuple[Grant, ...], state: ClusterState, curves: Curves) -> tuple[Grant, ...]:
    """The grants, if their counts and pools are on the curves and everything fits."""
    jobs, pools = state.jobs, state.pools
    free = [pool.total_devices for pool in pools]
    quotas = dict(state.quotas)
    result = []
    for index, (job, grant) in enumerate(zip(jobs, grants)):
        devices, pool = int(grant.devices), int(grant.pool)
        why = as_text(grant.why, MAX_WHY)
        if devices < 0:
            raise ImpossibleAnswerError(f"it granted {job.job_id!r} {devices} devices")
        if not devices:
            result.append(Grant(0, why=why))
            continue
        if curves.row_of(index, pool, devices) is None:
            raise ImpossibleAnswerError(
                f"it granted {job.job_id!r} {devices} devices in pool {pool}, which is not on its curve"
            )
        if grant.shares_with < 0:
            free[pool] -= devices + job.server_devices
        if free[pool] < 0:
            raise ImpossibleAnswerError(f"it granted more devices of pool {pools[pool].name!r} than it has free")
        if job.queue in quotas:
            quotas[job.queue] -= devices + job.server_devices
            if quotas[job.queue] < 0:
                raise ImpossibleAnswerError(f"it granted queue {job.queue!r} more devices than its quota")
        result.append(Grant(devices, pool, why, int(grant.shares_with)))
    hosts_of(result, state.jobs, state.sharing)
    return tuple(result)


def _verdict(grants: tuple[Grant, ...], memory: Memory, *, complete: bool) -> Verdict:
    content = memory.to_bytes()
    if len(content) > MAX_MEMORY_BYTES:
        raise ImpossibleAnswerError(f"memory must be at most {MAX_MEMORY_BYTES:,} bytes")
    return Verdict(grants=grants, complete=complete, memory=content)
