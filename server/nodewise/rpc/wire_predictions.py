"""Answers on the wire: rows as columns, and what they rest on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from google.protobuf.descriptor import FieldDescriptor
from numpy.typing import NDArray

from nodewise.domain.columns import Floats
from nodewise.domain.predictions import Predictions
from nodewise.estimation.question import Answer, Basis
from nodewise.mapper.mapping import to_message
from nodewise.rpc.errors import write_notice, write_refusal
from nodewise.rpc.varint import encode_varint, tag_of
from nodewise_protos.v1 import options_pb2, prediction_pb2

__all__ = ["columns_of", "packed_predictions", "write_basis", "write_predictions"]

_WIRE_FLOAT: Final = np.dtype("<f8")

_Column = Callable[[Answer], "NDArray[Any] | None"]
_USUAL: Final[Mapping[str, str]] = MappingProxyType(
    {
        "step_seconds": "predictions.step_s",
        "steps_per_second": "steps_per_s",
        "extrapolation_ratios": "predictions.extrapolation",
        "nodes": "configurations.nodes",
        "workers": "configurations.workers",
        "once_seconds": "predictions.once_s",
    }
)
"""Columns of every answer, and the paths of their attributes."""
_PLAIN: Final[Mapping[int, Mapping[str, str]]] = MappingProxyType(
    {
        options_pb2.PREDICTION_COLUMN_INTERVAL: {
            "lower_steps_per_second": "interval.lower_steps_per_s",
            "upper_steps_per_second": "interval.upper_steps_per_s",
        },
        options_pb2.PREDICTION_COLUMN_STALENESS: {
            "staleness_mean_steps": "predictions.staleness_mean",
            "staleness_p95_steps": "predictions.staleness_p95",
        },
        options_pb2.PREDICTION_COLUMN_MEMORY: {
            "memory_bytes": "predictions.memory_bytes",
            "excess_memory_bytes": "predictions.excess_memory_bytes",
        },
        options_pb2.PREDICTION_COLUMN_WORK: {"finish_seconds": "finish_s", "costs": "costs"},
        options_pb2.PREDICTION_COLUMN_GOODPUT: {
            "global_batch_samples": "configurations.rates.global_batch",
            "batch_per_worker_samples": "configurations.batch_per_worker",
            "accumulation_steps": "configurations.accumulation",
            "goodput_samples_per_second": "goodput_per_s",
        },
        # Of revocations: no estimator predicts them yet.
        options_pb2.PREDICTION_COLUMN_RISK: {},
    }
)
"""Groups of columns; an answer with the first column of a group has the whole group."""
_NAMED: Final[Mapping[int, tuple[str, Callable[[Answer], Mapping[str, Floats]]]]] = MappingProxyType(
    {
        options_pb2.PREDICTION_COLUMN_BREAKDOWN: ("breakdown_seconds", attrgetter("predictions.breakdown_s")),
        options_pb2.PREDICTION_COLUMN_UTILIZATION: ("utilization", attrgetter("predictions.utilisation")),
        options_pb2.PREDICTION_COLUMN_EXTRA: ("extra", attrgetter("predictions.extra")),
    }
)
"""Groups whose columns the estimator names."""


def _found_at(path: str) -> _Column:
    """A column of an answer; None where it has none, or no interval at all."""
    of: _Column = attrgetter(path)
    return (lambda answer: None if answer.interval is None else of(answer)) if path.startswith("interval.") else of


_HELD: Final[Mapping[int, Callable[[Answer], Any]]] = MappingProxyType(
    {group: of for group, (_, of) in _NAMED.items()}
    | {group: _found_at(next(iter(columns.values()))) for group, columns in _PLAIN.items() if columns}
)


def columns_of(answer: Answer, wanted: Sequence[int]) -> list[int]:
    """The requested optional columns that an answer has."""
    return [group for group in wanted if (of := _HELD.get(group)) and (held := of(answer)) is not None and len(held)]


def write_predictions(message: prediction_pb2.Predictions, answers: Sequence[Answer], columns: frozenset[int]) -> None:
    """The rows of all answers, one after the other; 0 in rows of answers without a column that others have."""
    message.MergeFromString(packed_predictions(answers, columns))


def packed_predictions(answers: Sequence[Answer], columns: frozenset[int]) -> bytes:
    """The same, serialised; columns of floats are copied without a loop over their numbers."""
    others = prediction_pb2.Predictions(rows_count=sum(len(answer.predictions) for answer in answers))
    others = prediction_pb2.Predictions(rows_count=sum([len(answer.predictions) for answer in answers]))
    parts: list[bytes] = []
    if len(answers) == 1:
        _pack_alone(parts, others, answers[0], columns)
    else:
        _pack_together(parts, others, answers, columns)
    intervals = [answer.interval for answer in answers if answer.interval is not None]
    if intervals and options_pb2.PREDICTION_COLUMN_INTERVAL in columns:
        others.interval_coverage = intervals[0].coverage
        others.interval_basis = int(intervals[0].basis)  # type: ignore[assignment]  # the same numbers, tested
    if options_pb2.PREDICTION_COLUMN_BREAKDOWN in columns:
        _write_bottlenecks(others, [answer.predictions for answer in answers])
    _write_statuses(others, answers)
    parts.append(others.SerializeToString())
    return b"".join(parts)


def _pack_alone(
    parts: list[bytes], others: prediction_pb2.Predictions, answer: Answer, columns: frozenset[int]
) -> None:
    """The columns of one answer: each has all of its rows."""
    rows = len(answer.predictions)
    wanted = _alone(columns, rows, interval=answer.interval is not None)
    for head, column in zip(wanted.heads, wanted.floats(answer)):
        if column is not None and rows:
            parts += head, column.tobytes() if column.dtype is _WIRE_FLOAT else _floats(column)
    for field, of in wanted.whole:
        column = of(answer)
        if column is not None:
            getattr(others, field).extend(column.tolist())
    if rows and _knows_samples(answer):
        parts += wanted.samples, _floats(answer.samples_per_s)
    for tag, held in wanted.named:
        for name, column in held(answer).items():
            head = _head_of_named(tag, name, rows)
            parts += head, column.tobytes() if column.dtype is _WIRE_FLOAT else _floats(column)


def _pack_together(
    parts: list[bytes], others: prediction_pb2.Predictions, answers: Sequence[Answer], columns: frozenset[int]
) -> None:
    """The columns of several answers, one after the other."""
    plain, named = _sources_of(columns)
    for field, head, of in plain:
        column = _join_columns(answers, of)
        if column is None:
            continue
        if head:
            _pack(parts, head, column)
        else:
            getattr(others, field).extend(column.tolist())
    if any(map(_knows_samples, answers)):
        _pack(parts, _SAMPLES, _join_columns(answers, _SAMPLES_OF))
    for tag, held in named:
        for name, values in _columns_by_name(answers, held).items():
            parts += (_head_of_named(tag, name, len(values)), _floats(values))


@dataclass(frozen=True, slots=True)
class _Alone:
    """How to pack one answer.

    Attributes
    ----------
    heads : tuple of bytes
        Tag and length of each plain column of floats.
    floats : callable
        Returns these columns of an answer; None = the answer lacks the column.
    whole : sequence of (str, callable)
        Columns of whole numbers: their field, and a function that returns the column of an answer.
    named : sequence of (bytes, callable)
        Groups whose columns the estimator names, by their tag.
    samples : bytes
        Tag and length of samples/s.
    """

    heads: tuple[bytes, ...]
    floats: Callable[[Answer], Iterable[NDArray[Any] | None]]
    whole: Sequence[tuple[str, _Column]]
    named: Sequence[tuple[bytes, Callable[[Answer], Mapping[str, Floats]]]]
    samples: bytes


@lru_cache(maxsize=256)
def _alone(columns: frozenset[int], rows: int, *, interval: bool) -> _Alone:
    """How to pack an answer of so many rows, with an interval or without."""
    fields = prediction_pb2.Predictions.DESCRIPTOR.fields_by_name
    without = frozenset() if interval else _PLAIN[options_pb2.PREDICTION_COLUMN_INTERVAL].keys()
    wanted = [(field, _head(fields[field]), path) for field, path in _plain(columns).items() if field not in without]
    return _Alone(
        heads=tuple(_head_of(head, rows) for _, head, _ in wanted if head),
        floats=attrgetter(*(path for _, head, path in wanted if head)),
        whole=[(field, _found_at(path)) for field, head, path in wanted if not head],
        named=_sources_of(columns)[1],
        samples=_head_of(_SAMPLES, rows),
    )


def _columns_by_name(answers: Sequence[Answer], held: Callable[[Answer], Mapping[str, Floats]]) -> dict[str, Any]:
    """A group's columns of all answers by name."""
    names = dict.fromkeys(name for answer in answers for name in held(answer))
    return {name: _join_columns(answers, _of_name(held, name)) for name in names}


def _of_name(held: Callable[[Answer], Mapping[str, Floats]], name: str) -> _Column:
    return lambda answer: held(answer).get(name)


def _knows_samples(answer: Answer) -> bool:
    if answer.predictions.all_answered:
        return answer.configurations.rates.batch_known or bool(np.logical_or.reduce(answer.samples_per_s))
    return bool(np.logical_or.reduce(answer.samples_per_s))


def _join_columns(answers: Sequence[Answer], of: _Column) -> NDArray[Any] | None:
    found = [of(answer) for answer in answers]
    known = [column for column in found if column is not None]
    if not known:
        return None
    if len(known) == len(found):
        return np.concatenate(known)
    rows = (np.zeros(len(answer.predictions)) for answer in answers)
    return np.concatenate([none if column is None else column for column, none in zip(found, rows)])


def _pack(parts: list[bytes], head: bytes, column: NDArray[Any] | None) -> None:
    """Append a column of floats: tag, length and numbers."""
    if column is not None and len(column):
        parts += (_head_of(head, len(column)), _floats(column))


def _floats(column: NDArray[Any]) -> bytes:
    """Numbers as on the wire."""
    if column.dtype is not _WIRE_FLOAT:
        column = column.astype(_WIRE_FLOAT)
    return column.tobytes()


@lru_cache(maxsize=1024)
def _head_of(field: bytes, rows: int) -> bytes:
    """Tag and length of a column of so many floats."""
    return field + encode_varint(rows * _WIRE_FLOAT.itemsize)


@lru_cache(maxsize=1024)
def _head_of_named(tag: bytes, name: str, rows: int) -> bytes:
    """Tag, name and length of a column that an estimator names."""
    own = _name_of_column(name) + (_head_of(_VALUES, rows) if rows else b"")
    return tag + encode_varint(len(own) + rows * _WIRE_FLOAT.itemsize) + own


@lru_cache(maxsize=64)
def _sources_of(
    columns: frozenset[int],
) -> tuple[list[tuple[str, bytes, _Column]], list[tuple[bytes, Callable[[Answer], Mapping[str, Floats]]]]]:
    """The sources of a reply's columns: columns that the contract names, with the tag of packed ones, and groups."""
    fields = prediction_pb2.Predictions.DESCRIPTOR.fields_by_name
    heads = [(name, _head(fields[name]), _found_at(path)) for name, path in _plain(columns).items()]
    named = [_NAMED[group] for group in sorted(columns & _NAMED.keys())]
    return heads, [(tag_of(fields[name]), held) for name, held in named]


def _plain(columns: frozenset[int]) -> dict[str, str]:
    """The columns that the contract names, and the paths of their attributes."""
    found = dict(_USUAL)
    for group in columns & _PLAIN.keys():
        found |= _PLAIN[group]
    return found


def _head(field: Any) -> bytes:
    """The tag of a packed column of floats; b"" for a column of another type."""
    return tag_of(field) if field.type == FieldDescriptor.TYPE_DOUBLE else b""


_SAMPLES: Final = tag_of(prediction_pb2.Predictions.DESCRIPTOR.fields_by_name["samples_per_second"])
_SAMPLES_OF: Final[_Column] = attrgetter("samples_per_s")
_VALUES: Final = tag_of(prediction_pb2.NamedColumn.DESCRIPTOR.fields_by_name["values"])


@lru_cache(maxsize=1024)
def _name_of_column(name: str) -> bytes:
    return prediction_pb2.NamedColumn(name=name).SerializeToString()


def _write_bottlenecks(message: prediction_pb2.Predictions, found: Sequence[Predictions]) -> None:
    """Write bottlenecks with one dictionary for all answers; an empty name = none. No column if no row has one."""
    if len(found) == 1 and found[0].all_answered:
        alone = found[0].bottleneck_index.tolist()
        if min(alone, default=0) >= 0:
            message.bottleneck_indexes.extend(alone)
            message.bottleneck_names.extend(found[0].bottlenecks)
            return
    dictionary: dict[str, int] = {}
    indexes: list[int] = []
    for predictions in found:
        names = (*predictions.bottlenecks, "")
        for index, answered in zip(predictions.bottleneck_index.tolist(), predictions.answered.tolist(), strict=True):
            indexes.append(dictionary.setdefault(names[index], len(dictionary)) if answered else 0)
    if dictionary.keys() - {""}:
        message.bottleneck_indexes.extend(indexes)
        message.bottleneck_names.extend(dictionary)


def _write_statuses(message: prediction_pb2.Predictions, answers: Sequence[Answer]) -> None:
    """Write statuses (omitted if every row is answered), refusals and warnings, with rows counted over all answers."""
    if not all(answer.predictions.all_answered for answer in answers):
        for answer in answers:
            message.statuses.extend(answer.predictions.status.tolist())
    firsts = accumulate([len(answer.predictions) for answer in answers], initial=0)
    for offset, answer in zip(firsts, answers):
        for row_refusal in answer.predictions.refusals:
            rows: Sequence[int] = [offset + row for row in row_refusal.rows]
            message.refusals.add(rows=rows, problem=write_refusal(row_refusal.refusal))
        for notice in answer.notices:
            rows = [offset + row for row in notice.rows] if offset else notice.rows
            if not rows and len(answers) > 1:
                rows = range(offset, offset + len(answer.predictions))
            message.warnings.append(write_notice(notice, rows))


@lru_cache(maxsize=8192)
def write_basis(basis: Basis) -> prediction_pb2.Basis:
    """The basis of an answer. The message is cached and shared: do not change it."""
    return to_message(basis, prediction_pb2.Basis)
