"""`nodewise card`: a run before its start: does it fit, how long, at what cost and risk, with how much energy."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from nodewise_cli.commands.options import TEN_MINUTES, Call, ReportFile, ReportPath
from nodewise_cli.device_names import nearest_named
from nodewise_cli.failures import InputError
from nodewise_cli.inputs.questions import Question, asked_job, asked_ranges, locate_errors, options_of
from nodewise_cli.inputs.runs import RunOptions, run_of
from nodewise_cli.refusals import refuse_unanswered
from nodewise_cli.reports import check_report
from nodewise_cli.views.card import document, headline, problem_of, show, show_markdown
from nodewise_cli.waiting import waiting
from nodewise_client import EstimateRunRequest

__all__ = ["card"]


def card(
    question: Question,
    run: RunOptions,
    markdown: Annotated[bool, Option("--markdown", help="Print the card as Markdown.")] = False,
    report: ReportPath = None,
    call: Call = TEN_MINUTES,
) -> None:
    """Estimate a run before its start: memory, time, cost and chance with failures, energy, and what is unsure.

    The job and its configuration are stated as in `nodewise predict`, with one number of --nodes or --workers.
    """
    if question.nodes is None and question.workers is None:
        raise InputError("--nodes: must be given (or --workers): a card is of one configuration")
    if markdown and (call.as_json or report is not None):
        raise InputError("--markdown: must be left out when --json or --report is given")
    check_report(report, draws=False)
    asked_about = asked_job(question, call.server)
    with (
        call.connect() as client,
        waiting("estimating"),
        locate_errors(asked_about),
        nearest_named(client, [question.device]),
    ):
        request = EstimateRunRequest(
            profile=asked_about.source,
            ranges=asked_ranges(question, asked_about),
            options=options_of(question),
            **run_of(run, asked_about.tokens_per_sample(client)),
        )
        result = client.estimate_run(request, timeout_s=call.timeout_s)
    described = (asked_about.name, request, result, run.currency)
    page = None if report is None else ReportFile(report, headline(*described))
    call.tell(document, lambda _: (show_markdown if markdown else show)(*described), result, page)
    refuse_unanswered((problem_of(result),), "run")
