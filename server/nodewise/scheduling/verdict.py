"""A verdict: what a policy decides, unless its shares of time still hold, after every check."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from nodewise.domain.schedule import Allocation, ClusterState, Curves, Grant, Shares
from nodewise.hosting.calls import ImpossibleAnswerError, call, impossible
from nodewise.hosting.registry import Loaded
from nodewise.hosting.soundness import as_text
from nodewise.plugin import Budget, PolicyRecord
from nodewise.scheduling.memory import Memory
from nodewise.scheduling.policy_answers import MAX_MEMORY_BYTES, sound_answer
from nodewise.scheduling.rounding import Rounds, first_round, held_round, offered

__all__ = ["Verdict", "verdict_of"]

MAX_WHY: Final = 200
"""Characters of a policy's own words that are passed on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A policy's decision after every check: one grant per job of the state."""

    grants: tuple[Grant, ...]
    complete: bool
    memory: bytes


def verdict_of(policy: Loaded[PolicyRecord], state: ClusterState, curves: Curves, budget: Budget) -> Verdict:
    """Ask a policy, unless its shares of time still hold, and check its answer.

    Raises
    ------
    NodewiseError
        INVALID_FIELD when the memory that came back is damaged, POLICY_FAILED when the policy raises,
        POLICY_INVALID_RESULT when it allocates what it must not.
    """
    remembered = Memory.from_bytes(state.memory)
    asking = _Asking(policy.record, replace(state, memory=remembered.policy), curves, remembered.rounds)
    try:
        held = asking.held()
        if held is not None:
            return held
        decided = call(policy, policy.record.policy, "decide", asking.state, curves, budget, check=asking.read)
        return asking.verdict(decided)
    except ImpossibleAnswerError as error:
        raise impossible(policy, "decide", str(error)) from None


class _Asking:
    """One policy asked about one state."""

    def __init__(self, record: PolicyRecord, state: ClusterState, curves: Curves, rounds: Rounds | None) -> None:
        self._name = f"{record.name} {record.version}"
        self.state = state
        self._curves = curves
        self._rounds = rounds

    def held(self) -> Verdict | None:
        """The next round of shares that still hold, if there are any."""
        if self._rounds is None:
            return None
        offer = offered(self.state, self._curves)
        held = held_round(self._rounds, offer, self.state, self._name)
        if held is None:
            return None
        grants, after = held
        return _verdict(self._feasible(grants), Memory(after, self.state.memory), complete=True)

    def read(self, answer: Any) -> Allocation | Shares:
        """What the policy answered, if it can be done; nothing of it is looked at afterwards that was not looked at."""
        sound = sound_answer(answer, self.state)
        if isinstance(sound, Allocation):
            return Allocation(grants=self._feasible(sound.grants), complete=bool(sound.complete), memory=sound.memory)
        return replace(sound, shares=np.clip(sound.shares, 0.0, 1.0), complete=bool(sound.complete))

    def verdict(self, decided: Allocation | Shares) -> Verdict:
        """The verdict: grants as they are, shares as the first of their rounds."""
        if isinstance(decided, Allocation):
            return _verdict(decided.grants, Memory(None, decided.memory), complete=decided.complete)
        grants, after = first_round(decided, self._rounds, self.state, self._curves, self._name)
        if not decided.complete:
            # What was made in a hurry does not hold: the policy is asked again next time.
            after = replace(after, hold_s=0.0, work=b"")
        return _verdict(self._feasible(grants), Memory(after, decided.memory), complete=decided.complete)

    def _feasible(self, grants: tuple[Grant, ...]) -> tuple[Grant, ...]:
        """The grants, if counts and pools are among the curves and everything fits."""
        jobs, pools = self.state.jobs, self.state.pools
        free = [pool.total_devices for pool in pools]
        quotas = dict(self.state.quotas)
        result = []
        for index, (job, grant) in enumerate(zip(jobs, grants)):
            devices, pool = int(grant.devices), int(grant.pool)
            why = as_text(grant.why, MAX_WHY)
            if devices < 0:
                raise ImpossibleAnswerError(f"it granted {job.job_id!r} {devices} devices")
            if not devices:
                result.append(Grant(0, why=why))
                continue
            rows = self._curves.rows(index)
            listed = (self._curves.pool[rows] == pool) & (self._curves.devices[rows] == devices)
            if not listed.any():
                raise ImpossibleAnswerError(
                    f"it granted {job.job_id!r} {devices} devices in pool {pool}, which is not on its curve"
                )
            free[pool] -= devices + job.server_devices
            if free[pool] < 0:
                raise ImpossibleAnswerError(f"it granted more devices of pool {pools[pool].name!r} than it has free")
            if job.queue in quotas:
                quotas[job.queue] -= devices + job.server_devices
                if quotas[job.queue] < 0:
                    raise ImpossibleAnswerError(f"it granted queue {job.queue!r} more devices than its quota")
            result.append(Grant(devices, pool, why))
        return tuple(result)


def _verdict(grants: tuple[Grant, ...], memory: Memory, *, complete: bool) -> Verdict:
    content = memory.to_bytes()
    if len(content) > MAX_MEMORY_BYTES:
        raise ImpossibleAnswerError(f"it must remember at most {MAX_MEMORY_BYTES:,} bytes")
    return Verdict(grants=grants, complete=complete, memory=content)
