"""An executor with tasks of a Ray cluster, or of a local one that starts and stops with the run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, Final

from nodewise.ports.executor import Outcome, ResultT, SharedT, UnitT, Work, failure, run_unit

__all__ = ["RayExecutor", "RayMissingError"]

_RETRIES: Final = 2


class RayMissingError(RuntimeError):
    """Ray is not installed, or its cluster cannot be reached; the text is for the user."""


class RayExecutor:
    """Runs units as tasks of a Ray cluster.

    Parameters
    ----------
    processes : int
        Processes of a local cluster, and most tasks at a time of any cluster.
    address : str or None
        Address of a running cluster, or "auto" for the one of this machine; None = start a local one for this run.
    """

    def __init__(self, processes: int, address: str | None = None) -> None:
        self._count = processes
        self._address = address

    def run(
        self, work: Work[SharedT, UnitT, ResultT], shared: SharedT, units: Sequence[UnitT]
    ) -> Iterator[Outcome[ResultT]]:
        """Yield one outcome per unit, in order of completion.

        Raises
        ------
        RayMissingError
            Ray is not installed or not reachable; raised before the first outcome.
        """
        ray = _import_ray()
        self._join(ray)
        try:
            yield from _outcomes(ray, work, shared, units, self._count)
        finally:
            ray.shutdown()

    def _join(self, ray: Any) -> None:
        quiet = {"configure_logging": False, "log_to_driver": False, "ignore_reinit_error": False}
        if self._address is None:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a local run sends no statistics
            ray.init(address="local", num_cpus=self._count, include_dashboard=False, **quiet)
            return
        try:
            ray.init(address=self._address, **quiet)
        except ConnectionError as error:
            raise RayMissingError(f"no Ray cluster answers at {self._address!r}: {error}") from None


def _import_ray() -> Any:
    try:
        import ray  # noqa: PLC0415  # an optional extra
    except ImportError:
        raise RayMissingError("the engine ray needs Ray: pip install 'nodewise[ray]'") from None
    return ray


def _outcomes(ray: Any, work: Any, shared: Any, units: Sequence[Any], at_once: int) -> Iterator[Outcome[Any]]:
    # A unit whose node is lost runs again elsewhere; one that ends its process every time is reported.
    task = ray.remote(num_cpus=1, max_retries=_RETRIES)(run_unit)
    shared_reference = ray.put(shared)
    running: dict[Any, int] = {}
    waiting = list(enumerate(units))[::-1]
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                index, unit = waiting.pop()
                running[task.remote(work, shared_reference, index, unit)] = index
            ready, _ = ray.wait(list(running), num_returns=1)
            for reference in ready:
                index = running.pop(reference)
                try:
                    yield ray.get(reference)
                except ray.exceptions.RayError as error:
                    yield failure(index, f"{type(error).__name__}: {str(error).splitlines()[0]}")
    finally:
        for reference in running:
            ray.cancel(reference, force=True)
