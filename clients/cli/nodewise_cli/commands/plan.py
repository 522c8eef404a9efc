"""`nodewise plan`: the best way to partition a model over devices, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

import typer

from nodewise_cli.commands.options import AsJson, Server, Wait
from nodewise_cli.console import complain, print_json
from nodewise_cli.failures import ExitStatus
from nodewise_cli.inputs.documents import read_plan_request
from nodewise_cli.inputs.schedule_request import options_of, source_of
from nodewise_cli.service import connected
from nodewise_cli.views.plan import document, show
from nodewise_cli.waiting import waiting
from nodewise_client import PlanProgress, objective_from_wire
from nodewise_protos.v1 import plan_service_pb2

__all__ = ["plan"]

USUAL_POINTS: Final = 100
"""Points of the frontier, as the server's default, where the specification states none."""


def plan(
    spec: Annotated[Path, typer.Argument(metavar="SPEC.json", help="JSON of nodewise.v1.PlanRequest.")],
    estimator: Annotated[str | None, typer.Option(help="Estimator instead of the specification's.")] = None,
    exhaustive: Annotated[
        bool, typer.Option("--exhaustive", help="Evaluate every configuration: the same answer, more slowly.")
    ] = False,
    explain: Annotated[
        bool, typer.Option(help="Say why the winner wins, what binds, and what would change it.")
    ] = True,
    server: Server = None,
    as_json: AsJson = False,
    timeout_s: Annotated[float, typer.Option(metavar="SECONDS", help="Longest wait for the answer.")] = 10 * Wait,
) -> None:
    """Find the best configuration of a space, before anything is built.

    The profile is a stored one's name ({"profileId": ...}), the profile itself ({"inline": ...}), or a job of a
    measurements table beside the specification ({"table": "file.csv", "job": ...}).
    """
    request = read_plan_request(spec)
    if estimator is not None:
        request.options.estimator = estimator
    with connected(server, timeout_s) as client, waiting("searching") as progress:

        def tell(found: PlanProgress) -> None:
            progress.tell(found.evaluated + found.pruned, found.space)

        result = client.plan(
            on_progress=tell, timeout_s=timeout_s, **_arguments(request, exhaustive=exhaustive, explain=explain)
        )
    if as_json:
        print_json(document(result))
    else:
        show(result)
    if result.best is None:
        for found in result.rejections:
            complain(found.message)
        raise typer.Exit(ExitStatus.REFUSED)


def _arguments(request: plan_service_pb2.PlanRequest, *, exhaustive: bool, explain: bool) -> dict[str, Any]:
    """What `Client.plan` takes."""
    return {
        "profile": source_of(request.profile),
        "minimum_revision": request.profile.minimum_revision,
        "constraints": request.constraints,
        "objective": objective_from_wire(request.objective) if request.HasField("objective") else None,
        "options": options_of(request.options),
        "budget_s": request.budget_seconds,
        "exhaustive": exhaustive or request.exhaustive,
        "frontier_points": max(request.frontier_points_count or USUAL_POINTS, 0),
        "explain": explain and not request.skip_explanation,
    }
