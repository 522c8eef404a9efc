"""`nodewise schedule`: which devices each job should get."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from nodewise_cli.commands.options import ONE_MINUTE, Call
from nodewise_cli.failures import InputError
from nodewise_cli.inputs.bounds import check_bounds
from nodewise_cli.inputs.documents import read_value
from nodewise_cli.refusals import refuse_unanswered
from nodewise_cli.views.schedule import document, show
from nodewise_cli.waiting import waiting
from nodewise_client import ModelOptions, Problem, ScheduleAction, ScheduleRequest
from nodewise_values.facts import NODE_POOL

__all__ = ["schedule"]


def schedule(
    request: Annotated[
        Path, Argument(metavar="REQUEST.json", help="Schedule request (see `nodewise schema schedule`).")
    ],
    policy: Annotated[str | None, Option(help="Policy. Default: the one in the request.")] = None,
    estimator: Annotated[str | None, Option(help="Estimator. Default: the one in the request.")] = None,
    device_hours_between_failures: Annotated[
        float | None,
        Option(metavar="HOURS", help="Mean hours of one device between failures, in pools that state none."),
    ] = None,
    restart_s: Annotated[
        float | None, Option(metavar="SECONDS", help="Time from a failure until a job runs again. Default: 600.")
    ] = None,
    call: Call = ONE_MINUTE,
) -> None:
    """Share a cluster among jobs by their predicted throughput.

    A job's profile is the name of a stored one ({"profileId": ...}), the profile itself ({"content": ...}), or a job of
    a measurements table beside the request ({"table": "file.csv", "job": ...}).
    """
    value = read_value(request, ScheduleRequest)
    if policy is not None:
        value = replace(value, policy=policy)
    if estimator is not None:
        value = replace(value, options=replace(value.options or ModelOptions(), estimator=estimator))
    value = _with_failures(value, device_hours_between_failures, restart_s)
    with call.connect() as client, waiting("scheduling"):
        result = client.schedule(value)
    call.tell(document, show, result)
    refuse_unanswered(
        (
            Problem(reason=allocation.reason, message=allocation.why)
            if allocation.action is ScheduleAction.NO_ANSWER
            else None
            for allocation in result.allocations
        ),
        "job",
    )


def _with_failures(request: ScheduleRequest, device_hours: float | None, restart_s: float | None) -> ScheduleRequest:
    """The request with the failures of the options in pools that state none.

    Raises
    ------
    InputError
    """
    if device_hours is None and restart_s is not None:
        raise InputError("--restart-s: needs --device-hours-between-failures")
    check_bounds("--device-hours-between-failures", device_hours, NODE_POOL["device_hours_between_failures"])
    check_bounds("--restart-s", restart_s, NODE_POOL["restart_seconds"])
    if device_hours is None or request.cluster is None:
        return request
    pools = (
        replace(pool, device_hours_between_failures=device_hours, restart_seconds=restart_s)
        if pool.device_hours_between_failures is None
        else pool
        for pool in request.cluster.pools
    )
    return replace(request, cluster=replace(request.cluster, pools=tuple(pools)))
