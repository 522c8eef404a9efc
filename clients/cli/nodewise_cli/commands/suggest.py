"""`nodewise suggest`: which runs to measure next, what they would teach, and what they cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from nodewise_cli.commands.options import AsJson, Server, TimeoutS, Wait
from nodewise_cli.console import print_json
from nodewise_cli.inputs.objectives import Rule, Wanted, goal_of
from nodewise_cli.inputs.questions import Question, asked_job, asked_ranges, located, options_of
from nodewise_cli.service import connected
from nodewise_cli.views.suggest import document, show
from nodewise_cli.waiting import waiting
from nodewise_client import NodewiseError, SuggestMeasurementsRequest

__all__ = ["suggest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Decision(Wanted):
    """The objective of the decision that a run should improve."""

    rule: Annotated[Rule, typer.Option("--objective", help="What is best: the decision that a run should improve.")] = (
        Rule.HIGHEST_THROUGHPUT
    )


def suggest(
    question: Question,
    wanted: _Decision,
    count: Annotated[int, typer.Option(min=1, max=3, help="At most so many runs.")] = 3,
    start_up_s: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="To start a run, in which its nodes are held.")
    ] = 30.0,
    steps: Annotated[
        int, typer.Option(min=1, max=2**31 - 1, help="Steps of a run; async and hybrid: of each worker.")
    ] = 100,
    server: Server = None,
    as_json: AsJson = False,
    timeout_s: TimeoutS = Wait,
) -> None:
    """Suggest which runs to measure next, best first."""
    goal = goal_of(wanted)
    asked = asked_job(question, server)
    ranges = asked_ranges(question, asked)
    options = options_of(question)
    with connected(server, timeout_s) as client, waiting("weighing"):
        try:
            request = SuggestMeasurementsRequest(
                profile=asked.source,
                ranges=ranges,
                max_suggestions=count,
                start_up_seconds=start_up_s,
                run_steps_count=steps,
                options=options,
                **goal,
            )
            result = client.suggest_measurements(request)
        except NodewiseError as error:
            raise located(error, asked) or error from None
    if as_json:
        print_json(document(result))
    else:
        show(asked.name, result)
