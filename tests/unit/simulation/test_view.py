"""What a policy is told: columns that are kept say what the jobs' states say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace

import numpy as np
import pytest
from simulations import POLICIES, job, run, straight

from nodewise.domain.schedule import Allocation, ClusterState, Curves, JobColumns, JobState, Shares
from nodewise.plugin import Budget, Policy
from nodewise.scheduling.simulation.jobs import SimulatedJob
from nodewise.scheduling.simulation.settings import Checkpoints, Clock, NodeFailures


class Comparing:
    """Another policy, asked after a look at the columns."""

    def __init__(self, policy: Policy, parameters: Mapping[str, float]) -> None:
        self._policy = policy
        self._parameters = parameters
        self.longest = self.told = 0

    def decide(self, state: ClusterState, curves: Curves, budget: Budget) -> Allocation | Shares:
        made = JobColumns.of(state.jobs)
        for each in fields(JobColumns):
            assert getattr(state.columns, each.name).tolist() == getattr(made, each.name).tolist(), each.name
        assert len(curves.offsets) == len(state.jobs) + 1
        self.told += int(made.has_run.sum() > (made.pool >= 0).sum())
        self.longest = max(self.longest, len(state.jobs))
        return self._policy.decide(replace(state, parameters=self._parameters), curves, budget)


def crowd() -> list[SimulatedJob]:
    """Jobs that wait, in twos that arrive at once, the later name first; every third has a server and a weight."""
    random = np.random.default_rng(3)
    return [
        job(
            f"{97 - number:02d}",
            10.0 * (number // 2),
            float(random.lognormal(4, 1)),
            straight(3),
            requested_devices=int(random.integers(1, 4)),
            server_devices=int(number % 3 == 0),
            weight=1.0 + number % 3,
        )
        for number in range(60)
    ]


@pytest.mark.parametrize("name", ["fifo", "las", "equal-share", "srpt", "efficiency-capped", "goodput"])
@pytest.mark.parametrize("clock", Clock)
def test_columns_that_are_kept_say_what_the_states_say(name: str, clock: Clock) -> None:
    record = POLICIES[name].record
    policy = Comparing(record.policy, {each.name: each.default for each in record.parameters})
    result = run(
        crowd(),
        ([4, 4],),
        policy,
        clock=clock,
        round_s=30.0,
        restart_cost_s=5.0,
        checkpoints=Checkpoints(interval_s=20.0, cost_s=1.0),
        failures=NodeFailures(mean_time_between_failures_s=400.0, mean_repair_s=50.0),
        seed=1,
    )
    assert result.finished == 60
    assert policy.longest > 10
    assert policy.told > 0


def test_columns_follow_a_state_with_other_jobs() -> None:
    state = JobState(
        job_id="b", remaining_samples=1.0, submit_time_s=0.0, allowed_devices=(1,), allowed_pools=(0,), weight=2.0
    )
    before = ClusterState(now_s=0.0, pools=(), jobs=(state,))
    assert before.columns.weight.tolist() == [2.0]
    after = replace(before, jobs=(state, replace(state, job_id="a")))
    assert after.columns.weight.tolist() == [2.0, 2.0]
    assert after.columns.order.tolist() == [1, 0]
