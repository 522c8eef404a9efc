"""`nodewise diagnose`: what bounds a recorded job, who is waited for, and what would buy the time back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from nodewise_cli.commands.options import AN_HOUR, Call
from nodewise_cli.commands.running import diagnose_running
from nodewise_cli.commands.trace_options import (
    TraceQuestion,
    asked_profile,
    checked_whole,
    fail_if_truncated,
    parse_steps,
)
from nodewise_cli.failures import InputError
from nodewise_cli.pictures.chrome_trace import write_chrome_trace
from nodewise_cli.pictures.timeline import checked_picture, draw_timeline
from nodewise_cli.views.diagnose import document, show
from nodewise_cli.views.replay import truncated_traces
from nodewise_cli.views.stragglers import document as straggler_document
from nodewise_cli.views.stragglers import show as show_stragglers
from nodewise_client import DiagnoseRequest
from nodewise_job_traces import JobsFileError
from nodewise_job_traces.operations import is_operation_table, read_operations
from nodewise_job_traces.stragglers import analyse_stragglers

__all__ = ["diagnose"]


def diagnose(
    question: TraceQuestion,
    steps: Annotated[
        str | None, Option(metavar="A-B", help="Steps to look at, by their place in the file, from 1.")
    ] = None,
    bottlenecks: Annotated[int, Option(metavar="N", min=0, max=1000, help="Most bottlenecks to list.")] = 20,
    strategies: Annotated[int, Option(metavar="N", min=0, max=1000, help="Most strategies to list.")] = 20,
    largest_batch_factor: Annotated[
        float, Option(metavar="X", min=1.0, help="How many times the batch per worker may grow.")
    ] = 1.0,
    picture: Annotated[
        Path | None, Option("--picture", metavar="OUT.html|png", help="Draw all ranks' lanes: HTML to explore, or PNG.")
    ] = None,
    since: Annotated[
        str | None,
        Option(metavar="DURATION", help="Of a job that runs: what its ranks reported since, such as 1h; --profile."),
    ] = None,
    call: Call = AN_HOUR,
) -> None:
    """Find what bounds recorded steps, who is waited for, and which changes would shorten them most."""
    if since is not None:
        if question.traces or steps or picture or question.timeline or question.mapping:
            raise InputError(
                "--since: looks at no traces, so not with TRACE, --steps, --picture, --timeline, --mapping"
            )
        diagnose_running(question.profile, since, question.diagnoser, call)
        return
    if question.traces and any(map(is_operation_table, question.traces)):
        if steps or picture or question.timeline or question.profile or question.mapping or len(question.traces) > 1:
            raise InputError(
                "a table of operations is diagnosed alone, without --steps, --picture, --timeline and --mapping"
            )
        try:
            found = analyse_stragglers(read_operations(question.traces[0]))
        except JobsFileError as error:
            raise InputError(str(error)) from None
        call.tell(straggler_document, show_stragglers, found)
        return
    checked_picture(picture)
    wanted = parse_steps(steps, "--steps")
    with asked_profile(question, call) as (client, common, how):
        result = client.diagnose(
            DiagnoseRequest(
                steps=wanted,
                max_bottlenecks=bottlenecks,
                max_strategies=strategies,
                largest_batch_ratio=largest_batch_factor,
                timeline=question.timeline is not None or picture is not None,
                **common,
            ),
            **how,
        )
    checked_whole(result, question)
    if question.timeline is not None:
        write_chrome_trace(question.timeline, result.timeline, result.recorded)
    if picture is not None:
        draw_timeline(picture, result.timeline or result.recorded, result.verdict)
    call.tell(document, show, result)
    fail_if_truncated(truncated_traces(result))
