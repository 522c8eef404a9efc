"""Replays of jobs whose answers are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from recorded_jobs import gloo_job
from recorded_traces import NobodyWaits, Recorder, exchanging

from nodewise.domain.diagnosis import DiagnosisQuestion
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.profile import Profile
from nodewise.domain.replay import Change, ChangeKind, Replay, ReplayQuestion
from nodewise.domain.trace import Trace
from nodewise_diagnosis.diagnoser import ReplayDiagnoser
from nodewise_replay.replaying.replayer import replay_steps


def replay(traces: list[Trace], **question: object) -> Replay:
    return replay_steps(traces, ReplayQuestion(**question), NobodyWaits())  # type: ignore[arg-type] # by name


def steady(lengths: list[float]) -> Trace:
    """Steps of one operator each that takes so many us, with 10 us of gaps."""
    record, now = Recorder(), 0.0
    for number, length in enumerate(lengths, start=1):
        record.step(number, now, now + length + 10)
        record.event("work", now + 4, now + 4 + length)
        now += length + 10
    return record.trace()


def test_a_step_is_predicted_from_the_others_alone() -> None:
    found = replay([steady([100, 200, 300])])
    assert [round(step.predicted_host_s * 1e6, 3) for step in found.steps] == [260, 210, 160]
    assert [round(step.measured_host_s * 1e6, 3) for step in found.steps] == [110, 210, 310]
    assert found.host_error == pytest.approx((150 / 110 + 0 + 150 / 310) / 3)
    # One chain of host time: no better and no worse than the mean of the other steps.
    assert found.persistence_error == pytest.approx(found.host_error)
    assert not found.in_sample


def test_steps_to_learn_from_and_to_test_are_taken_as_stated() -> None:
    found = replay([steady([100, 200, 300, 400])], fit_steps=(1, 2), test_steps=(4,))
    (step,) = found.steps
    assert step.step == 4
    assert step.predicted_host_s * 1e6 == pytest.approx(160)


def test_in_sample_is_said_and_needs_no_other_step() -> None:
    found = replay([steady([100])], in_sample=True)
    assert found.in_sample
    assert found.host_error == 0.0
    assert found.persistence_error is None
    with pytest.raises(NodewiseError, match="in_sample") as caught:
        replay([steady([100])])
    assert caught.value.reason == Reason.INVALID_FIELD


@pytest.mark.parametrize(
    ("question", "field"),
    [
        ({"test_steps": (4,)}, "test_steps[0]"),
        ({"fit_steps": (1, 9)}, "fit_steps[1]"),
        ({"fit_steps": (2,), "test_steps": (2,)}, "fit_steps"),
        ({"changes": (Change(kind=ChangeKind.SCALE, value=-1.0),)}, "changes.value"),
        ({"changes": (Change(kind=ChangeKind.DELAY, value=float("nan")),)}, "changes.value"),
        ({"changes": (Change(kind=ChangeKind.SCALE, value=1.0, name_pattern="("),)}, "changes.name_pattern"),
        ({"changes": (Change(kind=ChangeKind.SCALE, value=1.0, event_kinds=("cpu",)),)}, "changes.event_kinds"),
        ({"changes": (Change(kind=ChangeKind.WORLD_SIZE, value=4.0),)}, "changes.kind"),
    ],
)
def test_a_question_that_cannot_be_answered_says_which_field(question: dict[str, object], field: str) -> None:
    with pytest.raises(NodewiseError) as caught:
        replay([steady([100, 200, 300])], **question)
    assert [one.field for one in caught.value.violations] == [field]


def test_two_traces_of_a_rank_are_not_one_job() -> None:
    with pytest.raises(NodewiseError) as caught:
        replay([steady([100]), steady([100])], in_sample=True)
    assert caught.value.reason == Reason.CONTRADICTORY_FACTS


def test_a_trace_of_a_device_alone_is_no_step() -> None:
    record = Recorder()
    record.kernel("work", 0, 10, 1)
    with pytest.raises(NodewiseError) as caught:
        replay([record.trace()], in_sample=True)
    assert caught.value.reason == Reason.EVIDENCE_MISSING


def test_changes_apply_to_what_they_select() -> None:
    def changed(**change: object) -> list[float]:
        one = Change(**{"kind": ChangeKind.SCALE, "value": 2.0, **change})  # type: ignore[arg-type] # by name
        found = replay([steady([100, 200])], in_sample=True, changes=(one,))
        assert found.host_error is None
        return [round(step.predicted_host_s * 1e6, 3) for step in found.steps]

    assert changed() == [220, 420]
    assert changed(name_pattern="^work$") == [210, 410]
    assert changed(event_kinds=("gap",)) == [120, 220]
    assert changed(ranks=(1,)) == [110, 210]
    assert changed(kind=ChangeKind.DELAY, value=5e-6, name_pattern="work", event_kinds=("operator",)) == [115, 215]


def alone() -> Trace:
    """One rank of two: its kernels wait 0, 100 and 300 us for the other, then 40 us pass."""
    return exchanging(0, 2, [300.0, 300, 300], [340.0, 440, 640])


def test_of_some_ranks_waiting_is_told_by_the_shortest() -> None:
    found = replay([alone()], in_sample=True)
    assert any(warning.startswith("1 of 2 ranks") for warning in found.warnings)
    assert [round(one.transfer_s * 1e6) for one in found.collectives] == [40, 40, 40]
    assert [[round(wait * 1e6) for wait in one.wait_s] for one in found.collectives] == [[0], [100], [300]]
    assert all(one.late_ranks == () for one in found.collectives)


def test_what_absent_ranks_do_bounds_a_change() -> None:
    def steps(ranks: tuple[int, ...]) -> list[tuple[float, float, float]]:
        quicker = Change(kind=ChangeKind.SCALE, value=0.5, event_kinds=("gap",), ranks=ranks)
        found = replay([alone()], in_sample=True, changes=(quicker,))
        return [(one.lower_host_s, one.predicted_host_s, one.upper_host_s) for one in found.steps]

    for (lower, everywhere, upper), (_, here, _) in zip(steps(()), steps((0,)), strict=True):
        assert lower <= upper
        assert {everywhere, here} <= {lower, upper}
    # Others that go on as recorded keep the change of one rank from helping.
    assert sum(here for _, here, _ in steps((0,))) > sum(everywhere for _, everywhere, _ in steps(()))


def test_replayed_events_lie_where_they_were_executed() -> None:
    trace = steady([100, 200])
    shown = replay([trace], in_sample=True, timeline=True).timeline
    assert shown is not None
    assert sorted(shown.names[one] for one in shown.name) == ["ProfilerStep#1", "ProfilerStep#2", "work", "work"]
    assert shown.begin_ns.tolist() == sorted(shown.begin_ns.tolist())
    assert (np.sort(shown.duration_ns) == np.sort(trace.duration_ns)).all()
    assert (np.sort(shown.begin_ns) == np.sort(trace.begin_ns)).all()


@pytest.mark.parametrize(
    "name",
    [
        "ddp_2_ranks_3_buckets",
        "ddp_4_ranks_8_buckets",
        "ddp_4_ranks_slow_collective",
        "ddp_4_ranks_slow_loader",
        "parameter_server_2_ranks",
        "parameter_server_4_ranks",
    ],
)
def test_real_jobs_over_gloo(name: str) -> None:
    """CPU and gloo, emulated compute and link: what persistence reaches, and 2 points more at most."""
    traces = list(gloo_job(name))
    found = replay(traces)
    assert found.host_error is not None
    assert found.persistence_error is not None
    assert found.host_error <= found.persistence_error + 0.02
    itself = replay(traces, in_sample=True)
    assert itself.host_error is not None
    assert itself.host_error < 1e-3
    again = replay(traces[::-1])
    assert again.steps == found.steps


@pytest.mark.parametrize("ranks", [2, 4])
def test_a_straggler_is_last_at_every_collective(ranks: int) -> None:
    found = replay(list(gloo_job(f"ddp_{ranks}_ranks_straggler")), in_sample=True)
    assert {one.late_ranks for one in found.collectives} == {(ranks - 1,)}


def test_slower_layers_predict_the_job_that_has_them() -> None:
    """The last of four ranks computes 1.3 times as long: predicted from the job without, beside the one that did."""
    slower = Change(kind=ChangeKind.SCALE, value=1.3, name_pattern="^SleepingLayer", ranks=(3,))
    before = replay(list(gloo_job("ddp_4_ranks_3_buckets")), in_sample=True, changes=(slower,))
    after = replay(list(gloo_job("ddp_4_ranks_straggler")), in_sample=True)
    predicted = np.mean([step.predicted_host_s for step in before.steps])
    measured = np.mean([step.measured_host_s for step in after.steps])
    assert predicted == pytest.approx(measured, rel=0.05)


def test_ranks_without_a_common_exchange_have_clocks_that_nothing_ties() -> None:
    traces = [replace(steady([100, 200, 300]), rank=rank, world_size=2) for rank in range(2)]
    found = replay(traces, in_sample=True)
    assert found.clock_uncertainty_s.tolist() == [0.0, -1.0]
    assert any("no exchange connects ranks 1" in warning for warning in found.warnings)
    diagnosis = ReplayDiagnoser().diagnose(traces, Profile(), DiagnosisQuestion(), NobodyWaits())
    assert diagnosis.step_s == pytest.approx(210e-6)
