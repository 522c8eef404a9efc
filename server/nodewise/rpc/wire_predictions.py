"""Answers on the wire: rows as columns, and what they rest on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from nodewise.domain.columns import Floats, Ints
from nodewise.estimation.answer.goodput import global_batch
from nodewise.estimation.question import Answer, Basis
from nodewise.rpc.errors import write_notice, write_refusal
from nodewise.rpc.wire_profiles import timestamp
from nodewise_protos.v1 import options_pb2, prediction_pb2

__all__ = ["columns_of", "write_basis", "write_predictions"]


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
        fields.update(_OPTIONAL[column].fields(answers, joined))
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
    named = _named(answers, joined, lambda answer: answer.predictions.breakdown_s)
    return {"breakdown_seconds": named, **_bottlenecks(answers)}


def _utilization(answers: Sequence[Answer], joined: _Joined) -> dict[str, Any]:
    return {"utilization": _named(answers, joined, lambda answer: answer.predictions.utilisation)}


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


def _goodput(_: Sequence[Answer], joined: _Joined) -> dict[str, Any]:
    return {
        "global_batch_samples": joined(lambda answer: global_batch(answer.configurations)),
        "batch_per_worker_samples": joined(lambda answer: answer.configurations.batch_per_worker),
        "accumulation_steps": joined(lambda answer: answer.configurations.accumulation),
        "goodput_samples_per_second": joined(lambda answer: answer.goodput_per_s),
    }


def _risk(_: Sequence[Answer], __: _Joined) -> dict[str, Any]:
    """Of revocations: no estimator tells them yet."""
    return {}


@dataclass(frozen=True, slots=True)
class _Group:
    """Columns that are asked for together: their fields, and whether an answer holds them."""

    fields: Callable[[Sequence[Answer], _Joined], dict[str, Any]]
    held: Callable[[Answer], bool]


_OPTIONAL: Final[Mapping[int, _Group]] = MappingProxyType(
    {
        options_pb2.PREDICTION_COLUMN_INTERVAL: _Group(_interval, lambda answer: answer.interval is not None),
        options_pb2.PREDICTION_COLUMN_BREAKDOWN: _Group(
            _breakdown, lambda answer: bool(answer.predictions.breakdown_s)
        ),
        options_pb2.PREDICTION_COLUMN_UTILIZATION: _Group(
            _utilization, lambda answer: bool(answer.predictions.utilisation)
        ),
        options_pb2.PREDICTION_COLUMN_STALENESS: _Group(
            _staleness, lambda answer: answer.predictions.staleness_mean is not None
        ),
        options_pb2.PREDICTION_COLUMN_MEMORY: _Group(
            _memory, lambda answer: answer.predictions.memory_bytes is not None
        ),
        options_pb2.PREDICTION_COLUMN_WORK: _Group(_work, lambda answer: answer.finish_s is not None),
        options_pb2.PREDICTION_COLUMN_EXTRA: _Group(_extra, lambda answer: bool(answer.predictions.extra)),
        options_pb2.PREDICTION_COLUMN_GOODPUT: _Group(_goodput, lambda _: True),
        options_pb2.PREDICTION_COLUMN_RISK: _Group(_risk, lambda _: False),
    }
)


def columns_of(answer: Answer, wanted: frozenset[int]) -> list[int]:
    """The optional columns that an answer holds."""
    return [column for column in sorted(wanted) if _OPTIONAL[column].held(answer)]


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
            "bottleneck_indexes": np.maximum(predictions.bottleneck_index, 0).tolist(),
        }
    dictionary: dict[str, int] = {}
    indexes: list[int] = []
    for answer in answers:
        predictions = answer.predictions
        codes = [dictionary.setdefault(name, len(dictionary)) for name in predictions.bottlenecks]
        indexes.extend(codes[index] if index >= 0 else 0 for index in predictions.bottleneck_index.tolist())
    return {"bottleneck_names": list(dictionary), "bottleneck_indexes": indexes}


def _write_statuses(message: prediction_pb2.Predictions, answers: Sequence[Answer]) -> None:
    """Statuses (left out when every row is answered), refusals and warnings, with rows counted over all answers."""
    if not all(answer.predictions.all_answered for answer in answers):
        for answer in answers:
            message.statuses.extend(answer.predictions.status.tolist())
    offset = 0
    for answer in answers:
        for row_refusal in answer.predictions.refusals:
            rows: Sequence[int] = [offset + row for row in row_refusal.rows]
            message.refusals.add(rows=rows, problem=write_refusal(row_refusal.refusal))
        for notice in answer.notices:
            rows = [offset + row for row in notice.rows]
            if not rows and len(answers) > 1:
                rows = range(offset, offset + len(answer.predictions))
            message.warnings.append(write_notice(notice, rows))
        offset += len(answer.predictions)


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
        profile_revision=basis.profile_revision or None,
        profile_digest=basis.profile_digest,
        prior_ids=basis.prior_ids,
        catalog_digest=basis.catalogue_digest,
        fit_time=timestamp(basis.fit_time_s),
        stale=basis.stale,
        fallback=basis.fallback,
        evidence=basis.evidence,
        digest=basis.digest,
        generation=basis.generation,
    )
