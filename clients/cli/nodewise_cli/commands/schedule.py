"""`nodewise schedule`: who should get what."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from nodewise_cli.commands.options import AsJson, Server, TimeoutS, Wait
from nodewise_cli.console import print_json, print_table, say, shown
from nodewise_cli.failures import ExitStatus
from nodewise_cli.inputs.documents import read_schedule_request
from nodewise_cli.service import connected
from nodewise_cli.waiting import waiting
from nodewise_client import JobAllocation, PredictOptions, ScheduleAction, ScheduleResponse

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
    asked = read_schedule_request(request)
    if policy is not None:
        asked = replace(asked, policy=policy)
    if estimator is not None:
        asked = replace(asked, options=replace(asked.options or PredictOptions(), estimator=estimator))
    with connected(server, timeout_s) as client, waiting("scheduling"):
        result = client.schedule(asked)
    if as_json:
        print_json(_document(result))
    else:
        allocation_table(result)
        complete = "" if result.complete else ", cut by the deadline"
        took = shown(result.decision_seconds * 1e3)
        say(f"Decided by {result.policy} {result.policy_version} in {took} ms{complete}.")
    if result.allocations and all(found.action is ScheduleAction.NO_ANSWER for found in result.allocations):
        raise typer.Exit(ExitStatus.REFUSED)


def allocation_table(result: ScheduleResponse) -> None:
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
                _action(found),
                found.pool or "-",
                str(found.devices_count),
                str(found.nodes_count),
                shown(found.samples_per_second or None),
                shown(found.finish_seconds or None),
                found.why,
            ]
            for found in result.allocations
        ],
    )


def _document(result: ScheduleResponse) -> dict[str, Any]:
    return {
        "allocations": [_allocation(found, result) for found in result.allocations],
        "policy": result.policy,
        "policy_version": result.policy_version,
        "decision_s": result.decision_seconds,
        "complete": result.complete,
    }


def _action(found: JobAllocation) -> str:
    """An action that this release does not know is no reason to touch the job."""
    known = found.action in tuple(ScheduleAction)
    return (found.action if known and found.action else ScheduleAction.NO_ANSWER).upper()


def _allocation(found: JobAllocation, result: ScheduleResponse) -> dict[str, Any]:
    return {
        "job": found.job_id,
        "action": _action(found),
        "devices": found.devices_count,
        "nodes": found.nodes_count,
        "placement": [{"node": part.node_index, "devices": part.devices_count} for part in found.placement],
        "why": found.why,
        "reason": found.reason,
        "pool": found.pool or None,
        "samples_per_s": found.samples_per_second or None,
        "finish_s": found.finish_seconds or None,
        "marginal_samples_per_s": found.marginal_samples_per_second or None,
        "estimator": result.bases[found.basis_index].estimator if 0 <= found.basis_index < len(result.bases) else None,
    }
