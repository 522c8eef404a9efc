"""The plugin door: all that a plugin author imports.

A plugin is a module (or object) named by an entry point of the group ``nodewise.plugins``. It implements one or more of
the hooks with :data:`hookimpl`; hooks register records and never compute. The records carry the objects that answer.

Whatever is here is imported from here. What each kind uses most:

- all: ``hookimpl``, ``Floats``, ``Ints``, ``as_floats``, ``as_ints``, ``freeze``, ``NodewiseError``, ``Reason``;
- estimators: ``EstimatorRecord``, ``Assessment``, ``Refusal``, ``Profile``, ``Query``, ``Context``, ``Configurations``,
  ``Options``, ``Predictions``, ``SyncMode``;
- policies: ``PolicyRecord``, ``ClusterState``, ``Curves``, ``Budget``, ``Allocation``, ``Grant``, ``Shares``;
- trace readers: ``TraceReaderRecord``, ``TraceSource``, ``Trace``, ``Lane``, ``EventKind``, ``TraceReport``;
- diagnosers: ``DiagnoserRecord``, ``DiagnoserContext``, ``ReplayQuestion``, ``Replay``, ``DiagnosisQuestion``,
  ``Diagnosis``.

Example
-------
>>> from nodewise.plugin import EstimatorRecord, hookimpl
>>> @hookimpl
... def nodewise_estimators():
...     return [EstimatorRecord(name="mine", version="1.0", description="...", estimator=MyEstimator())]
"""

from nodewise.domain.budget import Budget
from nodewise.domain.columns import Floats, Ints, added, as_floats, as_ints, constant_floats, constant_ints, freeze
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
from nodewise.plugin.catalogue import (
    Catalogue,
    CatalogueDevice,
    MeasuredTable,
    catalogue_key,
)
from nodewise.plugin.diagnosers import Diagnoser, DiagnoserContext, Run
from nodewise.plugin.estimators import (
    MEASUREMENT_LOG_SPREAD,
    Assessment,
    Context,
    Corpus,
    CovariantModel,
    Estimator,
    LearningEstimator,
    Model,
    Prior,
    Query,
    WarmingEstimator,
)
from nodewise.plugin.hooks import (
    ENTRY_POINT_GROUP,
    hookimpl,
    new_plugin_manager,
)
from nodewise.plugin.plans import (
    PlanningModel,
    PlanSpace,
)
from nodewise.plugin.policies import (
    Policy,
)
from nodewise.plugin.readers import (
    TraceReader,
)
from nodewise.plugin.records import (
    BASIC_COLUMNS,
    PLUGIN_API_VERSION,
    DiagnoserRecord,
    EstimatorRecord,
    PolicyRecord,
    TraceReaderRecord,
)

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
    "CatalogueDevice",
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
    "added",
    "as_floats",
    "as_ints",
    "catalogue_key",
    "constant_floats",
    "constant_ints",
    "freeze",
    "hookimpl",
    "new_plugin_manager",
]
