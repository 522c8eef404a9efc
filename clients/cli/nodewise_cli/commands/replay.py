"""`nodewise replay`: steps of a recorded job, predicted from its other steps."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from nodewise_cli.commands.options import AN_HOUR, Call
from nodewise_cli.commands.trace_options import (
    TraceQuestion,
    asked_profile,
    checked_whole,
    fail_if_truncated,
    parse_change,
    parse_steps,
)
from nodewise_cli.pictures.chrome_trace import write_chrome_trace
from nodewise_cli.views.replay import document, show, truncated_traces
from nodewise_client import ReplayRequest

__all__ = ["replay"]


def replay(
    question: TraceQuestion,
    fit_steps: Annotated[
        str | None,
        Option(metavar="A-B", help="Steps to learn from, by their order in the file, from 1. Default: the others."),
    ] = None,
    test_step: Annotated[str, Option(metavar="K|all", help="Steps to predict.")] = "all",
    in_sample: Annotated[
        bool,
        Option(
            "--in-sample", help="Predict steps from themselves. This checks the graph; it does not measure accuracy."
        ),
    ] = False,
    change: Annotated[
        list[str] | None,
        Option(
            metavar="KIND=VALUE[;...]",
            help="Change the job first: scale, delay (s), bandwidth, latency (factors), world-size or bucket-bytes. "
            ";name=REGEX;events=kernel,copy;ranks=0,1 selects what changes. Repeatable.",
        ),
    ] = None,
    call: Call = AN_HOUR,
) -> None:
    """Predict recorded steps from the other recorded steps, unchanged or with changes."""
    steps_to_fit, steps_to_test = parse_steps(fit_steps, "--fit-steps"), parse_steps(test_step, "--test-step")
    changes = tuple(parse_change(text) for text in change or ())
    with asked_profile(question, call) as (client, common, how):
        result = client.replay(
            ReplayRequest(
                fit_steps=steps_to_fit,
                test_steps=steps_to_test,
                in_sample=in_sample,
                changes=changes,
                timeline=question.timeline is not None,
                **common,
            ),
            **how,
        )
    checked_whole(result, question)
    if question.timeline is not None:
        write_chrome_trace(question.timeline, result.timeline, result.recorded)
    call.tell(document, show, result)
    fail_if_truncated(truncated_traces(result))
