"""First in, first out as Gavel's program executes it: a pool is over-committed, and its jobs take turns.

The program (stanford-futuredata/gavel, ``scheduler/policies/fifo.py``) draws a type of device on which the next job
fits, but then books the job on another one: the last by name that has a device free in its books, even if the job needs
more of them. Its rounds share that type's time out. So its published figures are those of a cluster whose last type is
crowded while others idle; a FIFO that takes what it has drawn, or what is fastest, finishes the same trace a quarter to
a third sooner. It is here so that those figures can be reproduced and compared with.

1. Of the jobs that were booked and have left, by submission: the first job in the queue takes the place if it fits into
   what is free so far (bookings of later jobs have not been counted yet).
2. By submission: a job that fits nowhere blocks all after it. Else a type on which it fits is drawn, and the job is
   booked on the last listed type. Where that has nothing left then, the drawn type is no longer listed.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from typing import Final

import numpy as np

from nodewise.plugin import ClusterState, Curves, NodewiseError, Shares, Violation
from nodewise_policies.sharing import KEY_BYTES, job_key

__all__ = ["over_committed"]

_ENTRY_BYTES: Final = KEY_BYTES + 4
"""Of the memory: a booked job's key, and its pool."""
_GENERATOR: Final = struct.Struct("<625I")
"""Of the memory: the state of the generator that draws, before the entries."""


def over_committed(state: ClusterState, curves: Curves) -> Shares:
    """All of the time for each job that is booked, in the pool where it is booked.

    Raises
    ------
    NodewiseError
        INVALID_FIELD when the memory is damaged.
    """
    books = _Books(state, curves)
    books.replace_those_that_left()
    books.admit()
    shares = np.zeros((len(state.jobs), len(state.pools)))
    for job, pool in books.pools.items():
        shares[job, pool] = 1.0
    # The program lets its very first decision be followed by another at the next change: nothing is held yet.
    return Shares(shares=shares, memory=books.memory(), hold_s=1920.0 if state.memory else 0.0, leftovers=False)


class _Books:
    """Which jobs are booked on which pool."""

    def __init__(self, state: ClusterState, curves: Curves) -> None:
        self._state = state
        self._devices = curves.at_requests(state).devices
        self._free = [pool.total_devices for pool in state.pools]
        self._draws, self._before = _restore(state)
        keys = {job_key(job): index for index, job in enumerate(state.jobs)}
        self._present = {key: keys[key] for key, _ in self._before if key in keys}
        known = set(self._present.values())
        self._queue = [job for job in state.columns.order.tolist() if self._devices[job].any() and job not in known]
        self.pools: dict[int, int] = {}

    def replace_those_that_left(self) -> None:
        for key, pool in self._before:
            if key in self._present:
                self._take(self._present[key], pool)
            elif self._queue and 0 < self._devices[self._queue[0], pool] <= self._free[pool]:
                self._take(self._queue.pop(0), pool)

    def admit(self) -> None:
        names = [pool.name for pool in self._state.pools]
        listed = sorted((pool for pool, free in enumerate(self._free) if free > 0), key=names.__getitem__)
        for job in self._queue:
            need = int(self._devices[job].max())
            fitting = [place for place, pool in enumerate(listed) if need <= self._free[pool]]
            if not fitting:
                return
            drawn, last = fitting[self._draws.randrange(len(fitting))], listed[-1]
            if self._devices[job, last] > 0:
                self._take(job, last)
                if self._free[last] == 0:
                    del listed[drawn]

    def _take(self, job: int, pool: int) -> None:
        self._free[pool] -= int(self._devices[job, pool])
        self.pools[job] = pool

    def memory(self) -> bytes:
        """The generator, and the booked jobs by submission."""
        jobs: Sequence[int] = [job for job in self._state.columns.order.tolist() if job in self.pools]
        entries = (job_key(self._state.jobs[job]) + self.pools[job].to_bytes(4, "little") for job in jobs)
        return _GENERATOR.pack(*self._draws.getstate()[1]) + b"".join(entries)


def _restore(state: ClusterState) -> tuple[random.Random, list[tuple[bytes, int]]]:
    draws = random.Random(int(state.parameters["seed"]))  # noqa: S311 - reproduces a program, no secret
    if not state.memory:
        return draws, []
    try:
        draws.setstate((3, _GENERATOR.unpack_from(state.memory), None))
    except (struct.error, ValueError):
        raise _damaged_memory_error() from None
    content = state.memory[_GENERATOR.size :]
    parts = [content[start : start + _ENTRY_BYTES] for start in range(0, len(content), _ENTRY_BYTES)]
    entries = [(part[:KEY_BYTES], int.from_bytes(part[KEY_BYTES:], "little")) for part in parts]
    if any(len(part) < _ENTRY_BYTES for part in parts) or any(pool >= len(state.pools) for _, pool in entries):
        raise _damaged_memory_error()
    return draws, entries


def _damaged_memory_error() -> NodewiseError:
    return NodewiseError.invalid([Violation("policy_state", ("must be empty, or that of the last response"))])
