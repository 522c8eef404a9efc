"""`nodewise spot`: time, cost and risk of a job on preemptible machines, and the best offer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from nodewise_cli.commands.options import TEN_MINUTES, Call, ReportFile, ReportPath
from nodewise_cli.inputs.documents import read_value
from nodewise_cli.pictures.figures import checked_plot
from nodewise_cli.pictures.spot import draw
from nodewise_cli.refusals import refuse_unanswered
from nodewise_cli.reports import check_report
from nodewise_cli.views.spot import document, headline, show
from nodewise_cli.waiting import waiting
from nodewise_client import EstimateCompletionRequest, Problem, RowStatus

__all__ = ["spot"]


def spot(
    spec: Annotated[
        Path,
        Argument(metavar="SPEC.json", help="Specification of the job and the offers (see `nodewise schema spot`)."),
    ],
    runs: Annotated[
        int | None, Option(min=1, max=1_000_000, help="Simulated runs of each offer. Default: as in the specification.")
    ] = None,
    plot: Annotated[
        Path | None, Option(metavar="FILE.svg", help="Draw cost against time, with the risk of each offer.")
    ] = None,
    report: ReportPath = None,
    call: Call = TEN_MINUTES,
) -> None:
    """Estimate time, cost and risk of a job on offers of preemptible machines, and recommend an offer.

    The profile is the name of a stored one ({"profileId": ...}), the profile itself ({"content": ...}), or a job of a
    measurements table beside the specification ({"table": "file.csv", "job": ...}); offers may state speeds instead.
    """
    request = read_value(spec, EstimateCompletionRequest)
    checked_plot(plot)
    check_report(report, draws=True)
    if runs is not None:
        request = replace(request, runs_count=runs)
    with call.connect() as client, waiting("estimating"):
        result = client.estimate_completion(request, timeout_s=call.timeout_s)
    if plot is not None:
        draw(plot, result)
    page = None if report is None else ReportFile(report, headline(result), lambda path: draw(path, result))
    call.tell(document, lambda answer: show(answer, verbose=call.verbose), result, page)
    answered = RowStatus.ANSWERED
    refuse_unanswered((None if row.status is answered else row.problem or Problem() for row in result.rows), "offer")
