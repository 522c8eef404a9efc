"""Questions to estimators and their answers, as messages of ``EstimatorService`` and back.

Columns of predictions are written and read by hand, from one table, as most calls are predictions. The rest is the
mapper's. A host's columns are bounded by the rows of the question: one number stands for all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from nodewise.domain.budget import Budget
from nodewise.domain.columns import Floats, as_floats, constant, freeze
from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import Reason, Refusal
from nodewise.domain.predictions import UNATTRIBUTED, Fidelity, Options, Predictions, RowStatus
from nodewise.domain.profile import Profile
from nodewise.hosting.processes.values import UndecodableError, read_value, write_value
from nodewise.mapper import configurations, profiles
from nodewise.mapper.mapping import from_message, to_message
from nodewise.mapper.reading import TrustingReader
from nodewise.plugin import Assessment, Catalogue, Prior
from nodewise.ports.limits import Limits
from nodewise_protos.plugin.v1 import estimator_service_pb2 as pb
from nodewise_protos.v1 import configuration_pb2, prediction_pb2, problem_pb2, profile_pb2

__all__ = [
    "read_assessment",
    "read_catalogue",
    "read_configurations",
    "read_options",
    "read_predictions",
    "read_prior",
    "read_profile",
    "write_assessment",
    "write_catalogue",
    "write_configurations",
    "write_options",
    "write_predictions",
    "write_prior",
    "write_profile",
]

_COLUMNS: Final = {
    "step_seconds": ("step_s", 0.0),
    "statuses": ("status", int(RowStatus.ANSWERED)),
    "log_spreads": ("log_spread", 0.0),
    "bottleneck_indexes": ("bottleneck_index", -1),
    "extrapolation_ratios": ("extrapolation", 1.0),
}
"""Columns that all predictions have: the attribute, and the default of a column without entries."""
_OPTIONAL: Final = {
    "staleness_mean_steps": "staleness_mean",
    "staleness_p95_steps": "staleness_p95",
    "memory_bytes": "memory_bytes",
    "excess_memory_bytes": "excess_memory_bytes",
    "once_seconds": "once_s",
}
_NAMED: Final = {"breakdown_seconds": "breakdown_s", "utilization": "utilisation", "extra": "extra"}
_UNLIMITED: Final = Limits(rows_per_call=2**31, rows_per_batch=2**31, backtest_rows=2**31)


class _UnwritableError(Exception):
    """A column that does not have one number in each row."""


def _numbers(column: Any, rows: int, kind: Any = np.float64) -> list[Any]:
    """The numbers of a column, or the one that all rows have. Raises _UnwritableError."""
    if type(column) is not np.ndarray or column.shape != (rows,) or column.dtype != kind:
        raise _UnwritableError
    values: list[Any] = column.tolist()
    return values[:1] if rows and values.count(values[0]) == rows else values


def _column(values: Sequence[Any], rows: int, default: Any = 0.0) -> Any:
    """A column of the rows; none = the default, one = in every row. Raises UndecodableError for another number."""
    count, kind = len(values), type(default)
    if count <= 1:
        return constant(rows, kind(values[0]) if count else default)
    if count != rows:
        raise UndecodableError(f"a column of {count} numbers for {rows} rows")
    return freeze(np.array(values, np.int64 if kind is int else np.float64))


# --- questions


def write_configurations(value: Configurations) -> configuration_pb2.Configurations:
    """Rows; columns that no row states are left out."""
    return configurations.write_configurations(value, in_short=True)


def read_configurations(message: configuration_pb2.Configurations) -> Configurations:
    """As written."""
    return configurations.read_configurations(message, "configurations", TrustingReader(), _UNLIMITED)


def write_profile(profile: Profile) -> pb.Profile:
    """A profile with its content, and the facts that nodewise.v1 has no field for."""
    content = profiles.write_profile(profile)
    others: dict[str, Any] = {"observations_count": len(profile.observations), "delete_time": None, "purge_time": None}
    message = to_message(profile, profile_pb2.Profile, content=content, warnings=None, **others)
    memory = profiles.write_profile(Profile(observations=profile.memory_runs))
    return pb.Profile(profile=message, memory_runs=memory.observations if len(profile.memory_runs) else None)


def read_profile(message: pb.Profile) -> Profile:
    """As written."""
    content = profiles.read_profile(message.profile.content)
    memory = profiles.read_profile(profile_pb2.ProfileContent(observations=message.memory_runs))
    values = {each.name: getattr(content, each.name) for each in profile_pb2.ProfileContent.DESCRIPTOR.fields}
    return from_message(message.profile, Profile, "", TrustingReader(), memory_runs=memory.observations, **values)


def write_options(value: Options) -> pb.Options:
    """Options of a prediction."""
    return to_message(value, pb.Options, remaining_seconds=value.budget and value.budget.remaining_s())


def read_options(message: pb.Options) -> Options:
    """As written."""
    budget = Budget(message.remaining_seconds) if message.HasField("remaining_seconds") else None
    fidelity = Fidelity(message.fidelity or Fidelity.MODEL)
    return from_message(message, Options, "", TrustingReader(), budget=budget, fidelity=fidelity)


def write_catalogue(value: Catalogue) -> pb.Catalog:
    """The catalogue of devices and links."""

    def facts(of: Mapping[str, Mapping[str, float]]) -> dict[str, pb.Facts]:
        return {name: pb.Facts(facts=each) for name, each in of.items()}

    return pb.Catalog(
        digest=value.digest, devices=facts(value.devices), links=facts(value.links), all=write_value(value)
    )


def read_catalogue(message: pb.Catalog) -> Catalogue:
    """As written."""
    catalogue: Catalogue = read_value(message.all)
    return catalogue


def write_prior(value: Prior | None, content: Callable[[Any], bytes]) -> pb.Prior | None:
    """A prior; ``content`` makes bytes of the estimator's own part."""
    return None if value is None else to_message(value, pb.Prior, content=content(value.content))


def read_prior(message: pb.Prior, content: Callable[[bytes], Any]) -> Prior:
    """As written."""
    return from_message(message, Prior, "", TrustingReader(), content=content(message.content))


# --- answers


def _reader() -> TrustingReader:
    return TrustingReader(parts={Refusal: _read_refusal})


def _problem(refusal: Refusal) -> problem_pb2.Problem:
    reason = str(Reason(refusal.reason))
    return problem_pb2.Problem(reason=reason, message=refusal.message, missing_fields=refusal.missing_fields)


def _read_refusal(message: Any, *_: Any) -> Refusal:
    return Refusal(Reason(message.reason), message.message, tuple(message.missing_fields))


def write_assessment(value: Any) -> pb.Assessment | None:
    """An assessment; None = the value is not an assessment."""
    if type(value) is not Assessment or type(value.evidence) is not tuple or type(value.of_profile) is not bool:
        return None
    error: Any = value.expected_log_error
    if isinstance(error, np.ndarray) and (error.ndim != 1 or len(error) < 2):
        return None
    errors = error if isinstance(error, np.ndarray) else [] if error is None else [error]
    try:
        refusal = None if value.refusal is None else _problem(value.refusal)
        return to_message(value, pb.Assessment, expected_log_errors=errors, refusal=refusal)
    except (ValueError, TypeError, AttributeError):
        return None


def read_assessment(message: pb.Assessment) -> Assessment:
    """As written."""
    errors = message.expected_log_errors
    error: float | Floats | None = as_floats(errors) if len(errors) > 1 else next(iter(errors), None)
    return from_message(message, Assessment, "", _reader(), expected_log_error=error)


def write_predictions(value: Any, rows: int) -> pb.Predictions | None:
    """A model's predictions of so many rows; None = they are invalid, and are sent as a plain value."""
    if type(value) is not Predictions or type(value.bottlenecks) is not tuple or type(value.simulated) is not bool:
        return None

    def named_columns(columns: Mapping[str, Any]) -> list[prediction_pb2.NamedColumn]:
        return [prediction_pb2.NamedColumn(name=name, values=_numbers(each, rows)) for name, each in columns.items()]

    try:
        columns: dict[str, Any] = {
            field: _numbers(getattr(value, name), rows, np.int64 if type(default) is int else np.float64)
            for field, (name, default) in _COLUMNS.items()
        }
        for field, name in _OPTIONAL.items():
            column = getattr(value, name)
            columns[field] = None if column is None else _numbers(column, rows)
        columns.update({field: named_columns(getattr(value, name)) for field, name in _NAMED.items()})
        refusals = [
            prediction_pb2.RowRefusal(rows=each.rows, problem=_problem(each.refusal)) for each in value.refusals
        ]
        return to_message(value, pb.Predictions, bottleneck_names=value.bottlenecks, refusals=refusals, **columns)
    except (_UnwritableError, ValueError, TypeError, AttributeError):
        return None


def read_predictions(message: pb.Predictions, rows: int) -> Predictions:
    """As written; columns that are left out have their defaults."""
    if not len(message.step_seconds) and rows:
        raise UndecodableError("no step_seconds")
    columns = {name: _column(getattr(message, field), rows, default) for field, (name, default) in _COLUMNS.items()}
    for field, name in _OPTIONAL.items():
        values = getattr(message, field)
        columns[name] = _column(values, rows) if len(values) else None
    for field, name in _NAMED.items():
        columns[name] = {each.name: _column(each.values, rows) for each in getattr(message, field)}
    columns["breakdown_s"] = columns["breakdown_s"] or {UNATTRIBUTED: columns["step_s"]}
    if not len(message.extrapolation_ratios):
        columns["extrapolation"] = as_floats(columns["status"] == int(RowStatus.ANSWERED))
    names = tuple(message.bottleneck_names)
    return from_message(message, Predictions, "", _reader(), bottlenecks=names, **columns)
