"""`nodewise diagnose`: what bounds a recorded job, who is waited for, and what would buy the time back."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from nodewise_cli.commands.options import AsJson, Server
from nodewise_cli.commands.replay import LONGEST_S
from nodewise_cli.commands.trace_options import (
    BudgetS,
    Diagnoser,
    Mapped,
    ProfileId,
    TimelineFile,
    Traces,
    asked_profile,
    checked_output,
    parse_mapping,
    parse_steps,
    told,
)
from nodewise_cli.console import print_json
from nodewise_cli.pictures.chrome_trace import write_chrome_trace
from nodewise_cli.pictures.timeline import SUFFIXES, checked_picture, draw_timeline
from nodewise_cli.views.diagnose import document, show
from nodewise_client import DiagnoseRequest, profile_source

__all__ = ["diagnose"]


def diagnose(
    traces: Traces = None,
    profile: ProfileId = None,
    steps: Annotated[
        str | None, typer.Option(metavar="A-B", help="Steps to look at, by their place in the file, from 1.")
    ] = None,
    bottlenecks: Annotated[int, typer.Option(metavar="N", min=0, max=1000, help="Most bottlenecks to list.")] = 20,
    strategies: Annotated[int, typer.Option(metavar="N", min=0, max=1000, help="Most strategies to list.")] = 20,
    largest_batch_factor: Annotated[
        float, typer.Option(metavar="X", min=1.0, help="How many times the batch per worker may grow.")
    ] = 1.0,
    timeline: TimelineFile = None,
    picture: Annotated[
        Path | None,
        typer.Option("--picture", metavar="OUT.html|png", help="Draw all ranks' lanes: HTML to explore, or PNG."),
    ] = None,
    mapping: Mapped = None,
    diagnoser: Diagnoser = "",
    server: Server = None,
    as_json: AsJson = False,
    budget_s: BudgetS = 0.0,
    timeout_s: Annotated[float, typer.Option(metavar="SECONDS", help="Longest wait for the answer.")] = LONGEST_S,
) -> None:
    """Find what bounds recorded steps, who is waited for, and which changes would shorten them most."""
    checked_output(timeline, "--timeline", [".json"])
    mapped = parse_mapping(mapping)
    checked_output(picture, "--picture", SUFFIXES)
    checked_picture(picture)
    wanted = parse_steps(steps, "--steps")
    with asked_profile(traces, profile, server, timeout_s) as (client, name, progress):
        result = client.diagnose(
            DiagnoseRequest(
                profile=profile_source(name),
                steps=wanted,
                # The contract's 0 = as many as is usual.
                bottlenecks_count=bottlenecks or -1,
                strategies_count=strategies or -1,
                largest_batch_ratio=largest_batch_factor,
                timeline=timeline is not None or picture is not None,
                trace_mapping=mapped,
                diagnoser=diagnoser,
                budget_seconds=budget_s,
            ),
            on_progress=partial(told, progress),
            timeout_s=timeout_s,
        )
    if timeline is not None:
        write_chrome_trace(timeline, result.timeline, result.recorded)
    if picture is not None:
        draw_timeline(picture, result.timeline or result.recorded, result.verdict)
    if as_json:
        print_json(document(result))
    else:
        show(result)
