"""One shared device, simulated beside the same rule written plainly; several, for what must hold on any."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from simulations import ONE, POLICIES, completions, job, pools

from nodewise.domain.columns import freeze
from nodewise.scheduling.simulation.core import simulate
from nodewise.scheduling.simulation.jobs import SimulatedJob
from nodewise.scheduling.simulation.settings import SimulatedSharing, SimulationSettings

SHARE = st.sampled_from([0.0, 0.2, 0.4, 0.5, 0.6, 0.9, 1.1])
Table = list[list[float]]


@st.composite
def workloads(draw: st.DrawFn) -> tuple[list[SimulatedJob], Table]:
    kinds = draw(st.integers(1, 3))
    table = [[draw(SHARE) for _ in range(kinds)] for _ in range(kinds)]
    arrivals = sorted(draw(st.lists(st.integers(0, 60), min_size=1, max_size=8)))
    jobs = [
        job(f"j{number}", float(at), float(draw(st.integers(1, 40))), ONE, kind=draw(st.integers(-1, kinds - 1)))
        for number, at in enumerate(arrivals)
    ]
    return jobs, table


def plainly(jobs: list[SimulatedJob], table: Table) -> dict[str, float]:
    """Completions on one device: first come, first served; who waits joins a lone job if the total is above 1."""
    left = {each.job_id: each.samples for each in jobs}
    kind = {each.job_id: each.kind for each in jobs}
    arriving, waiting, running, found, now_s = list(jobs), [], [], {}, 0.0

    def share(one: str, other: str) -> float:
        if min(kind[one], kind[other]) < 0:
            return 0.0
        shares = table[kind[one]][kind[other]], table[kind[other]][kind[one]]
        return shares[0] if min(shares) > 0.0 and sum(shares) > 1.0 else 0.0

    while arriving or running:
        speed = {each: share(each, *(o for o in running if o != each)) if len(running) > 1 else 1.0 for each in running}
        ends = {each: now_s + left[each] / speed[each] for each in running}
        next_s = min([*ends.values(), arriving[0].arrival_s if arriving else math.inf])
        for each in running:
            left[each] -= (next_s - now_s) * speed[each]
        now_s = next_s
        for each in [each for each in running if ends[each] <= now_s]:
            found[each] = now_s
            running.remove(each)
        while arriving and arriving[0].arrival_s <= now_s:
            waiting.append(arriving.pop(0).job_id)
        if not running and waiting:
            running.append(waiting.pop(0))
        if len(running) == 1:
            joins = next((each for each in waiting if share(each, running[0])), None)
            if joins is not None:
                waiting.remove(joins)
                running.append(joins)
    return found


def sharing(table: Table) -> SimulatedSharing:
    shares = (freeze(np.array(table)),) * 2
    return SimulatedSharing(shares=shares, predicted=shares)


@settings(max_examples=60, deadline=None)
@given(workloads())
def test_one_device_is_shared_as_the_rule_says(workload: tuple[list[SimulatedJob], Table]) -> None:
    jobs, table = workload
    found = simulate(jobs, pools(1, 0), POLICIES["packing"], SimulationSettings(sharing=sharing(table)))
    expected = plainly(jobs, table)
    assert found.finished == len(jobs)
    for name, at_s in completions(found).items():
        assert math.isclose(at_s, expected[name], rel_tol=1e-6, abs_tol=1e-6), name


@settings(max_examples=32, deadline=None)
@given(workloads(), st.integers(1, 3), st.integers(0, 2), st.floats(0.0, 30.0))
def test_every_job_ends_and_no_device_is_busy_twice(
    workload: tuple[list[SimulatedJob], Table], first: int, second: int, restart_s: float
) -> None:
    jobs, table = workload
    stated = SimulationSettings(sharing=sharing(table), restart_cost_s=restart_s)
    found = simulate(jobs, pools(first, second), POLICIES["packing"], stated)
    assert found.finished == len(jobs)
    assert found.busy_device_s <= found.available_device_s * (1 + 1e-9) + 1e-9
    assert np.all(found.per_job.completion_s >= found.per_job.start_s)
