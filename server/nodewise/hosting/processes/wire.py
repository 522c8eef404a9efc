"""What estimators are asked and answer, as messages of ``EstimatorService`` and back.

By hand: most calls are nothing but columns of rows.

Columns of one number cross as that number. What a host sends is bounded by what was sent: one number stands for as many
rows as it was asked about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from nodewise.domain.budget import Budget
from nodewise.domain.columns import Floats, Ints, as_floats, as_ints, constant, constant_floats, constant_ints, freeze
from nodewise.domain.configurations import COLUMNS, Configurations, Placement, WorkerGroups
from nodewise.domain.errors import Reason, Refusal
from nodewise.domain.facts import CONFIGURATION_DEFAULTS, NUMBER_COLUMNS
from nodewise.domain.predictions import UNATTRIBUTED, Fidelity, Notice, Options, Predictions, RowRefusal, RowStatus
from nodewise.hosting.processes.values import UndecodableError, read_value, write_value
from nodewise.hosting.soundness import is_a
from nodewise.plugin import Assessment, Catalogue, Prior
from nodewise_protos.plugin.v1 import estimator_service_pb2 as pb
from nodewise_protos.v1 import configuration_pb2, prediction_pb2, problem_pb2

__all__ = [
    "filled",
    "read_assessment",
    "read_catalogue",
    "read_configurations",
    "read_options",
    "read_predictions",
    "read_prior",
    "write_assessment",
    "write_catalogue",
    "write_configurations",
    "write_options",
    "write_predictions",
    "write_prior",
]

_NUMBERS: Final = tuple(
    (fact.field, fact.row, CONFIGURATION_DEFAULTS[fact.row]) for fact in NUMBER_COLUMNS if fact.row in COLUMNS
)
"""Of each column of configurations its field, its name and what it holds where nothing is stated."""


class _UnwritableError(Exception):
    """A column that does not have one number in each row."""


def _column(column: Any, rows: int, kind: Any) -> list[Any]:
    """The numbers of a column, or the one that all rows have. Raises _UnwritableError."""
    if type(column) is not np.ndarray or column.shape != (rows,) or column.dtype != kind:
        raise _UnwritableError
    values: list[Any] = column.tolist()
    return values[:1] if rows and values.count(values[0]) == rows else values


def filled(values: Sequence[Any], rows: int, default: Any) -> Any:
    """A column of the rows; none = the default, one = in every row. Raises UndecodableError for another number."""
    count, kind = len(values), type(default)
    if count <= 1:
        return constant(rows, kind(values[0]) if count else default)
    if count != rows:
        raise UndecodableError(f"a column of {count} numbers about {rows} rows")
    return freeze(np.array(values, np.int64 if kind is int else np.float64))


def _optional(values: Sequence[float], rows: int) -> Floats | None:
    found: Floats | None = filled(values, rows, 0.0) if len(values) or not rows else None
    return found


# --- configurations


def write_configurations(value: Configurations) -> configuration_pb2.Configurations:
    """Rows; what no row states is left out."""
    rows = len(value)
    fields: dict[str, Any] = {"workers": value.workers.tolist()}  # they tell how many rows there are
    for field, name, default in _NUMBERS:
        if field != "workers":
            column = getattr(value, name)
            if column is not constant(rows, default):
                numbers = column.tolist()
                same = numbers.count(numbers[0]) == rows if rows else True
                if not same or (rows and numbers[0] != default):
                    fields[field] = numbers[:1] if same else numbers
    if value.devices != ("",):
        fields["device_names"] = value.devices
    if value.device_index is not constant_ints(rows, 0) and value.device_index.any():
        fields["device_indexes"] = value.device_index.tolist()
    if value.precisions != ("",):
        names = [value.precisions[index] for index in value.precision_index.tolist()]
        fields["precisions"] = names[:1] if rows and names.count(names[0]) == rows else names
    placement, groups = value.placement, value.worker_groups
    if placement is not None:
        fields.update(placement_offsets=placement.offsets.tolist(), placement_workers=placement.workers.tolist())
    if groups is not None:
        fields.update(
            group_offsets=groups.offsets.tolist(),
            group_workers=groups.workers.tolist(),
            group_device_indexes=groups.device_index.tolist(),
            group_compute_factors=groups.compute_factor.tolist(),
        )
    return configuration_pb2.Configurations(**fields)


def read_configurations(message: configuration_pb2.Configurations) -> Configurations:
    """As written."""
    rows = len(message.workers)
    made: dict[str, Any] = {}
    for field, name, default in _NUMBERS:
        values = getattr(message, field)
        if len(values):
            made[name] = as_ints(values) if field == "workers" else filled(values, rows, default)
    if message.device_names:
        made["devices"] = tuple(message.device_names)
        made["device_index"] = filled(message.device_indexes, rows, 0)
    if message.precisions:
        names = tuple(dict.fromkeys(message.precisions))
        made["precisions"] = names
        made["precision_index"] = filled([names.index(name) for name in message.precisions], rows, 0)
    if message.placement_offsets:
        made["placement"] = Placement(as_ints(message.placement_offsets), as_ints(message.placement_workers))
    if message.group_offsets:
        made["worker_groups"] = WorkerGroups(
            as_ints(message.group_offsets),
            as_ints(message.group_workers),
            as_ints(message.group_device_indexes),
            as_floats(message.group_compute_factors),
        )
    return Configurations.unstated(rows).replaced(**made)


# --- options, assessments, what is known


def write_options(value: Options) -> pb.Options:
    """How to answer."""
    remaining_s = None if value.budget is None else value.budget.remaining_s()
    return pb.Options(
        fidelity=int(value.fidelity),  # type: ignore[arg-type]  # the same numbers
        seed=value.seed,
        simulated_steps=value.simulated_steps,
        remaining_seconds=remaining_s,
    )


def read_options(message: pb.Options) -> Options:
    """As written."""
    return Options(
        fidelity=Fidelity(message.fidelity or Fidelity.MODEL),
        seed=message.seed,
        simulated_steps=message.simulated_steps,
        budget=Budget(message.remaining_seconds) if message.HasField("remaining_seconds") else None,
    )


def _write_refusal(refusal: Refusal) -> problem_pb2.Problem:
    return problem_pb2.Problem(
        reason=str(Reason(refusal.reason)), message=refusal.message, missing_fields=refusal.missing_fields
    )


def _read_refusal(message: problem_pb2.Problem) -> Refusal:
    return Refusal(Reason(message.reason), message.message, tuple(message.missing_fields))


def write_assessment(value: Any) -> pb.Assessment | None:
    """Whether rows can be answered; None = it is nothing that says so."""
    if type(value) is not Assessment or type(value.evidence) is not tuple or type(value.of_profile) is not bool:
        return None
    error = value.expected_log_error
    if isinstance(error, np.ndarray):
        if error.ndim != 1 or len(error) < 2:
            return None
        errors = error.tolist()
    else:
        errors = [] if error is None else [error]
    try:
        return pb.Assessment(
            refusal=None if value.refusal is None else _write_refusal(value.refusal),
            evidence=value.evidence,
            strength=value.strength,
            expected_log_errors=errors,
            of_profile=value.of_profile,
        )
    except (ValueError, TypeError, AttributeError):
        return None


def read_assessment(message: pb.Assessment) -> Assessment:
    """As written."""
    errors = message.expected_log_errors
    error: float | Floats | None = None
    if len(errors):
        error = errors[0] if len(errors) == 1 else as_floats(errors)
    return Assessment(
        refusal=_read_refusal(message.refusal) if message.HasField("refusal") else None,
        evidence=tuple(message.evidence),
        strength=message.strength,
        expected_log_error=error,
        of_profile=message.of_profile,
    )


def write_catalogue(value: Catalogue) -> pb.Catalog:
    """What is known of devices and links."""

    def facts(of: Mapping[str, Mapping[str, float]]) -> dict[str, pb.Facts]:
        return {name: pb.Facts(facts=each) for name, each in of.items()}

    def other(each: Any) -> Any:
        raise UndecodableError(f"a {type(each).__name__} in a catalogue")

    return pb.Catalog(
        digest=value.digest, devices=facts(value.devices), links=facts(value.links), all=write_value(value, other)
    )


def read_catalogue(message: pb.Catalog) -> Catalogue:
    """As written."""
    found: Catalogue = read_value(message.all)
    return found


def write_prior(value: Prior | None, content: Callable[[Any], bytes]) -> pb.Prior | None:
    """What was learned; ``content`` makes bytes of the estimator's own."""
    if value is None:
        return None
    return pb.Prior(
        prior_id=value.prior_id, estimator=value.estimator, sources=value.sources, content=content(value.content)
    )


def read_prior(message: pb.Prior, content: Callable[[bytes], Any]) -> Prior:
    """As written."""
    return Prior(
        prior_id=message.prior_id,
        estimator=message.estimator,
        sources=tuple(message.sources),
        content=content(message.content),
    )


# --- predictions


def write_predictions(value: Any, rows: int) -> pb.Predictions | None:
    """What a model answers about so many rows; None = it holds what it should not, and is sent as it is."""
    if type(value) is not Predictions:
        return None
    try:
        return _write_predictions(value, rows)
    except (_UnwritableError, ValueError, TypeError, AttributeError):
        return None


def _write_predictions(value: Predictions, rows: int) -> pb.Predictions:
    def floats(column: Any) -> list[float]:
        return [] if column is None else _column(column, rows, np.float64)

    def named(columns: Mapping[str, Any]) -> Iterable[prediction_pb2.NamedColumn]:
        return [prediction_pb2.NamedColumn(name=name, values=floats(each)) for name, each in columns.items()]

    statuses, indexes = (_column(each, rows, np.int64) for each in (value.status, value.bottleneck_index))
    if not is_a(value.simulated, bool) or not is_a(value.bottlenecks, tuple):
        raise _UnwritableError
    return pb.Predictions(
        step_seconds=floats(value.step_s),
        statuses=[] if statuses == [1] else statuses,
        log_spreads=floats(value.log_spread),
        breakdown_seconds=named(value.breakdown_s),
        bottleneck_names=value.bottlenecks,
        bottleneck_indexes=indexes,
        extrapolation_ratios=floats(value.extrapolation),
        utilization=named(value.utilisation),
        staleness_mean_steps=floats(value.staleness_mean),
        staleness_p95_steps=floats(value.staleness_p95),
        memory_bytes=floats(value.memory_bytes),
        excess_memory_bytes=floats(value.excess_memory_bytes),
        once_seconds=floats(value.once_s),
        extra=named(value.extra),
        simulated=value.simulated,
        refusals=[
            prediction_pb2.RowRefusal(rows=each.rows, problem=_write_refusal(each.refusal)) for each in value.refusals
        ],
        notices=[
            problem_pb2.Notice(reason=each.reason, message=each.message, rows=each.rows) for each in value.notices
        ],
    )


def read_predictions(message: pb.Predictions, rows: int) -> Predictions:
    """As written; what is left out has its default."""

    def named(columns: Iterable[prediction_pb2.NamedColumn]) -> dict[str, Floats]:
        return {each.name: filled(each.values, rows, 0.0) for each in columns}

    if not len(message.step_seconds) and rows:
        raise UndecodableError("no step_seconds")
    step_s: Floats = filled(message.step_seconds, rows, 0.0)
    status: Ints = filled(message.statuses, rows, int(RowStatus.ANSWERED))
    return Predictions(
        status=status,
        step_s=step_s,
        log_spread=filled(message.log_spreads, rows, 0.0),
        breakdown_s=named(message.breakdown_seconds) or {UNATTRIBUTED: step_s},
        bottlenecks=tuple(message.bottleneck_names),
        bottleneck_index=filled(message.bottleneck_indexes, rows, -1),
        extrapolation=_extrapolation(message, status, rows),
        utilisation=named(message.utilization),
        staleness_mean=_optional(message.staleness_mean_steps, rows),
        staleness_p95=_optional(message.staleness_p95_steps, rows),
        memory_bytes=_optional(message.memory_bytes, rows),
        excess_memory_bytes=_optional(message.excess_memory_bytes, rows),
        once_s=_optional(message.once_seconds, rows),
        extra=named(message.extra),
        simulated=message.simulated,
        refusals=tuple([RowRefusal(tuple(each.rows), _read_refusal(each.problem)) for each in message.refusals]),
        notices=tuple([Notice(each.reason, each.message, tuple(each.rows)) for each in message.notices]),
    )


def _extrapolation(message: pb.Predictions, status: Ints, rows: int) -> Floats:
    """As told, else 1 in rows that are answered."""
    if len(message.extrapolation_ratios) or not len(message.statuses):
        found: Floats = filled(message.extrapolation_ratios, rows, 1.0)
        return found
    if (status == int(RowStatus.ANSWERED)).all():
        return constant_floats(rows, 1.0)
    return freeze(np.where(status == int(RowStatus.ANSWERED), 1.0, 0.0))
