"""`nodewise predict`: how fast a job would be elsewhere, how sure that is, and how many nodes it is worth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nodewise_cli.commands.options import AsJson, Plot, Server, TimeoutS, Wait
from nodewise_cli.console import print_json
from nodewise_cli.failures import CommandError, ExitStatus, InputError
from nodewise_cli.inputs.measured import measured_points
from nodewise_cli.inputs.objectives import Rule, Wanted, objective_of
from nodewise_cli.inputs.questions import AskedJob, asked_job, asked_ranges
from nodewise_cli.inputs.table_content import timed_rows, train_rows
from nodewise_cli.inputs.table_errors import in_table
from nodewise_cli.pictures.prediction import checked_plot, draw
from nodewise_cli.service import connected
from nodewise_cli.views.predict import document, show
from nodewise_cli.waiting import waiting
from nodewise_client import Fidelity, NodewiseError, PlacementRule, PredictOptions, PredictRequest, RowStatus, SyncMode

__all__ = ["predict"]


def predict(
    source: Annotated[
        Path | None,
        typer.Argument(
            metavar="TABLE.csv|PROFILE.json",
            help="Measurements, JSON of nodewise.v1.ProfileContent, or a model's config.json.",
        ),
    ] = None,
    job: Annotated[str | None, typer.Option(help="Job of the table.")] = None,
    profile: Annotated[str | None, typer.Option(metavar="ID", help="A profile that the server holds, instead.")] = None,
    nodes: Annotated[
        str | None, typer.Option(metavar="COUNTS", help="Numbers of nodes: 1-16, 1,2,4,8, 1-64:2 or pow2:1-64.")
    ] = None,
    workers: Annotated[str | None, typer.Option(metavar="COUNTS", help="Numbers of workers, instead.")] = None,
    workers_per_node: Annotated[
        int | None, typer.Option(min=1, help="Devices used on each node. Default: as in the evidence.")
    ] = None,
    placement: Annotated[PlacementRule, typer.Option(help="How workers are laid over nodes.")] = PlacementRule.PACKED,
    servers: Annotated[int | None, typer.Option(min=0, help="Parameter servers. Default: as in the evidence.")] = None,
    sync: Annotated[SyncMode | None, typer.Option(help="Exchange of gradients. Default: as in the evidence.")] = None,
    batch_per_worker: Annotated[int | None, typer.Option(min=1, help="Samples per worker (weak scaling).")] = None,
    global_batch: Annotated[int | None, typer.Option(min=1, help="Samples per step (strong scaling).")] = None,
    sequence_length: Annotated[
        int | None, typer.Option(metavar="TOKENS", min=1, help="config.json: tokens per sample. Default: its longest.")
    ] = None,
    tensor_parallel: Annotated[int | None, typer.Option(min=1, help="Parts that each layer is split into.")] = None,
    pipeline_parallel: Annotated[
        int | None, typer.Option(min=1, help="Consecutive parts that the layers are laid over.")
    ] = None,
    device: Annotated[str | None, typer.Option(help="Accelerator. Default: as in the evidence.")] = None,
    backup_workers: Annotated[
        int | None, typer.Option(min=0, help="sync: workers of each step whose result is not waited for.")
    ] = None,
    hybrid_sync_fraction: Annotated[
        float | None, typer.Option(min=0, max=1, help="hybrid: share of mini-batches run synchronously.")
    ] = None,
    hybrid_switch_s: Annotated[
        float | None, typer.Option(metavar="SECONDS", min=0, help="hybrid: time lost once at the switch.")
    ] = None,
    link: Annotated[
        float | None, typer.Option(metavar="BYTES_PER_S", help="Link of a server or node. Default: the job's own.")
    ] = None,
    estimator: Annotated[str, typer.Option(help="Estimator's name, or auto.")] = "auto",
    coverage: Annotated[float | None, typer.Option(help="Coverage of the interval. Default 0.9.")] = None,
    fidelity: Annotated[
        Fidelity, typer.Option(help="By the estimator's model, or by its simulation if it has one.")
    ] = Fidelity.MODEL,
    seed: Annotated[int, typer.Option(help="Of whatever is random.")] = 0,
    simulated_steps: Annotated[
        int | None,
        typer.Option(min=1, help="simulate: steps to count in each row. Default: as the estimator thinks right."),
    ] = None,
    objective: Annotated[Rule, typer.Option(help="What is best.")] = Rule.KNEE,
    share: Annotated[
        float | None, typer.Option(help="knee: share of the first node's throughput that each further must bring.")
    ] = None,
    max_nodes: Annotated[int | None, typer.Option(min=1, help="least-time: at most so many nodes.")] = None,
    max_cost: Annotated[float | None, typer.Option(help="least-time: at most this cost.")] = None,
    deadline_s: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="least-cost, fewest-devices: finish within.")
    ] = None,
    price: Annotated[
        list[str] | None,
        typer.Option(metavar="[DEVICE=]PRICE", help="Price of a node for an hour; repeatable, one for each device."),
    ] = None,
    currency: Annotated[str, typer.Option(help="Of the prices, for people.")] = "",
    samples: Annotated[float | None, typer.Option(help="Work left, in samples.")] = None,
    epochs: Annotated[float | None, typer.Option(help="Work left, in epochs.")] = None,
    samples_per_epoch: Annotated[
        int | None, typer.Option(min=1, help="Size of an epoch where the profile does not say.")
    ] = None,
    confidence: Annotated[
        float | None, typer.Option(help="Judge by what is reached with this probability. Default: by the point.")
    ] = None,
    plot: Plot = None,
    server: Server = None,
    as_json: AsJson = False,
    timeout_s: TimeoutS = Wait,
) -> None:
    """Predict a job on configurations that were never run, and recommend one."""
    goal = objective_of(
        Wanted(
            rule=objective,
            share=share,
            max_nodes=max_nodes,
            max_cost=max_cost,
            deadline_s=deadline_s,
            prices=price or (),
            currency=currency,
            samples=samples,
            epochs=epochs,
            samples_per_epoch=samples_per_epoch,
            confidence=confidence,
        )
    )
    checked_plot(plot)
    asked = asked_job(source, job, profile, server, sequence_length)
    template = {
        "device": device,
        "sync": sync,
        "parameter_servers": servers,
        "batch_per_worker": batch_per_worker,
        "global_batch": global_batch,
        "link_bytes_per_s": link,
        "backup_workers": backup_workers,
        "hybrid_sync_fraction": hybrid_sync_fraction,
        "hybrid_switch_s": hybrid_switch_s,
        "tensor_parallel": tensor_parallel,
        "pipeline_parallel": pipeline_parallel,
    }
    ranges = asked_ranges(
        asked, nodes=nodes, workers=workers, workers_per_node=workers_per_node, placement=placement, template=template
    )
    if coverage is not None and not 0 < coverage < 1:
        raise InputError(f"--coverage: must be above 0 and below 1, found {coverage:g}")
    if simulated_steps is not None and fidelity is not Fidelity.SIMULATE:
        raise InputError(f"--simulated-steps: must come with --fidelity simulate, found {fidelity}")
    with connected(server, timeout_s) as client, waiting("predicting"):
        try:
            request = PredictRequest(
                profile=asked.source,
                ranges=ranges,
                objective=goal,
                options=PredictOptions(
                    estimator=estimator,
                    interval_coverage=coverage or 0.0,
                    fidelity=fidelity,
                    seed=seed,
                    simulated_steps_count=simulated_steps or 0,
                ),
            )
            result = client.predict(request)
        except NodewiseError as error:
            raise _located(error, asked) or error from None
    points = measured_points(asked, template, result)
    if plot is not None:
        draw(plot, asked.name, result, points, by_nodes=nodes is not None)
    if as_json:
        print_json(document(result))
    else:
        show(asked.name, result, points, currency)
    if len(result) and all(found.status is RowStatus.REFUSED for found in result):
        raise typer.Exit(ExitStatus.REFUSED)


def _located(error: NodewiseError, asked: AskedJob) -> CommandError | None:
    """The error with the table's line, where it is about a row of the table."""
    if asked.table is None:
        return None
    train = train_rows(asked.table, asked.name)
    return in_table(error, asked.table, train, "profile.inline.observations") or in_table(
        error, asked.table, timed_rows(asked.table, train), "profile.inline.phase_timings"
    )
