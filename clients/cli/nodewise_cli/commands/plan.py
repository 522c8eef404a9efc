"""`nodewise plan`: the best way to partition a model over devices, and why."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from nodewise_cli.commands.options import AsJson, Server, Wait
from nodewise_cli.console import print_json
from nodewise_cli.failures import RefusedAnswer
from nodewise_cli.inputs.documents import read_value
from nodewise_cli.service import connected
from nodewise_cli.views.plan import document, show
from nodewise_cli.waiting import waiting
from nodewise_client import ModelOptions, PlanProgress, PlanRequest

__all__ = ["plan"]


def plan(
    spec: Annotated[Path, typer.Argument(metavar="SPEC.json", help="JSON of nodewise.v1beta1.PlanRequest.")],
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

    The profile is a stored one's name ({"profileId": ...}), the profile itself ({"content": ...}), or a job of a
    measurements table beside the specification ({"table": "file.csv", "job": ...}).
    """
    request = read_value(spec, PlanRequest)
    if estimator is not None:
        request = replace(request, options=replace(request.options or ModelOptions(), estimator=estimator))
    request = replace(
        request,
        exhaustive=exhaustive or request.exhaustive,
        skip_explanation=request.skip_explanation or not explain,
    )
    with connected(server, timeout_s) as client, waiting("searching") as progress:

        def tell(found: PlanProgress) -> None:
            progress.tell(found.evaluated_count + found.pruned_count, found.space_count)

        result = client.plan(request, on_progress=tell, timeout_s=timeout_s)
    if as_json:
        print_json(document(result))
    else:
        show(result)
    if result.best is None:
        raise RefusedAnswer("; ".join(found.message for found in result.rejections) or "nothing is feasible")
