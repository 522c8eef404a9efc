"""`nodewise replay`: steps of a recorded job, predicted from its other steps."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Final

import typer

from nodewise_cli.commands.options import AsJson, Server
from nodewise_cli.commands.trace_options import (
    BudgetS,
    Diagnoser,
    Mapped,
    ProfileId,
    TimelineFile,
    Traces,
    asked_profile,
    checked_output,
    parse_change,
    parse_mapping,
    parse_steps,
    told,
)
from nodewise_cli.console import print_json
from nodewise_cli.pictures.chrome_trace import write_chrome_trace
from nodewise_cli.views.replay import document, show
from nodewise_client import ReplayRequest, profile_source

__all__ = ["LONGEST_S", "replay"]

LONGEST_S: Final = 3600.0
"""Seconds that a command waits for an answer from traces unless told otherwise."""


def replay(
    traces: Traces = None,
    profile: ProfileId = None,
    fit_steps: Annotated[
        str | None,
        typer.Option(metavar="A-B", help="Steps to learn from, by place in the file, from 1. Default: the others."),
    ] = None,
    test_step: Annotated[str, typer.Option(metavar="K|all", help="Steps to predict.")] = "all",
    in_sample: Annotated[
        bool,
        typer.Option("--in-sample", help="Predict steps from themselves: checks the graph, says nothing of accuracy."),
    ] = False,
    change: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND=VALUE[;...]",
            help="Change the job first: scale, delay (s), bandwidth, latency (factors), world-size or bucket-bytes, "
            "for what ;name=REGEX;events=kernel,copy;ranks=0,1 select. May be repeated.",
        ),
    ] = None,
    timeline: TimelineFile = None,
    mapping: Mapped = None,
    diagnoser: Diagnoser = "",
    server: Server = None,
    as_json: AsJson = False,
    budget_s: BudgetS = 0.0,
    timeout_s: Annotated[float, typer.Option(metavar="SECONDS", help="Longest wait for the answer.")] = LONGEST_S,
) -> None:
    """Predict recorded steps from the other recorded steps, as they were or changed."""
    checked_output(timeline, "--timeline", [".json"])
    mapped = parse_mapping(mapping)
    fitted, tested = parse_steps(fit_steps, "--fit-steps"), parse_steps(test_step, "--test-step")
    changes = tuple(parse_change(given) for given in change or ())
    with asked_profile(traces, profile, server, timeout_s) as (client, name, progress):
        result = client.replay(
            ReplayRequest(
                profile=profile_source(name),
                fit_steps=fitted,
                test_steps=tested,
                in_sample=in_sample,
                changes=changes,
                timeline=timeline is not None,
                trace_mapping=mapped,
                diagnoser=diagnoser,
                budget_seconds=budget_s,
            ),
            on_progress=partial(told, progress),
            timeout_s=timeout_s,
        )
    if timeline is not None:
        write_chrome_trace(timeline, result.timeline, result.recorded)
    if as_json:
        print_json(document(result))
    else:
        show(result)
