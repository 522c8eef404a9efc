"""What the estimator refuses, and how it says so."""

from __future__ import annotations

import pytest
from queueing_profiles import assessed, observations, predicted, profile, rows, timings

from nodewise.plugin import Configurations, Reason, RowStatus, SyncMode
from nodewise_queueing.plugin import nodewise_estimators

PHASES = timings((0.1, 0.5, 0.15, 0.01))


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"mode": SyncMode.ALLREDUCE}, "parameter-server"),
        ({"tensor_parallel": 2}, "tensor_parallel"),
        ({"pipeline_parallel": 2}, "pipeline_parallel"),
        ({"mode": SyncMode.ASYNC, "backup_workers": 1}, "backup_workers"),
        ({"mode": SyncMode.HYBRID, "backup_workers": 1}, "backup_workers"),
        ({"mode": SyncMode.SYNC, "backup_workers": 4}, "backup_workers"),
    ],
)
def test_unsupported_rows_are_refused_one_by_one(columns: dict[str, int], words: str) -> None:
    asked = Configurations.concatenated([rows([2]), rows([4], **columns)])
    answer = predicted(profile(PHASES), asked)
    assert answer.status.tolist() == [RowStatus.ANSWERED, RowStatus.REFUSED]
    assert answer.refusals[0].rows == (1,)
    assert answer.refusals[0].refusal.reason == Reason.UNSUPPORTED_CONFIGURATION
    assert words in answer.refusals[0].refusal.message
    assert assessed(profile(PHASES), asked).refusal is None
    alone = assessed(profile(PHASES), rows([4], **columns)).refusal
    assert alone is not None
    assert alone.reason == Reason.UNSUPPORTED_CONFIGURATION


def test_too_many_workers_are_refused() -> None:
    assert predicted(profile(PHASES), rows([131_073])).status.tolist() == [RowStatus.REFUSED]


@pytest.mark.parametrize(
    "job",
    [
        profile(),
        profile(parameter_bytes=4_000_000, link_bytes_per_s=25e6),
        profile(measured=observations({4: 2.0})),
        profile(measured=observations({1: 1.0, 4: 2.0}, SyncMode.SYNC)),
        profile(measured=observations({1: 1.0, 4: 2.0}, SyncMode.ALLREDUCE)),
        profile(timings((0.1, 0.5, 0.1, 0.0), workers=2)),
        profile(timings((0.0, 0.0, 0.0, 0.0))),
    ],
)
def test_missing_evidence_is_named(job) -> None:
    refusal = assessed(job, rows([1, 2])).refusal
    assert refusal is not None
    assert refusal.reason == Reason.EVIDENCE_MISSING
    assert refusal.missing_fields == ("phase_timings", "observations at another number of workers")
    answer = predicted(job, rows([1, 2]))
    assert not answer.answered.any()
    assert answer.refusals[0].refusal == refusal


def test_phases_of_several_workers_are_left_out_and_told() -> None:
    job = profile(timings((0.2, 0.5, 0.2, 0.0), workers=2), observations({1: 1.0, 6: 4.0}))
    answer = predicted(job, rows([8]))
    assert answer.answered.all()
    assert "TIMINGS_NOT_USED" in {notice.reason for notice in answer.notices}
    refusal = assessed(profile(timings((0.2, 0.5, 0.2, 0.0), workers=2)), rows([8])).refusal
    assert refusal is not None
    assert "include waiting" in refusal.message


def test_another_device_needs_its_own_evidence() -> None:
    job = profile(timings((0.1, 0.5, 0.1, 0.0), device="K80"))
    assert assessed(job, rows([2], device="K80")).refusal is None
    refusal = assessed(job, rows([2], device="P100")).refusal
    assert refusal is not None
    assert "P100" in refusal.message
    assert assessed(profile(PHASES), rows([2], device="P100")).refusal is None


def test_evidence_of_an_unstated_device_answers_with_a_notice() -> None:
    answer = predicted(profile(PHASES), rows([2], device="P100"))
    assert answer.answered.all()
    assert [notice.reason for notice in answer.notices if "P100" in notice.message] == ["DEVICE_ASSUMED"]
    assert "DEVICE_ASSUMED" not in {notice.reason for notice in predicted(profile(PHASES), rows([2])).notices}


@pytest.mark.parametrize("job", [profile(PHASES), profile(measured=observations({1: 1.0, 8: 4.0}))])
def test_a_link_cannot_be_scaled_from_one_that_is_not_known(job) -> None:
    asked = Configurations.concatenated([rows([2]), rows([2], link_bytes_per_s=1e9)])
    answer = predicted(job, asked)
    assert answer.status.tolist() == [RowStatus.ANSWERED, RowStatus.REFUSED]
    assert answer.refusals[0].refusal.missing_fields == ("network.link_bytes_per_second",)


def test_devices_are_told_apart() -> None:
    slow, fast = timings((0.1, 0.9, 0.1, 0.0), device="K80"), timings((0.1, 0.3, 0.1, 0.0), device="P100")
    job = profile(type(slow).concatenated([slow, fast]))
    asked = Configurations.concatenated([rows([1], device="P100"), rows([1], device="K80")])
    assert predicted(job, asked).step_s.tolist() == pytest.approx([0.5, 1.1])


@pytest.mark.parametrize(
    ("job", "strength", "words"),
    [
        (profile(PHASES), 0.9, "phase timings of 1 run (1 worker)"),
        (profile(PHASES, observations({1: 1.3})), 0.9, "throughput of 1 ASYNC run (1 workers)"),
        (profile(PHASES, observations({12: 6.0})), 1.0, "throughput of 1 ASYNC run (12 workers)"),
        (profile(measured=observations({1: 1.0, 8: 4.0})), 0.7, "throughput of 2 ASYNC runs (1, 8 workers)"),
        (profile(measured=observations({1: 1.0, 4: 4.0})), 0.3, "throughput of 2 ASYNC runs (1, 4 workers)"),
    ],
)
def test_evidence_is_judged(job, strength: float, words: str) -> None:
    assessment = assessed(job, rows([1, 2, 4]))
    assert assessment.refusal is None
    assert assessment.strength == strength
    assert words in assessment.evidence
    assert assessment.expected_log_error is not None


def test_no_rows_are_no_answers() -> None:
    assert len(predicted(profile(PHASES), rows([]))) == 0


def test_the_plugin_registers_one_estimator() -> None:
    (record,) = nodewise_estimators()
    assert record.name == "queueing"
    assert record.description
