"""`nodewise sweep`: policies x loads x prediction errors x seeds, by processes here, a Ray cluster or a server."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from typer import Option

from nodewise_cli.commands.engines import checked_engine
from nodewise_cli.commands.options import Call, ReportFile, ReportPath
from nodewise_cli.commands.simulation_options import NEVER_FINISHED, SimulationQuestion, specification
from nodewise_cli.failures import CommandError, InputError
from nodewise_cli.outputs import checked_output
from nodewise_cli.refusals import refuse_unanswered
from nodewise_cli.reports import check_report
from nodewise_cli.waiting import waiting
from nodewise_client import Problem

__all__ = ["sweep"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call(Call):
    """A call to the server that simulates, if one is named."""

    server: Annotated[
        str | None,
        Option("--server", metavar="HOST:PORT", help="Server that simulates. Default: processes of this machine."),
    ] = None
    timeout_s: Annotated[
        float, Option("--timeout-s", metavar="SECONDS", help="--server: time limit of each simulation.")
    ] = 600.0


_HERE: Final = _Call()


def sweep(
    question: SimulationQuestion,
    loads: Annotated[
        str | None, Option(metavar="X,Y", help="Load factors: each divides the inter-arrival times.")
    ] = None,
    seeds: Annotated[int | None, Option(help="Number of seeds, from 0.")] = None,
    engine: Annotated[str, Option(help="local (processes of this machine) or ray.")] = "local",
    processes: Annotated[
        int | None,
        Option(help="Simulations at a time. Default: all processors, of this machine or the named Ray cluster."),
    ] = None,
    ray_address: Annotated[
        str | None, Option(metavar="ADDRESS", help="Ray cluster to use. Default: a local one for this run.")
    ] = None,
    resume: Annotated[
        Path | None,
        Option(metavar="FILE", help="Store results here as they arrive; simulate only what the file does not hold."),
    ] = None,
    csv_out: Annotated[
        Path | None, Option("--csv", metavar="OUT.csv", help="Write one row for each simulation.")
    ] = None,
    plot: Annotated[Path | None, Option(metavar="OUT.png", help="Draw mean response times by policy and load.")] = None,
    report: ReportPath = None,
    call: _Call = _HERE,
) -> None:
    """Compare policies over loads, seeds and prediction errors: every combination is a simulation of its own.

    The numbers are the same on every engine and in any order of simulations. The command reports a simulation that
    fails; the others go on.
    """
    # Only here: what other commands need not wait for.
    from nodewise_cli.commands.sweeping import prepared_sweep, swept_here, swept_there
    from nodewise_cli.inputs.simulation_spec import SweepSpec
    from nodewise_cli.pictures.figures import checked_plot
    from nodewise_cli.pictures.sweep import draw
    from nodewise_cli.views.sweep import document, headline, show, what_failed, write_csv

    checked_output(csv_out, "--csv")
    checked_plot(plot)
    check_report(report, draws=True)
    spec = specification(question, SweepSpec, "sweep", loads=None if loads is None else loads.split(","), seeds=seeds)
    how = checked_engine(engine, processes, ray_address, resume)
    count = how["processes"]
    if call.server is not None and engine != "local":
        raise InputError("--engine: must be left out when --server is given: the server simulates")
    if call.server is not None and resume is not None:
        raise InputError("--resume: must be left out when --server is given")
    requests, units, left_out = prepared_sweep(spec, question.given)
    start_s = time.perf_counter()
    with waiting("sweeping") as progress:
        if call.server is None:
            rows = swept_here(requests, units, progress.tell, **how)
        else:
            with call.connect() as client:
                rows = swept_there(requests, units, progress.tell, client, count)
    wall_s = time.perf_counter() - start_s
    if csv_out is not None:
        write_csv(csv_out, rows)
    if plot is not None:
        draw(plot, rows)
    run = {"engine": "server" if call.server else engine, "processes": count, "wall_s": wall_s}
    page = None if report is None else ReportFile(report, headline(rows), lambda path: draw(path, rows))
    call.tell(lambda entries: document(entries, left_out) | run, lambda entries: show(entries, left_out), rows, page)
    failures = what_failed(rows)
    if failures:
        raise CommandError("\n".join(failures), reason="SIMULATION_FAILED")
    refuse_unanswered((None if row["finished"] else Problem(message=NEVER_FINISHED) for row in rows), "simulation")
