"""`nodewise sweep`: policies x loads x prediction errors x seeds, in processes of this machine or of a Ray cluster."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from nodewise.cli.console import complain, print_json
from nodewise.cli.failures import CommandError, ExitStatus, InputError
from nodewise.cli.options import AsJson
from nodewise.cli.waiting import waiting

if TYPE_CHECKING:
    from nodewise.cli.simulation_spec import SweepSpec
    from nodewise.ports.executor import WorkExecutor
    from nodewise.runtime.sweeps import SweepUnit

__all__ = ["sweep"]

ENGINES: Final = ("local", "ray")
MOST_UNITS: Final = 100_000


def sweep(
    spec: Annotated[Path, typer.Argument(metavar="SPEC.json", help="A specification with policy, loads and seeds.")],
    engine: Annotated[str, typer.Option(help="local processes, or ray.")] = "local",
    processes: Annotated[
        int | None, typer.Option(help="Simulations at a time; default: as many as there are processors.")
    ] = None,
    ray_address: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Ray cluster to join; default: a local one for this run.")
    ] = None,
    policy: Annotated[list[str] | None, typer.Option(help="Policy instead of the specification's; repeatable.")] = None,
    csv_out: Annotated[
        Path | None, typer.Option("--csv", metavar="OUT.csv", help="Write a row for every simulation.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="OUT.png", help="Draw mean response times by policy and load.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare policies over loads, seeds and prediction errors: every combination is a simulation of its own.

    The numbers are the same on every engine and in whatever order simulations end. One that fails is reported with what
    it was, and costs no other.
    """
    # Only here: what other commands need not wait for.
    from nodewise.cli.simulation_spec import SweepSpec, read_spec
    from nodewise.cli.sweep_view import checked_outputs, document, draw, rows_of, show, write_csv
    from nodewise.domain.errors import NodewiseError
    from nodewise.runtime.executors.ray_engine import RayMissingError
    from nodewise.runtime.logging import configure_logging
    from nodewise.runtime.sweeps import swept

    configure_logging("error")
    checked_outputs(csv_out, plot)
    given = read_spec(spec, SweepSpec, {"policy": policy} if policy else {})
    count = processes if processes is not None else os.cpu_count() or 1
    if not 1 <= count <= 1024:
        raise InputError(f"--processes: must be 1 to 1024, found {count}")
    executor = _executor(engine, count, ray_address)
    try:
        prepared = _prepared(given, spec)
        started = time.perf_counter()
        with waiting("sweeping") as progress:
            outcomes = swept(executor, prepared.requests, prepared.units, progress.tell)
    except NodewiseError as error:
        raise InputError(str(error)) from None
    except RayMissingError as error:
        raise CommandError(str(error)) from None
    rows = rows_of(prepared.units, outcomes)
    wall_s = time.perf_counter() - started
    if csv_out is not None:
        write_csv(csv_out, rows)
    if plot is not None:
        draw(plot, rows)
    if as_json:
        print_json({**document(rows), "engine": engine, "processes": count, "wall_s": wall_s})
    else:
        show(rows)
    failures = [row for row in rows if row.fault]
    for row in failures:
        complain(f"{row.what}: {row.fault}")
    if failures:
        raise typer.Exit(ExitStatus.FAILURE)


@dataclass(frozen=True, slots=True)
class _Prepared:
    requests: list[bytes]
    units: list[SweepUnit]


def _prepared(given: SweepSpec, place: Path) -> _Prepared:
    """The requests that units share (one per seed where jobs are drawn, else one), and the units."""
    from nodewise.cli.simulation_jobs import prepared_jobs
    from nodewise.cli.simulation_request import policy_arguments, simulate_arguments
    from nodewise.runtime.sweeps import SweepUnit, with_given_curves
    from nodewise_client import simulate_request

    drawn = given.jobs.generate is not None
    total = len(given.policy) * len(given.loads) * len(given.prediction_errors) * len(given.seeds)
    if total > MOST_UNITS:
        raise InputError(f"{place}: must come to at most {MOST_UNITS:,} simulations, found {total:,}")
    requests, form = [], ""
    for seed in given.seeds if drawn else given.seeds[:1]:
        prepared = prepared_jobs(given, place, seed)
        form = prepared.format
        arguments: dict[str, Any] = simulate_arguments(given, prepared)
        request = simulate_request(
            **arguments,
            policy="",
            policy_parameters=None,
            repetitions=1,
            keep_jobs=False,
            keep_timeline=False,
            options=None,
        )
        requests.append(with_given_curves(request).SerializeToString())
    units = [
        SweepUnit(
            policy=_named(policy.name, place),
            parameters=policy_arguments(policy, form)["policy_parameters"],
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
    return _Prepared(requests, units)


def _named(policy: str, place: Path) -> str:
    if not policy:
        raise InputError(f"{place}: policy: must name the policies to compare")
    return policy


def _executor(engine: str, processes: int, address: str | None) -> WorkExecutor:
    from nodewise.runtime.executors.local import LocalExecutor
    from nodewise.runtime.executors.ray_engine import RayExecutor

    if engine not in ENGINES:
        raise InputError(f"--engine: must be one of {', '.join(ENGINES)}, found {engine!r}")
    if engine == "ray":
        return RayExecutor(processes, address)
    if address is not None:
        raise InputError("--ray-address: must come with --engine ray")
    return LocalExecutor(processes)
