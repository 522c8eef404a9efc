"""What the baselines refuse, row by row or altogether, and that they never push themselves forward."""

from __future__ import annotations

import pytest
from baseline_profiles import GOLDEN, assessed, configurations, predicted, profile
from nodewise_baselines.plugin import nodewise_estimators

from nodewise.plugin import Configurations, Reason, RowStatus, SyncMode, as_ints

RECORDS = nodewise_estimators()
NAMES = [record.name for record in RECORDS]
ALLREDUCE_ONLY = ["ernest-gpu", "ernest-node", "pollux", "pollux-restarts", "reference"]
NEED_SCALE = ["ernest-gpu", "ernest-node", "optimus-workers", "optimus-nodes", "reference"]
NEED_BATCH = [*NEED_SCALE, "pollux"]


def test_the_names() -> None:
    assert NAMES == [
        "linear",
        "ernest-gpu",
        "ernest-node",
        "optimus-workers",
        "optimus-nodes",
        "pollux",
        "pollux-restarts",
        "reference",
    ]


@pytest.mark.parametrize("name", NAMES)
def test_the_weakest_claim(name: str) -> None:
    assessment = assessed(name, profile(GOLDEN), configurations([(4, 16, 8)]))
    assert assessment.refusal is None
    assert assessment.strength == 0.01
    assert assessment.evidence == ("8 measured configurations, ALLREDUCE on T4",)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "pollux-restarts"])
def test_rows_that_nothing_was_measured_for_are_refused_one_by_one(name: str) -> None:
    asked = Configurations.concatenated(
        [
            configurations([(4, 16, 8)]),
            configurations([(4, 16, 8)], device="V100"),
            configurations([(4, 16, 8)], SyncMode.HYBRID),
            configurations([(4, 16, 8)], SyncMode.ASYNC, servers=[1]),
            configurations([(4, 16, 8)]).replaced(accumulation=as_ints([2])),
        ]
    )
    answer = predicted(name, profile(GOLDEN), asked)
    assert answer.status.tolist() == [RowStatus.ANSWERED] + [RowStatus.REFUSED] * 4
    assessment = assessed(name, profile(GOLDEN), asked)
    assert assessment.refusal is None
    for row in range(1, 5):
        alone = assessed(name, profile(GOLDEN), asked.take(as_ints([row]))).refusal
        assert alone is not None
        assert alone.reason in {Reason.EVIDENCE_MISSING, Reason.UNSUPPORTED_CONFIGURATION}


@pytest.mark.parametrize("name", NAMES)
def test_a_profile_without_runs_is_refused(name: str) -> None:
    refusal = assessed(name, profile(()), configurations([(4, 16, 8)])).refusal
    assert refusal is not None
    assert refusal.reason == Reason.EVIDENCE_MISSING
    assert refusal.missing_fields == ("observations",)


@pytest.mark.parametrize("name", NEED_SCALE)
def test_one_number_of_workers_says_nothing_of_others(name: str) -> None:
    refusal = assessed(name, profile(GOLDEN[:3]), configurations([(4, 16, 8)])).refusal
    assert refusal is not None
    assert "different numbers of workers" in refusal.message


@pytest.mark.parametrize("name", NEED_BATCH)
def test_a_batch_is_needed(name: str) -> None:
    unknown = [(nodes, workers, 0, step_s) for nodes, workers, _, step_s in GOLDEN[2:]]
    refusal = assessed(name, profile(unknown), configurations([(4, 16, 0)])).refusal
    assert refusal is not None
    assert "batch" in refusal.message
    answer = predicted(name, profile(GOLDEN), configurations([(4, 16, 0), (4, 16, 8)]))
    assert answer.answered.tolist() == [False, True]


@pytest.mark.parametrize("name", ALLREDUCE_ONLY)
@pytest.mark.parametrize("mode", [SyncMode.SYNC, SyncMode.ASYNC])
def test_forms_without_servers_refuse_them(name: str, mode: SyncMode) -> None:
    servers = [1] * len(GOLDEN)
    refusal = assessed(name, profile(GOLDEN, mode, servers=servers), configurations([(4, 16, 8)], mode)).refusal
    assert refusal is not None
    assert refusal.reason == Reason.UNSUPPORTED_CONFIGURATION


@pytest.mark.parametrize(("mode", "needed"), [(SyncMode.SYNC, 5), (SyncMode.ASYNC, 4)])
def test_optimus_waits_for_as_many_points_as_its_scheduler(mode: SyncMode, needed: int) -> None:
    runs = [(w, w, 8, 0.5 + 0.1 * w) for w in range(1, needed + 1)]
    asked = configurations([(8, 8, 8), (8, 8, 16), (8, 8, 8)], mode, servers=[1, 1, 0])
    enough = profile(runs, mode, servers=[1] * needed)
    assert assessed("optimus-nodes", enough, asked).refusal is None
    reached = [True, mode == SyncMode.SYNC, False]
    assert predicted("optimus-nodes", enough, asked).answered.tolist() == reached
    few = assessed("optimus-nodes", profile(runs[1:], mode, servers=[1] * (needed - 1)), asked).refusal
    assert few is not None
    assert f"{needed} different configurations" in few.message


def test_pollux_needs_one_gpu_to_tell_synchronisation() -> None:
    refusal = assessed("pollux", profile(GOLDEN[3:]), configurations([(4, 16, 8)])).refusal
    assert refusal is not None
    assert "exposed synchronisation" in refusal.message


def test_runs_that_no_form_has_variables_for_are_left_out() -> None:
    known = profile(GOLDEN)
    odd = profile([(1, 1, 8, 99.0)]).observations
    ran = odd.configurations.replaced(accumulation=as_ints([4]))
    both = known.observations.concatenated([known.observations, odd.of(ran, odd.steps_per_s)])
    mixed = type(known)(observations=both)
    asked = configurations([(4, 16, 8)])
    assert predicted("linear", mixed, asked).step_s.tolist() == predicted("linear", known, asked).step_s.tolist()
