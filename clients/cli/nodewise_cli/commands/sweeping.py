"""The simulations of a sweep, and how they are run: by processes here, by a Ray cluster, or by a server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, Final

from nodewise.runtime.embedded_server import SweepUnit
from nodewise.runtime.embedded_server import sweep as swept
from nodewise_cli.failures import InputError
from nodewise_cli.inputs.simulation_jobs import prepared_jobs
from nodewise_cli.inputs.simulation_request import policy_parameters, simulate_request
from nodewise_cli.inputs.simulation_spec import SweepSpec
from nodewise_cli.service import starting
from nodewise_cli.views.sweep import Row, sweep_row
from nodewise_client import (
    Client,
    NodewiseError,
    SimulateRequest,
    SimulationPredictionError,
    SimulationResult,
    SimulationSettings,
)
from nodewise_job_traces import LeftOut
from nodewise_protos.v1beta1 import simulation_pb2
from nodewise_values.wire import from_message, to_message

__all__ = ["prepared_sweep", "swept_here", "swept_there"]

MOST_UNITS: Final = 100_000
Tell = Callable[[int, int], None]


def prepared_sweep(given: SweepSpec, place: Path) -> tuple[list[SimulateRequest], list[SweepUnit], LeftOut]:
    """What simulations share (a request per seed where jobs are drawn, else one), the simulations, and jobs left out.

    Raises
    ------
    InputError
        Naming the file, the field and what would be right.
    """
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
            label=policy.display_name,
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
    return (
        [replace(simulate_request(given, each), repetitions_count=1) for each in prepared],
        units,
        prepared[0].left_out,
    )


def swept_here(requests: Sequence[SimulateRequest], units: Sequence[SweepUnit], tell: Tell, **engine: Any) -> list[Row]:
    """By processes of this machine, or of a Ray cluster."""
    with starting():
        outcomes = swept([to_message(request) for request in requests], units, tell, **engine)
    rows = []
    for unit, outcome in zip(units, outcomes):
        run = None
        if outcome.result is not None:
            message = simulation_pb2.SimulationResult.FromString(outcome.result)
            (run,) = from_message(message, SimulationResult).runs
        rows.append(sweep_row(unit, run, outcome.fault))
    return rows


def swept_there(
    requests: Sequence[SimulateRequest], units: Sequence[SweepUnit], tell: Tell, client: Client, calls: int
) -> list[Row]:
    """By a server, so many simulations at a time; one that fails costs no other."""

    def simulate_unit(unit: SweepUnit) -> Row:
        request = requests[unit.request]
        error = SimulationPredictionError(job_sigma=unit.job_sigma, row_sigma=unit.row_sigma)
        settings = replace(
            request.settings or SimulationSettings(),
            load_factor=unit.load,
            seed=unit.seed,
            prediction_error=error if unit.job_sigma or unit.row_sigma else None,
        )
        asked = replace(request, settings=settings, policy=unit.policy, policy_parameters=dict(unit.parameters))
        try:
            (run,) = client.simulate(asked).runs
        except NodewiseError as failure:
            return sweep_row(unit, None, str(failure))
        return sweep_row(unit, run)

    client.health()  # a server that is not there is said once
    with ThreadPoolExecutor(min(calls, len(units)), thread_name_prefix="nodewise-sweep") as pool:
        asked = [pool.submit(simulate_unit, unit) for unit in units]
        try:
            for done, _ in enumerate(as_completed(asked), 1):
                tell(done, len(units))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [each.result() for each in asked]
