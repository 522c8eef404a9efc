"""`nodewise simulate`: what policies would have done to jobs that arrive over time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from nodewise_cli.commands.options import AsJson, Server
from nodewise_cli.console import complain, print_json
from nodewise_cli.failures import ExitStatus, InputError
from nodewise_cli.service import connected
from nodewise_cli.waiting import Waiting, waiting
from nodewise_client import Client, SimulateRequest, SimulationAnswer, SimulationProgress, SimulationSettings

__all__ = ["simulate"]

LONGEST_WAIT_S: Final = 600.0
"""Seconds that a simulation may take unless told otherwise: ten times what the largest published trace takes."""


def simulate(
    given: Annotated[
        Path, typer.Argument(metavar="SPEC.json|JOBS", help="A specification, or a file of jobs with --cluster.")
    ],
    throughputs: Annotated[
        Path | None, typer.Option(metavar="TABLE", help="Throughputs that the jobs need: Gavel's, measured, or curves.")
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(metavar="POOLS", help="Pools, e.g. v100=8,p100=16 (nodes of one device) or t4=8x4.")
    ] = None,
    policy: Annotated[list[str] | None, typer.Option(help="Policy; may be given several times.")] = None,
    form: Annotated[
        str | None, typer.Option("--format", help="gavel, pollux, philly or table; default: by the file's content.")
    ] = None,
    applications: Annotated[
        str | None, typer.Option(metavar="A,B", help="Applications to keep of a Pollux workload; default: all.")
    ] = None,
    clock: Annotated[str | None, typer.Option(help="events, fixed-rounds or drained-rounds.")] = None,
    round_s: Annotated[float | None, typer.Option(metavar="SECONDS", help="Length of a round.")] = None,
    restart_cost_s: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Time lost when a job's devices change.")
    ] = None,
    early_stops: Annotated[
        float | None, typer.Option(metavar="P", help="Probability that a job ends early, at a uniform point.")
    ] = None,
    load: Annotated[float | None, typer.Option(help="Inter-arrival times are divided by it.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of everything that chance brings.")] = None,
    repetitions: Annotated[int | None, typer.Option(help="Repetitions, with the seeds that follow.")] = None,
    timeline: Annotated[
        Path | None, typer.Option(metavar="OUT.csv|json", help="Write who held what from when to when.")
    ] = None,
    gantt: Annotated[Path | None, typer.Option(metavar="OUT.png|svg|html", help="Draw it, by job and by pool.")] = None,
    server: Server = None,
    as_json: AsJson = False,
    timeout_s: Annotated[
        float, typer.Option(metavar="SECONDS", help="Longest wait for each policy's answer.")
    ] = LONGEST_WAIT_S,
) -> None:
    """Tell what policies would have done: response times, makespan, utilisation, fairness, restarts, wasted work.

    JOBS is a trace of Gavel (with its table of throughputs), a workload of Pollux (with a table of measurements), an
    extract of Philly's arrivals, or a table of jobs (with a table of curves); docs/simulation.md describes all of them
    and the specification.
    """
    # Only here: reading jobs takes NumPy, which other commands need not wait for.
    from nodewise_cli.inputs.simulation_jobs import prepared_jobs
    from nodewise_cli.inputs.simulation_request import policy_parameters, pools_of, simulate_request
    from nodewise_cli.inputs.simulation_spec import SimulationSpec
    from nodewise_cli.pictures.gantt import checked_gantt, draw_gantt
    from nodewise_cli.views.simulation import checked_timeline, document, show, write_timeline

    changes: dict[str, Any] = {
        "cluster": cluster,
        "policy": policy,
        "clock": clock,
        "round_s": round_s,
        "restart_cost_s": restart_cost_s,
        "early_stops": None if early_stops is None else {"probability": early_stops},
        "load": load,
        "seed": seed,
        "repetitions": repetitions,
    }
    spec = given_spec(
        given, SimulationSpec, changes, throughputs=throughputs, form=form, applications=applications, what="simulate"
    )
    checked_timeline(timeline)
    checked_gantt(gantt)
    keep = timeline is not None or gantt is not None
    if keep and len(spec.policy) > 1:
        raise InputError("--timeline, --gantt: must come with one policy")
    prepared = prepared_jobs(spec, given)
    request = simulate_request(spec, prepared)
    results: dict[str, SimulationAnswer] = {}
    with connected(server, timeout_s) as client, waiting("simulating") as progress:
        for chosen in spec.policy:
            asked = replace(
                request,
                policy=chosen.name,
                policy_parameters=policy_parameters(chosen, prepared.format),
                repetitions_count=spec.repetitions,
                include_timeline=keep,
            )
            result = _simulated(client, asked, timeout_s, progress)
            results[chosen.shown or result.policy] = result
    if timeline is not None:
        write_timeline(timeline, next(iter(results.values())), pools_of(spec))
    if gantt is not None:
        draw_gantt(gantt, next(iter(results.values())), pools_of(spec))
    if as_json:
        print_json(document(results, request.settings or SimulationSettings()))
    else:
        show(results)
    late = [name for name, result in results.items() if not result.complete]
    if late:
        complain(f"the time was over before {', '.join(late)} had finished; --timeout-s gives more")
        raise typer.Exit(ExitStatus.FAILURE)


def _simulated(client: Client, asked: SimulateRequest, timeout_s: float, progress: Waiting) -> SimulationAnswer:
    def tell(found: SimulationProgress) -> None:
        total = found.repetitions_count * found.jobs_count
        progress.tell(
            min(found.repetitions_done_count * found.jobs_count + found.finished_count, total),
            total,
        )

    return client.simulate(asked, on_progress=tell, timeout_s=timeout_s)


def given_spec(
    given: Path,
    kind: Any,
    changes: dict[str, Any],
    *,
    throughputs: Path | None,
    form: str | None,
    applications: str | None,
    what: str,
) -> Any:
    """The specification in a file, or the one that a file of jobs and options make.

    Raises
    ------
    InputError
        Naming the file or the option and what would be right.
    """
    from nodewise_cli.inputs.simulation_spec import checked_spec, parsed_cluster, read_spec

    stated = {name: value for name, value in changes.items() if value is not None and value != []}
    if isinstance(stated.get("cluster"), str):
        try:
            stated["cluster"] = parsed_cluster(stated["cluster"])
        except ValueError as error:
            raise InputError(f"--cluster: {error}") from None
    jobs: dict[str, Any] = {"file": given.name, "format": form or "auto"}
    if applications is not None:
        jobs["applications"] = applications.split(",")
    if throughputs is not None:
        stated["throughputs"] = str(throughputs.resolve())
    if given.suffix.lower() != ".json":
        if "cluster" not in stated:
            raise InputError(f"--cluster: must say what there is, e.g. v100=8,p100=16, where {given} is a file of jobs")
        return checked_spec(f"nodewise {what}", {"jobs": jobs, **stated}, kind)
    if form is not None or applications is not None:
        raise InputError("--format, --applications: must come with a file of jobs; a specification says them itself")
    return read_spec(given, kind, stated)
