"""Test data for plugins: jobs, clusters, files and recordings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from itertools import chain

from nodewise.domain.configurations import Configurations
from nodewise.domain.planning import PlanConstraints
from nodewise.domain.profile import Profile
from nodewise.domain.schedule import ClusterState, Curves
from nodewise.domain.sharing import SharingQuestion
from nodewise.domain.trace import Trace, TraceSource

__all__ = ["Cluster", "Evidence", "File", "Job", "Recording"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Job:
    """A job for estimators.

    Attributes
    ----------
    profile : Profile
        Evidence. The suite fills in its digest.
    configurations : Configurations
        Rows to predict, resolved: an estimator should answer some of them.
    traces : tuple of Trace
        What ``context.traces()`` returns.
    constraints : PlanConstraints or None
        Constraints of a PlanningModel's space; None = the search is not checked with this job.
    """

    name: str
    profile: Profile
    configurations: Configurations
    traces: tuple[Trace, ...] = ()
    constraints: PlanConstraints | None = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Cluster:
    """A cluster with jobs, for policies."""

    name: str
    state: ClusterState
    curves: Curves


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A trace file, unpacked.

    Attributes
    ----------
    format : str
        Name of the reader that reads it; "" = every reader that recognises it.
    secrets : tuple of str
        Texts in it that must not be in the trace: paths, hosts, users.
    """

    name: str
    content: bytes
    format: str = ""
    source: TraceSource = field(default_factory=TraceSource)
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Recording:
    """Traces of one job, by rank, and its profile, for diagnosers."""

    name: str
    traces: tuple[Trace, ...]
    profile: Profile = field(default_factory=Profile)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Evidence:
    """All test data."""

    jobs: tuple[Job, ...] = ()
    clusters: tuple[Cluster, ...] = ()
    files: tuple[File, ...] = ()
    recordings: tuple[Recording, ...] = ()
    sharings: tuple[SharingQuestion, ...] = ()

    @staticmethod
    def merge(parts: Iterable[Evidence]) -> Evidence:
        """The union of several."""
        several = tuple(parts)
        kinds = [each.name for each in fields(Evidence)]
        return Evidence(**{kind: tuple(chain(*(getattr(part, kind) for part in several))) for kind in kinds})
