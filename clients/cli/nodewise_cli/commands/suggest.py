"""`nodewise suggest`: which runs to measure next, what they would teach, and what they cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from nodewise_cli.commands.options import AsJson, Server, TimeoutS, Wait
from nodewise_cli.console import print_json, print_table, say, shown
from nodewise_cli.failures import CommandError, InputError
from nodewise_cli.inputs.objectives import Rule, Wanted, objective_of
from nodewise_cli.inputs.questions import AskedJob, asked_job, asked_ranges
from nodewise_cli.inputs.table_content import timed_rows, train_rows
from nodewise_cli.inputs.table_errors import in_table
from nodewise_cli.service import connected
from nodewise_cli.waiting import waiting
from nodewise_client import (
    Basis,
    NodewiseError,
    PlacementRule,
    PredictOptions,
    SuggestMeasurementsRequest,
    SuggestMeasurementsResponse,
    SyncMode,
)

__all__ = ["suggest"]


def suggest(
    source: Annotated[
        Path | None,
        typer.Argument(metavar="TABLE.csv|PROFILE.json", help="Measurements, or JSON of nodewise.v1.ProfileContent."),
    ] = None,
    job: Annotated[str | None, typer.Option(help="Job of the table.")] = None,
    profile: Annotated[str | None, typer.Option(metavar="ID", help="A profile that the server holds, instead.")] = None,
    nodes: Annotated[
        str | None, typer.Option(metavar="COUNTS", help="Nodes that may be run: 1-16, 1,2,4,8, 1-64:2 or pow2:1-64.")
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
    device: Annotated[str | None, typer.Option(help="Accelerator. Default: as in the evidence.")] = None,
    link: Annotated[
        float | None, typer.Option(metavar="BYTES_PER_S", help="Link of a server or node. Default: the job's own.")
    ] = None,
    count: Annotated[int, typer.Option(min=1, max=3, help="At most so many runs.")] = 3,
    start_up_s: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="To start a run, in which its nodes are held.")
    ] = 30.0,
    steps: Annotated[
        int, typer.Option(min=1, max=2**31 - 1, help="Steps of a run; async and hybrid: of each worker.")
    ] = 100,
    estimator: Annotated[str, typer.Option(help="Estimator's name, or auto.")] = "auto",
    coverage: Annotated[float | None, typer.Option(help="Coverage of the interval. Default 0.9.")] = None,
    seed: Annotated[int, typer.Option(help="Of whatever is random.")] = 0,
    objective: Annotated[
        Rule, typer.Option(help="What is best: the decision that a run should improve.")
    ] = Rule.HIGHEST_THROUGHPUT,
    share: Annotated[
        float | None, typer.Option(help="knee: share of the first node's throughput that each further must bring.")
    ] = None,
    max_nodes: Annotated[int | None, typer.Option(min=1, help="least-time: at most so many nodes.")] = None,
    max_cost: Annotated[float | None, typer.Option(help="least-time: at most this cost.")] = None,
    deadline_s: Annotated[float | None, typer.Option(metavar="SECONDS", help="least-cost: finish within.")] = None,
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
    server: Server = None,
    as_json: AsJson = False,
    timeout_s: TimeoutS = Wait,
) -> None:
    """Suggest which runs to measure next, best first."""
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
    asked = asked_job(source, job, profile, server)
    template = {
        "device": device,
        "sync": sync,
        "parameter_servers": servers,
        "batch_per_worker": batch_per_worker,
        "global_batch": global_batch,
        "link_bytes_per_s": link,
    }
    ranges = asked_ranges(
        asked, nodes=nodes, workers=workers, workers_per_node=workers_per_node, placement=placement, template=template
    )
    if coverage is not None and not 0 < coverage < 1:
        raise InputError(f"--coverage: must be above 0 and below 1, found {coverage:g}")
    with connected(server, timeout_s) as client, waiting("weighing"):
        try:
            request = SuggestMeasurementsRequest(
                profile=asked.source,
                ranges=ranges,
                objective=goal,
                suggestions_count=count,
                start_up_seconds=start_up_s,
                run_steps_count=steps,
                options=PredictOptions(estimator=estimator, interval_coverage=coverage or 0.0, seed=seed),
            )
            result = client.suggest_measurements(request)
        except NodewiseError as error:
            raise _located(error, asked) or error from None
    if as_json:
        print_json(_document(result))
    else:
        _show(asked.name, result)


def _located(error: NodewiseError, asked: AskedJob) -> CommandError | None:
    """The error with the table's line, where it is about a row of the table."""
    if asked.table is None:
        return None
    train = train_rows(asked.table, asked.name)
    return in_table(error, asked.table, train, "profile.inline.observations") or in_table(
        error, asked.table, timed_rows(asked.table, train), "profile.inline.phase_timings"
    )


def _document(result: SuggestMeasurementsResponse) -> dict[str, Any]:
    """The JSON of suggestions."""
    basis = result.basis or Basis()
    return {
        "suggestions": [
            {
                "row": found.row,
                "nodes": found.nodes,
                "workers": found.workers,
                "cost_node_s": found.cost_node_seconds,
                "expected_regret_fall": found.expected_regret_fall,
                "expected_width_fall": found.expected_width_fall,
                "why": found.why,
            }
            for found in result.suggestions
        ],
        "expected_regret": result.expected_regret,
        "estimator": basis.estimator,
        "estimator_version": basis.estimator_version,
        # An inline profile's revision is its digest.
        "revision": basis.profile_revision or basis.profile_digest,
        "warnings": [
            {"reason": found.reason, "message": found.message, "rows": list(found.rows)} for found in result.warnings
        ],
    }


def _show(name: str, result: SuggestMeasurementsResponse) -> None:
    """Print the runs with what they teach and cost, and why."""
    basis = result.basis or Basis()
    if result.suggestions:
        columns = [(heading, True) for heading in ("", "nodes", "workers", "node-seconds", "regret", "ln width")]
        cells = [
            [
                str(number),
                str(found.nodes),
                str(found.workers),
                shown(found.cost_node_seconds),
                f"-{shown(100 * found.expected_regret_fall, 3)} %" if found.expected_regret_fall else "-",
                f"-{shown(found.expected_width_fall, 3)}",
            ]
            for number, found in enumerate(result.suggestions, 1)
        ]
        title = f"{name}, to be measured next by {basis.estimator} {basis.estimator_version}".rstrip()
        print_table(columns, cells, title=title)
    say(f"Expected regret of deciding now: {100 * result.expected_regret:.3g} % of the best throughput.")
    for number, found in enumerate(result.suggestions, 1):
        say(f"{number}: {found.why}.")
    for warning in result.warnings:
        say(f"Note: {warning.message}")
