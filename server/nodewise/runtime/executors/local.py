"""Processes of this machine, one unit at a time each."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from nodewise.ports.executor import Outcome, ResultT, SharedT, UnitT, Work, failed, worked
from nodewise.runtime.processes import ENDING_S, Child, settle, started

__all__ = ["LocalExecutor"]


class LocalExecutor:
    """So many processes, each with a pipe of its own: one that dies is replaced and costs the unit that it was doing.

    (An executor of ``concurrent.futures`` loses all that waits when one of its processes dies, and before Python 3.14
    has no way to end them.) A process whose parent is gone ends.

    Parameters
    ----------
    processes : int
        At least one.
    """

    def __init__(self, processes: int) -> None:
        self._count = processes

    def run(
        self, work: Work[SharedT, UnitT, ResultT], shared: SharedT, units: Sequence[UnitT]
    ) -> Iterator[Outcome[ResultT]]:
        """One outcome per unit, as they come."""
        waiting = deque(enumerate(units))
        crew = _Crew(work, shared)
        try:
            while waiting or crew.busy:
                while waiting and crew.busy < self._count:
                    crew.give(*waiting.popleft())
                yield from crew.outcomes()
        finally:
            crew.end()


@dataclass(slots=True)
class _Worker:
    child: Child
    index: int = -1
    """The unit that it does; -1 = none."""


class _Crew:
    """The processes of one run."""

    def __init__(self, work: Any, shared: Any) -> None:
        self._work = work
        self._shared = shared
        self._workers: list[_Worker] = []

    @property
    def busy(self) -> int:
        """Processes that do a unit."""
        return sum(worker.index >= 0 for worker in self._workers)

    def give(self, index: int, unit: Any) -> None:
        """Have a unit done, by a process that has nothing to do or by a new one."""
        worker = next((each for each in self._workers if each.index < 0), None)
        if worker is None:
            worker = self._started()
        worker.index = index
        with suppress(OSError):  # it died: found out where its outcome is read
            worker.child.pipe.send((index, unit))

    def _started(self) -> _Worker:
        worker = _Worker(started(_serve, self._work, name="nodewise-sweep"))
        with suppress(OSError):
            worker.child.pipe.send(self._shared)
        self._workers.append(worker)
        return worker

    def outcomes(self) -> Iterator[Outcome[Any]]:
        """What is done by now; waits until something is."""
        busy = {worker.child.pipe: worker for worker in self._workers if worker.index >= 0}
        for ready in wait(list(busy)):
            worker = busy[ready]  # type: ignore[index]  # wait returns what it was given
            index, worker.index = worker.index, -1
            try:
                yield worker.child.pipe.recv()
            except (EOFError, OSError):
                self._workers.remove(worker)
                worker.child.process.join(ENDING_S)
                yield failed(index, f"its process ended with status {worker.child.process.exitcode}")

    def end(self) -> None:
        """End every process."""
        for worker in self._workers:
            if worker.index >= 0:
                worker.child.process.terminate()
        for worker in self._workers:
            worker.child.end()


def _serve(pipe: Connection, work: Any) -> None:
    settle()
    try:
        shared = pipe.recv()
        while True:
            index, unit = pipe.recv()
            pipe.send(worked(work, shared, index, unit))
    except (EOFError, OSError):
        return
