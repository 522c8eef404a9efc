"""Questions about offers as the job's mathematics: laws, records, saves, means alone, what is refused."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from measurements import DATA

from nodewise.domain.budget import Budget
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.plugin import (
    AvailabilityLaw,
    AvailabilityRecord,
    ChiefLoss,
    Completion,
    CompletionCase,
    CompletionCheckpoints,
    CompletionGroup,
    CompletionOffer,
    CompletionTerms,
    EmpiricalLifetimes,
    ExponentialLifetimes,
    FleetRecord,
    HybridRun,
    HybridTimes,
    KnownRevocations,
    LifetimeFamily,
    LifetimeLaw,
    LifetimeOrigin,
    LossReaction,
    NamedLifetimes,
    NodePrices,
    NodeReplacement,
    ObservedLifetimes,
    OnDemandQuestion,
    SavedBytes,
    WeibullLifetimes,
    best_interval_s,
    expected_run_s,
)
from nodewise_transient.plugin import nodewise_estimators
from nodewise_transient.shipped_laws import shipped_names, shipped_of
from transient_tables import lifetimes, spot_runs

FOLDER = DATA / "transient"

(RECORD,) = nodewise_estimators()
ESTIMATOR: Any = RECORD.estimator
TERMS = CompletionTerms(runs=4000)
NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC).timestamp()


def group(nodes: int = 4, law: Any = None, **others: Any) -> CompletionGroup:
    lifetime = law if isinstance(law, LifetimeLaw) else LifetimeLaw(law=law)
    return CompletionGroup(device="K80", nodes=nodes, spot=True, region="us-east1", lifetime=lifetime, **others)


def case(*groups: CompletionGroup, samples: float = 14_400.0, **offer: Any) -> CompletionCase:
    offered = CompletionOffer(groups=groups, **{"reaction": LossReaction.CONTINUE, **offer})
    shape = tuple(capacity + 1 for capacity in offered.capacities)
    return CompletionCase(offer=offered, samples=samples, speeds=np.indices(shape).sum(axis=0).astype(np.float64))


def completed(*groups: CompletionGroup, terms: CompletionTerms = TERMS, **offer: Any) -> Completion:
    found: Completion = ESTIMATOR.complete(case(*groups, **offer), terms)
    return found


def reasons(found: Completion) -> set[str]:
    return {notice.reason for notice in found.warnings}


def test_known_revocations_are_replayed() -> None:
    found = completed(group(law=KnownRevocations(times_s=(1800.0,))))
    # 4/s for 1,800 s, 3/s for the 7,200 that are left.
    assert found.time_s.mean == pytest.approx(4200.0)
    assert found.time_s.p99 == pytest.approx(4200.0)
    assert (found.revocations_mean, found.failure_probability) == (1.0, 0.0)
    assert found.lifetimes[0].law == "trace"


@pytest.mark.data
def test_recorded_runs_are_told_within_a_percent_by_the_estimator() -> None:
    runs = spot_runs(FOLDER)
    clean = [run for run in runs if not run.revoked.any()]
    offset_s = np.mean([run.uptimes_s.max() - run.duration_s for run in clean])
    speed = 64_000.0 / np.mean([run.duration_s for run in clean]) / 4.0
    errors = []
    for run in runs:
        if run.revoked.any():
            times = tuple((run.uptimes_s[run.revoked > 0.0] - offset_s).tolist())
            asked = case(group(law=KnownRevocations(times_s=times)), samples=64_000.0)
            found = ESTIMATOR.complete(replace(asked, speeds=speed * np.arange(5.0)), TERMS)
            errors.append(abs(found.time_s.mean / run.duration_s - 1.0))
    assert len(errors) == 10
    assert np.mean(errors) < 0.01


@pytest.mark.data
def test_what_is_shipped_is_what_was_published() -> None:
    published = lifetimes(FOLDER)
    assert set(shipped_names()) == {f"cm-dare/{gpu}/{region}" for gpu, region in published}
    for (gpu, region), seen in published.items():
        own = shipped_of(f"cm-dare/{gpu}/{region}")
        assert own is not None
        assert own.machines == seen.machines
        np.testing.assert_allclose(own.revoked, seen.revoked, atol=1e-6)


def test_jobs_that_wait_for_all_take_what_daly_says() -> None:
    mean_s, restart_s, save_s = 20_000.0, 60.0, 20.0
    law = ExponentialLifetimes(mean_s=4 * mean_s)
    nodes = group(law=law, replacement=NodeReplacement(delays_s=(0.0,)))
    saves = CompletionCheckpoints(seconds=save_s, interval_s=900.0)
    offer = {"reaction": LossReaction.RESTART, "restart_s": restart_s, "checkpoints": saves, "samples": 4 * 36_000.0}
    found = completed(nodes, terms=replace(TERMS, runs=20_000), **offer)
    told = completed(nodes, terms=replace(TERMS, simulates=False), **offer)
    closed = float(expected_run_s(36_000.0, 900.0, save_s, restart_s, mean_s))
    assert found.time_s.mean == pytest.approx(closed, rel=0.01)
    assert told.time_s.mean == pytest.approx(closed, rel=0.01)
    chosen = completed(nodes, **{**offer, "checkpoints": CompletionCheckpoints(seconds=save_s)})
    assert chosen.checkpoints is not None
    assert chosen.checkpoints.chosen
    best = float(best_interval_s(save_s, mean_s))
    closed_best = float(expected_run_s(36_000.0, best, save_s, restart_s, mean_s))
    assert chosen.time_s.mean == pytest.approx(closed_best, rel=0.01)
    assert chosen.checkpoints.young_interval_s == pytest.approx(np.sqrt(2 * save_s * mean_s), rel=0.1)
    deterministic = completed(
        nodes, terms=replace(TERMS, simulates=False), **{**offer, "checkpoints": CompletionCheckpoints(seconds=save_s)}
    )
    assert deterministic.checkpoints is not None
    assert deterministic.checkpoints.interval_s == pytest.approx(best, rel=0.1)


def test_where_nothing_goes_back_to_a_save_the_last_is_enough() -> None:
    nodes = group(law=ExponentialLifetimes(mean_s=50_000.0), replacement=NodeReplacement(delays_s=(60.0,)))
    found = completed(nodes, checkpoints=CompletionCheckpoints(seconds=10.0))
    assert found.checkpoints is not None
    assert found.checkpoints.interval_s == pytest.approx(3600.0)
    assert found.checkpoints.young_interval_s is None
    chief = completed(nodes, checkpoints=CompletionCheckpoints(seconds=10.0), chief_loss=ChiefLoss.ROLLBACK)
    assert chief.checkpoints is not None
    assert chief.checkpoints.interval_s < 3600.0
    assert chief.checkpoints.young_interval_s is not None


def test_cost_and_time_have_intervals_of_their_own() -> None:
    """Waiting for a machine costs time alone, so that saves are worth more where time counts and lives do age."""
    nodes = group(
        law=WeibullLifetimes(scale_s=20_000.0, shape=3.0),
        price_per_h=1.0,
        replacement=NodeReplacement(delays_s=(3000.0,)),
    )
    offer = {"reaction": LossReaction.RESTART, "checkpoints": CompletionCheckpoints(seconds=200.0)}
    time_, cost = (
        completed(nodes, terms=replace(TERMS, saves_cost=saves_cost), samples=4 * 80_000.0, **offer)
        for saves_cost in (False, True)
    )
    assert time_.time_s.mean <= cost.time_s.mean * 1.001  # type: ignore[operator]  # both are done
    assert cost.cost.mean <= time_.cost.mean * 1.001  # type: ignore[operator]


def test_recorded_availability_shrinks_and_grows_an_elastic_job() -> None:
    record = AvailabilityRecord(since_s=(0.0, 1000.0, 2000.0), nodes=(2, 4, 1), length_s=20_000.0)
    found = completed(group(law=record), reaction=LossReaction.ELASTIC, restart_s=0.0, samples=8000.0)
    assert found.time_s.mean == pytest.approx(4000.0)
    assert "RECORD_ENDS" in reasons(found)
    stalled = completed(group(law=record), reaction=LossReaction.ELASTIC, restart_s=100.0, samples=8000.0)
    assert stalled.time_s.mean == pytest.approx(4000.0 + 400.0 + 100.0)
    short = completed(group(law=replace(record, length_s=3000.0)), reaction=LossReaction.ELASTIC, samples=8000.0)
    assert short.failure_probability == 1.0
    assert short.time_s.mean is None
    told = completed(group(law=record), terms=replace(TERMS, simulates=False), samples=8000.0)
    assert told.time_s.mean == pytest.approx(4000.0)
    assert told.failure_probability is None


def test_lifetimes_are_told_by_where_they_are_from() -> None:
    shipped = completed(
        group(law=NamedLifetimes(name="cm-dare/K80/us-central1")), terms=replace(TERMS, now_s=NEW_YEAR, runs=100)
    )
    basis = shipped.lifetimes[0]
    assert (basis.machines, basis.law, basis.region, basis.device) == (48, "empirical", "us-central1", "K80")
    assert {"LIFETIMES_ELSEWHERE", "LIFETIMES_STALE", "LIFETIMES_FEW"} <= reasons(shipped)
    weibull = completed(
        group(law=LifetimeLaw(law=NamedLifetimes(name="cm-dare/K80/us-central1"), family=LifetimeFamily.WEIBULL)),
        terms=replace(TERMS, runs=100),
    )
    assert weibull.lifetimes[0].ks_distance == pytest.approx(0.108, abs=0.005)
    assert "YOUNG_ARE_LOST_FIRST" in reasons(weibull)
    flat = completed(
        group(law=LifetimeLaw(law=NamedLifetimes(name="cm-dare/K80/us-east1"), family=LifetimeFamily.WEIBULL)),
        terms=replace(TERMS, runs=100),
    )
    assert flat.lifetimes[0].law == "empirical"
    assert any("degenerate" in notice.message for notice in flat.warnings)
    here = completed(
        group(
            law=LifetimeLaw(
                law=ObservedLifetimes(lives_s=(3600.0, 7200.0, 9000.0), revoked=(True, True, False)),
                origin=LifetimeOrigin(name="ours", device="k80", region="us-east1", measured_time=NEW_YEAR),
            )
        ),
        terms=replace(TERMS, now_s=NEW_YEAR + 86_400.0, runs=100),
    )
    assert reasons(here) == {"LIFETIMES_FEW", "LIFETIMES_EXTENDED"}
    stated = completed(group(law=ExponentialLifetimes(mean_s=1e5)), terms=replace(TERMS, runs=100))
    assert not reasons(stated)


def test_a_fleet_and_a_table_of_shares_are_lifetimes() -> None:
    fleet = FleetRecord(
        times_s=(0.0, 0.0, 3600.0, 7200.0), added=(True, True, False, False), nodes=("a", "b", "a", "b")
    )
    found = completed(group(law=fleet))
    assert found.lifetimes[0].machines == 2
    table = EmpiricalLifetimes(ages_s=(3600.0, 86_400.0), revoked=(0.5, 0.6))
    empirical = completed(group(law=table))
    assert empirical.lifetimes[0].law == "empirical"
    exponential = completed(group(law=LifetimeLaw(law=table, family=LifetimeFamily.EXPONENTIAL)))
    assert exponential.lifetimes[0].ks_distance is not None


def test_saves_are_told_by_measured_ones() -> None:
    saved = SavedBytes(weights_bytes=100e6, measured_s=(3.85, 5.65, 7.65), measured_weights_bytes=(10e6, 100e6, 200e6))
    found = completed(group(law=KnownRevocations()), checkpoints=CompletionCheckpoints(seconds=saved))
    assert found.checkpoints is not None
    assert found.checkpoints.seconds == pytest.approx(5.65, rel=0.01)
    below = replace(
        saved, weights_bytes=0.0, measured_s=(1.0, 10.0, 19.0), measured_weights_bytes=(100e6, 190e6, 280e6)
    )
    with pytest.raises(NodewiseError) as caught:
        completed(group(law=KnownRevocations()), checkpoints=CompletionCheckpoints(seconds=below))
    assert caught.value.reason == Reason.EVIDENCE_MISSING


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (group(law=None), "need a lifetime"),
        (group(law=NamedLifetimes(name="mine")), "lifetime law 'mine' is not known"),
        (group(law=ObservedLifetimes(lives_s=(10.0, 20.0), revoked=(False, False))), "no revocation was observed"),
        (group(law=NamedLifetimes(name="cm-dare/K80/us-east1"), ages_s=(90_000.0,)), "no node reaches 90000 s"),
    ],
)
def test_what_cannot_be_told_is_refused(asked: CompletionGroup, words: str) -> None:
    with pytest.raises(NodewiseError) as caught:
        completed(asked)
    assert words in caught.value.message


def test_means_alone_refuse_what_has_no_closed_form() -> None:
    alone = replace(TERMS, simulates=False)
    law, after = ExponentialLifetimes(mean_s=50_000.0), NodeReplacement(delays_s=(60.0,))
    found = completed(group(law=law, replacement=after), terms=alone)
    assert found.time_s.p90 is None
    assert found.time_s.mean == pytest.approx(completed(group(law=law, replacement=after)).time_s.mean, rel=0.005)
    moving = (group(law=law, replacement=replace(after, joins="firm")), CompletionGroup(name="firm", nodes=0))
    priced = group(law=law, replacement=after, prices=NodePrices(since_s=(0.0, 10.0), per_h=(1.0, 2.0)))
    for groups, offer in (
        (moving, {}),
        ((priced,), {}),
        ((group(law=law, replacement=after),), {"burst_probability": 0.5, "burst_others": 1}),
    ):
        with pytest.raises(NodewiseError, match="set method to MONTE_CARLO"):
            completed(*groups, terms=alone, **offer)
    doubtful = completed(group(law=ExponentialLifetimes(mean_s=5000.0)), terms=alone)
    assert "MEAN_IS_DOUBTFUL" in reasons(doubtful)


def test_work_ends_when_nobody_waits() -> None:
    budget = Budget()
    budget.end()
    with pytest.raises(NodewiseError) as caught:
        completed(group(law=ExponentialLifetimes(mean_s=5000.0)), terms=replace(TERMS, budget=budget))
    assert caught.value.reason == Reason.DEADLINE_EXCEEDED


def test_rules_are_played_against_records_and_laws() -> None:
    law = AvailabilityLaw(available_mean_s=7200.0, unavailable_mean_s=7200.0)
    asked = OnDemandQuestion(
        work_s=20_000.0, deadline_s=40_000.0, switch_s=300.0, spot_per_h=1.0, on_demand_per_h=3.0, availability=law
    )
    found = ESTIMATOR.play(asked, TERMS)
    assert found == ESTIMATOR.play(asked, TERMS)
    assert {rule.rule for rule in found.rules} == {"on-demand", "greedy", "uniform-progress", "timed", "planned"}
    assert found.rule == "planned"
    assert all(rule.late_ratio == 0.0 for rule in found.rules)
    assert found.latest_switch_s == pytest.approx(19_700.0)
    alone = next(rule for rule in found.rules if rule.rule == "on-demand")
    assert alone.cost_mean == pytest.approx(3.0 * 20_300.0 / 3600.0)
    always = AvailabilityRecord(since_s=(0.0,), nodes=(4,), length_s=400_000.0)
    spot = ESTIMATOR.play(replace(asked, availability=always, nodes_needed=4), TERMS)
    assert spot.available_ratio == 1.0
    assert spot.rules[0].cost_ratio == pytest.approx(1.0 / 3.0)
    other = ESTIMATOR.play(replace(asked, learned_from=(always,)), TERMS)
    assert other.rules[0].cost_mean <= found.rules[-1].cost_mean


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"deadline_s": 20_000.0}, "cannot be met"),
        ({"availability": AvailabilityRecord(since_s=(0.0,), nodes=(1,), length_s=50_000.0)}, "must be longer than"),
        ({"availability": AvailabilityRecord(since_s=(0.0,), nodes=(1,), length_s=1e10)}, "longer tick_seconds"),
        ({"availability": AvailabilityLaw(available_mean_s=1e9, unavailable_mean_s=1e9)}, "longer tick_seconds"),
        (
            {"tick_s": 5.0, "work_s": 100_000.0, "deadline_s": 300_000.0},
            "set a longer tick_seconds",
        ),
    ],
)
def test_rules_that_cannot_be_played_are_refused(changes: dict[str, Any], words: str) -> None:
    law = AvailabilityLaw(available_mean_s=7200.0, unavailable_mean_s=7200.0)
    asked = OnDemandQuestion(
        work_s=20_000.0, deadline_s=40_000.0, switch_s=300.0, spot_per_h=1.0, on_demand_per_h=3.0, availability=law
    )
    with pytest.raises(NodewiseError, match=words):
        ESTIMATOR.play(replace(asked, **changes), TERMS)


def test_switch_points_are_told_with_what_runs_have_shown() -> None:
    runs = tuple(HybridRun(fraction=f, accuracy=a) for f, a in ((0.02, 0.90), (0.05, 0.92), (0.25, 0.92)))
    asked = HybridTimes(
        synchronous_s=10_000.0,
        asynchronous_s=1000.0,
        switch_s=100.0,
        fractions=(0.0, 0.05, 1.0),
        deadline_s=2900.0,
        runs=runs,
        least_accuracy=0.91,
    )
    found = ESTIMATOR.switch(asked)
    assert [point.time_s for point in found.points] == pytest.approx([1000.0, 1550.0, 10_000.0])
    assert [point.in_time for point in found.points] == [True, True, False]
    assert found.points[1].measured_accuracy == 0.92
    assert found.latest_fraction == pytest.approx(0.2)
    assert (found.feasible_fractions, found.chosen_fraction) == ((0.05, 0.25), 0.05)
    assert found.next_fraction == pytest.approx(0.035)
    assert ESTIMATOR.switch(replace(asked, deadline_s=500.0)).latest_fraction is None
    assert ESTIMATOR.switch(replace(asked, deadline_s=1050.0)).latest_fraction == 0.0
    assert ESTIMATOR.switch(replace(asked, deadline_s=20_000.0)).latest_fraction == 1.0
    assert not found.straggler_policies


def test_slow_workers_are_waited_for_or_dropped() -> None:
    asked = HybridTimes(synchronous_s=8000.0, asynchronous_s=1000.0, slowdowns=(1.0, 1.0, 1.0, 4.0))
    found = ESTIMATOR.switch(asked)
    assert found.synchronous_s == pytest.approx(32_000.0)
    assert found.asynchronous_s == pytest.approx(1000.0 / (3.25 / 4.0))
    policies = {(each.policy, each.dropped): (each.time_s, each.batch_ratio) for each in found.straggler_policies}
    assert policies["drop", 1] == pytest.approx((8000.0 * 4.0 / 3.0, 0.75))
    assert policies["wait", 0] == pytest.approx((32_000.0, 1.0))


def test_throughput_is_refused_in_words() -> None:
    assert not RECORD.predicts
    refusal = ESTIMATOR.assess(None, None).refusal
    assert "nodewise spot" in refusal.message
    with pytest.raises(NodewiseError):
        ESTIMATOR.fit(None, None)
