"""Sessions of every profile store, whatever database is behind it: batches, their order, commits, facts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from profile_batches import (
    NETWORK,
    WORKLOAD,
    batch,
    observations,
    phase_timings,
    rows_of,
    speeds,
    varied_observations,
    varied_timings,
)
from stores import refused

from nodewise.domain.errors import Reason
from nodewise.domain.profile import Observations
from nodewise.domain.workload import Network, Workload
from nodewise.profiles.batches import Batch, TraceChunk
from nodewise.profiles.digest import content_digest
from nodewise.profiles.store import Evidence, ProfileStore, SessionStatus


def test_a_session_that_never_was_stands_at_zero_and_opening_writes_nothing(store: ProfileStore) -> None:
    before = store.generation()
    assert store.open_session("job", "s") == SessionStatus()
    assert store.list() == ()
    assert store.generation() == before


def test_staged_batches_are_durable_but_do_not_count(store: ProfileStore) -> None:
    before = store.generation()
    status = store.append("job", "s", [batch(1, 1.0), batch(2, 2.0)])
    assert status == SessionStatus(durable_sequence_number=2)
    assert store.open_session("job", "s") == status
    refused(Reason.PROFILE_NOT_FOUND, store.load, "job")
    assert store.list() == ()
    assert store.list() == ()
    refused(Reason.PROFILE_NOT_FOUND, store.delete, "job")
    refused(Reason.PROFILE_NOT_FOUND, store.retract, "job", "r", Evidence.of([1]))
    assert store.generation() == before


def test_a_commit_makes_everything_staged_count_at_once(store: ProfileStore) -> None:
    before = store.generation()
    store.append("job", "s", [batch(1, 1.0, workload=WORKLOAD), batch(2, 2.0, 3.0, network=NETWORK)])
    status = store.append("job", "s", [batch(3, 4.0, phase_timings=phase_timings(0.5), commit=True)])
    assert status == SessionStatus(
        durable_sequence_number=3, committed_sequence_number=3, revision=1, observations_count=4
    )
    assert store.open_session("job", "s") == status
    profile = store.load("job")
    assert speeds(profile) == {1: 1.0, 2: 2.0, 3: 3.0, 4: 4.0}
    assert (profile.workload, profile.network) == (WORKLOAD, NETWORK)
    assert profile.phase_timings.compute_s.tolist() == [0.5]
    assert (profile.profile_id, profile.revision) == ("job", 1)
    assert len(profile.uid) == 32
    assert profile.digest == content_digest(profile)
    assert profile.create_time_s == profile.update_time_s > 1e9
    assert store.generation() != before


def test_every_column_survives_to_the_bit(store: ProfileStore) -> None:
    rows, timings = varied_observations(7, 1), varied_timings(5, 2)
    more = varied_observations(4, 3)
    store.append("job", "s", [Batch(sequence_number=1, observations=rows, phase_timings=timings, commit=True)])
    first = store.load("job")
    store.append("job", "s", [Batch(sequence_number=2, observations=more, commit=True)])
    for profile in (store.load("job"), store.load("job", first)):
        numbered = replace(Observations.concatenated((rows, more)), number=np.arange(1, 12))
        assert rows_of(profile.observations) == rows_of(numbered)
        assert rows_of(profile.phase_timings) == rows_of(timings)


def test_numbers_given_by_the_caller_are_ignored(store: ProfileStore) -> None:
    rows = replace(observations(1.0, 2.0), number=np.array([7, 7]))
    store.append("job", "s", [Batch(sequence_number=1, observations=rows, commit=True)])
    assert speeds(store.load("job")) == {1: 1.0, 2: 2.0}


def test_two_sessions_interleave_and_each_commit_is_atomic(store: ProfileStore) -> None:
    store.append("job", "a", [batch(1, 1.0)])
    store.append("job", "b", [batch(1, 10.0)])
    store.append("job", "a", [batch(2, 2.0)])
    store.append("job", "b", [batch(2, 20.0, commit=True)])
    assert speeds(store.load("job")) == {1: 10.0, 2: 20.0}
    status = store.append("job", "a", [batch(3, commit=True)])
    assert status == SessionStatus(
        durable_sequence_number=3, committed_sequence_number=3, revision=2, observations_count=4
    )
    assert speeds(store.load("job")) == {1: 10.0, 2: 20.0, 3: 1.0, 4: 2.0}


def test_one_append_may_hold_several_commits(store: ProfileStore) -> None:
    status = store.append("job", "s", [batch(1, 1.0, commit=True), batch(2, 2.0, commit=True), batch(3, 3.0)])
    assert status == SessionStatus(
        durable_sequence_number=3, committed_sequence_number=2, revision=2, observations_count=2
    )


def test_a_commit_with_nothing_staged_moves_no_revision_and_makes_no_profile(store: ProfileStore) -> None:
    before = store.generation()
    status = store.append("job", "s", [batch(1, commit=True)])
    assert status == SessionStatus(durable_sequence_number=1, committed_sequence_number=1)
    refused(Reason.PROFILE_NOT_FOUND, store.load, "job")
    assert store.generation() == before
    store.append("job", "s", [batch(2, 1.0, commit=True)])
    profile = store.load("job")
    status = store.append("job", "s", [batch(3), batch(4, commit=True)])
    assert (status.revision, status.committed_sequence_number) == (1, 4)
    assert store.load("job", profile) is profile


def test_an_append_of_nothing_answers_the_status(store: ProfileStore) -> None:
    assert store.append("job", "s", []) == SessionStatus()
    store.append("job", "s", [batch(1, 1.0, commit=True)])
    assert store.append("job", "s", []) == store.open_session("job", "s")


def test_a_batch_sent_twice_is_stored_once(store: ProfileStore) -> None:
    sent = [batch(1, 1.0), batch(2, 2.0, commit=True), batch(3, 3.0)]
    status = store.append("job", "s", sent)
    generation = store.generation()
    assert store.append("job", "s", sent) == status
    assert store.append("job", "s", sent[1:2]) == status
    assert store.generation() == generation
    assert store.append("job", "s", [*sent, batch(4, 4.0, commit=True)]).observations_count == 4
    assert speeds(store.load("job")) == {1: 1.0, 2: 2.0, 3: 3.0, 4: 4.0}


def test_the_same_batch_twice_in_one_append_is_stored_once(store: ProfileStore) -> None:
    assert store.append("job", "s", [batch(1, 1.0), batch(1, 1.0), batch(2, commit=True)]).observations_count == 1
    refused(Reason.BATCH_CONFLICT, store.append, "job", "s", [batch(3, 1.0), batch(3, 2.0)])


def test_a_gap_names_the_number_that_is_expected(store: ProfileStore) -> None:
    error = refused(Reason.BATCH_OUT_OF_ORDER, store.append, "job", "s", [batch(2, 1.0)])
    assert error.metadata["expected_sequence_number"] == "1"
    store.append("job", "s", [batch(1, 1.0)])
    error = refused(Reason.BATCH_OUT_OF_ORDER, store.append, "job", "s", [batch(3, 1.0)])
    assert error.metadata["expected_sequence_number"] == "2"


def test_other_content_under_a_stored_number_is_a_conflict(store: ProfileStore) -> None:
    store.append("job", "s", [batch(1, 1.0)])
    error = refused(Reason.BATCH_CONFLICT, store.append, "job", "s", [batch(1, 1.0, commit=True)])
    assert error.metadata["sequence_number"] == "1"
    refused(Reason.BATCH_CONFLICT, store.append, "job", "s", [batch(1, 1.5)])
    store.append("job", "other session", [batch(1, 1.5)])


@pytest.mark.parametrize(
    ("last", "reason"),
    [
        (batch(4, 4.0), Reason.BATCH_OUT_OF_ORDER),
        (batch(1, 9.0), Reason.BATCH_CONFLICT),
        (batch(3, network=Network(link_bytes_per_s=7.0)), Reason.CONTRADICTORY_FACTS),
        (batch(3, np.nan), Reason.INVALID_FIELD),
        (batch(3, 1.0, np.inf), Reason.INVALID_FIELD),
        (batch(3, workload=Workload(flops_per_sample=float("nan"))), Reason.INVALID_FIELD),
        (batch(3, workload=Workload(samples_per_epoch=2**70)), Reason.INVALID_FIELD),
        (batch(3, workload=Workload(model_name="\ud800")), Reason.INVALID_FIELD),
        (batch(3, trace_chunks=(TraceChunk(trace_id="t", data=b"x"),)), Reason.INVALID_FIELD),
    ],
)
def test_all_of_an_append_is_stored_or_nothing(store: ProfileStore, last: Batch, reason: Reason) -> None:
    status = store.append("job", "s", [batch(1, 1.0, network=Network(link_bytes_per_s=5.0))])
    refused(reason, store.append, "job", "s", [batch(2, 2.0, commit=True), last])
    assert store.open_session("job", "s") == status
    refused(Reason.PROFILE_NOT_FOUND, store.load, "job")
    assert store.append("job", "s", [batch(2, 3.0, commit=True)]).observations_count == 2


def test_facts_must_agree_with_what_the_session_staged(store: ProfileStore) -> None:
    store.append("job", "s", [batch(1, workload=Workload(parameter_bytes=8))])
    error = refused(
        Reason.CONTRADICTORY_FACTS, store.append, "job", "s", [batch(2, workload=Workload(parameter_bytes=9))]
    )
    assert error.violations[0].field == "workload.parameter_bytes"
    store.append("job", "other", [batch(1, workload=Workload(parameter_bytes=9))])


def test_facts_must_agree_with_what_was_committed(store: ProfileStore) -> None:
    store.append("job", "a", [batch(1, workload=Workload(parameter_bytes=8), commit=True)])
    refused(Reason.CONTRADICTORY_FACTS, store.append, "job", "b", [batch(1, workload=Workload(parameter_bytes=9))])
    store.append("job", "b", [batch(1, workload=Workload(parameter_bytes=8, tensors=3), commit=True)])
    assert store.load("job").workload == Workload(parameter_bytes=8, tensors=3)


def test_staged_facts_that_another_session_overtook_cannot_be_committed(store: ProfileStore) -> None:
    store.append("job", "a", [batch(1, 1.0, network=Network(link_bytes_per_s=1.0))])
    store.append("job", "b", [batch(1, 2.0, network=Network(link_bytes_per_s=2.0), commit=True)])
    refused(Reason.CONTRADICTORY_FACTS, store.append, "job", "a", [batch(2, commit=True)])
    assert speeds(store.load("job")) == {1: 2.0}
