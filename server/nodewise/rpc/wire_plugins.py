"""Plugins on the wire: those loaded, those left out, and how well they predicted."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from types import MappingProxyType
from typing import Any, Final

from nodewise.domain.scores import RunningScore
from nodewise.hosting.registry import Loaded, PluginProblem
from nodewise.plugin import PolicyParameter
from nodewise.rpc.wire_profiles import timestamp
from nodewise_protos.v1 import plugin_pb2 as pb
from nodewise_protos.v1 import prediction_service_pb2, problem_pb2

__all__ = ["PLUGIN_KINDS", "write_plugin", "write_plugin_problem", "write_score"]

PLUGIN_KINDS: Final = MappingProxyType(
    {
        "estimator": pb.PLUGIN_KIND_ESTIMATOR,
        "policy": pb.PLUGIN_KIND_POLICY,
        "trace_reader": pb.PLUGIN_KIND_TRACE_READER,
        "diagnoser": pb.PLUGIN_KIND_DIAGNOSER,
    }
)
_MODES: Final = MappingProxyType(
    {
        "inline": pb.PLUGIN_MODE_INLINE,
        "thread": pb.PLUGIN_MODE_THREAD,
        "process": pb.PLUGIN_MODE_PROCESS,
    }
)


def write_plugin(loaded: Loaded[Any], kind: pb.PluginKind) -> pb.Plugin:
    """What every plugin says of itself, and where it runs."""
    record = loaded.record
    parameters: Sequence[PolicyParameter] = getattr(record, "parameters", ())
    return pb.Plugin(
        kind=kind,
        name=record.name,
        version=record.version,
        description=record.description,
        distribution=loaded.distribution,
        mode=_MODES.get(loaded.mode, pb.PLUGIN_MODE_UNSPECIFIED),
        parameters=[
            pb.PluginParameter(
                name=each.name,
                description=each.description,
                default_value=each.default,
                minimum=each.minimum if isfinite(each.minimum) else None,
                maximum=each.maximum if isfinite(each.maximum) else None,
            )
            for each in parameters
        ],
    )


def write_plugin_problem(problem: PluginProblem) -> pb.PluginProblem:
    """A plugin that was left out, and why."""
    return pb.PluginProblem(
        name=problem.name,
        distribution=problem.distribution,
        kind=PLUGIN_KINDS.get(problem.kind, pb.PLUGIN_KIND_UNSPECIFIED),
        problem=problem_pb2.Problem(reason=problem.reason, message=problem.message),
    )


def write_score(score: RunningScore) -> prediction_service_pb2.RunningScore:
    """A running score of at least one observation."""
    return prediction_service_pb2.RunningScore(
        observations_count=score.sums.observations,
        mean_absolute_log_error=score.sums.mean_absolute_log_error,
        mean_log_error=score.sums.mean_log_error,
        coverage=score.sums.coverage,
        update_time=timestamp(score.update_time_s),
        unanswered_count=score.sums.unanswered,
    )
