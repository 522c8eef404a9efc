"""Plugins on the wire."""

from __future__ import annotations

from nodewise.domain.scores import RunningScore
from nodewise.hosting.registry import PluginProblem
from nodewise.rpc.wire_profiles import timestamp
from nodewise_protos.v1 import prediction_service_pb2 as pb

__all__ = ["write_problem", "write_score"]


def write_problem(problem: PluginProblem) -> pb.PluginProblem:
    """A plugin that was left out, and why."""
    return pb.PluginProblem(
        name=problem.name,
        distribution=problem.distribution,
        kind=problem.kind,
        reason=problem.reason,
        message=problem.message,
    )


def write_score(score: RunningScore) -> pb.RunningScore:
    """A running score of at least one observation."""
    return pb.RunningScore(
        observations_count=score.sums.observations,
        mean_absolute_log_error=score.sums.mean_absolute_log_error,
        mean_log_error=score.sums.mean_log_error,
        coverage=score.sums.coverage,
        update_time=timestamp(score.update_time_s),
        unanswered_count=score.sums.unanswered,
    )
