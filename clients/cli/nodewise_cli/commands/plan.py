"""`nodewise plan`: the best way to partition a model over devices, and why."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from nodewise_cli.commands.options import TEN_MINUTES, Call
from nodewise_cli.device_names import nearest_named
from nodewise_cli.failures import RefusedAnswer
from nodewise_cli.inputs.plan_files import OfModel, read_plan
from nodewise_cli.views.memory_timeline import show_memory, timeline_document
from nodewise_cli.views.plan import document, show
from nodewise_cli.waiting import waiting
from nodewise_client import ModelOptions, PlanAnswer, PlanProgress

__all__ = ["plan"]


def plan(
    spec: Annotated[
        Path,
        Argument(
            metavar="SPEC.json|config.json",
            help="JSON of nodewise.v1beta1.PlanRequest, or a model's config.json with --cluster and --batch.",
        ),
    ],
    of_model: OfModel,
    estimator: Annotated[str | None, Option(help="Estimator instead of the specification's.")] = None,
    exhaustive: Annotated[
        bool, Option("--exhaustive", help="Evaluate every configuration: the same answer, more slowly.")
    ] = False,
    explain: Annotated[bool, Option(help="Say why the winner wins, what binds, and what would change it.")] = True,
    memory_timeline: Annotated[
        bool, Option("--memory-timeline", help="Show how the memory of the best's devices grows and falls over a step.")
    ] = False,
    call: Call = TEN_MINUTES,
) -> None:
    """Find the best configuration of a space, before anything is built.

    The profile is a stored one's name ({"profileId": ...}), the profile itself ({"content": ...}), or a job of a
    measurements table beside the specification ({"table": "file.csv", "job": ...}).
    """
    request = read_plan(spec, of_model)
    if estimator is not None:
        request = replace(request, options=replace(request.options or ModelOptions(), estimator=estimator))
    request = replace(
        request, exhaustive=exhaustive or request.exhaustive, skip_explanation=request.skip_explanation or not explain
    )
    with call.connect() as client, waiting("searching") as progress:

        def tell(found: PlanProgress) -> None:
            progress.tell(found.evaluated_count + found.pruned_count, found.space_count)

        pools = request.constraints.pools if request.constraints else ()
        with nearest_named(client, [pool.device_name for pool in pools]):
            result = client.plan(request, on_progress=tell, timeout_s=call.timeout_s)

    def document_all(found: PlanAnswer) -> dict[str, Any]:
        known = document(found)
        if memory_timeline and found.best is not None:
            known["best"] |= timeline_document(found.best.prediction)
        return known

    def show_all(found: PlanAnswer) -> None:
        show(found)
        if memory_timeline and found.best is not None:
            show_memory(found.best.prediction, "Memory of the best's fullest device over a step")

    call.tell(document_all, show_all, result)
    if result.best is None:
        raise RefusedAnswer("; ".join(found.message for found in result.rejections) or "nothing is feasible")
