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
            help="Plan specification (see `nodewise schema plan`), or a model's config.json with --cluster, --batch.",
        ),
    ],
    of_model: OfModel,
    estimator: Annotated[str | None, Option(help="Estimator. Default: the one in the specification.")] = None,
    exhaustive: Annotated[
        bool, Option("--exhaustive", help="Evaluate every configuration. The answer is the same; the search is slower.")
    ] = False,
    explain: Annotated[
        bool, Option(help="Explain the choice: why it is best, which constraints bind, and what would change it.")
    ] = True,
    memory_timeline: Annotated[
        bool, Option("--memory-timeline", help="Show the memory in use on a device of the best plan over a step.")
    ] = False,
    call: Call = TEN_MINUTES,
) -> None:
    """Find the best configuration of a space before the model is built.

    The profile is the name of a stored one ({"profileId": ...}), the profile itself ({"content": ...}), or a job of a
    measurements table beside the specification ({"table": "file.csv", "job": ...}).
    """
    request = read_plan(spec, of_model)
    if estimator is not None:
        request = replace(request, options=replace(request.options or ModelOptions(), estimator=estimator))
    request = replace(
        request, exhaustive=exhaustive or request.exhaustive, skip_explanation=request.skip_explanation or not explain
    )
    with call.connect() as client, waiting("searching") as progress:

        def tell(event: PlanProgress) -> None:
            progress.tell(event.evaluated_count + event.pruned_count, event.space_count)

        pools = request.constraints.pools if request.constraints else ()
        with nearest_named(client, [pool.device_name for pool in pools]):
            result = client.plan(request, on_progress=tell, timeout_s=call.timeout_s)

    def document_all(answer: PlanAnswer) -> dict[str, Any]:
        fields = document(answer)
        if memory_timeline and answer.best is not None:
            fields["best"] |= timeline_document(answer.best.prediction)
        return fields

    def show_all(answer: PlanAnswer) -> None:
        show(answer, verbose=call.verbose)
        if memory_timeline and answer.best is not None:
            show_memory(answer.best.prediction, "Memory of the fullest device of the best plan over a step")

    call.tell(document_all, show_all, result)
    if result.best is None:
        raise RefusedAnswer(
            "; ".join(rejection.message for rejection in result.rejections) or "no configuration is feasible"
        )
