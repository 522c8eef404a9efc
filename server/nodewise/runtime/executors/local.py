"""An executor with processes of this machine, by ``concurrent.futures``."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from typing import Any

from nodewise.ports.executor import Outcome, ResultT, SharedT, UnitT, Work, failure, run_unit
from nodewise.processes.child import end_with_parent
from nodewise.runtime.blas import one_thread_each

__all__ = ["LocalExecutor"]


class LocalExecutor:
    """Runs units in processes, one unit at a time in each.

    A process that dies breaks its whole pool, and the pool does not tell which unit was the cause. The units that were
    running are therefore repeated one by one (they are pure). A unit that breaks a pool of its own has failed.

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
        """Yield one outcome per unit, in order of completion."""
        waiting = deque(enumerate(units))
        while waiting:
            suspects = yield from _run_pool(work, shared, waiting, self._count)
            is_alone = len(suspects) == 1
            for unit in suspects:
                if is_alone or (yield from _run_pool(work, shared, deque([unit]), 1)):
                    yield failure(unit[0], "its process died")


def _run_pool(
    work: Any, shared: Any, waiting: deque[tuple[int, Any]], at_once: int
) -> Generator[Outcome[Any], None, deque[tuple[int, Any]]]:
    """Run the waiting units in one pool; return the units that were running if it broke."""
    others, running, lost_units = multiprocessing.active_children(), dict[Future[Any], tuple[int, Any]](), deque[Any]()
    one_thread_each()
    pool = ProcessPoolExecutor(at_once, multiprocessing.get_context("spawn"), _begin, (os.getpid(), work, shared))
    try:
        while (waiting and not lost_units) or running:
            while waiting and not lost_units and len(running) < at_once:
                unit = waiting.popleft()
                try:
                    running[pool.submit(_do, *unit)] = unit
                except BrokenExecutor:
                    lost_units.append(unit)
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                unit = running.pop(future)
                try:
                    yield future.result()
                except BrokenExecutor:
                    lost_units.append(unit)
    finally:
        if running:  # the caller no longer waits for them
            for process in set(multiprocessing.active_children()) - set(others):
                process.terminate()
        pool.shutdown(cancel_futures=True)
    return lost_units


_shared: tuple[Any, Any] = (None, None)
"""Set in each process of the pool: the work, and the argument that all units share."""


def _begin(parent: int, work: Any, shared: Any) -> None:
    global _shared  # noqa: PLW0603  # an initializer has no other way to pass values to units
    _shared = work, shared
    # Ctrl+C sends SIGINT to every process of the group. Only the parent handles it, and ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent(signal.SIGKILL, parent)


def _do(index: int, unit: Any) -> Outcome[Any]:
    work, shared = _shared
    return run_unit(work, shared, index, unit)
