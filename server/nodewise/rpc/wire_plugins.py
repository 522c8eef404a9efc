"""Plugins on the wire: those loaded, those left out, and how well they predicted."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

from nodewise.domain.scores import RunningScore
from nodewise.hosting.registry import Loaded, PluginProblem
from nodewise.mapper.mapping import timestamp, to_message
from nodewise.plugin import PolicyParameter
from nodewise_protos.v1 import plugin_pb2 as pb
from nodewise_protos.v1 import prediction_service_pb2, problem_pb2

__all__ = ["write_plugin", "write_plugin_problem", "write_score"]


def write_plugin(loaded: Loaded[Any], kind: str) -> pb.Plugin:
    """What every plugin says of itself, and where it runs."""
    parameters: Sequence[PolicyParameter] = getattr(loaded.record, "parameters", ())
    return to_message(
        loaded.record,
        pb.Plugin,
        kind=f"PLUGIN_KIND_{kind.upper()}",
        distribution=loaded.distribution,
        mode=f"PLUGIN_MODE_{loaded.mode.upper()}",
        parameters=[
            to_message(
                each,
                pb.PluginParameter,
                default_value=each.default,
                minimum=each.minimum if isfinite(each.minimum) else None,
                maximum=each.maximum if isfinite(each.maximum) else None,
            )
            for each in parameters
        ],
    )


def write_plugin_problem(problem: PluginProblem) -> pb.PluginProblem:
    """A plugin that was left out, and why."""
    kind = "unspecified" if problem.kind == "plugin" else problem.kind
    return pb.PluginProblem(
        name=problem.name,
        distribution=problem.distribution,
        kind=f"PLUGIN_KIND_{kind.upper()}",
        problem=problem_pb2.Problem(reason=problem.reason, message=problem.message),
    )


def write_score(score: RunningScore) -> prediction_service_pb2.RunningScore:
    """A running score of at least one observation."""
    return to_message(score.sums, prediction_service_pb2.RunningScore, update_time=timestamp(score.update_time_s))
