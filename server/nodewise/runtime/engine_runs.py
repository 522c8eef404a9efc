"""Runs on engines, for programs such as the command line: sweeps of simulations, and backtests."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from nodewise.domain.errors import NodewiseError
from nodewise.hosting.interrupts import marked_interrupts
from nodewise.ports.executor import Outcome, WorkExecutor
from nodewise.runtime.backtests import run_backtest_units
from nodewise.runtime.executors.local import LocalExecutor
from nodewise.runtime.executors.ray_engine import RayExecutor, RayMissingError
from nodewise.runtime.executors.resumable import ResumableExecutor
from nodewise.runtime.logging import configure_logging
from nodewise.runtime.starting import StartError
from nodewise.runtime.sweeps import SweepUnit, run_sweep, with_given_curves
from nodewise.scheduling.simulation.repeating import Estimate, estimate_mean
from nodewise_protos.v1beta1 import evaluation_service_pb2, simulation_service_pb2

__all__ = ["Estimate", "Outcome", "SweepUnit", "backtest", "estimate_mean", "sweep"]


def sweep(
    requests: Sequence[simulation_service_pb2.SimulateRequest],
    units: Sequence[SweepUnit],
    progress: Callable[[int, int], None],
    *,
    engine: str,
    processes: int,
    ray_address: str | None = None,
    results: Path | None = None,
) -> list[Outcome[bytes]]:
    """Every unit's outcome, in the order of units: a SimulationResult's bytes, or its fault.

    Parameters
    ----------
    requests : sequence of SimulateRequest
        Requests that units share; curves of their inline profiles are predicted first.
    progress : callable
        Called with the number of units that are done, and of all units.
    engine : str
        `local`: processes of this machine; `ray`: of a Ray cluster, a local one unless ``ray_address`` names another.
    results : Path or None
        File of results (``ResumableExecutor``): units that it holds are not run again.

    Raises
    ------
    StartError
        If a request or the file is invalid, or ``engine`` is `ray` and Ray is not installed.
    """
    with _engine(engine, processes, ray_address, results) as executor:
        with marked_interrupts():
            messages = [with_given_curves(request).SerializeToString(deterministic=True) for request in requests]
        return run_sweep(executor, messages, units, progress)


def backtest(
    request: evaluation_service_pb2.BacktestRequest,
    progress: Callable[[int, int], None],
    *,
    engine: str,
    processes: int,
    ray_address: str | None = None,
    results: Path | None = None,
) -> tuple[evaluation_service_pb2.BacktestResult, list[str]]:
    """The result of a backtest whose estimators are units of an engine, and the faults; parameters as of ``sweep``.

    Raises
    ------
    StartError
        As of ``sweep``.
    """
    with _engine(engine, processes, ray_address, results) as executor:
        return run_backtest_units(executor, request, progress)


@contextmanager
def _engine(engine: str, processes: int, ray_address: str | None, results: Path | None) -> Iterator[WorkExecutor]:
    configure_logging("error")
    executor: WorkExecutor = RayExecutor(processes, ray_address) if engine == "ray" else LocalExecutor(processes)
    if results is not None:
        executor = ResumableExecutor(executor, results)
    try:
        yield executor
    except NodewiseError as error:
        raise StartError(str(error), of_input=True) from None
    except sqlite3.Error as error:
        text = f"{results}: must be a file of results, or a new one in a folder that can be written: {error}"
        raise StartError(text, of_input=True) from None
    except RayMissingError as error:
        raise StartError(str(error), of_input=False) from None
