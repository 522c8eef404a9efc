"""Candidates and curves: what is asked about, and what becomes of the answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from schedules import TABLE, Clock, Tables, pool, profile

from nodewise.domain.budget import Budget
from nodewise.domain.configurations import Configurations, SyncMode
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.schedule import NodePool
from nodewise.estimation.question import Freshness, Terms
from nodewise.scheduling.checks import check_question
from nodewise.scheduling.curves import JobCurves, gather_curves, without
from nodewise.scheduling.request import JobQuestion, QueueQuota, ScheduleLimits, ScheduleQuestion

V100 = {"V100": TABLE}


def asked(job_id: str, digest: str = "t", **changes: Any) -> JobQuestion:
    return JobQuestion(**{"job_id": job_id, "profile": profile(digest), "remaining_samples": 10.0, **changes})


def gather(
    jobs: Sequence[JobQuestion],
    predict: Tables,
    pools: tuple[NodePool, ...] = (pool("p", 4, 4),),
    limits: ScheduleLimits | None = None,
    budget: Clock | None = None,
    **changes: Any,
) -> JobCurves:
    question = ScheduleQuestion(now_s=0.0, pools=pools, jobs=tuple(jobs), **changes)
    known = check_question(question, ())
    return gather_curves(question, known, predict, budget or Budget(), limits or ScheduleLimits())


def test_every_allowed_count_of_every_pool_is_asked_about_by_columns() -> None:
    predict = Tables({"t": {"V100": TABLE, "T4": TABLE}})
    pools = (pool("p", 4, 4), replace(pool("q", 2, device="T4"), link_bytes_per_s=1e9))
    curves = gather([asked("a")], predict, pools).curves
    assert curves.pool.tolist() == [0] * 8 + [1] * 2
    assert curves.devices.tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 1, 2]
    assert curves.nodes.tolist() == [1, 1, 1, 1, 2, 2, 2, 2, 1, 1]
    np.testing.assert_allclose(curves.samples_per_s, [*TABLE, *TABLE[:2]])
    rows = predict.asked[0].configurations
    assert rows.workers.tolist() == curves.devices.tolist()
    assert rows.device_names() == ["V100"] * 8 + ["T4"] * 2
    assert rows.link_bytes_per_s.tolist() == [0.0] * 8 + [1e9] * 2
    assert rows.placement is None


def test_servers_and_quotas_leave_fewer_counts() -> None:
    curves = gather([asked("a", server_devices=3, queue="x"), asked("b", queue="x")], Tables({"t": V100}))
    assert curves.curves.offsets.tolist() == [0, 5, 13]
    quota = (QueueQuota(queue="x", max_devices=4),)
    curves = gather([asked("a", server_devices=3, queue="x"), asked("b")], Tables({"t": V100}), quotas=quota)
    assert curves.curves.offsets.tolist() == [0, 1, 9]


def test_settings_hold_for_every_row_and_the_pools_link_goes_before_its_own() -> None:
    settings = Configurations.of(
        1, sync_mode=SyncMode.ASYNC, parameter_servers=2, batch_per_worker=32, link_bytes_per_s=5e8
    ).replaced(precisions=("fp16",))
    predict = Tables({"t": {"V100": TABLE}})
    pools = (pool("p", 2), replace(pool("q", 1), link_bytes_per_s=1e9))
    gather([asked("a", settings=settings)], predict, pools)
    rows = predict.asked[0].configurations
    assert rows.sync_mode.tolist() == [SyncMode.ASYNC] * 3
    assert rows.parameter_servers.tolist() == [2] * 3
    assert rows.batch_per_worker.tolist() == [32] * 3
    assert rows.link_bytes_per_s.tolist() == [5e8, 5e8, 1e9]
    assert (rows.precisions, rows.precision_index.tolist()) == (("fp16",), [0] * 3)


def test_uneven_nodes_are_said_by_placement() -> None:
    predict = Tables({"t": {"V100": TABLE}})
    pools = (pool("even", 2, 2), pool("odd", 1, 4, 0, 2))
    curves = gather([asked("a", allowed_devices=(2, 3, 5, 7))], predict, pools).curves
    rows = predict.asked[0].configurations
    placement = rows.placement
    assert placement is not None
    assert [placement.row(row) for row in range(6)] == [(), (), (2,), (3,), (4, 1), (4, 2, 1)]
    assert curves.nodes.tolist() == [1, 2, 1, 1, 2, 3]


def test_jobs_of_one_profile_and_counts_are_predicted_once_and_share_their_columns_with_the_next_call() -> None:
    predict = Tables({"t": V100, "u": V100})
    gather([asked("a"), asked("b"), asked("c", "u"), asked("d", max_devices=2)], predict)
    assert len(predict.asked) == 3
    assert predict.asked[0].configurations is predict.asked[1].configurations
    again = Tables({"t": V100})
    gather([asked("e")], again)
    assert again.asked[0].configurations is predict.asked[0].configurations


def test_profiles_without_a_digest_are_predicted_apart() -> None:
    predict = Tables({"": V100})
    gather([asked("a", ""), asked("b", "")], predict)
    assert len(predict.asked) == 2


def test_how_to_predict_is_passed_on() -> None:
    predict = Tables({"t": V100})
    terms = Terms(estimator="x", coverage=0.5, freshness=Freshness.CACHED_ONLY, allow_fallback=True)
    gather([asked("a")], predict, terms=terms)
    assert predict.asked[0].terms == terms


def test_without_a_known_batch_rates_are_minibatches() -> None:
    known = gather([asked("a")], Tables({"t": V100}, batch=1))
    unknown = gather([asked("a")], Tables({"t": V100}, batch=0))
    assert (known.batch_known, unknown.batch_known) == ((True,), (False,))
    np.testing.assert_allclose(unknown.curves.samples_per_s, TABLE)


def test_refused_rows_are_left_out() -> None:
    found = gather([asked("a"), asked("b", "u")], Tables({"t": {"V100": (1.0, 0.0, 3.0)}, "u": V100}))
    assert found.curves.offsets.tolist() == [0, 2, 10]
    assert found.curves.devices[:2].tolist() == [1, 3]
    assert found.curves.configurations.workers.tolist() == found.curves.devices.tolist()
    assert found.refusals == (None, None)


def test_a_job_that_cannot_be_answered_is_refused_alone() -> None:
    error = NodewiseError(Reason.EVIDENCE_MISSING, "no timings", {"missing_fields": "x,y"})
    lost = NodewiseError(Reason.PROFILE_NOT_FOUND, "no such profile")
    predict = Tables({"ok": V100, "none": {}}, errors={"bad": error})
    jobs = [asked("a", "bad"), asked("b", "ok"), asked("c", "none"), replace(asked("d"), profile=lost)]
    found = gather(jobs, predict)
    reasons = [refusal and refusal.reason for refusal in found.refusals]
    assert reasons == [
        Reason.EVIDENCE_MISSING,
        None,
        Reason.UNSUPPORTED_CONFIGURATION,
        Reason.PROFILE_NOT_FOUND,
    ]
    assert found.refusals[0] is not None
    assert found.refusals[0].missing_fields == ("x", "y")
    assert found.curves.offsets.tolist() == [0, 0, 8, 8, 8]
    assert [basis is not None for basis in found.bases] == [False, True, False, False]


def test_a_job_that_fits_no_memory_says_by_how_much() -> None:
    found = gather([asked("a", "none")], Tables({"none": {}}, infeasible=True))
    assert found.refusals[0] is not None
    assert (
        "does not fit into memory on any allowed number of devices (at least 1,000,000,000 bytes are missing)"
        in found.refusals[0].message
    )


def test_a_job_too_large_for_the_cluster_has_neither_rows_nor_refusal() -> None:
    found = gather([asked("a", min_devices=9)], Tables({}))
    assert found.curves.offsets.tolist() == [0, 0]
    assert found.refusals == (None,)


def test_too_many_rows_name_the_widest_job() -> None:
    jobs = [asked("a", max_devices=2, submit_time_s=1.0), asked("b"), asked("c", allowed_devices=(1, 2))]
    with pytest.raises(NodewiseError) as caught:
        gather(jobs, Tables({"t": V100}), limits=ScheduleLimits(candidate_rows=11))
    assert caught.value.reason == Reason.LIMIT_EXCEEDED
    [violation] = caught.value.violations
    assert violation.field == "jobs[1].max_devices"
    assert "allows 8 counts, and the call asks for 12 predictions of at most 11" in violation.description
    with pytest.raises(NodewiseError, match=r"jobs\[0\]\.allowed_devices"):
        gather(jobs[2:], Tables({"t": V100}), limits=ScheduleLimits(candidate_rows=1))


def test_uneven_nodes_are_counted_before_rows_are_spread_over_them() -> None:
    uneven = (pool("p", 4, 2, 0, 1),)
    found = gather([asked("a")], tables := Tables({"t": V100}), uneven)
    placement = tables.asked[0].configurations.placement
    assert placement is not None
    assert [placement.row(row) for row in range(7)] == [(1,), (2,), (3,), (4,), (4, 1), (4, 2), (4, 2, 1)]
    assert found.curves.nodes.tolist() == [1, 1, 1, 1, 2, 2, 3]
    # Jobs with the same counts share their rows.
    gather([asked("a"), asked("b")], Tables({"t": V100}), uneven, limits=ScheduleLimits(placed_nodes=11))
    with pytest.raises(NodewiseError, match=r"cluster\.pools: have nodes of different sizes.*over 11 of them"):
        gather([asked("a")], Tables({"t": V100}), uneven, limits=ScheduleLimits(placed_nodes=10))


def test_wide_jobs_are_not_kept_between_calls_but_shared_within_one() -> None:
    table = [float(count) for count in range(1, 5001)]
    predict = Tables({"t": {"V100": table}, "u": {"V100": table}})
    curves = gather([asked("a"), asked("b", "u")], predict, (pool("p", *[8] * 625),)).curves
    assert curves.offsets.tolist() == [0, 5000, 10000]
    assert predict.asked[0].configurations is predict.asked[1].configurations


def test_jobs_that_the_time_does_not_suffice_for_are_refused() -> None:
    found = gather([asked("a"), asked("b", "u"), asked("c")], Tables({"t": V100, "u": V100}), budget=Clock(looks=1))
    assert not found.complete
    assert [refusal and refusal.reason for refusal in found.refusals] == [None, Reason.DEADLINE_EXCEEDED, None]


def test_rows_of_some_jobs_can_be_left_out() -> None:
    curves = gather([asked("a", max_devices=2), asked("b"), asked("c", max_devices=1)], Tables({"t": V100})).curves
    assert without(curves, set()) is curves
    less = without(curves, {1})
    assert less.offsets.tolist() == [0, 2, 2, 3]
    assert less.devices.tolist() == [1, 2, 1]
    assert less.configurations.workers.tolist() == [1, 2, 1]
