"""Engines that do many independent pieces of work, as a seam: processes of this machine, or a cluster's."""

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
"""A function of a module's own (processes find it by its name): what all units share, and one unit, to a result. Pure:
the result depends on nothing else, in particular not on which process did what before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(Generic[ResultT]):
    """What became of the unit at ``index``: a result, or why there is none."""

    index: int
    result: ResultT | None = None
    fault: str = ""


class WorkExecutor(Protocol):
    """Does work in other processes."""

    def run(
        self, work: Work[SharedT, UnitT, ResultT], shared: SharedT, units: Sequence[UnitT]
    ) -> Iterator[Outcome[ResultT]]:
        """One outcome per unit, as they come. A unit that raises, or whose process dies, costs no other.

        Leaving the iterator early ends what runs; nothing is left behind.
        """


def run_unit(work: Work[SharedT, UnitT, ResultT], shared: SharedT, index: int, unit: UnitT) -> Outcome[ResultT]:
    """Do one unit; what it raises becomes its fault."""
    try:
        return Outcome(index=index, result=work(shared, unit))
    except NodewiseError as error:
        return failure(index, str(error))
    except Exception as error:  # noqa: BLE001  # whatever it is, it costs this unit alone
        return failure(index, f"{type(error).__name__}: {error}")


def failure(index: int, fault: str) -> Outcome[ResultT]:
    """A unit without a result."""
    return Outcome(index=index, fault=fault)
