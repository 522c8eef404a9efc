"""The simulations of a sweep, and how they are run: by processes here, by a Ray cluster, or by a server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, Final

from nodewise.runtime.engine_runs import SweepUnit
from nodewise.runtime.engine_runs import sweep as swept
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


def prepared_sweep(spec: SweepSpec, place: Path) -> tuple[list[SimulateRequest], list[SweepUnit], LeftOut]:
    """Shared requests (one per seed for random jobs, else one), the simulations, and jobs that are left out.

    Raises
    ------
    InputError
        Naming the file, the field and what would be right.
    """
    has_random_jobs = spec.jobs.generate is not None
    total = len(spec.policy) * len(spec.loads) * len(spec.prediction_errors) * len(spec.seeds)
    if total > MOST_UNITS:
        raise InputError(f"{place}: must come to at most {MOST_UNITS:,} simulations, found {total:,}")
    if not all(policy.name for policy in spec.policy):
        raise InputError(f"{place}: policy: must name the policies to compare")
    jobs_by_seed = [prepared_jobs(spec, place, seed) for seed in (spec.seeds if has_random_jobs else spec.seeds[:1])]
    units = [
        SweepUnit(
            policy=policy.name,
            parameters=policy_parameters(policy, jobs_by_seed[0].format),
            label=policy.display_name,
            load=load,
            seed=seed,
            job_sigma=error.job_sigma,
            row_sigma=error.row_sigma,
            request=number if has_random_jobs else 0,
        )
        for policy, load, error, (number, seed) in product(
            spec.policy, spec.loads, spec.prediction_errors, enumerate(spec.seeds)
        )
    ]
    return (
        [replace(simulate_request(spec, each), repetitions_count=1) for each in jobs_by_seed],
        units,
        jobs_by_seed[0].left_out,
    )


def swept_here(requests: Sequence[SimulateRequest], units: Sequence[SweepUnit], tell: Tell, **engine: Any) -> list[Row]:
    """Run the simulations in processes of this machine, or on a Ray cluster."""
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
    """Run the simulations on a server, several at a time; the others go on if one fails."""

    def simulate_unit(unit: SweepUnit) -> Row:
        request = requests[unit.request]
        error = SimulationPredictionError(job_sigma=unit.job_sigma, row_sigma=unit.row_sigma)
        settings = replace(
            request.settings or SimulationSettings(),
            load_factor=unit.load,
            seed=unit.seed,
            prediction_error=error if unit.job_sigma or unit.row_sigma else None,
        )
        unit_request = replace(request, settings=settings, policy=unit.policy, policy_parameters=dict(unit.parameters))
        try:
            (run,) = client.simulate(unit_request).runs
        except NodewiseError as failure:
            return sweep_row(unit, None, str(failure))
        return sweep_row(unit, run)

    client.health()  # a server that is not there is said once
    with ThreadPoolExecutor(min(calls, len(units)), thread_name_prefix="nodewise-sweep") as pool:
        futures = [pool.submit(simulate_unit, unit) for unit in units]
        try:
            for done_count, _ in enumerate(as_completed(futures), 1):
                tell(done_count, len(units))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [each.result() for each in futures]
