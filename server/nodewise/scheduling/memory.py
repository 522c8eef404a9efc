"""Memory of a decision as bytes, which the caller gets and sends back, so that the server keeps no state between calls.

It starts with a line of JSON. Arrays follow: the rounds' (where there are any), as sparse columns, and the policy's own
bytes. The caller may have changed the bytes, so reading checks everything.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from nodewise.domain.columns import as_floats, as_ints
from nodewise.domain.errors import NodewiseError, invalid_field
from nodewise.scheduling.rounding import KEY_BYTES, Rounds

__all__ = ["Memory"]

_MAGIC: Final = b"nodewise-rounds-1 "
_TIMES: Final = ("made_s", "decided_s", "round_s", "hold_s")
_CELLS: Final = ("shares", "received_s", "deficit_s")
"""Columns of jobs and pools."""
_MOST_CELLS: Final = 4_194_304
"""Most jobs x pools to unpack: 100 MB, four times the largest request that ``ScheduleLimits`` allows."""


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """The memory of rounds, if the policy answers with shares, and the policy's own memory."""

    rounds: Rounds | None
    policy: bytes

    def to_bytes(self) -> bytes:
        """The bytes for the caller; the policy's own bytes alone when there are no rounds."""
        rounds = self.rounds
        if rounds is None:
            return self.policy
        job, pool = np.nonzero((rounds.shares != 0) | (rounds.received_s != 0) | (rounds.deficit_s != 0))
        head = {name: getattr(rounds, name) for name in (*_TIMES, "shuffle_seed", "leftovers", "number", "pools")}
        head |= {"asked": rounds.policy, "cluster": rounds.cluster.hex(), "work": rounds.work.hex()}
        head |= {"jobs": len(rounds.jobs), "entries": len(job)}
        parts = [
            _MAGIC + json.dumps(head, sort_keys=True).encode() + b"\n",
            b"".join(rounds.jobs),
            rounds.running.astype("<i4").tobytes(),
            job.astype("<u4").tobytes(),
            pool.astype("<u4").tobytes(),
            *(getattr(rounds, name)[job, pool].astype("<f8").tobytes() for name in _CELLS),
            self.policy,
        ]
        return b"".join(parts)

    @staticmethod
    def from_bytes(content: bytes) -> Memory:
        """Read the bytes that ``to_bytes`` returned.

        Raises
        ------
        NodewiseError
            INVALID_FIELD when they are damaged.
        """
        if not content.startswith(_MAGIC):
            return Memory(None, content)
        try:
            return _read_memory(content)
        except (ValueError, KeyError, TypeError, OverflowError):
            raise _damaged_error() from None


def _damaged_error() -> NodewiseError:
    return invalid_field("policy_state", "must be empty, or the unchanged policy_state of the last response")


def _read_memory(content: bytes) -> Memory:
    end = content.index(b"\n")
    head: dict[str, Any] = json.loads(content[len(_MAGIC) : end])
    names = tuple(str(name) for name in head["pools"])
    jobs, pools, entries = _count(head["jobs"]), len(names), _count(head["entries"])
    if jobs * pools > _MOST_CELLS or entries > jobs * pools:
        raise ValueError("more cells than jobs and pools")
    place = end + 1

    def take(count: int, size: int) -> bytes:
        nonlocal place
        part = content[place : place + count * size]
        if len(part) < count * size:
            raise ValueError("cut short")
        place += count * size
        return part

    keys = take(jobs, KEY_BYTES)
    running = np.frombuffer(take(jobs, 4), dtype="<i4").astype(np.int64)
    job, pool = (np.frombuffer(take(entries, 4), dtype="<u4").astype(np.int64) for _ in range(2))
    columns: dict[str, Any] = {}
    for name in _CELLS:
        values = np.frombuffer(take(entries, 8), dtype="<f8")
        dense = np.zeros((jobs, pools))
        if (job >= jobs).any() or (pool >= pools).any() or not np.isfinite(values).all():
            raise ValueError("out of range")
        dense[job, pool] = values
        columns[name] = as_floats(dense)
    if ((running < -1) | (running >= pools)).any():
        raise ValueError("no such pool")
    times: dict[str, Any] = {name: float(head[name]) for name in _TIMES}
    if not np.isfinite(list(times.values())).all() or times["round_s"] <= 0:
        raise ValueError("no times")
    seed = head["shuffle_seed"]
    rounds = Rounds(
        policy=str(head["asked"]),
        pools=names,
        cluster=bytes.fromhex(head["cluster"]),
        work=bytes.fromhex(head["work"]),
        **times,
        shuffle_seed=None if seed is None else int(seed),
        leftovers=bool(head["leftovers"]),
        number=_count(head["number"]),
        jobs=tuple(keys[start : start + KEY_BYTES] for start in range(0, len(keys), KEY_BYTES)),
        running=as_ints(running),
        **columns,
    )
    return Memory(rounds, content[place:])


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError("no count")
    return value
