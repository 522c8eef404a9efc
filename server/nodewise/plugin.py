"""The plugin door: the one module of Nodewise that a plugin author imports.

A plugin is a module (or object) named by an entry point of the group ``nodewise.plugins``. It implements one or more of
the hooks below with :data:`hookimpl`; hooks register records and never compute. The records carry the objects that
answer.

Example
-------
>>> from nodewise.plugin import EstimatorRecord, hookimpl
>>> @hookimpl
... def nodewise_estimators():
...     return [EstimatorRecord(name="mine", version="1.0", description="...", estimator=MyEstimator())]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final, Protocol, runtime_checkable

import pluggy

from nodewise.domain.budget import Budget
from nodewise.domain.columns import Floats, Ints, as_floats, as_ints, constant_floats, constant_ints, freeze
from nodewise.domain.configurations import (
    DEGREES,
    UNSTATED,
    Configurations,
    Placement,
    PlacementRule,
    Recomputation,
    SyncMode,
    WorkerGroup,
    WorkerGroups,
)
from nodewise.domain.diagnosis import Bottleneck, Diagnosis, DiagnosisQuestion, RankShares, Straggler, Strategy
from nodewise.domain.errors import NodewiseError, Reason, Refusal, Violation
from nodewise.domain.planning import DIMENSIONS, Exclusion, PlanConstraints, PlanPool
from nodewise.domain.predictions import Fidelity, Notice, Options, Predictions, RowRefusal, RowStatus
from nodewise.domain.profile import UNKNOWN, Observations, PhaseTimings, Profile, TraceReference
from nodewise.domain.replay import (
    Change,
    ChangeKind,
    EdgeCounts,
    Replay,
    ReplayedCollective,
    ReplayedStep,
    ReplayQuestion,
    Timeline,
)
from nodewise.domain.schedule import (
    Allocation,
    ClusterState,
    CurrentAllocation,
    Curves,
    Grant,
    JobColumns,
    JobState,
    NodePool,
    PolicyParameter,
    Requests,
    Shares,
)
from nodewise.domain.trace import (
    NO_EVENT,
    CollectiveKind,
    Collectives,
    EventKind,
    Lane,
    MemorySamples,
    ProcessGroup,
    SyncKind,
    SyncRecords,
    Trace,
    TraceReport,
    TraceSource,
    TraceSteps,
)
from nodewise.domain.workload import Layer, Network, Transformer, Workload

__all__ = [
    "BASIC_COLUMNS",
    "DEGREES",
    "DIMENSIONS",
    "ENTRY_POINT_GROUP",
    "MEASUREMENT_LOG_SPREAD",
    "NO_EVENT",
    "PLUGIN_API_VERSION",
    "UNKNOWN",
    "UNSTATED",
    "Allocation",
    "Assessment",
    "Bottleneck",
    "Budget",
    "Catalogue",
    "Change",
    "ChangeKind",
    "ClusterState",
    "CollectiveKind",
    "Collectives",
    "Configurations",
    "Context",
    "Corpus",
    "CovariantModel",
    "CurrentAllocation",
    "Curves",
    "Diagnoser",
    "DiagnoserContext",
    "DiagnoserRecord",
    "Diagnosis",
    "DiagnosisQuestion",
    "EdgeCounts",
    "Estimator",
    "EstimatorRecord",
    "EventKind",
    "Exclusion",
    "Fidelity",
    "Floats",
    "Grant",
    "Ints",
    "JobColumns",
    "JobState",
    "Lane",
    "Layer",
    "LearningEstimator",
    "MeasuredTable",
    "MemorySamples",
    "Model",
    "Network",
    "NodePool",
    "NodewiseError",
    "Notice",
    "Observations",
    "Options",
    "PhaseTimings",
    "Placement",
    "PlacementRule",
    "PlanConstraints",
    "PlanPool",
    "PlanSpace",
    "PlanningModel",
    "Policy",
    "PolicyParameter",
    "PolicyRecord",
    "Predictions",
    "Prior",
    "ProcessGroup",
    "Profile",
    "Query",
    "RankShares",
    "Reason",
    "Recomputation",
    "Refusal",
    "Replay",
    "ReplayQuestion",
    "ReplayedCollective",
    "ReplayedStep",
    "Requests",
    "RowRefusal",
    "RowStatus",
    "Run",
    "Shares",
    "Straggler",
    "Strategy",
    "SyncKind",
    "SyncMode",
    "SyncRecords",
    "Timeline",
    "Trace",
    "TraceReader",
    "TraceReaderRecord",
    "TraceReference",
    "TraceReport",
    "TraceSource",
    "TraceSteps",
    "Transformer",
    "Violation",
    "WarmingEstimator",
    "WorkerGroup",
    "WorkerGroups",
    "Workload",
    "as_floats",
    "as_ints",
    "catalogue_key",
    "constant_floats",
    "constant_ints",
    "freeze",
    "hookimpl",
]

PLUGIN_API_VERSION: Final = "1.0"
"""Version of everything in this module. Records state the range that they were written for."""

ENTRY_POINT_GROUP: Final = "nodewise.plugins"

PLUGIN_API_RANGE: Final = ">=1.0,<2"
"""Range of a record that does not state one."""

BASIC_COLUMNS: Final = frozenset(
    {
        "nodes",
        "workers",
        "parameter_servers",
        "devices",
        "sync_mode",
        "batch_per_worker",
        "accumulation",
        "global_batch",
        "link_bytes_per_s",
        "placement",
    }
)
"""Columns of Configurations that an estimator takes into account, or refuses row by row, unless it says more."""

MEASUREMENT_LOG_SPREAD: Final = 0.04
"""Standard deviation of ln(step time) of one measurement, where a model does not say: single runs that are repeated
differ by about 4 % (docs/estimators/queueing.md)."""

_PROJECT: Final = "nodewise"
hookimpl = pluggy.HookimplMarker(_PROJECT)
"""Marks a function as an implementation of one of Nodewise's hooks."""
_hookspec = pluggy.HookspecMarker(_PROJECT)


# --- what an estimator meets


class Corpus(Protocol):
    """All profiles that may teach, in no particular order."""

    def __iter__(self) -> Iterator[Profile]:
        """Each profile at its newest revision."""
        ...

    def __len__(self) -> int:
        """How many there are."""
        ...


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Prior:
    """What all profiles together teach an estimator; frozen and versioned.

    ``prior_id`` is derived from what it was learned from: same corpus, same id. ``sources`` names it for people;
    ``content`` is the estimator's own.
    """

    prior_id: str
    estimator: str
    sources: tuple[str, ...]
    content: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredTable:
    """Seconds that an operation was measured to take, by its size; ``sizes`` ascend. ``source`` says where from."""

    sizes: tuple[float, ...]
    seconds: tuple[float, ...]
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """Facts about devices and links, with the digest of all of them. Empty = nothing is known.

    Mappings are by ``catalogue_key`` of every name that an entry goes by; :meth:`device` and :meth:`link` take a name
    as anyone writes it. Names of facts carry units: ``fp16_flops_per_s``, ``memory_bytes_per_s``, ``bytes_per_s``.

    Attributes
    ----------
    all_reduces : mapping
        By device and ranks: all-reduces inside a node, sizes in bytes of the whole tensor.
    matrix_products : mapping
        By device and number format: sizes in FLOP.
    """

    digest: str = ""
    devices: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    links: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    all_reduces: Mapping[str, Mapping[int, MeasuredTable]] = field(default_factory=dict)
    matrix_products: Mapping[str, Mapping[str, MeasuredTable]] = field(default_factory=dict)

    def device(self, name: str) -> Mapping[str, float] | None:
        """Facts of an accelerator; None = not known."""
        return self.devices.get(catalogue_key(name))

    def link(self, name: str) -> Mapping[str, float] | None:
        """Facts of a link; None = not known."""
        return self.links.get(catalogue_key(name))


def catalogue_key(name: str) -> str:
    """A name as the catalogue files it: letters and digits alone, without the vendor's name and regardless of case."""
    return "".join(letter for letter in name.casefold() if letter.isalnum()).removeprefix("nvidia")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Query:
    """What will be asked: resolved configurations, how to answer, and facts about devices and links."""

    configurations: Configurations
    options: Options = field(default_factory=Options)
    catalogue: Catalogue = field(default_factory=Catalogue)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """Whether an estimator can answer, from which evidence, and if not, what is missing.

    Attributes
    ----------
    refusal : Refusal or None
        None = it can answer (single rows may still be refused).
    evidence : tuple of str
        What the answer would rest on, in words for people.
    strength : float
        0 to 1: 0 facts alone, 0.5 measurements of another kind or scale, 1 measurements that identify every constant.
    expected_log_error : float or None
        The estimator's own guess of its mean |ln(predicted / measured)|, if it has one.
    """

    refusal: Refusal | None = None
    evidence: tuple[str, ...] = ()
    strength: float = 0.0
    expected_log_error: float | None = None


class Model(Protocol):
    """Maps configurations to predictions. Pure: same arguments, same answer."""

    def predict(self, configurations: Configurations, options: Options) -> Predictions:
        """Predict every row at once; refuse row by row where the model does not reach."""
        ...


class Context(Protocol):
    """What a fit may use besides the profile."""

    @property
    def prior(self) -> Prior | None:
        """What the estimator's own ``learn`` returned, if anything."""
        ...

    @property
    def catalogue(self) -> Catalogue:
        """Devices and links."""
        ...

    @property
    def seed(self) -> int:
        """Seed of whatever is random."""
        ...

    def traces(self) -> Sequence[Trace]:
        """The profile's traces, read; in the profile's order, those of one file by rank. Slow the first time.

        Raises
        ------
        NodewiseError
            INVALID_FIELD, naming a trace that cannot be read.
        """
        ...

    def model(self, estimator: str) -> Model:
        """Another estimator's model of the same profile.

        Raises
        ------
        NodewiseError
            ESTIMATOR_NOT_FOUND, or why that estimator refuses.
        """
        ...


@runtime_checkable
class Estimator(Protocol):
    """Fits profiles into models."""

    def assess(self, profile: Profile, query: Query) -> Assessment:
        """Say whether the query can be answered, cheaply and without fitting."""
        ...

    def fit(self, profile: Profile, context: Context) -> Model:
        """Fit a model. May be slow; deterministic by ``context.seed``. Only called after ``assess`` agreed."""
        ...


@runtime_checkable
class LearningEstimator(Estimator, Protocol):
    """An estimator that also learns from all profiles together."""

    def learn(self, corpus: Corpus) -> Prior:
        """Learn a prior. Slow; never on a request's path."""
        ...


@runtime_checkable
class WarmingEstimator(Estimator, Protocol):
    """An estimator whose first answer would wait for something that the process needs once."""

    def warm_up(self) -> None:
        """Compile or load it. Called once in each process of a server before it serves; what it raises is logged."""
        ...


@runtime_checkable
class CovariantModel(Model, Protocol):
    """Optional: a model that knows how its errors hang together, so that it can be told what a measurement would teach.

    Without it the service assumes errors that are the more alike the closer two configurations are in scale
    (``estimation.suggest``).
    """

    @property
    def measurement_log_spread(self) -> float:
        """Standard deviation of ln(measured step time) - ln(true step time) of one measurement, 0 or more."""
        return MEASUREMENT_LOG_SPREAD

    def log_covariance(self, configurations: Configurations, options: Options) -> Floats:
        """Covariance of ln(true step time) - ln(predicted step time), of shape (rows, rows).

        Symmetric and positive semi-definite. Pure, as ``predict``; rows and columns that ``predict`` refuses hold 0.
        It is about the true step time: nothing of a single measurement's noise is in it, even where ``log_spread``
        holds some.
        """
        ...


class PlanSpace(Protocol):
    """The configurations that a search chooses from: prefixes, each of which has completions.

    A prefix is a row of which some columns are final (``final``); its completions differ in the others. What a prefix
    leaves open should be what hardly changes a lower bound, so that whole groups are cut at once.
    """

    @property
    def prefixes(self) -> Configurations:
        """One row per prefix. Columns that are not final hold any value."""
        ...

    @property
    def sizes(self) -> Ints:
        """Completions of each prefix, 0 or more."""
        ...

    @property
    def final(self) -> frozenset[str]:
        """Columns that completions take from their prefix.

        At least nodes, workers, device_index, global_batch, parameter_servers and sync_mode.
        """
        ...

    @property
    def exclusions(self) -> Sequence[Exclusion]:
        """What the constraints allow and the model cannot do, such as degrees that divide nothing."""
        ...

    def lower_bound(self) -> Mapping[str, Floats]:
        """``step_s`` and ``memory_bytes`` that no completion of each prefix is below, and ``memory_capacity_bytes``.

        Of the numbers as ``evaluate`` computes them, rounding included: the search compares exactly.
        """
        ...

    def completed(self, prefixes: Ints) -> Configurations:
        """All completions of some prefixes: those of the first, then those of the next. Pure; rows are resolved."""
        ...


@runtime_checkable
class PlanningModel(Model, Protocol):
    """Optional: a model that makes the search over partitionings fast. Pure, as ``predict``.

    Columns are ``step_s``, ``memory_bytes`` and ``memory_capacity_bytes``: what a device needs and what it has, 0 = not
    known. A row fits if it needs no more than there is.
    """

    @property
    def memory_terms(self) -> Sequence[str]:
        """Further columns of ``evaluate`` that add up to ``memory_bytes``, such as ``activations_bytes``."""
        ...

    def space(self, constraints: PlanConstraints) -> PlanSpace:
        """The space within the constraints, in an order that the constraints alone decide; it may be empty."""
        ...

    def evaluate(self, chunk: Configurations, columns: Sequence[str]) -> Mapping[str, Floats]:
        """The named columns for a chunk of completions, and nothing else.

        ``step_s`` and ``memory_bytes`` equal those of ``predict``, which answers exactly the rows that fit.
        """
        ...


# --- what a policy, a trace reader and a diagnoser meet


@runtime_checkable
class Policy(Protocol):
    """Shares a cluster among jobs."""

    def decide(self, state: ClusterState, curves: Curves, budget: Budget) -> Allocation | Shares:
        """Decide. Pure and deterministic; keeps nothing between calls but ``memory``.

        When the budget has nothing left: return the best feasible decision so far.
        """
        ...


@runtime_checkable
class TraceReader(Protocol):
    """Reads one format of traces."""

    def recognises(self, head: bytes, source: TraceSource) -> float:
        """How surely a file that starts so is of this format, 0 to 1. Packed files are unpacked before.

        0 = it is not; up to 0.2, it may be, as every file of a more general form; 0.8 to 0.9, it has marks that this
        format alone has; 1 = the sender's mapping says so. Of all readers the surest reads the file.
        """
        ...

    def read(self, stream: BinaryIO, source: TraceSource) -> Sequence[Trace]:
        """Read a file, as a stream: one trace per rank in it, at least one. Strips paths, host and user names.

        What cannot be made sense of is left out and counted in the trace's report; nothing vanishes silently.

        Raises
        ------
        NodewiseError
            INVALID_FIELD, saying where the stream stops making sense, if nothing usable is left.
        """
        ...


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


# --- records


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatorRecord:
    """An estimator as registered. ``name``: lower case letters, digits and dashes; unique over all plugins.

    ``columns`` are the fields of Configurations that it takes into account (``groups`` for workers that differ). Rows
    that state another one are refused before it sees them: an answer that ignores what was asked would be wrong without
    anyone noticing.
    """

    name: str
    version: str
    description: str
    estimator: Estimator
    capabilities: frozenset[str] = frozenset()
    columns: frozenset[str] = BASIC_COLUMNS
    plugin_api: str = PLUGIN_API_RANGE


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRecord:
    """A policy as registered."""

    name: str
    version: str
    description: str
    policy: Policy
    parameters: tuple[PolicyParameter, ...] = ()
    plugin_api: str = PLUGIN_API_RANGE


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceReaderRecord:
    """A trace reader as registered."""

    name: str
    version: str
    description: str
    reader: TraceReader
    plugin_api: str = PLUGIN_API_RANGE


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnoserRecord:
    """A diagnoser as registered."""

    name: str
    version: str
    description: str
    diagnoser: Diagnoser
    plugin_api: str = PLUGIN_API_RANGE


class HookSpecifications:
    """Nodewise's hooks. Each returns records; none of them computes."""

    @_hookspec
    def nodewise_estimators(self) -> Iterable[EstimatorRecord]:
        """Estimators that this plugin brings."""
        raise NotImplementedError

    @_hookspec
    def nodewise_policies(self) -> Iterable[PolicyRecord]:
        """Policies that this plugin brings."""
        raise NotImplementedError

    @_hookspec
    def nodewise_trace_readers(self) -> Iterable[TraceReaderRecord]:
        """Trace readers that this plugin brings."""
        raise NotImplementedError

    @_hookspec
    def nodewise_diagnosers(self) -> Iterable[DiagnoserRecord]:
        """Diagnosers that this plugin brings."""
        raise NotImplementedError


def new_plugin_manager() -> pluggy.PluginManager:
    """A manager that knows Nodewise's hooks and no plugin yet."""
    manager = pluggy.PluginManager(_PROJECT)
    manager.add_hookspecs(HookSpecifications)
    return manager
