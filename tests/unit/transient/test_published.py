"""What is claimed of published tables: recorded runs, fleets, lifetimes, saves, switch points, speeds, availability."""

from __future__ import annotations

import numpy as np
import pytest
from measurements import DATA, data_path

from nodewise.plugin import AvailabilityRecord, CompletionTerms, HybridTimes, OnDemandQuestion
from nodewise_transient.deterministic import expect
from nodewise_transient.estimator import TransientEstimator
from nodewise_transient.fitting import choose, empirical, fit
from nodewise_transient.hybrid import feasible, hybrid_s
from nodewise_transient.job import Group, Job
from nodewise_transient.loss import ChiefLoss
from nodewise_transient.provenance import Provenance
from nodewise_transient.simulation import simulate
from nodewise_transient.traces import Availability
from nodewise_transient.walk import finish_s
from transient_errors import icac_errors, left_out_saves, left_out_speeds, policy_ratios
from transient_tables import availability, lifetimes, p3_fleet, spot_runs, switch_runs

FOLDER = DATA / "transient"
pytestmark = pytest.mark.data


def test_runs_with_known_losses_are_told_within_a_percent() -> None:
    runs = spot_runs(FOLDER)
    known, ignored, dollars = icac_errors(runs)
    assert (len(runs), len(known)) == (31, 10)
    assert np.abs(known).mean() < 0.006
    assert np.abs(known).max() < 0.015
    assert np.abs(ignored).mean() == pytest.approx(0.159, abs=0.001)
    assert np.abs(dollars).max() < 1e-6


@pytest.mark.parametrize(
    ("stall_s", "ends_s"),
    [
        (0.0, [1346.0, 6426.0, 12618.75, 25922.07, 35227.06]),
        (60.0, [1803.75, 8642.6, 17563.8, 38661.4, np.inf]),
        (120.0, [2232.9, 11704.6, 22355.6, np.inf, np.inf]),
    ],
)
def test_a_recorded_fleet_does_its_node_hours_on_time(stall_s: float, ends_s: list[float]) -> None:
    fleet, end_s = p3_fleet(FOLDER)
    work = np.array([10.0, 50.0, 100.0, 200.0, 250.0]) * 3600.0
    done = finish_s(fleet.changes_s, fleet.nodes, work, stall_s=stall_s, end_s=end_s)
    np.testing.assert_allclose(done, ends_s, atol=0.06)


def test_survivors_of_a_fleet_are_no_revocations() -> None:
    fleet, _ = p3_fleet(FOLDER)
    seen = fleet.lifetimes(Provenance(data_set="p3"))
    assert (seen.machines, seen.events) == (177, 167)
    at_hour = seen.revoked[np.searchsorted(seen.ages_s, 3600.0, side="right") - 1]
    assert at_hour == pytest.approx(0.475, abs=0.001)
    weibull = fit(seen, "weibull")
    assert weibull.scale_s / 3600.0 == pytest.approx(1.68, abs=0.01)
    assert weibull.shape == pytest.approx(1.09, abs=0.01)


def test_lifetimes_fit_as_published_and_the_degenerate_cell_is_found() -> None:
    cells = lifetimes(FOLDER)
    weibull = {cell: fit(seen, "weibull") for cell, seen in cells.items()}
    exponential = {cell: fit(seen, "exponential") for cell, seen in cells.items()}
    assert np.mean([each.ks for each in weibull.values()]) == pytest.approx(0.103, abs=0.003)
    assert np.mean([each.ks for each in exponential.values()]) == pytest.approx(0.245, abs=0.001)
    assert [cell for cell, each in weibull.items() if each.degenerate] == [("K80", "us-east1")]
    assert choose(cells["K80", "us-east1"]).provenance.law == "empirical"
    assert weibull["K80", "us-central1"].scale_s / 3600.0 == pytest.approx(32.6, abs=0.1)
    assert weibull["P100", "us-west1"].shape == pytest.approx(0.54, abs=0.01)


GOLDEN = [
    ("K80", "us-central1", 1, 0.9998, 3894, 4595, 3617.7, 3641, 0.436),
    ("K80", "us-central1", 8, 0.964, 36218, 52889, 28853.7, 28924, 1.303),
    ("K80", "europe-west1", 1, 0.966, 5258, 9130, 3679.4, 3765, 1.949),
    ("P100", "us-west1", 1, 0.995, 4132, 5048, 3629.6, 3682, 0.731),
    ("P100", "us-west1", 8, 0.758, 44103, np.inf, 28913.7, 29006, 2.758),
]


@pytest.mark.parametrize(("gpu", "region", "hours", "finish", "mean", "p90", "with_mean", "with_p90", "losses"), GOLDEN)
def test_golden_cases_are_met(
    gpu: str,
    region: str,
    hours: int,
    finish: float,
    mean: float,
    p90: float,
    with_mean: float,
    with_p90: float,
    losses: float,
) -> None:
    law = empirical(lifetimes(FOLDER)[gpu, region])
    plain, replaced = (
        Job(
            steps=4 * 3600.0 * hours,
            groups=(Group(count=4, lifetime=law, replacement_s=delays),),
            speeds=np.arange(5.0),
        )
        for delays in ((), (165.0,))
    )
    one, two, fixed = simulate(plain, runs=60_000), simulate(replaced, runs=60_000), expect(replaced)
    assert 1.0 - one.p_failure == pytest.approx(finish, abs=0.005)
    assert one.time_s.mean == pytest.approx(mean, rel=0.005)
    assert one.time_s.p90 == pytest.approx(p90, rel=0.01)
    assert two.time_s.mean == pytest.approx(with_mean, rel=0.005)
    assert two.time_s.p90 == pytest.approx(with_p90, rel=0.01)
    assert two.expected_losses == pytest.approx(losses, rel=0.02)
    assert fixed.time_s == pytest.approx(two.time_s.mean, rel=0.002)
    assert fixed.losses == pytest.approx(two.expected_losses, rel=0.02)


def test_lifetimes_of_another_campaign_mislead_and_the_answer_says_so() -> None:
    seen = lifetimes(FOLDER)["K80", "us-east1"]
    law = empirical(seen)
    job = Job(
        steps=4 * 3513.0,
        groups=(Group(count=4, lifetime=law),),
        speeds=np.arange(5.0),
        chief=ChiefLoss(policy="fail"),
    )
    outcome = simulate(job)
    assert outcome.p_failure > 0.4  # one of 32 was seen
    assert outcome.time_s.p90 == np.inf
    assert any(
        "may not hold elsewhere" in said.message
        for said in law.provenance.warnings(device="K80", place="GCP us-east1-c")
    )


def test_saves_of_a_model_left_out_are_told_within_seven_percent() -> None:
    split, total = left_out_saves(FOLDER)
    assert np.abs(split).mean() < 0.06
    assert np.abs(total).mean() < 0.08


def test_switch_points_are_told_and_feasible_ones_are_data() -> None:
    synchronous_s, asynchronous_s, times, points = switch_runs(FOLDER)
    shares, seen = np.array(list(times)), np.array(list(times.values()))
    errors = hybrid_s(shares, synchronous_s=synchronous_s, asynchronous_s=asynchronous_s) / seen - 1.0
    assert len(times) == 9
    assert np.abs(errors).mean() < 0.02
    assert np.abs(errors).max() < 0.051
    assert feasible(points, least_accuracy=0.912) == (0.04, 0.05, 0.1, 0.15, 0.25, 0.5)


def test_shared_servers_are_told_from_two_runs_or_from_another_device() -> None:
    table = data_path("measurements", "cmdare_async_ps.csv")
    errors = left_out_speeds(table)
    for job in ("ResNet-15/P100/1ps", "Shake-Shake-Big/P100/1ps", "Shake-Shake-Big/P100/2ps"):
        assert errors[job] <= 0.1
    for model in ("ResNet-15", "Shake-Shake-Big"):
        assert errors[f"{model}/K80/1ps, capacity of P100"] <= 0.05


def test_the_plan_spends_no_more_than_any_fixed_rule_and_is_never_late() -> None:
    found = policy_ratios(FOLDER, 200, learned="both")
    ratios = []
    for _, _, cost, late in found:
        assert late == 0.0
        ratios.append(cost["planned"] / min(value for rule, value in cost.items() if rule != "planned"))
    assert np.mean(ratios) <= 0.96
    assert np.max(ratios) <= 1.02


def test_the_estimator_plays_the_same_rules_on_recorded_availability() -> None:
    records = {name: (grain, record) for _, name, grain, record in availability(FOLDER)}
    ratios = []
    for grain, record in records.values():
        needed = max(1, int(record.instances.max()) // 2)
        question = OnDemandQuestion(
            work_s=24 * 3600.0,
            deadline_s=36 * 3600.0,
            switch_s=360.0,
            spot_per_h=0.3,
            on_demand_per_h=1.0,
            availability=stated(record),
            learned_from=tuple(stated(other) for _, other in records.values() if other is not record),
            nodes_needed=needed,
            tick_s=grain * max(1, round(600.0 / grain)),
            starts=100,
        )
        found = TransientEstimator().play(question, CompletionTerms())
        costs = {rule.rule: rule.cost_mean for rule in reversed(found.rules)}
        assert all(rule.late_ratio == 0.0 for rule in found.rules)
        ratios.append(costs.pop("planned") / min(costs.values()))
    assert np.mean(ratios) <= 1.02


def stated(record: Availability) -> AvailabilityRecord:
    """A record as a question states it."""
    since, nodes = tuple(record.since_s.tolist()), tuple(record.instances.tolist())
    return AvailabilityRecord(since_s=since, nodes=nodes, length_s=record.length_s)


def test_the_estimator_tells_switch_points() -> None:
    synchronous_s, asynchronous_s, times, _ = switch_runs(FOLDER)
    question = HybridTimes(synchronous_s=synchronous_s, asynchronous_s=asynchronous_s, fractions=tuple(times))
    told = np.array([point.time_s for point in TransientEstimator().switch(question).points])
    assert np.abs(told / np.array(list(times.values())) - 1.0).mean() < 0.02
