"""`nodewise share`: the speed of jobs that share a device."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from nodewise_cli.commands.options import ONE_MINUTE, Call
from nodewise_cli.inputs.documents import read_value
from nodewise_cli.inputs.sharing import read_pairs
from nodewise_cli.refusals import refuse_unanswered
from nodewise_cli.views.share import document, show
from nodewise_cli.waiting import waiting
from nodewise_client import PredictSharingRequest

__all__ = ["share"]


def share(
    spec: Annotated[
        Path,
        Argument(metavar="SPEC.json", help="Specification of the jobs and the devices (see `nodewise schema share`)."),
    ],
    pairs: Annotated[
        Path | None,
        Option(
            metavar="FILE.csv",
            help="Measured pairs, in addition to those of SPEC: first_job,second_job,first_share,...",
        ),
    ] = None,
    call: Call = ONE_MINUTE,
) -> None:
    """Predict which share of its solo speed each job keeps on a shared device, and whether sharing is worth it.

    A job's profile is the name of a stored one ({"profileId": ...}), the profile itself ({"content": ...}), or a job of
    a measurements table beside the specification ({"table": "file.csv", "job": ...}).
    """
    request = read_value(spec, PredictSharingRequest)
    if pairs is not None:
        request = replace(request, runs=(*request.runs, *read_pairs(pairs)))
    with call.connect() as client, waiting("predicting"):
        result = client.predict_sharing(request, timeout_s=call.timeout_s)
    call.tell(document, lambda answer: show(answer, verbose=call.verbose), result)
    refuse_unanswered((each.problem for each in result.sets), "set")
