"""What the estimator refuses, and what it tells the reader."""

from __future__ import annotations

import pytest
from scaling_profiles import (
    EIGHT,
    USUAL,
    Scale,
    answered,
    assessed,
    full,
    job,
    joined,
    notices,
    predicted,
    profile,
    refused,
    rows,
    several,
)

from nodewise.plugin import Profile, Reason, SyncMode, as_ints
from nodewise_scaling.plugin import nodewise_estimators


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"sync_mode": int(SyncMode.SYNC)}, "ALLREDUCE"),
        ({"sync_mode": int(SyncMode.ASYNC)}, "ALLREDUCE"),
        ({"sync_mode": int(SyncMode.HYBRID)}, "ALLREDUCE"),
    ],
)
def test_unsupported_rows_are_refused_one_by_one(columns: dict[str, int], words: str) -> None:
    asked = several(rows(full([2])), rows(full([4]), **columns), rows(full([3])))
    answer = predicted(job(), asked)
    assert list(refused(answer)) == [1]
    reason, message = refused(answer)[1]
    assert reason == Reason.UNSUPPORTED_CONFIGURATION
    assert words in message
    assert all(column[1] == 0.0 for column in (answer.step_s, answer.log_spread, *answer.breakdown_s.values()))
    assert answer.bottleneck_index[1] == -1
    assert assessed(job(), asked).refusal is None
    alone = assessed(job(), rows(full([4]), **columns)).refusal
    assert alone is not None
    assert alone.reason == Reason.UNSUPPORTED_CONFIGURATION


def test_a_device_that_is_not_asked_for_is_the_only_one_that_was_measured() -> None:
    assert answered(job(), rows(full([3]), device="")).step_s == answered(job(), rows(full([3]))).step_s
    both = joined(job(), job(device="V100"))
    assert refused(predicted(both, rows(full([3]), device=""))).keys() == {0}


@pytest.mark.parametrize(
    "of",
    [
        Profile(),
        profile(rows(EIGHT, sync_mode=int(SyncMode.SYNC)), USUAL.step_s(EIGHT)),
        profile(rows(full([1, 2]), tensor_parallel=4), [1.0, 1.1]),
    ],
)
def test_profiles_without_a_data_parallel_all_reduce_run_are_refused(of: Profile) -> None:
    refusal = assessed(of, rows(full([1, 2]))).refusal
    assert refusal is not None
    assert refusal.reason == Reason.EVIDENCE_MISSING
    assert refusal.missing_fields == ("observations",)
    assert refused(predicted(of, rows(full([1, 2])))).keys() == {0, 1}


def test_runs_of_another_kind_are_left_out() -> None:
    other = several(rows(full([4]), sync_mode=int(SyncMode.SYNC)), rows(full([4]), pipeline_parallel=4))
    of = joined(job(), profile(other, [50.0, 70.0]))
    asked = rows(full([3, 4, 8]))
    assert answered(of, asked).step_s.tolist() == answered(job(), asked).step_s.tolist()


def test_evidence_of_an_unstated_device_answers_with_a_notice() -> None:
    told = notices(answered(job(device=""), rows(full([3]), device="V100")))
    assert "V100" in told["DEVICE_ASSUMED"]
    assert "DEVICE_ASSUMED" not in notices(answered(job(device=""), rows(full([3]), device="")))


def test_a_device_that_no_other_job_ran_on_is_told() -> None:
    assert "CLUSTER_NOT_KNOWN" not in notices(answered(job(), rows(full([3]))))
    told = notices(answered(job(device="K80"), rows(full([3]), device="K80")))
    assert "K80" in told["CLUSTER_NOT_KNOWN"]


@pytest.mark.parametrize(
    ("seen", "strength", "words"),
    [
        (EIGHT, 0.8, "8 all-reduce configurations measured on T4 (1 to 2 nodes)"),
        (((1, 1, 8), (1, 4, 8)), 0.5, "2 all-reduce configurations measured on T4 (1 nodes)"),
        (((4, 16, 8),), 0.3, "1 all-reduce configuration measured on T4 (4 nodes)"),
    ],
)
def test_evidence_is_judged(seen: tuple[Scale, ...], strength: float, words: str) -> None:
    assessment = assessed(job(scales=seen), rows(full([8])))
    assert assessment.refusal is None
    assert assessment.strength == strength
    assert assessment.evidence == (words,)


def test_the_weakest_of_the_asked_devices_counts() -> None:
    both = joined(job(), job(scales=[(1, 1, 8)], device="V100"))
    asked = several(rows(full([3])), rows(full([3]), device="V100"))
    assert assessed(both, asked).strength == assessed(both, rows(full([3]), device="V100")).strength
    assert assessed(both, rows(full([3]))).strength > assessed(both, asked).strength


def test_the_plugin_registers_one_estimator() -> None:
    (record,) = nodewise_estimators()
    assert record.name == "scaling"
    assert record.capabilities == {"sync-mode:allreduce"}


def test_a_batch_that_is_not_said_is_the_usual_one_and_said_so() -> None:
    asked = rows(full([1, 8])).replaced(batch_per_worker=as_ints([0, 0]))
    answer = predicted(job(), asked)
    usual = predicted(job(), rows(full([1, 8], batch=8)))
    assert answer.step_s.tolist() == usual.step_s.tolist()
    assert "BATCH_ASSUMED" in [notice.reason for notice in answer.notices]
