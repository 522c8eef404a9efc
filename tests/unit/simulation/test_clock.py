"""Events and rounds, on cases that can be done by hand."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable

import pytest
from simulations import POLICIES, completions, job, pools, record, run, straight

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.schedule import Allocation, ClusterState, Curves, Grant
from nodewise.plugin import Budget
from nodewise.scheduling.simulation.core import CHECK_EVERY, Progress, simulate
from nodewise.scheduling.simulation.jobs import JobCurve
from nodewise.scheduling.simulation.settings import Clock, SimulationSettings


class Deciding:
    """A policy from a function of the state; keeps what it saw."""

    def __init__(self, rule: Callable[[ClusterState], list[Grant]]) -> None:
        self._rule = rule
        self.times: list[float] = []
        self.left: list[dict[str, float]] = []

    def decide(self, state: ClusterState, curves: Curves, budget: Budget) -> Allocation:
        self.times.append(state.now_s)
        self.left.append({each.job_id: each.remaining_samples for each in state.jobs})
        return Allocation(grants=tuple(self._rule(state)))


def all_to_first(state: ClusterState) -> list[Grant]:
    return [Grant(1, 0) if not index else Grant(0) for index, _ in enumerate(state.jobs)]


def test_events_hand_devices_over_at_once() -> None:
    result = run([job("a", 0.0, 100.0), job("b", 10.0, 50.0)])
    assert completions(result) == {"a": 100.0, "b": 150.0}
    assert result.per_job.waiting_s.tolist() == [0.0, 90.0]
    assert result.makespan_s == 150.0
    assert result.utilisation == 1.0
    assert result.decisions == 4


def test_fixed_rounds_time_completions_and_hand_devices_over_at_the_end() -> None:
    jobs = [job("a", 0.0, 100.0), job("b", 10.0, 50.0)]
    result = run(jobs, clock=Clock.FIXED_ROUNDS, round_s=60.0)
    assert completions(result) == {"a": 100.0, "b": 170.0}


def test_fixed_rounds_see_arrivals_at_the_next_multiple() -> None:
    result = run([job("a", 70.0, 10.0)], clock=Clock.FIXED_ROUNDS, round_s=60.0)
    assert completions(result) == {"a": 130.0}


def test_drained_rounds_end_with_the_last_part_in_whole_steps() -> None:
    # a does 7 samples/s: steps of 100 samples, so 25 of them in 360 s, which take 357.14 s; b is done after 100 s.
    curve = JobCurve.of({(0, 1): 7.0})
    jobs = [
        job("a", 0.0, 3000.0, curve, samples_per_step=100.0),
        job("b", 0.0, 100.0),
        job("c", 50.0, 10.0),
    ]
    result = run(jobs, (2,), clock=Clock.DRAINED_ROUNDS, round_s=360.0)
    first = 2500.0 / 7.0
    assert completions(result) == pytest.approx({"a": first + 500.0 / 7.0, "b": 100.0, "c": first + 10.0})


def test_a_step_longer_than_a_round_is_done_nevertheless() -> None:
    result = run([job("a", 0.0, 1000.0, samples_per_step=500.0)], clock=Clock.DRAINED_ROUNDS, round_s=360.0)
    assert completions(result) == {"a": 1000.0}


def test_policies_see_progress_and_service() -> None:
    policy = Deciding(all_to_first)
    run([job("a", 0.0, 100.0)], policy=policy, clock=Clock.FIXED_ROUNDS, round_s=60.0)
    assert policy.times == [0.0, 60.0, 120.0]
    assert policy.left[:2] == [{"a": 100.0}, {"a": 40.0}]


def test_changes_alone_ask_the_policy() -> None:
    policy = Deciding(all_to_first)
    jobs = [job("a", 0.0, 500.0), job("b", 100.0, 500.0)]
    run(jobs, policy=policy, clock=Clock.FIXED_ROUNDS, round_s=60.0, on_changes_only=True)
    assert policy.times == [0.0, 120.0, 540.0, 1080.0]


def test_a_minimum_interval_delays_decisions() -> None:
    policy = Deciding(lambda state: [Grant(1, 0) for _ in state.jobs])
    jobs = [job("a", 0.0, 100.0), job("b", 10.0, 50.0)]
    result = run(jobs, (2,), policy, minimum_decision_interval_s=70.0)
    assert completions(result) == {"a": 100.0, "b": 120.0}


def test_restarts_cost_time_and_are_counted() -> None:
    def swap(state: ClusterState) -> list[Grant]:
        return [Grant(1 if state.now_s < 60.0 else 2, 0) for _ in state.jobs]

    result = run(
        [job("a", 0.0, 200.0, straight(2))],
        (2,),
        Deciding(swap),
        clock=Clock.FIXED_ROUNDS,
        round_s=60.0,
        restart_cost_s=30.0,
        first_start_cost_s=10.0,
    )
    # 10 s to start, 50 samples until 60 s; 30 s of restart; 150 samples at 2 per second.
    assert completions(result) == {"a": 165.0}
    assert result.per_job.restarts.tolist() == [1]
    assert result.restart_device_s == 10.0 + 2 * 30.0


def test_the_load_divides_gaps_and_moves_deadlines() -> None:
    jobs = [job("a", 100.0, 10.0), job("b", 200.0, 10.0, deadline_s=211.0)]
    result = run(jobs, load=2.0)
    assert result.per_job.arrival_s.tolist() == [100.0, 150.0]
    assert (result.deadlines, result.deadlines_missed) == (1, 0)


def test_jobs_that_can_never_run_block_nobody() -> None:
    jobs = [job("none", 0.0, 10.0, JobCurve.of({})), job("large", 0.0, 10.0, straight(4), requested_devices=4)]
    result = run([*jobs, job("a", 1.0, 10.0)], (2,))
    assert (result.jobs, result.finished) == (3, 1)
    assert completions(result) == {"a": 11.0}


def test_nothing_to_simulate() -> None:
    summary = run([]).summary()
    assert (summary["jobs"], summary["average_jct_s"], summary["utilisation"]) == (0, None, None)


def test_servers_take_devices_too() -> None:
    jobs = [job("a", 0.0, 10.0, server_devices=1), job("b", 0.0, 10.0, server_devices=1)]
    assert completions(run(jobs, (3,))) == {"a": 10.0, "b": 20.0}


def test_quotas_hold() -> None:
    jobs = [job("a", 0.0, 10.0, queue="q"), job("b", 0.0, 10.0, queue="q"), job("c", 0.0, 10.0)]
    assert completions(run(jobs, (3,), quotas={"q": 1})) == {"a": 10.0, "b": 20.0, "c": 10.0}


@pytest.mark.parametrize(
    ("grant", "said"),
    [(Grant(3, 0), "not on its curve"), (Grant(2, 0), "than it has free"), (Grant(1, 1), "not on its curve")],
)
def test_what_a_policy_must_not_grant(grant: Grant, said: str) -> None:
    jobs = [job("a", 0.0, 10.0, straight(2)), job("b", 0.0, 10.0, straight(2))]
    with pytest.raises(NodewiseError, match=said) as caught:
        run(jobs, (2,), Deciding(lambda state: [grant for _ in state.jobs]))
    assert caught.value.reason is Reason.POLICY_INVALID_RESULT


def test_a_policy_may_not_exceed_a_quota() -> None:
    policy = Deciding(lambda state: [Grant(1, 0) for _ in state.jobs])
    jobs = [job(name, 0.0, 10.0, queue="q") for name in "ab"]
    with pytest.raises(NodewiseError, match="quota"):
        run(jobs, (2,), policy, quotas={"q": 1})


def test_a_policy_that_fails_is_named() -> None:
    def fails(_: ClusterState) -> list[Grant]:
        raise RuntimeError("secret")

    with pytest.raises(NodewiseError, match=r"'under-test' 1 of tests 1\.0 failed in decide") as caught:
        run([job("a", 0.0, 10.0)], policy=Deciding(fails))
    assert caught.value.reason is Reason.POLICY_FAILED


def test_wrong_numbers_of_grants_are_refused() -> None:
    with pytest.raises(NodewiseError, match="grants must have one entry per job, 1 in all"):
        run([job("a", 0.0, 10.0)], policy=Deciding(lambda _: []))


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"round_s": 0.0}, "round_s"),
        ({"load": float("inf")}, "load"),
        ({"restart_cost_s": -1.0}, "restart_cost_s"),
        ({"parameters": {"speed": 1.0}}, "parameters[speed]"),
        ({"parameters": {"backfill": 7.0}}, "parameters[backfill]"),
        ({"quotas": {"q": -1}}, "quotas[q]"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, object], field: str) -> None:
    with pytest.raises(NodewiseError) as caught:
        run([job("a", 0.0, 10.0)], **settings)
    assert caught.value.violations[0].field == field


@pytest.mark.parametrize(
    ("second", "field"),
    [
        (job("b", 1.0, 10.0), "jobs[1].arrival_s"),
        (job("b", 2.0, 0.0), "jobs[1].samples"),
        (job("b", 2.0, 1.0, weight=0.0), "jobs[1].weight"),
        (job("b", 2.0, 1.0, straight(1, pool=3)), "jobs[1].curve.pool"),
    ],
)
def test_jobs_that_cannot_be(second: object, field: str) -> None:
    with pytest.raises(NodewiseError) as caught:
        run([job("a", 2.0, 10.0), second])  # type: ignore[list-item]
    assert caught.value.violations[0].field == field


class Ends:
    """A budget of so many looks."""

    def __init__(self, looks: int) -> None:
        self.looks = looks

    def remaining_s(self) -> float:
        self.looks -= 1
        return 1.0 if self.looks >= 0 else 0.0


def test_a_budget_ends_a_simulation_early() -> None:
    policy = record(Deciding(all_to_first))
    jobs = (job(f"{number:04d}", float(number), 0.5) for number in range(5_000))
    seen: list[Progress] = []
    result = simulate(jobs, pools(1), policy, SimulationSettings(), budget=Ends(2), progress=seen.append)
    assert not result.complete
    assert 0 < result.finished < 5_000
    assert len(seen) == 3
    assert seen[-1].arrived <= 3 * CHECK_EVERY
    assert all(before.now_s <= after.now_s for before, after in itertools.pairwise(seen))


def test_every_shipped_policy_finishes_its_jobs() -> None:
    curve = JobCurve.of({(0, 1): 1.0, (0, 2): 1.8, (0, 4): 3.0, (1, 1): 2.0, (1, 2): 3.5})
    jobs = [job(f"j{number}", 30.0 * number, 400.0 + 50.0 * number, curve) for number in range(12)]
    for name in POLICIES:
        for clock in (Clock.FIXED_ROUNDS, Clock.DRAINED_ROUNDS):
            result = run(jobs, ([2, 2], 2), name, clock=clock, round_s=60.0, restart_cost_s=5.0)
            assert result.finished == 12, (name, clock)


def test_slow_decisions_do_not_outlast_the_budget() -> None:
    class Slow(Deciding):
        def decide(self, state: ClusterState, curves: Curves, budget: Budget) -> Allocation:
            until = time.perf_counter() + 0.02
            while time.perf_counter() < until:
                pass
            return super().decide(state, curves, budget)

    policy = Slow(all_to_first)
    jobs = [job(f"{number:04d}", float(number), 0.5) for number in range(100)]
    result = simulate(jobs, pools(1), record(policy), SimulationSettings(), budget=Ends(3))
    assert not result.complete
    assert len(policy.times) <= 4
