"""Diagnosers: they replay recorded steps, and find out how their time is spent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from nodewise.domain.profile import Profile
from nodewise.plugin.catalogue import Catalogue

if TYPE_CHECKING:
    from nodewise.domain.diagnosis import Diagnosis, DiagnosisQuestion
    from nodewise.domain.replay import Replay, ReplayQuestion
    from nodewise.domain.step_times import StepsDiagnosis, StepTimes
    from nodewise.domain.trace import Trace

__all__ = ["Diagnoser", "DiagnoserContext", "Run", "StepsDiagnoser"]


class Run(Protocol):
    """The control of long work: its time limit, and the reports of its progress."""

    def remaining_s(self) -> float:
        """Seconds left; 0 or less = return the result so far."""
        ...

    def advanced(self, stage: str, done: int, total: int) -> None:
        """Report the progress of a stage; a call is cheap."""
        ...


class DiagnoserContext(Run, Protocol):
    """What a diagnoser may use in addition to the traces."""

    @property
    def catalogue(self) -> Catalogue:
        """Devices and links."""
        ...


@runtime_checkable
class Diagnoser(Protocol):
    """Replays recorded steps, and finds out how their time is spent. Pure: same arguments, same answer."""

    def replay(self, traces: Sequence[Trace], question: ReplayQuestion, context: DiagnoserContext) -> Replay:
        """Replay steps of a job from the traces of some or all of its ranks.

        Raises
        ------
        NodewiseError
            INVALID_FIELD for steps or ranks that the traces do not have, CONTRADICTORY_FACTS for traces of several
            jobs, EVIDENCE_MISSING if no step can be replayed.
        """
        ...

    def diagnose(
        self, traces: Sequence[Trace], profile: Profile, question: DiagnosisQuestion, context: DiagnoserContext
    ) -> Diagnosis:
        """Bottlenecks and strategies, most worthwhile first. Raises as ``replay``."""
        ...


@runtime_checkable
class StepsDiagnoser(Protocol):
    """A diagnoser that also diagnoses step times of a running job. Pure."""

    def diagnose_steps(self, windows: StepTimes, hours: StepTimes) -> StepsDiagnosis:
        """Slowdowns within a period, and hours that recur; abstains where there are too few windows.

        Parameters
        ----------
        windows : StepTimes
            The period, of all ranks, in any order.
        hours : StepTimes
            The mean step time of each stored hour, under rank 0.
        """
        ...
