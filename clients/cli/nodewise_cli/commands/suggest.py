"""`nodewise suggest`: which runs to measure next, what they would improve, and what they cost."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from nodewise_cli.commands.options import ONE_MINUTE, Call
from nodewise_cli.inputs.objectives import ObjectiveOptions, goal_of
from nodewise_cli.inputs.questions import Question, asked_job, asked_ranges, locate_errors, options_of
from nodewise_cli.views.suggest import document, show
from nodewise_cli.waiting import waiting
from nodewise_client import SuggestMeasurementsRequest

__all__ = ["suggest"]


def suggest(
    question: Question,
    objective: ObjectiveOptions,
    count: Annotated[int, Option(min=1, max=3, help="Number of runs to suggest, at most.")] = 3,
    start_up_s: Annotated[
        float, Option(metavar="SECONDS", min=0, help="Time to start a run; its nodes are in use meanwhile.")
    ] = 30.0,
    steps: Annotated[
        int, Option(min=1, max=2**31 - 1, help="Steps of a run; async and hybrid: steps of each worker.")
    ] = 100,
    call: Call = ONE_MINUTE,
) -> None:
    """Suggest which runs to measure next, best first."""
    goal = goal_of(objective)
    asked_about = asked_job(question, call.server)
    ranges = asked_ranges(question, asked_about)
    options = options_of(question)
    with call.connect() as client, waiting("comparing runs"), locate_errors(asked_about):
        request = SuggestMeasurementsRequest(
            profile=asked_about.source,
            ranges=ranges,
            max_suggestions=count,
            start_up_seconds=start_up_s,
            run_steps_count=steps,
            options=options,
            **goal,
        )
        result = client.suggest_measurements(request)
    call.tell(document, lambda answer: show(asked_about.name, answer, verbose=call.verbose), result)
