"""Whole decisions: actions, reasons, words and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from schedules import POLICIES, TABLE, Clock, Tables, pool, profile

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.schedule import Allocation, ClusterState, Curves, Grant, NodePool
from nodewise.estimation.question import Answer, Question
from nodewise.hosting.registry import LoadedPlugin
from nodewise.plugin import Budget, PolicyRecord
from nodewise.scheduling.decide import decide
from nodewise.scheduling.decision import Action, Decision, JobDecision
from nodewise.scheduling.request import CurrentDevices, JobQuestion, QueueQuota, ScheduleQuestion

FILL = "efficiency-srpt-fill"
PREDICT = Tables({"t": {"V100": TABLE}}, errors={"bad": NodewiseError(Reason.EVIDENCE_MISSING, "no timings")})


def asked(job_id: str, left: float = 1000.0, submitted: float = 0.0, **changes: Any) -> JobQuestion:
    values = {"job_id": job_id, "profile": profile("t"), "remaining_samples": left, "submit_time_s": submitted}
    return JobQuestion(**{**values, **changes})


def on(*placement: tuple[int, int], name: str = "p", age_s: float = 100.0) -> CurrentDevices:
    return CurrentDevices(pool=name, placement=placement, age_s=age_s)


def run(
    jobs: Sequence[JobQuestion],
    name: str = FILL,
    pools: tuple[NodePool, ...] = (pool("p", 4, 4),),
    budget: Budget | None = None,
    policy: LoadedPlugin[PolicyRecord] | None = None,
    **changes: Any,
) -> Decision:
    question = ScheduleQuestion(now_s=0.0, pools=pools, jobs=tuple(jobs), **changes)
    return decide(question, policy or POLICIES[name], PREDICT, budget or Budget())


def one(*args: Any, **changes: Any) -> JobDecision:
    return run([asked("a", **changes)], *args).jobs[0]


def test_a_job_starts() -> None:
    found = one()
    assert (found.action, found.reason) == (Action.START, "STARTED")
    assert (found.pool, found.devices, found.nodes, found.placement) == ("p", 7, 2, ((0, 4), (1, 3)))
    assert found.samples_per_s == pytest.approx(50.0)
    assert found.finish_s == pytest.approx(20.0)
    assert found.marginal_samples_per_s == pytest.approx(0.0)
    assert found.basis is not None
    assert found.why == (
        "starts on 7 devices of 'p'; 50 samples/s predicted, 1,000 samples left, done in 20 s; "
        f"{FILL}: remaining time over efficiency 23.6295 s, and 2 of the devices that were left over"
    )


def test_the_margin_is_that_of_the_next_larger_count_per_device() -> None:
    found = run([asked("a"), asked("b", 2000.0, 1.0)], "efficiency-srpt")
    assert [job.devices for job in found.jobs] == [5, 3]
    assert found.jobs[0].marginal_samples_per_s == pytest.approx(3.0)
    jumps = one("efficiency-srpt", allowed_devices=(2, 5, 8))
    assert (jumps.devices, jumps.marginal_samples_per_s) == (5, pytest.approx(4.0 / 3))


def test_a_job_that_keeps_its_count_stays_where_it_is() -> None:
    found = one(current=on((0, 3), (1, 4)), restart_cost_s=30.0)
    assert (found.action, found.reason) == (Action.KEEP, "UNCHANGED")
    assert found.placement == ((0, 3), (1, 4))
    assert found.finish_s == pytest.approx(20.0)
    assert found.why.startswith("keeps its 7 devices of 'p'; 50 samples/s")


def test_a_resized_job_pays_its_restart() -> None:
    found = one(current=on((0, 2)), restart_cost_s=30.0)
    assert (found.action, found.reason, found.devices) == (Action.CHANGE, "RESIZED", 7)
    assert found.finish_s == pytest.approx(50.0)
    assert "goes from 2 to 7 devices of 'p'" in found.why
    assert "done in 50 s (restart of 30 s included)" in found.why


def test_only_a_job_that_ran_before_pays_for_its_start() -> None:
    assert one(restart_cost_s=30.0).finish_s == pytest.approx(20.0)
    assert one(restart_cost_s=30.0, attained_service_device_s=5.0).finish_s == pytest.approx(50.0)


def test_a_job_moves() -> None:
    found = one(FILL, (pool("p", 8), pool("q", 8)), allowed_pools=("q",), current=on((0, 7)))
    assert (found.action, found.reason, found.pool) == (Action.CHANGE, "MOVED", "q")
    assert "moves from 'p' to 7 devices of 'q'" in found.why


def test_servers_are_placed_with_the_workers() -> None:
    found = one(server_devices=1, allowed_devices=(4,))
    assert (found.devices, found.nodes, found.placement) == (4, 1, ((0, 4), (1, 1)))
    assert "1 device more for parameter servers" in found.why
    kept = one(server_devices=1, allowed_devices=(4,), current=on((0, 1), (1, 4)))
    assert (kept.action, kept.nodes, kept.placement) == (Action.KEEP, 1, ((0, 1), (1, 4)))


def test_a_job_spread_over_more_nodes_than_were_predicted_says_so() -> None:
    jobs = [
        asked("a", 1.0, allowed_devices=(2,), current=on((0, 2))),
        asked("b", 1.0, allowed_devices=(2,), current=on((1, 2))),
        asked("c", allowed_devices=(4,)),
    ]
    found = run(jobs).jobs[2]
    assert (found.nodes, found.placement) == (2, ((0, 2), (1, 2)))
    assert "is spread over 2 nodes, since free devices are (the rate is for 1)" in found.why


def test_a_job_for_which_nothing_is_free_waits() -> None:
    found = run([asked("a"), asked("b", 9000.0, min_devices=4)]).jobs[1]
    assert (found.action, found.reason, found.devices, found.pool) == (Action.WAIT, "NO_FREE_DEVICES", 0, "")
    assert (found.finish_s, found.samples_per_s, found.placement) == (None, 0.0, ())
    assert found.why.startswith("needs at least 4 devices; free: 1 of 'p'; ")
    assert " is done first, in " in found.why


def test_a_running_job_that_gets_nothing_is_stopped() -> None:
    found = run([asked("a"), asked("b", 9000.0, min_devices=4, current=on((0, 4)))]).jobs[1]
    assert found.action == Action.WAIT
    assert found.why.endswith("; it stops and releases 4 devices")


def test_a_job_that_its_policy_passes_over_waits() -> None:
    jobs = [asked("a", submitted=1.0, requested_devices=8), asked("b", submitted=2.0)]
    small = asked("c", submitted=0.0, requested_devices=2)
    found = run([*jobs, small], "fifo").jobs[1]
    assert (found.action, found.reason) == (Action.WAIT, "POLICY_CHOSE_OTHERS")
    assert found.why == "fifo grants it no devices now; it needs at least 1 device; free: 6 of 'p'"


def test_a_job_whose_queue_holds_all_it_may_waits() -> None:
    quotas = (QueueQuota(queue="x", max_devices=2),)
    jobs = [asked("a", queue="x"), asked("b", 9000.0, queue="x"), asked("c", queue="x", min_devices=3)]
    found = run(jobs, quotas=quotas).jobs
    assert (found[0].devices, found[1].reason, found[2].reason) == (2, "QUOTA_REACHED", "QUOTA_REACHED")
    assert found[1].why == "needs at least 1 device; 0 are left of the quota of queue 'x'"
    assert found[2].why == "needs at least 3 devices; the quota of queue 'x' is 2"


def test_a_job_too_large_for_every_pool_waits() -> None:
    assert one(min_devices=9).why == "needs more devices than its largest pool has (8)"
    found = one(allowed_devices=(8,), server_devices=1)
    assert (found.action, found.reason) == (Action.WAIT, "DOES_NOT_FIT")
    assert found.why == "needs at least 9 devices, servers included; its largest pool has 8"


def test_a_job_that_cannot_be_predicted_stays_as_it_is_and_its_devices_are_not_given_away() -> None:
    running = asked("a", profile=profile("bad"), current=on((0, 3)))
    found = run([running, asked("b", 10.0)]).jobs
    assert (found[0].action, found[0].reason) == (Action.NO_ANSWER, "CURVE_MISSING")
    assert (found[0].pool, found[0].devices, found[0].placement) == ("p", 3, ((0, 3),))
    assert found[0].refusal is not None
    assert found[0].refusal.reason == Reason.EVIDENCE_MISSING
    assert found[0].why == "no timings; it keeps its 3 devices"
    assert (found[1].devices, found[1].placement) == (5, ((0, 1), (1, 4)))
    new = run([replace(running, current=None), asked("b", 10.0)]).jobs
    assert new[0].why == "no timings; it gets no devices"
    assert new[1].devices == 7


def test_a_job_within_its_minimum_run_keeps_what_it_has() -> None:
    pinned = asked("a", 9e9, minimum_run_s=600.0, current=on((0, 2)), queue="x")
    found = run([pinned, asked("b", 10.0, queue="x")], quotas=(QueueQuota(queue="x", max_devices=5),)).jobs
    assert (found[0].action, found[0].reason, found[0].placement) == (Action.KEEP, "MINIMUM_RUN", ((0, 2),))
    assert found[0].why.startswith("has run for 100 s of its minimum run of 600 s; 20 samples/s predicted")
    assert found[0].finish_s == pytest.approx(9e9 / 20)
    assert (found[1].devices, found[1].placement) == (3, ((1, 3),))
    over = run([replace(pinned, minimum_run_s=100.0), asked("b", 10.0)]).jobs
    assert [job.devices for job in over] == [3, 5]


def test_a_minimum_run_on_a_count_without_a_prediction_says_so() -> None:
    pinned = asked("a", minimum_run_s=600.0, current=on((0, 3)), allowed_devices=(1, 2))
    found = run([pinned]).jobs[0]
    assert (found.action, found.samples_per_s, found.finish_s) == (Action.KEEP, 0.0, None)
    assert found.why.endswith("its throughput is not known")


def test_a_job_that_is_not_preemptible_keeps_what_it_holds_and_nobody_else_gets_it() -> None:
    fixed = asked("a", 9e9, preemptible=False, current=on((0, 2)))
    found = run([fixed, asked("b", 10.0)]).jobs
    assert (found[0].action, found[0].reason, found[0].placement) == (Action.KEEP, "NOT_PREEMPTIBLE", ((0, 2),))
    assert found[0].why.startswith("is not preemptible; 20 samples/s predicted")
    assert (found[1].devices, sum(count for node, count in found[1].placement if node == 0)) == (6, 2)
    new = run([replace(fixed, current=None)]).jobs[0]
    assert (new.action, new.devices) == (Action.START, 7)


WHOLE = (pool("p", 4, 4, 4, devices_per_node=4),)


def test_whole_nodes_are_given_out_whole() -> None:
    found = one(FILL, WHOLE)
    assert (found.devices, found.nodes, found.placement) == (8, 2, ((0, 4), (1, 4)))
    served = one(FILL, WHOLE, server_devices=1)
    assert (served.devices, served.placement) == (7, ((0, 4), (1, 4)))
    requested = run([asked("a", requested_devices=2), asked("b", submitted=1.0, requested_devices=5)], "fifo", WHOLE)
    assert [job.devices for job in requested.jobs] == [4, 8]


def test_a_job_that_fills_no_whole_nodes_never_fits() -> None:
    found = one(FILL, WHOLE, allowed_devices=(2, 6))
    assert (found.action, found.reason) == (Action.WAIT, "DOES_NOT_FIT")
    assert found.why == "none of its allowed numbers of devices, servers included, fills whole nodes of 4 devices"


def test_minibatches_are_called_so() -> None:
    question = ScheduleQuestion(now_s=0.0, pools=(pool("p", 1),), jobs=(asked("a"),))
    found = decide(question, POLICIES[FILL], Tables({"t": {"V100": TABLE}}, batch=0), Budget())
    assert "10 mini-batches/s predicted, 1,000 mini-batches left" in found.jobs[0].why


def test_a_cut_decision_says_so() -> None:
    # One look for the first prediction, none for the second; and none for the policy.
    found = run([asked("a"), asked("b", profile=profile("bad"))], budget=Clock(looks=1))
    assert not found.complete
    assert [job.reason for job in found.jobs] == ["DEADLINE_CUT", "CURVE_MISSING"]
    assert found.jobs[0].why == f"the time was over before {FILL} decided; free: 8 of 'p'"


def test_replies_come_in_the_order_of_the_request_with_the_policys_name() -> None:
    found = run([asked("b"), asked("a"), asked("c")])
    assert [job.job_id for job in found.jobs] == ["b", "a", "c"]
    assert (found.policy, found.policy_version, found.complete) == (FILL, POLICIES[FILL].record.version, True)
    assert run([]).jobs == ()


class Remembering:
    """Counts the rounds in its memory and grants nothing; keeps what it saw."""

    seen: ClusterState | None = None
    curves: Curves | None = None

    def decide(self, state: ClusterState, curves: Curves, budget: Budget) -> Allocation:
        type(self).seen, type(self).curves = state, curves
        return Allocation(grants=(Grant(0),) * len(state.jobs), memory=state.memory + b"x")


def test_memory_is_passed_on_and_settled_jobs_are_shown_without_rows() -> None:
    remembering = PolicyRecord(name="r", version="1", description="", policy=Remembering())
    policy = LoadedPlugin(remembering, "tests 1.0", "inline")
    pinned = asked("a", minimum_run_s=600.0, current=on((0, 2)), queue="x")
    quotas = (QueueQuota(queue="x", max_devices=1),)
    found = run([pinned, asked("b", submitted=1.0)], policy=policy, memory=b"x", quotas=quotas)
    assert found.memory == b"xx"
    assert Remembering.seen is not None
    assert Remembering.curves is not None
    assert [job.job_id for job in Remembering.seen.jobs] == ["a", "b"]
    assert Remembering.seen.pools[0].available_devices.tolist() == [2, 4]
    assert Remembering.seen.quotas == {"x": 0}
    assert Remembering.curves.offsets.tolist() == [0, 0, 8]


def test_work_that_nobody_waits_for_ends_between_two_jobs() -> None:
    budget, told = Budget(), []

    class Leaving:
        def __call__(self, question: Question) -> Answer:
            told.append(question)
            if len(told) == 2:
                budget.end()
            return predict(question)

    tables = [f"{number}" for number in range(5)]
    predict = Tables({name: {"V100": TABLE} for name in tables})
    jobs = tuple(asked(name, profile=profile(name)) for name in tables)
    question = ScheduleQuestion(now_s=0.0, pools=(pool("p", 4, 4),), jobs=jobs)
    with pytest.raises(NodewiseError) as caught:
        decide(question, POLICIES[FILL], Leaving(), budget)
    assert (caught.value.reason, len(told)) == (Reason.DEADLINE_EXCEEDED, 2)


def test_a_budget_ends() -> None:
    now = [0.0]
    budget = Budget(2.0, clock_s=lambda: now[0])
    assert budget.remaining_s() == 2.0
    now[0] = 3.0
    assert budget.remaining_s() == -1.0
    assert Budget().remaining_s() > 1e9


def test_time_that_is_over_ends_no_work_that_somebody_waits_for() -> None:
    budget = Budget(0.0)
    budget.look_up()
    budget.end()
    with pytest.raises(NodewiseError) as caught:
        budget.look_up()
    assert caught.value.reason is Reason.DEADLINE_EXCEEDED
