"""What every profile store keeps of runs beside other jobs."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from profile_batches import batch
from stores import refused

from nodewise.domain.errors import Reason
from nodewise.domain.sharing import SharedDeviceRun, SharingMode
from nodewise.profiles.store import Evidence, ProfileStore

RUN = SharedDeviceRun(
    device="V100",
    mode=SharingMode.MPS,
    partner_profile_id="other",
    share=0.1 + 0.2,
    partner_share=0.6,
    measured_at_s=7.5,
)


def test_runs_come_back_as_they_were_in_order_and_once(store: ProfileStore) -> None:
    later = replace(RUN, share=0.5)
    store.append("job", "s", [batch(1, 1.0, shared_runs=(RUN,), commit=True)])
    first = store.load("job")
    store.append("job", "s", [batch(2, shared_runs=(later, RUN), commit=True)])
    assert first.shared_runs == (RUN,)
    assert store.load("job").shared_runs == store.load("job", first).shared_runs == (RUN, later)
    assert store.load("job", revision=1).shared_runs == (RUN,)
    assert store.load("job").digest != first.digest


def test_a_run_that_is_taken_out_may_be_sent_again(store: ProfileStore) -> None:
    store.append("job", "s", [batch(1, 1.0, commit=True)])
    plain = store.load("job")
    store.append("job", "s", [batch(2, shared_runs=(RUN,), commit=True)])
    before = store.load("job")
    gone = Evidence.of(shared_runs=[RUN.content_sha256])
    assert store.retract("job", "r", gone, "the clock was throttled").digest == plain.digest
    assert store.load("job", before).shared_runs == store.load("job").shared_runs == ()
    assert store.retract("job", "r", gone).revision == 3
    error = refused(Reason.EVIDENCE_NOT_FOUND, store.retract, "job", "r2", gone)
    assert error.metadata["shared_run_sha256s"] == RUN.content_sha256
    store.append("job", "s", [batch(3, shared_runs=(RUN,), commit=True)])
    assert store.load("job", before).shared_runs == store.load("job").shared_runs == (RUN,)


def test_the_same_batch_is_the_same_and_another_is_not(store: ProfileStore) -> None:
    sent = batch(1, shared_runs=(RUN,), commit=True)
    store.append("job", "s", [sent])
    assert store.append("job", "s", [sent]).revision == 1
    other = batch(1, shared_runs=(replace(RUN, partner_share=0.7),), commit=True)
    refused(Reason.BATCH_CONFLICT, store.append, "job", "s", [other])


@pytest.mark.parametrize("share", [math.nan, math.inf])
def test_numbers_are_finite(store: ProfileStore, share: float) -> None:
    refused(Reason.INVALID_FIELD, store.append, "job", "s", [batch(1, shared_runs=(replace(RUN, share=share),))])
