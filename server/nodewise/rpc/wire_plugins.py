"""Plugins on the wire."""

from __future__ import annotations

from nodewise.estimation.registry import PluginProblem
from nodewise_protos.v1 import prediction_service_pb2 as pb

__all__ = ["write_problem"]


def write_problem(problem: PluginProblem) -> pb.PluginProblem:
    """A plugin that was left out, and why."""
    return pb.PluginProblem(
        name=problem.name,
        distribution=problem.distribution,
        kind=problem.kind,
        reason=problem.reason,
        message=problem.message,
    )
