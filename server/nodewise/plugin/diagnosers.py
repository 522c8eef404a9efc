"""Diagnosers: recorded steps executed again, and where their time goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from nodewise.domain.diagnosis import Diagnosis, DiagnosisQuestion
from nodewise.domain.profile import Profile
from nodewise.domain.replay import Replay, ReplayQuestion
from nodewise.domain.step_times import StepsDiagnosis, StepTimes
from nodewise.domain.trace import Trace
from nodewise.plugin.catalogue import Catalogue

__all__ = ["Diagnoser", "DiagnoserContext", "Run", "StepsDiagnoser"]


class Run(Protocol):
    """A piece of heavy work as its caller sees it: how long it may take, and who hears how far it is."""

    def remaining_s(self) -> float:
        """Seconds left; 0 or less = return what there is now."""
        ...

    def advanced(self, stage: str, done: int, total: int) -> None:
        """Say how far a stage is; cheap, call it as often as you like."""
        ...


class DiagnoserContext(Run, Protocol):
    """What a diagnoser may use besides the traces."""

    @property
    def catalogue(self) -> Catalogue:
        """Devices and links."""
        ...


@runtime_checkable
class Diagnoser(Protocol):
    """Executes recorded steps again, and finds out where their time goes. Pure: same arguments, same answer."""

    def replay(self, traces: Sequence[Trace], question: ReplayQuestion, context: DiagnoserContext) -> Replay:
        """Replay steps of a job from the traces of some or all of its ranks.

        Raises
        ------
        NodewiseError
            INVALID_FIELD for steps or ranks that the traces do not have, CONTRADICTORY_FACTS for traces that are not of
            one job, EVIDENCE_MISSING where nothing can be replayed.
        """
        ...

    def diagnose(
        self, traces: Sequence[Trace], profile: Profile, question: DiagnosisQuestion, context: DiagnoserContext
    ) -> Diagnosis:
        """Bottlenecks and strategies, most worthwhile first. Raises as ``replay``."""
        ...


@runtime_checkable
class StepsDiagnoser(Protocol):
    """A diagnoser that also looks at the times of steps of a job that runs. Pure."""

    def diagnose_steps(self, windows: StepTimes, hours: StepTimes) -> StepsDiagnosis:
        """Slowdowns within a period, and hours that recur; abstains where there are too few windows.

        Parameters
        ----------
        windows : StepTimes
            The period, of all ranks, in any order.
        hours : StepTimes
            The mean step of each hour that is kept; rank 0 stands for all.
        """
        ...
