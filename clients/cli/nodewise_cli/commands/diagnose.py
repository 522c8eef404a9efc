"""`nodewise diagnose`: what bounds a recorded job, which ranks the others wait for, and which changes would help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from typer import Option

from nodewise_cli.commands.options import AN_HOUR, Call
from nodewise_cli.commands.running import diagnose_running
from nodewise_cli.commands.trace_options import (
    TraceQuestion,
    asked_profile,
    asked_profiles,
    checked_whole,
    fail_if_truncated,
    parse_steps,
)
from nodewise_cli.failures import InputError
from nodewise_cli.outputs import checked_output
from nodewise_cli.pictures.chrome_trace import write_chrome_trace
from nodewise_cli.views.diagnose import document, show
from nodewise_cli.views.replay import truncated_traces
from nodewise_client import DiagnoseRequest

__all__ = ["diagnose"]


def diagnose(
    question: TraceQuestion,
    steps: Annotated[
        str | None, Option(metavar="A-B", help="Steps to diagnose, by their order in the file, from 1.")
    ] = None,
    bottlenecks: Annotated[
        int, Option(metavar="N", min=0, max=1000, help="Number of bottlenecks to list, at most.")
    ] = 20,
    strategies: Annotated[
        int, Option(metavar="N", min=0, max=1000, help="Number of strategies to list, at most.")
    ] = 20,
    largest_batch_factor: Annotated[
        float,
        Option(metavar="X", min=1.0, help="Largest factor by which strategies may increase the batch per worker."),
    ] = 1.0,
    picture: Annotated[
        Path | None,
        Option("--picture", metavar="OUT.html|png", help="Draw the timelines of all ranks: interactive HTML, or PNG."),
    ] = None,
    report: Annotated[
        Path | None,
        Option("--report", metavar="OUT.html", help="Write the whole answer, with its timelines, as one HTML page."),
    ] = None,
    against: Annotated[
        list[str] | None,
        Option(
            metavar="BEFORE",
            help="Earlier traces, or a directory of them: explain the difference between the steps. With --profile: "
            "the name of another profile. Repeatable.",
        ),
    ] = None,
    rank: Annotated[int | None, Option(metavar="R", min=0, help="Compare this rank only.")] = None,
    against_rank: Annotated[
        int | None,
        Option(metavar="R", min=0, help="Compare with this rank; without --against, a rank of the same traces."),
    ] = None,
    since: Annotated[
        str | None,
        Option(
            metavar="DURATION",
            help="Running job: diagnose what the ranks reported in this period, such as 1h; needs --profile.",
        ),
    ] = None,
    call: Call = AN_HOUR,
) -> None:
    """Find what bounds recorded steps, which ranks the others wait for, and which changes would help most."""
    if since is not None:
        if question.traces or any((steps, picture, report, against, question.timeline, question.mapping)):
            raise InputError(
                "--since: reads no traces; leave out TRACE, --steps, --picture, --report, --against, --timeline and "
                "--mapping"
            )
        diagnose_running(question.profile, since, question.diagnoser, call)
        return
    if question.traces and _has_operations(question.traces):
        conflicts = (steps, picture, report, against, question.timeline, question.profile, question.mapping)
        if any(conflicts) or len(question.traces) > 1:
            raise InputError(
                "TRACE: give a table of operations alone, without --steps, --picture, --report, --against, --timeline, "
                "--profile and --mapping"
            )
        _analyse_operations(question.traces[0], call)
        return
    if picture is not None:
        from nodewise_cli.pictures.timeline import checked_picture

        checked_picture(picture)
    checked_output(report, "--report", (".html",))
    request = DiagnoseRequest(
        steps=parse_steps(steps, "--steps"),
        max_bottlenecks=bottlenecks,
        max_strategies=strategies,
        largest_batch_ratio=largest_batch_factor,
        timeline=any((question.timeline, picture, report)),
    )
    if against or against_rank is not None:
        if picture or question.timeline:
            raise InputError(
                "--against: cannot be used with --picture or --timeline, which show one run; --report shows both"
            )
        _compare(question, request, call, report, against or (), rank, against_rank)
        return
    if rank is not None:
        raise InputError("--rank: needs --against BEFORE or --against-rank R to compare with")
    with asked_profile(question, call) as (client, common, how):
        result = client.diagnose(replace(request, **common), **how)
    checked_whole(result, question)
    if question.timeline is not None:
        write_chrome_trace(question.timeline, result.timeline, result.recorded)
    if picture is not None:
        from nodewise_cli.pictures.timeline import draw_timeline

        draw_timeline(picture, result.timeline or result.recorded, result.verdict)
    if report is not None:
        from nodewise_cli.pictures.report import write_report

        write_report(report, result)
    call.tell(document, show, result)
    fail_if_truncated(truncated_traces(result))


def _has_operations(traces: Sequence[Path]) -> bool:
    """Whether a table of operations is among traces. Reading one takes NumPy, which traces do without."""
    if not any(each.suffix.lower() in {".csv", ".parquet"} for each in traces):
        return False
    from nodewise_job_traces.operations import is_operation_table

    return any(map(is_operation_table, traces))


def _analyse_operations(table: Path, call: Call) -> None:
    """Explain the stragglers of a table of operations."""
    from nodewise_cli.views.stragglers import document as straggler_document
    from nodewise_cli.views.stragglers import show as show_stragglers
    from nodewise_job_traces import JobsFileError
    from nodewise_job_traces.operations import read_operations
    from nodewise_job_traces.stragglers import analyse_stragglers

    try:
        analysis = analyse_stragglers(read_operations(table))
    except JobsFileError as error:
        raise InputError(str(error)) from None
    call.tell(straggler_document, show_stragglers, analysis)


def _compare(
    question: TraceQuestion,
    request: DiagnoseRequest,
    call: Call,
    report: Path | None,
    against: Sequence[str],
    rank: int | None,
    against_rank: int | None,
) -> None:
    """Diagnose two runs, or two ranks of one run, and explain their difference."""
    from nodewise_cli.comparison import Run, compare_runs
    from nodewise_cli.views.comparison import document as comparison_document
    from nodewise_cli.views.comparison import show as show_comparison

    if not against and (rank is None or rank == against_rank):
        raise InputError("--against-rank: needs --against BEFORE, or --rank with another rank of the same traces")
    request = replace(request, max_bottlenecks=0, max_strategies=0, timeline=True)
    with asked_profiles(question, call, against) as (client, requests, how):
        results = [client.diagnose(replace(request, **common), **how) for common in requests]
    for result in results:
        checked_whole(result, question)
    new = question.profile or _name_of(question.traces or ())
    old = new if not against else against[0] if question.profile else _name_of(against)
    if against and old == new:
        old, new = "before", "after"
    comparison = compare_runs(
        Run(name=old, answer=results[-1], rank=against_rank if against_rank is not None else rank),
        Run(name=new, answer=results[0], rank=rank if rank is not None else against_rank),
    )
    if report is not None:
        from nodewise_cli.pictures.report import write_comparison

        write_comparison(report, comparison)
    call.tell(comparison_document, show_comparison, comparison)
    fail_if_truncated([text for result in results for text in truncated_traces(result)])


def _name_of(sources: Sequence[str | Path]) -> str:
    """The name of some traces for people: that of the only file, or that of their directory."""
    paths = [Path(each) for each in sources]
    return paths[0].name if len(paths) == 1 else paths[0].resolve().parent.name
