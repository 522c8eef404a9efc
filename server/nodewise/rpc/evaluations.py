"""EvaluationService: backtests, in a thread, with progress."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from concurrent.futures import Executor
from typing import Final

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.estimation.answer.answers import Answers
from nodewise.evaluation.backtest import backtested
from nodewise.ports.limits import Limits
from nodewise.rpc.calls import Call
from nodewise.rpc.wire_evaluations import read_estimators, read_table, write_result
from nodewise_protos.v1 import evaluation_service_pb2 as pb

__all__ = ["Evaluations"]

PROGRESS_EVERY_S: Final = 0.1
"""Least time between two messages about progress."""
AT_ONCE: Final = 2
"""Backtests that run at the same time; more wait, so that they leave the threads to calls that are short."""


class Evaluations:
    """Behaviours of EvaluationService.

    Parameters
    ----------
    engine : Answers
        Whose plugins are evaluated; its models and the profiles of its store take no part.
    limits : Limits
        Caps of a table.
    executor : Executor
        Threads that backtests run in.
    """

    def __init__(self, engine: Answers, limits: Limits, executor: Executor) -> None:
        self._engine = engine
        self._limits = limits
        self._executor = executor
        self._free = asyncio.Semaphore(AT_ONCE)

    async def backtest(self, request: pb.BacktestRequest, call: Call) -> AsyncIterator[pb.BacktestResponse]:
        """Progress, at least once, then the result. A call that is cancelled or late stops between two jobs."""
        async with self._free:
            run = _Run(self._engine, self._limits, request, call)
            work = asyncio.get_running_loop().run_in_executor(self._executor, run.result)
            try:
                told = None
                while not work.done():
                    await asyncio.wait((work,), timeout=PROGRESS_EVERY_S)
                    if run.progress is not None and run.progress != told and not work.done():
                        told = run.progress
                        yield _progress(told)
                result = work.result()
                if run.progress is not None and run.progress != told:
                    yield _progress(run.progress)
                yield pb.BacktestResponse(result=result)
            finally:
                run.stop()
                work.cancel()


def _progress(done_of_total: tuple[int, int]) -> pb.BacktestResponse:
    done, total = done_of_total
    return pb.BacktestResponse(progress=pb.BacktestProgress(done_count=done, total_count=total))


class _Run:
    """One backtest: ``result`` runs in a thread, the rest is for the event loop."""

    def __init__(self, engine: Answers, limits: Limits, request: pb.BacktestRequest, call: Call) -> None:
        self._engine = engine
        self._limits = limits
        self._request = request
        self._call = call
        self._stopped = threading.Event()
        self.progress: tuple[int, int] | None = None
        """Jobs done and in all; None = the request is being read."""

    def stop(self) -> None:
        """End the run before its next job."""
        self._stopped.set()

    def result(self) -> pb.BacktestResult:
        """Read, run, write."""
        request = self._request
        calibration = None
        estimators = read_estimators(request.estimators)
        table = read_table(request.table, "table", self._limits)
        if request.HasField("calibration"):
            calibration = read_table(request.calibration, "calibration", self._limits)
        result = backtested(
            self._engine, table, calibration=calibration, estimators=estimators, progress=self._advanced
        )
        return write_result(result)

    def _advanced(self, done: int, total: int) -> None:
        self.progress = (done, total)
        if self._stopped.is_set():
            raise NodewiseError(Reason.DEADLINE_EXCEEDED, f"the caller has gone; {done} of {total} jobs were done")
        if self._call.remaining_s() <= 0:
            raise NodewiseError(Reason.DEADLINE_EXCEEDED, f"{done} of {total} jobs were done in time")
