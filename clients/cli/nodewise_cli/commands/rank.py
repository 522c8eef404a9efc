"""`nodewise rank`: models that never ran, by predicted step time, with how sure that order is."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from nodewise_cli.commands.options import ONE_MINUTE, Call
from nodewise_cli.failures import InputError
from nodewise_cli.inputs.architectures import read_architectures
from nodewise_cli.inputs.profile_names import profile_id_of
from nodewise_cli.refusals import refuse_unanswered
from nodewise_cli.views.predict import problem_of
from nodewise_cli.views.rank import Ranking, document, show
from nodewise_cli.waiting import waiting
from nodewise_client import BatchPredictRequest, ModelOptions, PredictOptions, configurations, profile_source

__all__ = ["rank"]


def rank(
    table: Annotated[
        Path,
        Argument(metavar="ARCHITECTURES.csv", help="One model in each row: flops_per_sample, family, tensors, ..."),
    ],
    device: Annotated[str | None, Option(help="Accelerator. Default: the one in the profile's evidence.")] = None,
    batch: Annotated[
        int | None, Option(min=1, help="Samples per step of one worker. Default: the one in the profile's evidence.")
    ] = None,
    precision: Annotated[
        str | None, Option(metavar="FORMAT", help="Number format, such as bf16. Default: the profile's, else fp32.")
    ] = None,
    workers: Annotated[int, Option(min=1, help="Workers, on one node.")] = 1,
    profile: Annotated[
        str | None, Option(metavar="ID", help="Stored profile with what all models have in common.")
    ] = None,
    top: Annotated[int | None, Option(min=1, help="Number of models to list, the fastest first.")] = None,
    estimator: Annotated[str, Option(help="Name of an estimator, or auto.")] = "auto",
    coverage: Annotated[float | None, Option(metavar="SHARE", help="Coverage of the ranges. Default: 0.9.")] = None,
    call: Call = ONE_MINUTE,
) -> None:
    """Rank models by their predicted step time before any of them runs.

    `expected_kendall_tau` is the expected Kendall's tau between this order and the measured one. A row that cannot be
    answered states what is missing; the other rows are ranked.
    """
    if profile is None and device is None:
        raise InputError("--device: must be given, such as --device K80, unless the evidence of a --profile states it")
    if profile is None and batch is None:
        raise InputError("--batch: must be given, such as --batch 128, unless the evidence of a --profile states it")
    if profile is not None and call.server is None:
        raise InputError("--server: must name the server that stores the profile; the embedded server stores none")
    read = read_architectures(table)
    request = BatchPredictRequest(
        architectures=read.architectures,
        profile=None if profile is None else profile_source(profile_id_of(profile)),
        configurations=configurations(
            nodes=1,
            workers=workers,
            devices=device,
            batch_per_worker_samples=batch or (),
            precisions=precision or (),
        ),
        options=PredictOptions(model=ModelOptions(estimator=estimator, interval_coverage=coverage)),
    )
    with call.connect() as client, waiting("ranking"):
        start_s = time.perf_counter()
        result = client.batch_predict(request)
        seconds = time.perf_counter() - start_s
    ranking = Ranking.of(read.names, result, call_s=seconds, top=top)
    call.tell(document, lambda answer: show(answer, verbose=call.verbose), ranking)
    if not ranking.answered:
        refuse_unanswered(map(problem_of, ranking.rows), "row")
