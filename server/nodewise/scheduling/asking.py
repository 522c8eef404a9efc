"""The guarded call of a policy: whatever it does, the service gets feasible grants or a clear error."""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import index as whole
from typing import Final

import numpy as np
import structlog

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.schedule import Allocation, ClusterState, Curves, Grant, Shares
from nodewise.plugin import Budget, PolicyRecord
from nodewise.scheduling.memory import Memory
from nodewise.scheduling.rounding import Rounds, accounted, carries, held_round, offered, renewed, rounded_round

__all__ = ["Verdict", "asked"]

_log = structlog.get_logger(__name__)

MAX_MEMORY_BYTES: Final = 1024 * 1024
"""Memory that a policy may hand to the caller: a quarter of gRPC's default of 4 MiB per message."""
MAX_WHY: Final = 200
"""Characters of a policy's own words that are passed on."""
SHARE_SLACK: Final = 1e-6
"""By how much a job's shares may exceed 1: solvers of linear programs stop at about 1e-8."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A policy's decision after every check: one grant per job of the state."""

    grants: tuple[Grant, ...]
    complete: bool
    memory: bytes


def asked(record: PolicyRecord, state: ClusterState, curves: Curves, budget: Budget) -> Verdict:
    """Ask a policy, unless its shares of time still hold, and check its answer.

    Raises
    ------
    NodewiseError
        INVALID_FIELD when the memory that came back is damaged, POLICY_FAILED when the policy raises (its text stays
        in the log), POLICY_INVALID_RESULT when it allocates what it must not.
    """
    remembered = Memory.from_bytes(state.memory)
    check = _Check(record, replace(state, memory=remembered.policy), curves, remembered.rounds)
    held = check.held()
    if held is not None:
        return held
    try:
        result = record.policy.decide(check.state, curves, budget)
    except Exception as error:  # noqa: BLE001 - a plugin may raise anything; it costs its own call only
        raise _failure(record, error) from None
    return check.verdict(result)


def _failure(record: PolicyRecord, error: Exception) -> NodewiseError:
    """An error that names the policy and keeps the exception's text in the log."""
    _log.error("policy_failed", policy=record.name, version=record.version, exc_info=error)
    return NodewiseError(
        Reason.POLICY_FAILED,
        f"policy {record.name!r} {record.version} failed",
        {"policy": record.name, "version": record.version},
    )


class _Check:
    """Checks one policy's answer."""

    def __init__(self, record: PolicyRecord, state: ClusterState, curves: Curves, rounds: Rounds | None) -> None:
        self._record = record
        self.state = state
        self._curves = curves
        self._rounds = rounds

    @property
    def _asked(self) -> str:
        return f"{self._record.name} {self._record.version}"

    def held(self) -> Verdict | None:
        """The next round of shares that still hold, if there are any."""
        if self._rounds is None:
            return None
        offer = offered(self.state, self._curves)
        held = held_round(self._rounds, offer, self.state, self._asked)
        if held is None:
            return None
        grants, after = held
        return self._verdict(grants, Memory(after, self.state.memory), complete=True)

    def verdict(self, result: object) -> Verdict:
        if not isinstance(result, Allocation | Shares):
            raise self._invalid(f"answered with a {type(result).__name__} instead of an Allocation or Shares")
        memory: object = result.memory
        if not isinstance(memory, bytes):
            raise self._invalid(f"must remember at most {MAX_MEMORY_BYTES:,} bytes")
        if isinstance(result, Allocation):
            return self._verdict(result.grants, Memory(None, memory), complete=bool(result.complete))
        self._check_shares(result)
        offer = offered(self.state, self._curves)
        before = self._rounds
        if before is not None:
            carried = carries(before, offer, self.state, self._asked)
            before = accounted(before, offer, self.state) if carried else None
        shares = replace(result, shares=np.clip(result.shares, 0.0, 1.0))
        grants, after = rounded_round(renewed(shares, before, offer, self.state, self._asked), offer, self.state)
        if not result.complete:
            # What was made in a hurry does not hold: the policy is asked again next time.
            after = replace(after, hold_s=0.0, work=b"")
        return self._verdict(grants, Memory(after, memory), complete=bool(result.complete))

    def _verdict(self, grants: object, memory: Memory, *, complete: bool) -> Verdict:
        content = memory.to_bytes()
        if len(content) > MAX_MEMORY_BYTES:
            raise self._invalid(f"must remember at most {MAX_MEMORY_BYTES:,} bytes")
        return Verdict(grants=self._grants(grants), complete=complete, memory=content)

    def _invalid(self, what: str) -> NodewiseError:
        record = self._record
        return NodewiseError(
            Reason.POLICY_INVALID_RESULT,
            f"policy {record.name!r} {record.version} {what}",
            {"policy": record.name, "version": record.version},
        )

    def _check_shares(self, result: Shares) -> None:
        wanted = (len(self.state.jobs), len(self.state.pools))
        shares: object = result.shares
        if not isinstance(shares, np.ndarray) or shares.shape != wanted or shares.dtype.kind != "f":
            raise self._invalid(f"must share in a float array of shape {wanted}")
        if not np.isfinite(shares).all() or (shares < -SHARE_SLACK).any():
            raise self._invalid("shared out a negative or infinite share of time")
        if (shares.sum(axis=1) > 1 + SHARE_SLACK).any():
            raise self._invalid("gave a job more than all of the time")
        if not (0 < result.round_s < np.inf and 0 <= result.hold_s < np.inf):
            raise self._invalid("must have rounds of above 0 s and hold shares for 0 s or more")

    def _grants(self, grants: object) -> tuple[Grant, ...]:
        """Counts and pools are among the curves, and everything fits."""
        jobs, pools = self.state.jobs, self.state.pools
        if not isinstance(grants, tuple | list) or len(grants) != len(jobs):
            raise self._invalid(f"must grant once per job, {len(jobs)} times")
        free = [pool.total_devices for pool in pools]
        quotas = dict(self.state.quotas)
        result = []
        for index, (job, grant) in enumerate(zip(jobs, grants)):
            devices, pool, why = self._read(job.job_id, grant)
            if not devices:
                result.append(Grant(0, why=why))
                continue
            rows = self._curves.rows(index)
            listed = (self._curves.pool[rows] == pool) & (self._curves.devices[rows] == devices)
            if not listed.any():
                raise self._invalid(
                    f"granted {job.job_id!r} {devices} devices in pool {pool}, which is not on its curve"
                )
            free[pool] -= devices + job.server_devices
            if free[pool] < 0:
                raise self._invalid(f"granted more devices of pool {pools[pool].name!r} than it has free")
            if job.queue in quotas:
                quotas[job.queue] -= devices + job.server_devices
                if quotas[job.queue] < 0:
                    raise self._invalid(f"granted queue {job.queue!r} more devices than its quota")
            result.append(Grant(devices, pool, why))
        return tuple(result)

    def _read(self, job_id: str, grant: object) -> tuple[int, int, str]:
        strange = f"granted {job_id!r} something that is no Grant of whole devices"
        if not isinstance(grant, Grant):
            raise self._invalid(strange)
        try:
            devices, pool = whole(grant.devices), whole(grant.pool)
        except TypeError:
            raise self._invalid(strange) from None
        why: object = grant.why
        if devices < 0:
            raise self._invalid(f"granted {job_id!r} {devices} devices")
        return devices, pool, why[:MAX_WHY] if isinstance(why, str) else ""
