"""Client of the Nodewise service: how fast a training job would be elsewhere, how sure that is, what is worth it.

Requests and replies are the contract's own messages as plain values, by the contract's names: every class of
`nodewise_values` can be taken from here.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import nodewise_values as _values
from nodewise_client._access import TokenFile
from nodewise_client._answers import (
    BatchPredictResult,
    JobOutcome,
    PredictResult,
    StreamAnswer,
    numbers_by_name,
    scored_rows,
)
from nodewise_client._architectures import architectures
from nodewise_client._builders import (
    Rule,
    counts,
    measurement_table,
    node_pool,
    node_range,
    objective,
    profile_source,
    simulation_jobs,
    worker_range,
)
from nodewise_client._columns import observations, phase_timings
from nodewise_client._configurations import (
    WorkerGroup,
    configuration_rows,
    configurations,
    configurations_of_rows,
)
from nodewise_client._connection import HealthStatus
from nodewise_client._errors import (
    CallCancelledError,
    Code,
    ConflictError,
    DeadlineExceededError,
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    LimitExceededError,
    NodewiseError,
    NotFoundError,
    PermissionDeniedError,
    RefusedError,
    ResourceExhaustedError,
    UnauthenticatedError,
    UnavailableError,
    UnimplementedError,
)
from nodewise_client._ingest_core import CommitResult
from nodewise_client._layer_tables import layers_from_csv
from nodewise_client._redaction import redacted
from nodewise_client._resume import ResumePolicy
from nodewise_client._row_kinds import HeldDevices, Prediction, ScoredRow, SimulatedJob
from nodewise_client._rows import Rows
from nodewise_client._sync.client import Client
from nodewise_client._traces import prepared_trace
from nodewise_client._version import version

if TYPE_CHECKING:
    from nodewise_client._async.client import AsyncClient
    from nodewise_client._async.ingest import AsyncIngestWriter
    from nodewise_client._hugging_face import ImportedModel, ImportedModelError, model_from_hugging_face
    from nodewise_client._long_answers import DiagnosisAnswer, PlanAnswer, Planned, ReplayAnswer, SimulationAnswer
    from nodewise_client._sync.ingest import IngestWriter
    from nodewise_client._timelines import ReplayedCollective, Timeline
    from nodewise_values import *  # noqa: F403  # all of the contract, whatever it holds

__all__ = [
    "AsyncClient",
    "AsyncIngestWriter",
    "BatchPredictResult",
    "CallCancelledError",
    "Client",
    "Code",
    "CommitResult",
    "ConflictError",
    "DeadlineExceededError",
    "DiagnosisAnswer",
    "FailedPreconditionError",
    "HealthStatus",
    "HeldDevices",
    "ImportedModel",
    "ImportedModelError",
    "IngestWriter",
    "InternalError",
    "InvalidArgumentError",
    "JobOutcome",
    "LimitExceededError",
    "NodewiseError",
    "NotFoundError",
    "PermissionDeniedError",
    "PlanAnswer",
    "Planned",
    "PredictResult",
    "Prediction",
    "RefusedError",
    "ReplayAnswer",
    "ReplayedCollective",
    "ResourceExhaustedError",
    "ResumePolicy",
    "Rows",
    "Rule",
    "ScoredRow",
    "SimulatedJob",
    "SimulationAnswer",
    "StreamAnswer",
    "Timeline",
    "TokenFile",
    "UnauthenticatedError",
    "UnavailableError",
    "UnimplementedError",
    "WorkerGroup",
    "architectures",
    "configuration_rows",
    "configurations",
    "configurations_of_rows",
    "counts",
    "layers_from_csv",
    "measurement_table",
    "model_from_hugging_face",
    "node_pool",
    "node_range",
    "numbers_by_name",
    "objective",
    "observations",
    "phase_timings",
    "prepared_trace",
    "profile_source",
    "redacted",
    "scored_rows",
    "simulation_jobs",
    "version",
    "worker_range",
]
__all__ += _values.__all__


_LATER: Final = {
    "_async.client": ("AsyncClient",),
    "_async.ingest": ("AsyncIngestWriter",),
    "_hugging_face": ("ImportedModel", "ImportedModelError", "model_from_hugging_face"),
    "_long_answers": ("DiagnosisAnswer", "PlanAnswer", "Planned", "ReplayAnswer", "SimulationAnswer"),
    "_sync.ingest": ("IngestWriter",),
    "_timelines": ("ReplayedCollective", "Timeline"),
}
"""Names that most programs do not use, by their modules."""


def __getattr__(name: str) -> Any:
    """A value of the contract, or a name of `_LATER`; its module is imported when it is first read."""
    module = next((module for module, names in _LATER.items() if name in names), None)
    if module is None and name not in _values.__all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(_values if module is None else import_module(f"{__name__}.{module}"), name)
    return value
