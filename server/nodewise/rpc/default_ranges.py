"""Ranges that count nothing, or questions without any: the numbers of nodes come from the job's evidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import TypeVar

from nodewise.domain.errors import invalid_field
from nodewise.domain.profile import Profile
from nodewise.estimation.resolution import defaults_of
from nodewise.ports.limits import Limits
from nodewise_protos.v1 import configuration_pb2
from nodewise_protos.v1 import prediction_service_pb2 as pb

__all__ = ["counts_nothing", "with_counts"]

_QuestionT = TypeVar("_QuestionT", pb.PredictRequest, pb.SuggestMeasurementsRequest, pb.BatchJob)
_AboutRows = pb.PredictRequest | pb.SuggestMeasurementsRequest | pb.BatchJob | pb.BatchPredictRequest
_Range = configuration_pb2.ConfigurationRange
_DEGREES = ("tensor_parallel_degree", "pipeline_parallel_degree", "context_parallel_degree", "data_parallel_degree")


def counts_nothing(request: _AboutRows) -> bool:
    """Whether some range counts neither nodes nor workers, or there is nothing at all to ask about."""
    if not request.ranges:
        return not request.HasField("configurations")
    return any(each.WhichOneof("axis") is None for each in request.ranges)


def with_counts(request: _QuestionT, ranges: Sequence[_Range], profile: Profile, limits: Limits) -> _QuestionT:
    """A question with these ranges, none = one that says nothing, of which each counts something.

    Raises
    ------
    NodewiseError
        INVALID_FIELD where no run of the job was measured.
    """
    found = type(request)()
    found.CopyFrom(request)
    del found.ranges[:]
    for number, asked in enumerate(ranges or [_Range()]):
        path = f"ranges[{number}]" if ranges else "ranges"
        found.ranges.extend([asked] if asked.WhichOneof("axis") else _counted(asked, path, profile, limits))
    return found


def _counted(asked: _Range, path: str, profile: Profile, limits: Limits) -> Iterator[_Range]:
    """A range as several that count nodes, each by consecutive numbers or by one."""
    defaults = defaults_of(profile)
    reach = defaults.reach
    if not reach.nodes:
        text = "must count nodes or workers: no run of this job was measured, by which the server would know how far"
        raise invalid_field(path, text)
    per_node = max(asked.workers_per_node or defaults.workers_per_node, 1)
    degree = prod(max(getattr(asked.settings, name), 1) for name in _DEGREES)
    counts = reach.counts(limits.max_nodes, -(-degree // per_node))
    first = 0
    for place in range(1, len(counts) + 1):
        if place == len(counts) or counts[place] != counts[place - 1] + 1:
            part = _Range()
            part.CopyFrom(asked)
            part.nodes.first, part.nodes.last = counts[first], counts[place - 1]
            yield part
            first = place
