"""Configurations of a question: columns and ranges, cached as read.

For ranges without an axis, and for questions without configurations, the job's evidence gives the numbers of nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any, Final, TypeVar

import numpy as np

from nodewise.domain.columns import as_ints, constant_ints, freeze, holds
from nodewise.domain.configurations import Configurations, PlacementRule, packed_nodes
from nodewise.domain.errors import NodewiseError, invalid_field
from nodewise.domain.profile import Profile
from nodewise.estimation.resolution import defaults_of
from nodewise.estimation.weights import ENTRY_BYTES, part_of_rows
from nodewise.mapper.configurations import read_configurations, read_settings
from nodewise.mapper.reading import Reader
from nodewise.ports.cache import LruCache
from nodewise.ports.limits import Limits, too_much
from nodewise_protos.v1 import configuration_pb2 as pb
from nodewise_protos.v1 import prediction_service_pb2 as pb_service

__all__ = ["counts_nothing", "read_candidates", "read_counts", "read_parts", "with_counts"]

_QuestionT = TypeVar(
    "_QuestionT", pb_service.PredictRequest, pb_service.SuggestMeasurementsRequest, pb_service.BatchJob
)
_AboutRows = (
    pb_service.PredictRequest
    | pb_service.SuggestMeasurementsRequest
    | pb_service.BatchJob
    | pb_service.BatchPredictRequest
)
_Range = pb.ConfigurationRange
_DEGREES = ("tensor_parallel_degree", "pipeline_parallel_degree", "context_parallel_degree", "data_parallel_degree")


def counts_nothing(request: _AboutRows) -> bool:
    """Whether a range counts neither nodes nor workers, or there are no configurations at all."""
    if not request.ranges:
        return not request.HasField("configurations")
    return any(each.WhichOneof("axis") is None for each in request.ranges)


def with_counts(request: _QuestionT, ranges: Sequence[_Range], profile: Profile, limits: Limits) -> _QuestionT:
    """The question with these ranges, or with one empty range if there are none, and with counts in each.

    Raises
    ------
    NodewiseError
        INVALID_FIELD if no run of the job was measured.
    """
    question = type(request)()
    question.CopyFrom(request)
    del question.ranges[:]
    for number, each in enumerate(ranges or [_Range()]):
        path = f"ranges[{number}]" if ranges else "ranges"
        question.ranges.extend([each] if each.WhichOneof("axis") else _split_by_counts(each, path, profile, limits))
    return question


def _split_by_counts(message: _Range, path: str, profile: Profile, limits: Limits) -> Iterator[_Range]:
    """A range split into ranges of consecutive numbers of nodes."""
    defaults = defaults_of(profile)
    reach = defaults.reach
    if not reach.nodes:
        text = "must state nodes or workers, because no measured run of this job suggests a range"
        raise invalid_field(path, text)
    per_node = max(message.workers_per_node or defaults.workers_per_node, 1)
    degree = prod(max(getattr(message.settings, name), 1) for name in _DEGREES)
    counts = reach.counts(limits.max_nodes, -(-degree // per_node))
    first = 0
    for place in range(1, len(counts) + 1):
        if place == len(counts) or counts[place] != counts[place - 1] + 1:
            part = _Range()
            part.CopyFrom(message)
            part.nodes.first, part.nodes.last = counts[first], counts[place - 1]
            yield part
            first = place


KEPT_BYTES: Final = 16 << 20
"""Bytes of the cache of configurations as read, with the bytes of their messages."""


def read_candidates(
    configurations: pb.Configurations, ranges: Sequence[pb.ConfigurationRange], limits: Limits, path: str = ""
) -> Configurations:
    """The configurations of a question: explicit rows first, then the rows of the ranges in order.

    Raises
    ------
    NodewiseError
        INVALID_FIELD, CONTRADICTORY_FACTS or LIMIT_EXCEEDED.
    """
    explicit = b"" if ranges else configurations.SerializeToString()
    if explicit:
        rows = _read_once(_explicit, configurations, explicit, f"{path}configurations", limits)
    else:
        parts = [part for _, part in read_parts(configurations, ranges, limits, path)]
        total = sum(map(len, parts))
        if total > limits.rows_per_call:
            raise _too_many_rows(f"{path}configurations", total, limits)
        rows = Configurations.concatenated(parts)
    total = len(rows.workers)
    if total > limits.rows_per_call:
        raise _too_many_rows(f"{path}configurations", total, limits)
    if not total:
        raise invalid_field(f"{path}configurations", "must hold at least one row, or ranges at least one range")
    return rows


def read_parts(
    configurations: pb.Configurations, ranges: Sequence[pb.ConfigurationRange], limits: Limits, path: str = ""
) -> Iterator[tuple[str, Configurations]]:
    """The explicit rows, if any, and the rows of each range, with their paths; ends early above a call's limit.

    Raises
    ------
    NodewiseError
        As :func:`read_candidates`.
    """
    total = 0
    explicit = configurations.SerializeToString()
    if explicit:
        field = f"{path}configurations"
        part = _read_once(_explicit, configurations, explicit, field, limits)
        total = len(part)
        yield field, part
    for number, message in enumerate(ranges):
        if total > limits.rows_per_call:
            return
        field = f"{path}ranges[{number}]"
        part = _read_once(_range, message, message.SerializeToString(), field, limits)
        total += len(part)
        yield field, part


def _too_many_rows(path: str, rows: int, limits: Limits) -> NodewiseError:
    most = limits.rows_per_call
    text = f"{path}: {rows} or more rows exceed rows_per_call = {most}; split the question, or send the parts "
    return too_much(f"{text}over StreamPredict", "rows_per_call", most, rows, "StreamPredict")


_cache: LruCache[tuple[object, bytes, str, Limits], Configurations] = LruCache(KEPT_BYTES)


def _read_once(
    read: Callable[[Any, str, Limits], Configurations], message: Any, data: bytes, path: str, limits: Limits
) -> Configurations:
    """The cached configurations of the same bytes, else read ones: schedulers repeat the same few configurations."""
    key = (read, data, path, limits)
    configurations = _cache.get(key)
    if configurations is None:
        configurations = read(message, path, limits)
        _cache.put(key, configurations, len(data) + ENTRY_BYTES + part_of_rows(configurations)[1])
    return configurations


def _explicit(message: pb.Configurations, path: str, limits: Limits) -> Configurations:
    reader = Reader()
    configurations = read_configurations(message, path, reader, limits)
    if reader.clean and holds(configurations.workers, 0):
        _check_scale(configurations, path, reader)
    reader.finish()
    return configurations


def _check_scale(configurations: Configurations, path: str, reader: Reader) -> None:
    """Check that every row states its size: by workers, nodes, a placement or groups."""
    is_set = configurations.nodes + configurations.workers > 0
    if configurations.placement is not None:
        is_set |= np.diff(configurations.placement.offsets) > 0
    if configurations.worker_groups is not None:
        is_set |= configurations.worker_groups.counts() > 0
    if not is_set.all():
        reader.wrong(f"{path}.workers[{int(is_set.argmin())}]", "must be given unless nodes, a placement or groups are")


def _range(message: pb.ConfigurationRange, path: str, limits: Limits) -> Configurations:
    reader = Reader()
    axis = message.WhichOneof("axis")
    if axis is None:
        reader.wrong(path, "must state nodes or workers")
        reader.finish()
    by_nodes = axis == "nodes"
    most = limits.max_nodes if by_nodes else limits.max_workers
    counts = read_counts(message.nodes if by_nodes else message.workers, f"{path}.{axis}", most, reader)
    per_node = reader.read_scalars(message, f"{path}.").get("workers_per_node", 0)
    settings = read_settings(message.settings, f"{path}.settings", reader)
    spread = int(message.placement_rule) == PlacementRule.SPREAD
    reader.finish()
    rows = len(counts)
    if rows > limits.rows_per_call:
        raise _too_many_rows(f"{path}.{axis}", rows, limits)
    nodes = workers = as_ints(counts)
    if by_nodes:
        workers = nodes * per_node
    elif not spread:
        nodes = as_ints([packed_nodes(count, per_node) if per_node else 0 for count in counts])
    return settings.take(constant_ints(rows, 0)).replaced(nodes=nodes, workers=freeze(workers))


def read_counts(message: pb.CountRange, path: str, most: int, reader: Reader) -> range | tuple[int, ...]:
    """The numbers of a range; errors go to the reader."""
    first = reader.whole(message.first, f"{path}.first", least=1, most=most)
    last = reader.whole(message.last, f"{path}.last", least=1, most=most)
    step = reader.whole(message.step, f"{path}.step", least=1, most=most) if message.HasField("step") else 1
    if reader.clean and last < first:
        reader.wrong(f"{path}.last", f"must be at least first ({first}), found {last}")
    if message.powers_of_two and message.HasField("step"):
        reader.wrong(f"{path}.step", "must be absent with powers_of_two")
    if not reader.clean:
        return ()
    if message.powers_of_two:
        powers = tuple(1 << exponent for exponent in range(32) if first <= 1 << exponent <= last)
        if not powers:
            reader.wrong(path, f"must contain a power of two, found {first} to {last}")
        return powers
    return range(first, last + 1, step)
