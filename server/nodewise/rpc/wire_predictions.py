"""Questions and answers on the wire."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from nodewise.domain.columns import Floats, Ints
from nodewise.domain.errors import NodewiseError, Reason, Refusal
from nodewise.domain.objective import (
    FewestDevices,
    HighestThroughput,
    Knee,
    LeastCost,
    LeastTime,
    Objective,
    Prices,
    Recommendation,
    Rule,
)
from nodewise.domain.predictions import Fidelity, Options
from nodewise.estimation.question import AUTO, Answer, Basis, Freshness, Terms
from nodewise.ports.limits import Limits
from nodewise.rpc.reading import Reader
from nodewise.rpc.wire_profiles import timestamp
from nodewise_protos.v1 import objective_pb2, prediction_pb2
from nodewise_protos.v1 import prediction_service_pb2 as service_pb

__all__ = [
    "ReadOptions",
    "columns_of",
    "read_objective",
    "read_options",
    "too_large",
    "too_long",
    "too_many",
    "write_basis",
    "write_predictions",
    "write_recommendation",
    "write_refusal",
]

HIGHEST_COVERAGE: Final = 0.9999
"""Beyond it nobody has the measurements to tell a bound from another."""
LARGEST_AMOUNT: Final = 1e18
"""Largest amount of samples, epochs, seconds or money that is taken for one."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How to answer, and the columns wanted, as read off the wire."""

    terms: Terms
    columns: frozenset[int]


def read_options(message: service_pb.PredictOptions, path: str = "options") -> ReadOptions:
    """How to answer.

    Raises
    ------
    NodewiseError
        INVALID_FIELD.
    """
    data = message.SerializeToString()
    return _options(data, path) if data else _DEFAULT_OPTIONS


@lru_cache(maxsize=256)
def _options(data: bytes, path: str) -> ReadOptions:
    message = service_pb.PredictOptions.FromString(data)
    reader = Reader()
    coverage = message.interval_coverage or 0.9
    reader.number(coverage, f"{path}.interval_coverage", above=0.0, most=HIGHEST_COVERAGE)
    known_freshness = reader.whole(message.freshness, f"{path}.freshness", most=int(max(Freshness)))
    known_fidelity = reader.whole(message.fidelity, f"{path}.fidelity", most=int(max(Fidelity)))
    reader.text(message.estimator, f"{path}.estimator", 63)
    steps = reader.whole(message.simulated_steps_count, f"{path}.simulated_steps_count", most=2**31 - 1)
    if steps and known_fidelity != Fidelity.SIMULATE:
        reader.wrong(f"{path}.simulated_steps_count", "must be 0 unless fidelity is FIDELITY_SIMULATE")
    columns = frozenset(int(column) for column in message.columns)
    for column in columns - _EVERYTHING - {prediction_pb2.PREDICTION_COLUMN_NONE}:
        reader.wrong(f"{path}.columns", f"must name columns of PredictionColumn, found {column}")
    reader.finish()
    terms = Terms(
        estimator=message.estimator or AUTO,
        options=Options(fidelity=Fidelity(known_fidelity or Fidelity.MODEL), seed=message.seed, simulated_steps=steps),
        coverage=coverage,
        freshness=Freshness(known_freshness or Freshness.WAIT),
        allow_fallback=message.allow_fallback,
    )
    return ReadOptions(terms, columns & _EVERYTHING if columns else _EVERYTHING)


@lru_cache(maxsize=1024)
def _objective(data: bytes, path: str) -> Objective:
    message = objective_pb2.Objective.FromString(data)
    reader = Reader()
    rule = _rule(message, path, reader)
    confidence = None
    if message.confidence:
        confidence = reader.number(message.confidence, f"{path}.confidence", above=0.5, most=HIGHEST_COVERAGE)
    samples = epochs = None
    amount = message.work.WhichOneof("amount")
    if amount == "samples":
        samples = reader.number(message.work.samples, f"{path}.work.samples", above=0.0, most=LARGEST_AMOUNT)
    elif amount == "epochs":
        epochs = reader.number(message.work.epochs, f"{path}.work.epochs", above=0.0, most=LARGEST_AMOUNT)
    prices = _prices(message.prices, f"{path}.prices", reader)
    reader.finish()
    return Objective(
        rule=rule, confidence=confidence, remaining_samples=samples, remaining_epochs=epochs, prices=prices
    )


def read_objective(message: objective_pb2.Objective, path: str = "objective") -> Objective:
    """What best means.

    Raises
    ------
    NodewiseError
        INVALID_FIELD.
    """
    return _objective(message.SerializeToString(), path)


def _rule(message: objective_pb2.Objective, path: str, reader: Reader) -> Rule:
    chosen = message.WhichOneof("rule")
    if chosen == "highest_throughput":
        return HighestThroughput()
    if chosen == "knee":
        share = message.knee.share or 0.5
        return Knee(reader.number(share, f"{path}.knee.share", above=0.0, most=1.0))
    if chosen == "least_time":
        nodes = reader.whole(message.least_time.max_nodes, f"{path}.least_time.max_nodes", most=2**31 - 1)
        cost = reader.number(message.least_time.max_cost, f"{path}.least_time.max_cost", most=LARGEST_AMOUNT)
        return LeastTime(max_nodes=nodes or None, max_cost=cost or None)
    if chosen == "least_cost":
        deadline = reader.number(
            message.least_cost.deadline_seconds, f"{path}.least_cost.deadline_seconds", most=LARGEST_AMOUNT
        )
        return LeastCost(deadline_s=deadline or None)
    if chosen == "fewest_devices":
        deadline = message.fewest_devices.deadline_seconds
        field = f"{path}.fewest_devices.deadline_seconds"
        return FewestDevices(deadline_s=reader.number(deadline, field, above=0.0, most=LARGEST_AMOUNT))
    reader.wrong(path, "must name a rule: highest_throughput, knee, least_time, least_cost or fewest_devices")
    return HighestThroughput()


def _prices(messages: Sequence[objective_pb2.Price], path: str, reader: Reader) -> Prices | None:
    if not messages:
        return None
    currencies = sorted({price.currency for price in messages})
    if len(currencies) > 1:
        reader.contradicts(f"{path}.currency", f"all prices of a request share one, found {', '.join(currencies)}")
    per_node_hour: dict[str, float] = {}
    for index, price in enumerate(messages):
        if price.device_name in per_node_hour:
            reader.contradicts(f"{path}[{index}].device_name", f"a price for {price.device_name!r} was given before")
        reader.text(price.device_name, f"{path}[{index}].device_name", 64)
        reader.text(price.currency, f"{path}[{index}].currency", 16)
        per_node_hour[price.device_name] = reader.number(
            price.price_per_node_hour, f"{path}[{index}].price_per_node_hour", most=LARGEST_AMOUNT
        )
    return Prices(per_node_hour=per_node_hour, currency=currencies[0])


def write_predictions(answers: Sequence[Answer], columns: frozenset[int]) -> prediction_pb2.Predictions:
    """The rows of all answers, one after the other; a column that only some have is 0 in the others' rows."""
    joined = _one(answers[0]) if len(answers) == 1 else _many(answers)
    fields: dict[str, Any] = {
        "rows_count": sum(len(answer.predictions) for answer in answers),
        "step_seconds": joined(lambda answer: answer.predictions.step_s),
        "steps_per_second": joined(lambda answer: answer.steps_per_s),
        "extrapolation_ratios": joined(lambda answer: answer.predictions.extrapolation),
        "nodes": joined(lambda answer: answer.configurations.nodes),
        "workers": joined(lambda answer: answer.configurations.workers),
    }
    if any(np.logical_or.reduce(answer.samples_per_s) for answer in answers):
        fields["samples_per_second"] = joined(lambda answer: answer.samples_per_s)
    fields["once_seconds"] = joined(lambda answer: answer.predictions.once_s)
    for column in columns:
        fields.update(_OPTIONAL[column](answers, joined))
    fields.update(_bottlenecks(answers))
    message = prediction_pb2.Predictions(**fields)
    _write_statuses(message, answers)
    return message


_Column = Callable[[Answer], "Floats | Ints | None"]
_Joined = Callable[[_Column], "list[float] | None"]


def _one(answer: Answer) -> _Joined:
    def joined(of: _Column) -> list[float] | None:
        column = of(answer)
        return None if column is None else column.tolist()

    return joined


def _many(answers: Sequence[Answer]) -> _Joined:
    def joined(of: _Column) -> list[float] | None:
        found = [of(answer) for answer in answers]
        if all(column is None for column in found):
            return None
        values: list[float] = []
        for column, answer in zip(found, answers):
            values.extend([0.0] * len(answer.predictions) if column is None else column.tolist())
        return values

    return joined


def _interval(answers: Sequence[Answer], joined: _Joined) -> dict[str, Any]:
    first = next((answer.interval for answer in answers if answer.interval is not None), None)
    if first is None:
        return {}
    return {
        "lower_steps_per_second": joined(lambda answer: answer.interval.lower_steps_per_s if answer.interval else None),
        "upper_steps_per_second": joined(lambda answer: answer.interval.upper_steps_per_s if answer.interval else None),
        "interval_coverage": first.coverage,
        "interval_basis": int(first.basis),
    }


def _breakdown(answers: Sequence[Answer], joined: _Joined) -> dict[str, Any]:
    return {"breakdown_seconds": _named(answers, joined, lambda answer: answer.predictions.breakdown_s)}


def _utilisation(answers: Sequence[Answer], joined: _Joined) -> dict[str, Any]:
    return {"utilisation": _named(answers, joined, lambda answer: answer.predictions.utilisation)}


def _staleness(_: Sequence[Answer], joined: _Joined) -> dict[str, Any]:
    return {
        "staleness_mean_steps": joined(lambda answer: answer.predictions.staleness_mean),
        "staleness_p95_steps": joined(lambda answer: answer.predictions.staleness_p95),
    }


def _extra(answers: Sequence[Answer], joined: _Joined) -> dict[str, Any]:
    return {"extra": _named(answers, joined, lambda answer: answer.predictions.extra)}


def _memory(_: Sequence[Answer], joined: _Joined) -> dict[str, Any]:
    return {
        "memory_bytes": joined(lambda answer: answer.predictions.memory_bytes),
        "excess_memory_bytes": joined(lambda answer: answer.predictions.excess_memory_bytes),
    }


def _work(_: Sequence[Answer], joined: _Joined) -> dict[str, Any]:
    return {
        "finish_seconds": joined(lambda answer: answer.finish_s),
        "costs": joined(lambda answer: answer.costs),
    }


_OPTIONAL: Final[Mapping[int, Callable[[Sequence[Answer], _Joined], dict[str, Any]]]] = MappingProxyType(
    {
        prediction_pb2.PREDICTION_COLUMN_INTERVAL: _interval,
        prediction_pb2.PREDICTION_COLUMN_BREAKDOWN: _breakdown,
        prediction_pb2.PREDICTION_COLUMN_UTILISATION: _utilisation,
        prediction_pb2.PREDICTION_COLUMN_STALENESS: _staleness,
        prediction_pb2.PREDICTION_COLUMN_MEMORY: _memory,
        prediction_pb2.PREDICTION_COLUMN_WORK: _work,
        prediction_pb2.PREDICTION_COLUMN_EXTRA: _extra,
    }
)
_EVERYTHING: Final = frozenset(_OPTIONAL)
_DEFAULT_OPTIONS: Final = ReadOptions(Terms(), _EVERYTHING)


_HAS: Final[Mapping[int, Callable[[Answer], bool]]] = MappingProxyType(
    {
        prediction_pb2.PREDICTION_COLUMN_INTERVAL: lambda answer: answer.interval is not None,
        prediction_pb2.PREDICTION_COLUMN_BREAKDOWN: lambda answer: bool(answer.predictions.breakdown_s),
        prediction_pb2.PREDICTION_COLUMN_UTILISATION: lambda answer: bool(answer.predictions.utilisation),
        prediction_pb2.PREDICTION_COLUMN_STALENESS: lambda answer: answer.predictions.staleness_mean is not None,
        prediction_pb2.PREDICTION_COLUMN_MEMORY: lambda answer: answer.predictions.memory_bytes is not None,
        prediction_pb2.PREDICTION_COLUMN_WORK: lambda answer: answer.finish_s is not None,
        prediction_pb2.PREDICTION_COLUMN_EXTRA: lambda answer: bool(answer.predictions.extra),
    }
)


def columns_of(answer: Answer, wanted: frozenset[int]) -> list[int]:
    """The optional columns that an answer holds."""
    return [column for column in sorted(wanted) if _HAS[column](answer)]


def _named(
    answers: Sequence[Answer], joined: _Joined, of: Callable[[Answer], Mapping[str, Floats]]
) -> list[prediction_pb2.NamedColumn]:
    names = dict.fromkeys(name for answer in answers for name in of(answer))
    return [prediction_pb2.NamedColumn(name=name, values=joined(_getter(of, name))) for name in names]


def _getter(of: Callable[[Answer], Mapping[str, Floats]], name: str) -> _Column:
    return lambda answer: of(answer).get(name)


def _bottlenecks(answers: Sequence[Answer]) -> dict[str, Any]:
    if len(answers) == 1:
        predictions = answers[0].predictions
        return {
            "bottleneck_names": predictions.bottlenecks,
            "bottleneck_indexes": predictions.bottleneck_index.tolist(),
        }
    dictionary: dict[str, int] = {}
    indexes: list[int] = []
    for answer in answers:
        predictions = answer.predictions
        codes = [dictionary.setdefault(name, len(dictionary)) for name in predictions.bottlenecks]
        indexes.extend(codes[index] if index >= 0 else -1 for index in predictions.bottleneck_index.tolist())
    return {"bottleneck_names": list(dictionary), "bottleneck_indexes": indexes}


def _write_statuses(message: prediction_pb2.Predictions, answers: Sequence[Answer]) -> None:
    """Statuses (left out when every row is answered), refusals and warnings, with rows counted over all answers."""
    if not all(answer.predictions.all_answered for answer in answers):
        for answer in answers:
            message.statuses.extend(answer.predictions.status.tolist())
    offset = 0
    for answer in answers:
        for row_refusal in answer.predictions.refusals:
            message.refusals.append(write_refusal(row_refusal.refusal, [offset + row for row in row_refusal.rows]))
        for notice in answer.notices:
            rows: Sequence[int] = [offset + row for row in notice.rows]
            if not rows and len(answers) > 1:
                rows = range(offset, offset + len(answer.predictions))
            message.warnings.append(prediction_pb2.Notice(reason=str(notice.reason), message=notice.message, rows=rows))
        offset += len(answer.predictions)


def write_refusal(refusal: Refusal, rows: Sequence[int] = ()) -> prediction_pb2.RowRefusal:
    """Why rows were refused."""
    return prediction_pb2.RowRefusal(
        rows=rows, reason=str(refusal.reason), message=refusal.message, missing_fields=refusal.missing_fields
    )


def write_recommendation(recommendation: Recommendation) -> objective_pb2.Recommendation:
    """The recommended row and why."""
    return objective_pb2.Recommendation(
        row=recommendation.row,
        nodes=recommendation.nodes,
        workers=recommendation.workers,
        rule=recommendation.rule,
        why=recommendation.why,
        numbers=[objective_pb2.NamedNumber(name=name, value=value) for name, value in recommendation.numbers.items()],
    )


@lru_cache(maxsize=8192)
def write_basis(basis: Basis) -> prediction_pb2.Basis:
    """What an answer rests on. One message per basis, shared: treat it as read-only."""
    return prediction_pb2.Basis(
        estimator=basis.estimator,
        estimator_version=basis.estimator_version,
        choice=basis.choice,
        mixture=[
            prediction_pb2.EstimatorShare(
                estimator=share.estimator,
                weight=share.weight,
                estimator_version=share.estimator_version,
                expected_log_error=share.expected_log_error,
                prior_id=share.prior_id,
            )
            for share in basis.mixture
        ],
        profile_revision=basis.profile_revision,
        profile_digest=basis.profile_digest,
        prior_id=basis.prior_id,
        catalogue_digest=basis.catalogue_digest,
        fit_time=timestamp(basis.fit_time_s),
        stale=basis.stale,
        fallback=basis.fallback,
        evidence=basis.evidence,
    )


def too_large(found_bytes: int, limit_bytes: int) -> NodewiseError:
    """A reply that no client with gRPC's default settings could receive."""
    return NodewiseError(
        Reason.LIMIT_EXCEEDED,
        f"the reply would have {found_bytes} bytes, a call takes reply_bytes = {limit_bytes}; ask for fewer rows or "
        "columns, or send the parts over StreamPredict",
        {
            "limit": "reply_bytes",
            "value": str(limit_bytes),
            "found": str(found_bytes),
            "alternative": "StreamPredict",
        },
    )


def too_long(rows: int, options: Options, limits: Limits) -> NodewiseError | None:
    """What stands against a simulation of more steps than a call takes; None = nothing."""
    found, most = rows * options.simulated_steps, limits.simulated_steps_per_call
    if found <= most:
        return None
    return NodewiseError(
        Reason.LIMIT_EXCEEDED,
        f"options.simulated_steps_count: {rows} rows of {options.simulated_steps} simulated steps are {found}, a call "
        f"takes simulated_steps_per_call = {most}; ask for fewer steps or rows, or send the parts over StreamPredict",
        {
            "limit": "simulated_steps_per_call",
            "value": str(most),
            "found": str(found),
            "alternative": "StreamPredict",
        },
    )


def too_many(what: str, limit: str, value: int, found: int) -> NodewiseError:
    """A call that holds more than its cap."""
    return NodewiseError(
        Reason.LIMIT_EXCEEDED,
        f"{found} {what}, a call takes {limit} = {value}; send the parts over StreamPredict",
        {"limit": limit, "value": str(value), "found": str(found), "alternative": "StreamPredict"},
    )
