"""Schedules as JSON and for people."""

from __future__ import annotations

from typing import Any

from nodewise_cli.console import say
from nodewise_cli.views.numbers import shown
from nodewise_cli.views.table import figures, print_table, words
from nodewise_client import JobAllocation, ScheduleResult

__all__ = ["document", "show"]


def show(result: ScheduleResult) -> None:
    """What each job gets, for people."""
    print_table(
        [
            words("job"),
            words("action"),
            words("pool"),
            figures("devices"),
            figures("nodes"),
            figures("per second"),
            figures("done in s", 3.5),
            words("why"),
        ],
        [
            [
                found.job_id,
                found.action.upper(),
                found.pool or "-",
                f"{found.devices:,}",
                f"{found.nodes:,}",
                shown(found.samples_per_s),
                shown(found.finish_s),
                found.why,
            ]
            for found in result
        ],
    )
    complete = "" if result.complete else ", cut by the deadline"
    say(f"Decided by {result.policy} {result.policy_version} in {shown(result.decision_s * 1e3)} ms{complete}.")


def document(result: ScheduleResult) -> dict[str, Any]:
    """The JSON of a schedule."""
    return {
        "allocations": [_allocation(found) for found in result],
        "policy": result.policy,
        "policy_version": result.policy_version,
        "decision_s": result.decision_s,
        "complete": result.complete,
    }


def _allocation(found: JobAllocation) -> dict[str, Any]:
    return {
        "job": found.job_id,
        "action": found.action.upper(),
        "devices": found.devices,
        "nodes": found.nodes,
        "placement": [{"node": part.node, "devices": part.devices} for part in found.placement],
        "why": found.why,
        "reason": found.reason,
        "pool": found.pool,
        "samples_per_s": found.samples_per_s,
        "finish_s": found.finish_s,
        "marginal_samples_per_s": found.marginal_samples_per_s,
        "estimator": None if found.basis is None else found.basis.estimator,
    }
