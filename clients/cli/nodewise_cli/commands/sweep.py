"""`nodewise sweep`: policies x loads x prediction errors x seeds, by processes here, a Ray cluster or a server."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

from typer import Option

from nodewise_cli.commands.options import AsJson
from nodewise_cli.commands.simulation_options import LONGEST_S, SimulationQuestion, specification
from nodewise_cli.console import print_json
from nodewise_cli.failures import CommandError, InputError
from nodewise_cli.outputs import checked_output
from nodewise_cli.service import connected, starting
from nodewise_cli.waiting import waiting
from nodewise_client import Client, NodewiseError, SimulateRequest, SimulationPredictionError, SimulationSettings

if TYPE_CHECKING:
    from nodewise.runtime.embedded import SweepUnit
    from nodewise_cli.inputs.simulation_spec import SweepSpec
    from nodewise_cli.views.sweep import SweepRow

__all__ = ["sweep"]

ENGINES: Final = ("local", "ray")
SimulatingServer: TypeAlias = Annotated[
    str | None,
    Option("--server", metavar="HOST:PORT", help="Let this server simulate. Default: processes of this machine."),
]
MOST_UNITS: Final = 100_000


def sweep(
    question: SimulationQuestion,
    loads: Annotated[str | None, Option(metavar="X,Y", help="Loads: inter-arrival times are divided by each.")] = None,
    seeds: Annotated[int | None, Option(help="How many seeds, from 0.")] = None,
    engine: Annotated[str, Option(help="local processes, or ray.")] = "local",
    processes: Annotated[
        int | None, Option(help="Simulations at a time; default: as many as there are processors.")
    ] = None,
    ray_address: Annotated[
        str | None, Option(metavar="ADDRESS", help="Ray cluster to join; default: a local one for this run.")
    ] = None,
    csv_out: Annotated[
        Path | None, Option("--csv", metavar="OUT.csv", help="Write a row for every simulation.")
    ] = None,
    plot: Annotated[Path | None, Option(metavar="OUT.png", help="Draw mean response times by policy and load.")] = None,
    server: SimulatingServer = None,
    as_json: AsJson = False,
    timeout_s: Annotated[
        float, Option(metavar="SECONDS", help="--server: longest wait for each simulation.")
    ] = LONGEST_S,
) -> None:
    """Compare policies over loads, seeds and prediction errors: every combination is a simulation of its own.

    The numbers are the same on every engine and in whatever order simulations end. One that fails is reported with what
    it was, and costs no other.
    """
    # Only here: what other commands need not wait for.
    from nodewise_cli.inputs.simulation_spec import SweepSpec
    from nodewise_cli.pictures.prediction import checked_plot
    from nodewise_cli.pictures.sweep import draw
    from nodewise_cli.views.sweep import document, show, write_csv

    checked_output(csv_out, "--csv")
    checked_plot(plot)
    given = specification(question, SweepSpec, "sweep", loads=None if loads is None else loads.split(","), seeds=seeds)
    count = processes if processes is not None else os.cpu_count() or 1
    if not 1 <= count <= 1024:
        raise InputError(f"--processes: must be 1 to 1024, found {count}")
    if engine not in ENGINES:
        raise InputError(f"--engine: must be one of {', '.join(ENGINES)}, found {engine!r}")
    if ray_address is not None and engine != "ray":
        raise InputError("--ray-address: must come with --engine ray")
    if server is not None and engine != "local":
        raise InputError("--engine: must be left out with --server, which simulates itself")
    prepared = _prepared(given, question.given)
    started = time.perf_counter()
    with waiting("sweeping") as progress:
        if server is None:
            rows = _swept_here(prepared, progress.tell, engine, count, ray_address)
        else:
            with connected(server, timeout_s) as client:
                rows = _swept_there(prepared, progress.tell, client, count)
    wall_s = time.perf_counter() - started
    if csv_out is not None:
        write_csv(csv_out, rows)
    if plot is not None:
        draw(plot, rows)
    if as_json:
        told = "server" if server is not None else engine
        print_json({**document(rows), "engine": told, "processes": count, "wall_s": wall_s})
    else:
        show(rows)
    failures = [f"{row.what}: {row.fault}" for row in rows if row.fault]
    if failures:
        raise CommandError("\n".join(failures), reason="SIMULATION_FAILED")


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What units share (a request per seed where jobs are drawn, else one), and the units."""

    requests: list[SimulateRequest]
    units: list[SweepUnit]


def _prepared(given: SweepSpec, place: Path) -> _Prepared:
    from nodewise.runtime.embedded import SweepUnit
    from nodewise_cli.inputs.simulation_jobs import prepared_jobs
    from nodewise_cli.inputs.simulation_request import policy_parameters, simulate_request

    drawn = given.jobs.generate is not None
    total = len(given.policy) * len(given.loads) * len(given.prediction_errors) * len(given.seeds)
    if total > MOST_UNITS:
        raise InputError(f"{place}: must come to at most {MOST_UNITS:,} simulations, found {total:,}")
    if not all(policy.name for policy in given.policy):
        raise InputError(f"{place}: policy: must name the policies to compare")
    prepared = [prepared_jobs(given, place, seed) for seed in (given.seeds if drawn else given.seeds[:1])]
    units = [
        SweepUnit(
            policy=policy.name,
            parameters=policy_parameters(policy, prepared[0].format),
            label=policy.shown,
            load=load,
            seed=seed,
            job_sigma=error.job_sigma,
            row_sigma=error.row_sigma,
            request=number if drawn else 0,
        )
        for policy, load, error, (number, seed) in product(
            given.policy, given.loads, given.prediction_errors, enumerate(given.seeds)
        )
    ]
    return _Prepared([simulate_request(given, each) for each in prepared], units)


def _swept_here(
    prepared: _Prepared, tell: Callable[[int, int], None], engine: str, processes: int, address: str | None
) -> list[SweepRow]:
    """By processes of this machine, or of a Ray cluster."""
    from nodewise.runtime.embedded import sweep as swept
    from nodewise_cli.views.sweep import SweepRow
    from nodewise_client import SimulationResult
    from nodewise_protos.v1beta1 import simulation_pb2
    from nodewise_values.wire import from_message, to_message

    requests = [to_message(replace(request, repetitions_count=1)) for request in prepared.requests]
    with starting():
        outcomes = swept(requests, prepared.units, tell, engine=engine, processes=processes, ray_address=address)
    rows = []
    for unit, outcome in zip(prepared.units, outcomes):
        run = None
        if outcome.result is not None:
            message = simulation_pb2.SimulationResult.FromString(outcome.result)
            (run,) = from_message(message, SimulationResult).runs
        rows.append(SweepRow.of(unit, run, outcome.fault))
    return rows


def _swept_there(prepared: _Prepared, tell: Callable[[int, int], None], client: Client, calls: int) -> list[SweepRow]:
    """By a server, so many simulations at a time; one that fails costs no other."""
    from nodewise_cli.views.sweep import SweepRow

    def simulated(unit: SweepUnit) -> SweepRow:
        request = prepared.requests[unit.request]
        error = SimulationPredictionError(job_sigma=unit.job_sigma, row_sigma=unit.row_sigma)
        settings = replace(
            request.settings or SimulationSettings(),
            load_factor=unit.load,
            seed=unit.seed,
            prediction_error=error if unit.job_sigma or unit.row_sigma else None,
        )
        asked = replace(
            request,
            settings=settings,
            policy=unit.policy,
            policy_parameters=dict(unit.parameters),
            repetitions_count=1,
        )
        try:
            (run,) = client.simulate(asked).runs
        except NodewiseError as failure:
            return SweepRow.of(unit, None, str(failure))
        return SweepRow.of(unit, run, "")

    units: Sequence[SweepUnit] = prepared.units
    client.health()  # a server that is not there is said once
    with ThreadPoolExecutor(min(calls, len(units)), thread_name_prefix="nodewise-sweep") as pool:
        asked = [pool.submit(simulated, unit) for unit in units]
        try:
            for done, _ in enumerate(as_completed(asked), 1):
                tell(done, len(units))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [each.result() for each in asked]
