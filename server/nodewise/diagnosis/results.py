"""Questions to diagnosers, and their results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nodewise.domain.diagnosis import Diagnosis
from nodewise.domain.profile import Profile
from nodewise.domain.replay import Replay, Timeline
from nodewise.plugin import Trace
from nodewise.profiles.reading import LoadedTrace

__all__ = ["DiagnosisResult", "Evidence", "ReplayResult", "TraceQuestion"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TraceQuestion:
    """Question about a job's traces: which job, which traces, which diagnoser.

    Attributes
    ----------
    traces : tuple of str
        Hashes of the traces to use; empty = all.
    diagnoser : str
        Its name; empty = the only one, or the shipped one.
    mapping : pairs of str
        For readers of formats that do not name categories, see :class:`TraceSource`.
    """

    profile: Profile
    traces: tuple[str, ...] = ()
    diagnoser: str = ""
    mapping: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Evidence:
    """Traces of one job, at most one per rank, by rank; ``load_s`` is the time to load them."""

    loaded: tuple[LoadedTrace, ...]
    load_s: float

    @property
    def traces(self) -> Sequence[Trace]:
        """The traces."""
        return tuple(each.trace for each in self.loaded)

    @property
    def ranks(self) -> tuple[int, ...]:
        """Ranks that were recorded, ascending."""
        return tuple(each.trace.rank for each in self.loaded)

    @property
    def world_size(self) -> int:
        """Ranks of the job; 0 = not known."""
        return max(each.trace.world_size for each in self.loaded)

    @property
    def events(self) -> int:
        """Events of all traces, those that readers left out included."""
        return sum(each.trace.recorded_events for each in self.loaded)

    @property
    def steps(self) -> int:
        """Most steps that a rank recorded."""
        return max(len(each.trace.steps) for each in self.loaded)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _AnsweredQuery:
    """The diagnoser that answered, the job and the evidence; and the recorded timeline, beside the answer's."""

    profile: Profile
    evidence: Evidence
    diagnoser: str
    diagnoser_version: str
    recorded: Timeline | None = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ReplayResult(_AnsweredQuery):
    """A replay."""

    replay: Replay


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class DiagnosisResult(_AnsweredQuery):
    """A diagnosis."""

    diagnosis: Diagnosis
