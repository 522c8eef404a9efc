"""`nodewise schedule`: which devices each job should get."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from nodewise_cli.commands.options import ONE_MINUTE, Call
from nodewise_cli.inputs.documents import read_value
from nodewise_cli.refusals import refuse_unanswered
from nodewise_cli.views.schedule import document, show
from nodewise_cli.waiting import waiting
from nodewise_client import ModelOptions, Problem, ScheduleAction, ScheduleRequest

__all__ = ["schedule"]


def schedule(
    request: Annotated[
        Path, Argument(metavar="REQUEST.json", help="Schedule request (see `nodewise schema schedule`).")
    ],
    policy: Annotated[str | None, Option(help="Policy. Default: the one in the request.")] = None,
    estimator: Annotated[str | None, Option(help="Estimator. Default: the one in the request.")] = None,
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
