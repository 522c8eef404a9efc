"""What a server can be asked for: estimators, policies, and plugins that were left out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from nodewise_client._predictions import Rows
from nodewise_client._time import from_timestamp
from nodewise_protos.v1 import diagnosis_service_pb2, prediction_service_pb2, schedule_service_pb2


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningScore:
    """How well predictions matched the observations that arrived after them."""

    observations_count: int
    """Observations that the revision before them had an answer for."""
    mean_absolute_log_error: float
    """Of ln(predicted / measured steps per second)."""
    mean_log_error: float
    """Above 0 = predicted too fast."""
    coverage: float | None
    """Share of observations within the 90 % interval, of those whose prediction had one; None = none had."""
    update_time: datetime | None
    unanswered_count: int = 0
    """Observations that there was no answer for; they are in none of the other figures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatorInfo:
    """An estimator."""

    name: str
    version: str
    description: str
    distribution: str
    """Distribution that brought it, with its version."""
    mode: str
    """Where it runs."""
    capabilities: tuple[str, ...]
    score: RunningScore | None
    """None until observations have scored it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyParameter:
    """A parameter of a policy."""

    name: str
    description: str
    """Meaning, with unit."""
    default: float
    minimum: float
    maximum: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyInfo:
    """A policy."""

    name: str
    version: str
    description: str
    distribution: str
    """Distribution that brought it, with its version."""
    mode: str
    """Where it runs."""
    parameters: tuple[PolicyParameter, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginProblem:
    """A plugin that was left out, and why."""

    name: str
    distribution: str
    kind: str
    reason: str
    """Stable reason, e.g. "PLUGIN_BROKEN"."""
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatorList(Rows[EstimatorInfo]):
    """The estimators by name, and the plugins that were left out."""

    estimators: tuple[EstimatorInfo, ...]
    problems: tuple[PluginProblem, ...]
    auto_score: RunningScore | None = None
    """Of "auto", with the estimators that are loaded now; None until observations have scored it."""

    def _items(self) -> tuple[EstimatorInfo, ...]:
        return self.estimators


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyList(Rows[PolicyInfo]):
    """The policies by name, and the plugins that were left out."""

    policies: tuple[PolicyInfo, ...]
    problems: tuple[PluginProblem, ...]

    def _items(self) -> tuple[PolicyInfo, ...]:
        return self.policies


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnoserInfo:
    """A diagnoser that can be asked."""

    name: str
    version: str
    description: str
    distribution: str
    mode: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceReaderInfo:
    """A format of traces that can be read."""

    name: str
    version: str
    description: str
    distribution: str
    mode: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnoserList(Rows[DiagnoserInfo]):
    """The diagnosers by name, the readers of traces, and the plugins that were left out."""

    diagnosers: tuple[DiagnoserInfo, ...]
    trace_readers: tuple[TraceReaderInfo, ...]
    problems: tuple[PluginProblem, ...]

    def _items(self) -> tuple[DiagnoserInfo, ...]:
        return self.diagnosers


def diagnoser_list(pages: Iterable[diagnosis_service_pb2.ListDiagnosersResponse]) -> DiagnoserList:
    """The diagnosers of all pages."""
    diagnosers: list[DiagnoserInfo] = []
    readers: list[TraceReaderInfo] = []
    problems: dict[PluginProblem, None] = {}
    for page in pages:
        diagnosers += [DiagnoserInfo(**_described(found)) for found in page.diagnosers]
        readers += [TraceReaderInfo(**_described(found)) for found in page.trace_readers]
        problems.update(dict.fromkeys(map(_problem, page.problems)))
    return DiagnoserList(diagnosers=tuple(diagnosers), trace_readers=tuple(readers), problems=tuple(problems))


def _described(message: diagnosis_service_pb2.Diagnoser | diagnosis_service_pb2.TraceReader) -> dict[str, str]:
    return {
        "name": message.name,
        "version": message.version,
        "description": message.description,
        "distribution": message.distribution,
        "mode": message.mode,
    }


def estimator_list(pages: Iterable[prediction_service_pb2.ListEstimatorsResponse]) -> EstimatorList:
    """The estimators of all pages."""
    estimators: list[EstimatorInfo] = []
    problems: dict[PluginProblem, None] = {}
    auto_score: RunningScore | None = None
    for page in pages:
        if page.HasField("auto_score"):
            auto_score = _score(page.auto_score)
        estimators += [
            EstimatorInfo(
                name=found.name,
                version=found.version,
                description=found.description,
                distribution=found.distribution,
                mode=found.mode,
                capabilities=tuple(found.capabilities),
                score=_score(found.score) if found.HasField("score") else None,
            )
            for found in page.estimators
        ]
        problems.update(dict.fromkeys(map(_problem, page.problems)))
    return EstimatorList(estimators=tuple(estimators), problems=tuple(problems), auto_score=auto_score)


def policy_list(pages: Iterable[schedule_service_pb2.ListPoliciesResponse]) -> PolicyList:
    """The policies of all pages."""
    policies: list[PolicyInfo] = []
    problems: dict[PluginProblem, None] = {}
    for page in pages:
        policies += [
            PolicyInfo(
                name=found.name,
                version=found.version,
                description=found.description,
                distribution=found.distribution,
                mode=found.mode,
                parameters=tuple(
                    PolicyParameter(
                        name=parameter.name,
                        description=parameter.description,
                        default=parameter.default_value,
                        minimum=parameter.minimum,
                        maximum=parameter.maximum,
                    )
                    for parameter in found.parameters
                ),
            )
            for found in page.policies
        ]
        problems.update(dict.fromkeys(map(_problem, page.problems)))
    return PolicyList(policies=tuple(policies), problems=tuple(problems))


def _problem(message: prediction_service_pb2.PluginProblem) -> PluginProblem:
    return PluginProblem(
        name=message.name,
        distribution=message.distribution,
        kind=message.kind,
        reason=message.reason,
        message=message.message,
    )


def _score(message: prediction_service_pb2.RunningScore) -> RunningScore:
    return RunningScore(
        observations_count=message.observations_count,
        mean_absolute_log_error=message.mean_absolute_log_error,
        mean_log_error=message.mean_log_error,
        coverage=message.coverage if message.HasField("coverage") else None,
        update_time=from_timestamp(message.update_time) if message.HasField("update_time") else None,
        unanswered_count=message.unanswered_count,
    )
