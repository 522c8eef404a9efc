"""What every store's times of steps keep to: once each, of profiles that are there, no longer than is said."""

from __future__ import annotations

import time

import numpy as np
import pytest
from profile_batches import batch
from stores import refused

from nodewise.domain.errors import Reason
from nodewise.domain.step_times import STEP_PARTS, StepTimes
from nodewise.profiles import step_reports
from nodewise.profiles.batches import Batch
from nodewise.profiles.naming import Naming
from nodewise.profiles.step_reports import WINDOWS_KEPT_S
from nodewise.profiles.store import ProfileStore

HOUR_S = 3600.0


def report(rank: int, begin_s: float, *, windows: int = 3, step_s: float = 0.5, node: int = -1) -> StepTimes:
    number = np.arange(windows, dtype=np.int64)
    parts = {f"{name}_s": np.full(windows, -1.0) for name in STEP_PARTS} | {"exchange_s": np.full(windows, 0.125)}
    return StepTimes(
        rank=np.full(windows, rank),
        node=np.full(windows, node),
        first_step=number * 10,
        steps=np.full(windows, 10),
        begin_s=begin_s + number * 5.0,
        step_s=np.full(windows, step_s),
        **parts,
    )


@pytest.fixture
def job(store: ProfileStore) -> ProfileStore:
    store.append("job", "s", [batch(1, 1.0, commit=True)])
    return store


def test_windows_come_back_as_they_were_sent(job: ProfileStore) -> None:
    now_s = time.time()
    job.steps.add("job", report(1, now_s, node=4))
    job.steps.add("job", report(0, now_s))
    found = job.steps.since("job", now_s - 1.0)
    assert found.rank.tolist() == [0, 0, 0, 1, 1, 1]
    assert found.node.tolist() == [-1, -1, -1, 4, 4, 4]
    assert found.first_step.tolist() == [0, 10, 20] * 2
    assert found.begin_s.tolist() == [now_s, now_s + 5.0, now_s + 10.0] * 2
    assert found.exchange_s.tolist() == [0.125] * 6
    assert found.loading_s.tolist() == [-1.0] * 6
    assert len(job.steps.since("job", now_s + 1.0)) == 0


def test_a_report_that_comes_again_counts_once_and_moves_no_revision(job: ProfileStore) -> None:
    now_s = time.time()
    for _ in range(2):
        job.steps.add("job", report(0, now_s))
    assert len(job.steps.since("job", 0.0)) == 3
    assert job.steps.hours("job").steps.sum() == 30
    assert job.load("job").revision == 1


def test_hours_hold_the_mean_step_over_ranks(job: ProfileStore) -> None:
    begin_s = time.time() // HOUR_S * HOUR_S - HOUR_S
    job.steps.add("job", report(0, begin_s, step_s=0.5))
    job.steps.add("job", report(1, begin_s, step_s=1.5))
    hours = job.steps.hours("job")
    assert (hours.begin_s.tolist(), hours.steps.tolist(), hours.step_s.tolist()) == ([begin_s], [60], [1.0])


def test_old_and_too_many_windows_go(job: ProfileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_reports, "_MOST_REPORTS", 2)
    now_s = time.time()
    job.steps.add("job", report(0, now_s - WINDOWS_KEPT_S - 100.0))
    for number in range(5):
        job.steps.add("job", report(0, now_s + number * 20.0))
    job.steps.add("job", report(1, now_s))
    found = job.steps.since("job", 0.0)
    assert (found.rank == 1).sum() == 3
    assert found.begin_s[found.rank == 0].min() == now_s + 60.0


def test_labels_are_told_and_profiles_must_be_there(job: ProfileStore) -> None:
    naming = Naming(labels={"nodewise.record": "one 3"})
    job.append("job", "t", [Batch(sequence_number=1, naming=naming, commit=True)])
    assert job.steps.add("job", report(0, time.time())) == {"nodewise.record": "one 3"}
    for call in (
        lambda: job.steps.add("other", report(0, 1.0)),
        lambda: job.steps.since("other", 0.0),
        lambda: job.steps.hours("other"),
    ):
        refused(Reason.PROFILE_NOT_FOUND, call)
    job.delete("job")
    refused(Reason.PROFILE_NOT_FOUND, lambda: job.steps.since("job", 0.0))
