"""Jobs that share a device, in simulated time, on cases that can be done by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from simulations import ONE, POLICIES, completions, job, pools, straight

from nodewise.domain.columns import freeze
from nodewise.domain.errors import NodewiseError
from nodewise.plugin import Allocation, Budget, ClusterState, Curves, Grant
from nodewise.scheduling.simulation.core import simulate
from nodewise.scheduling.simulation.results import SimulationResult
from nodewise.scheduling.simulation.settings import (
    Checkpoints,
    Clock,
    NodeFailures,
    SimulatedSharing,
    SimulationSettings,
)


def sharing(*rows: tuple[float, ...], predicted: tuple[tuple[float, ...], ...] = ()) -> SimulatedSharing:
    """One pool; row a, column b: what a keeps beside b."""
    true = freeze(np.array(rows))
    return SimulatedSharing(shares=(true,), predicted=(freeze(np.array(predicted)) if predicted else true,))


HALVES = sharing((0.8, 0.75), (0.5, 0.6))
"""Kind 0 keeps 0.75 beside kind 1, which keeps 0.5."""


def run(jobs: list[Any], devices: int = 1, policy: str = "packing", **settings: Any) -> SimulationResult:
    stated = SimulationSettings(**{"sharing": HALVES, **settings})
    return simulate(jobs, pools(devices), POLICIES[policy], stated)


def test_two_jobs_share_a_device_and_the_one_that_is_left_speeds_up() -> None:
    """a has 30 samples and keeps 0.75, b has 60 and keeps 0.5: a ends at 40 s, b has 40 left then and ends at 80 s."""
    found = run([job("a", 0.0, 30.0, kind=0), job("b", 0.0, 60.0, kind=1)])
    assert completions(found) == pytest.approx({"a": 40.0, "b": 80.0})
    # The device is busy all the time, and counted once.
    assert found.busy_device_s == pytest.approx(80.0)
    assert found.utilisation == pytest.approx(1.0)
    alone = run([job("a", 0.0, 30.0, kind=0), job("b", 0.0, 60.0, kind=1)], parameters={"pack": 0.0})
    assert completions(alone) == pytest.approx({"a": 30.0, "b": 90.0})


def test_who_comes_later_slows_down_who_runs_and_takes_over_the_device() -> None:
    """a alone for 10 s, then beside b: 20 left at 0.75 end at 10 + 26.67; b has done 13.33 of 20 and ends alone."""
    found = run([job("a", 0.0, 30.0, kind=0), job("b", 10.0, 20.0, kind=1)])
    together_s = 20.0 / 0.75
    assert completions(found) == pytest.approx(
        {"a": 10.0 + together_s, "b": 10.0 + together_s + 20.0 - 0.5 * together_s}
    )
    assert found.per_job.restarts.tolist() == [0, 0]


def test_a_device_that_becomes_free_parts_a_pair() -> None:
    """b ends on the second device at 10 s; c leaves a, with 5 s of restart, since that costs less than it gains."""
    jobs = [
        job("a", 0.0, 100.0, kind=0),
        job("b", 0.0, 10.0, kind=-1),
        job("c", 0.0, 100.0, kind=1),
    ]
    found = run(jobs, 2, restart_cost_s=5.0)
    # c ran 10 s at 0.5, then restarts for 5 s; a ran 10 s at 0.75.
    assert completions(found) == pytest.approx({"a": 10.0 + 92.5, "c": 10.0 + 5.0 + 95.0, "b": 10.0})
    stays = run(jobs, 2, restart_cost_s=200.0)
    # Parting would cost c 200 s, more than it gains: a ends beside it, then b is alone.
    together_s = 100.0 / 0.75
    assert completions(stays)["a"] == pytest.approx(together_s)
    assert completions(stays)["c"] == pytest.approx(together_s + 100.0 - 0.5 * together_s)


def test_a_restart_goes_on_where_the_partner_leaves_meanwhile() -> None:
    """b starts beside a with 20 s to start; a ends at 10 s, and b's start is not begun anew."""
    found = run([job("a", 0.0, 10.0, kind=0), job("b", 0.0, 10.0, kind=1)], first_start_cost_s=20.0)
    # Both start for 20 s; a computes at 0.75 for 13.33 s; b has done 6.67 then and ends 3.33 s later.
    assert completions(found) == pytest.approx({"a": 20.0 + 10 / 0.75, "b": 20.0 + 10 / 0.75 + 10 - 5 / 0.75})


def test_pairs_share_only_where_the_total_is_above_the_least() -> None:
    jobs = [job("a", 0.0, 30.0, kind=0), job("b", 0.0, 60.0, kind=1)]
    assert completions(run(jobs, parameters={"least_total": 1.25})) == pytest.approx({"a": 30.0, "b": 90.0})
    assert completions(run(jobs, parameters={"least_share": 0.6})) == pytest.approx({"a": 30.0, "b": 90.0})


def test_the_policy_sees_predicted_shares_and_jobs_run_at_true_ones() -> None:
    wrong = sharing((0.8, 0.4), (0.4, 0.6), predicted=((0.8, 0.75), (0.5, 0.6)))
    found = run([job("a", 0.0, 30.0, kind=0), job("b", 0.0, 30.0, kind=1)], sharing=wrong)
    assert completions(found) == pytest.approx({"a": 75.0, "b": 75.0})


def test_other_policies_give_every_job_its_own_device_as_before() -> None:
    jobs = [job(f"{n}", 3.0 * n, 20.0 + n, kind=n % 2) for n in range(9)]
    for policy in ("fifo", "srpt", "las", "equal-share", "max-min-fairness-aware"):
        rounds = {"clock": Clock.FIXED_ROUNDS, "round_s": 6.0}
        assert completions(run(jobs, 2, policy, **rounds)) == completions(run(jobs, 2, policy, sharing=None, **rounds))


def test_fixed_rounds_time_completions_exactly() -> None:
    found = run([job("a", 0.0, 30.0, kind=0), job("b", 0.0, 60.0, kind=1)], clock=Clock.FIXED_ROUNDS, round_s=50.0)
    assert completions(found) == pytest.approx({"a": 40.0, "b": 80.0})


def test_jobs_of_two_devices_do_not_share() -> None:
    two = [job(name, 0.0, 20.0, straight(2), requested_devices=2, rigid=True, kind=0) for name in "ab"]
    assert completions(run(two, 2)) == pytest.approx({"a": 10.0, "b": 20.0})


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"failures": NodeFailures(mean_time_between_failures_s=1e3, mean_repair_s=10.0)}, "failures"),
        ({"checkpoints": Checkpoints(interval_s=10.0)}, "checkpoints"),
        ({"clock": Clock.DRAINED_ROUNDS}, "clock"),
    ],
)
def test_what_is_not_modelled_is_refused(settings: dict[str, Any], field: str) -> None:
    with pytest.raises(NodewiseError, match=field):
        run([job("a", 0.0, 1.0, kind=0)], **settings)


class Says:
    """Answers with what it is told to."""

    def __init__(self, *grants: Grant) -> None:
        self.grants = grants

    def decide(self, state: ClusterState, curves: Curves, budget: Budget) -> Allocation:
        return Allocation(grants=self.grants[: len(state.jobs)])


@pytest.mark.parametrize(
    ("grants", "told"),
    [
        ((Grant(1, 0, "", 1), Grant(0)), "which has none"),
        ((Grant(1, 0, "", 0), Grant(0)), "which has none"),
        ((Grant(1, 0, "", 1), Grant(1, 0, "", 0)), "that two jobs share already"),
        ((Grant(1, 0), Grant(1, 0, "", 7)), "which has none"),
        ((Grant(2, 0), Grant(1, 0, "", 0)), "must have the same device, one each"),
    ],
)
def test_pairs_that_cannot_be_are_no_answer(grants: tuple[Grant, ...], told: str) -> None:
    loaded = replace(
        POLICIES["fifo"], record=replace(POLICIES["fifo"].record, policy=Says(*grants), parameters=(), name="says")
    )
    jobs = [job(name, 0.0, 10.0, straight(2), kind=0) for name in "ab"]
    with pytest.raises(NodewiseError, match=told):
        simulate(jobs, pools(2), loaded, SimulationSettings(sharing=HALVES))
    with pytest.raises(NodewiseError, match="has no shared_pairs"):
        simulate(jobs, pools(2), loaded, SimulationSettings())


def test_jobs_without_a_kind_share_with_nobody() -> None:
    found = run([job("a", 0.0, 30.0, ONE, kind=0), job("b", 0.0, 60.0, ONE)])
    assert completions(found) == pytest.approx({"a": 30.0, "b": 90.0})
