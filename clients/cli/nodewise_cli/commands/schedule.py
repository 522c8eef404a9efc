"""`nodewise schedule`: who should get what."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from nodewise_cli.commands.options import AsJson, Server, TimeoutS, Wait
from nodewise_cli.console import print_json, print_table, say, shown
from nodewise_cli.failures import ExitStatus
from nodewise_cli.inputs.documents import read_schedule_request
from nodewise_cli.inputs.schedule_request import schedule_arguments
from nodewise_cli.service import connected
from nodewise_cli.waiting import waiting
from nodewise_client import JobAllocation, ScheduleAction, ScheduleResult

__all__ = ["allocation_table", "schedule"]


def schedule(
    request: Annotated[Path, typer.Argument(metavar="REQUEST.json", help="JSON of nodewise.v1.ScheduleRequest.")],
    policy: Annotated[str | None, typer.Option(help="Policy instead of the request's.")] = None,
    estimator: Annotated[str | None, typer.Option(help="Estimator instead of the request's.")] = None,
    server: Server = None,
    as_json: AsJson = False,
    timeout_s: TimeoutS = Wait,
) -> None:
    """Share a cluster among jobs by their predicted throughput.

    A job's profile is a stored one's name ({"profileId": ...}), the profile itself ({"inline": ...}), or a job of a
    measurements table beside the request ({"table": "file.csv", "job": ...}).
    """
    message = read_schedule_request(request)
    if policy is not None:
        message.policy = policy
    if estimator is not None:
        message.options.estimator = estimator
    with connected(server, timeout_s) as client, waiting("scheduling"):
        result = client.schedule(**schedule_arguments(message))
    if as_json:
        print_json(_document(result))
    else:
        allocation_table(result)
        complete = "" if result.complete else ", cut by the deadline"
        say(f"Decided by {result.policy} {result.policy_version} in {shown(result.decision_s * 1e3)} ms{complete}.")
    if len(result) and all(found.action is ScheduleAction.NO_ANSWER for found in result):
        raise typer.Exit(ExitStatus.REFUSED)


def allocation_table(result: ScheduleResult) -> None:
    """What each job gets, for people."""
    print_table(
        [
            ("job", False),
            ("action", False),
            ("pool", False),
            ("devices", True),
            ("nodes", True),
            ("per second", True),
            ("done in s", True),
            ("why", False),
        ],
        [
            [
                found.job_id,
                found.action.upper(),
                found.pool or "-",
                str(found.devices),
                str(found.nodes),
                shown(found.samples_per_s),
                shown(found.finish_s),
                found.why,
            ]
            for found in result
        ],
    )


def _document(result: ScheduleResult) -> dict[str, Any]:
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
