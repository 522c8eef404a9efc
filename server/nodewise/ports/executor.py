"""The interface to engines for many independent pieces of work: processes of this machine, or of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from nodewise.domain.errors import NodewiseError

__all__ = ["Outcome", "Work", "WorkExecutor", "failure", "run_unit"]

SharedT = TypeVar("SharedT")
UnitT = TypeVar("UnitT")
ResultT = TypeVar("ResultT")

Work = Callable[[SharedT, UnitT], ResultT]
"""A module-level function (processes find it by its name): from the shared value and one unit to a result. It is pure:
the result depends on nothing else, in particular not on earlier work of a process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(Generic[ResultT]):
    """Outcome of the unit at ``index``: a result, or a fault."""

    index: int
    result: ResultT | None = None
    fault: str = ""


class WorkExecutor(Protocol):
    """Does work in other processes."""

    def run(
        self, work: Work[SharedT, UnitT, ResultT], shared: SharedT, units: Sequence[UnitT]
    ) -> Iterator[Outcome[ResultT]]:
        """One outcome per unit, as they finish. A unit that raises, or whose process dies, does not affect the others.

        Closing the iterator early ends the running units and their processes.
        """


def run_unit(work: Work[SharedT, UnitT, ResultT], shared: SharedT, index: int, unit: UnitT) -> Outcome[ResultT]:
    """Do one unit; an exception becomes its fault."""
    try:
        return Outcome(index=index, result=work(shared, unit))
    except NodewiseError as error:
        return failure(index, str(error))
    except Exception as error:  # noqa: BLE001  # whatever it is, it costs this unit alone
        return failure(index, f"{type(error).__name__}: {error}")


def failure(index: int, fault: str) -> Outcome[ResultT]:
    """The outcome of a unit without a result."""
    return Outcome(index=index, fault=fault)
