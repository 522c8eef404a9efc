"""Published simulators' figures, where their traces are at hand."""

from __future__ import annotations

import numpy as np
import pytest
from measurements import DATA
from simulations import POLICIES, as_simulated, pools, settings_of

from nodewise.scheduling.simulation.core import simulate
from nodewise.scheduling.simulation.results import SimulationResult
from nodewise_job_traces import gavel, pollux

pytestmark = [pytest.mark.oracle, pytest.mark.data]

CLUSTER = {"v100": 8, "p100": 16, "k80": 24}


def run_of_gavel(trace: str, policy: str) -> SimulationResult:
    with (DATA / "gavel" / "simulation_throughputs.json").open() as stream:
        table = gavel.read_gavel_table(stream)
    with (DATA / "gavel" / "physical_cluster" / trace).open() as stream:
        jobs = gavel.read_gavel_trace(stream, table, list(CLUSTER))
    # Each device on a node of its own, which is Gavel's default.
    cluster = pools(**{name: [1] * count for name, count in CLUSTER.items()})
    settings = settings_of(gavel.SETTINGS, parameters=gavel.PARAMETERS.get(policy, {}))
    return simulate(as_simulated(jobs), cluster, POLICIES[policy], settings)


@pytest.mark.parametrize(
    ("trace", "policy", "average_s", "makespan_s", "utilisation", "within"),
    [
        ("max_min_fairness.trace", "max-min-fairness-aware", 14_622.820, 63_944.5, 0.790, 0.01),
        ("max_min_fairness.trace", "max-min-fairness", 19_989.255, 77_141.3, 0.743, 0.02),
        ("max_min_fairness.trace", "fifo", 35_904.574, 196_524.3, 0.349, 0.01),
        ("minimize_makespan.trace", "fifo", 211_550.984, 274_227.7, 0.164, 0.01),
        ("minimize_makespan.trace", "min-makespan-aware", 63_774.726, 64_720.8, 0.991, 0.01),
    ],
)
def test_gavel(trace: str, policy: str, average_s: float, makespan_s: float, utilisation: float, within: float) -> None:
    result = run_of_gavel(trace, policy)
    assert result.per_job.response_s.mean() == pytest.approx(average_s, rel=within)
    assert result.makespan_s == pytest.approx(makespan_s, rel=0.04)
    assert result.utilisation == pytest.approx(utilisation, rel=0.04)


REFERENCE = {
    (8, "fifo"): (1241, 2285, 1608, 914, 1232, 2532),
    (8, "equal-share"): (756, 1226, 878, 662, 699, 1335),
    (8, "marginal-gain"): (774, 1423, 936, 736, 768, 1491),
    (8, "efficiency-srpt"): (722, 1223, 855, 587, 623, 1274),
    (4, "fifo"): 13_414,
    (4, "equal-share"): 3_242,
    (4, "marginal-gain"): 3_383,
    (4, "efficiency-srpt"): 4_175,
}
"""Average response times (s) of a separate implementation of the rules, by nodes of four T4; per workload or mean."""


@pytest.mark.parametrize(("nodes", "policy"), REFERENCE)
def test_pollux_workloads(nodes: int, policy: str) -> None:
    with (DATA / "measurements" / "sia_t4_2_to_16_nodes.csv").open() as stream:
        times = {job.removesuffix("/aws"): steps for job, steps in pollux.read_step_times(stream).items()}
    curves = pollux.pollux_curves(times, 4 * nodes)
    found = []
    for number in range(1, 7):
        with (DATA / "jobs" / "pollux_workloads" / f"workload-{number}.csv").open() as stream:
            jobs = pollux.read_pollux_workload(stream, curves, only=times)
        result = simulate(as_simulated(jobs, (4,)), pools([4] * nodes), POLICIES[policy], settings_of(pollux.SETTINGS))
        assert result.finished == len(jobs)
        found.append(float(result.per_job.response_s.mean()))
    reference = REFERENCE[nodes, policy]
    assert np.mean(found) == pytest.approx(np.mean(reference), rel=0.01)
    if isinstance(reference, tuple):
        assert found == pytest.approx(list(reference), rel=0.05)
