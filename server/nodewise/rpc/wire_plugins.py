"""Plugins on the wire: those loaded, those left out, and how well they predicted."""

from __future__ import annotations

from typing import Any

from nodewise.domain.scores import RunningScore
from nodewise.hosting.registry import Loaded, PluginProblem
from nodewise.mapper.mapping import to_message
from nodewise_protos.v1 import plugin_pb2 as pb
from nodewise_protos.v1 import prediction_service_pb2, problem_pb2

__all__ = ["write_plugin", "write_plugin_problem", "write_score"]


def write_plugin(loaded: Loaded[Any], kind: str) -> pb.Plugin:
    """What every plugin says of itself, and where it runs."""
    return to_message(
        loaded.record,
        pb.Plugin,
        kind=kind,
        distribution=loaded.distribution,
        mode=loaded.mode,
        parameters=getattr(loaded.record, "parameters", ()),
    )


def write_plugin_problem(problem: PluginProblem) -> pb.PluginProblem:
    """A plugin that was left out, and why."""
    kind = "unspecified" if problem.kind == "plugin" else problem.kind
    said = problem_pb2.Problem(reason=problem.reason, message=problem.message)
    return to_message(problem, pb.PluginProblem, kind=kind, problem=said)


def write_score(score: RunningScore) -> prediction_service_pb2.RunningScore:
    """A running score of at least one observation."""
    return to_message(score.sums, prediction_service_pb2.RunningScore, update_time=score.update_time_s)
