"""What every profile store keeps to, whatever database is behind it."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from patience import PATIENCE_S
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
    without_identity,
)
from stores import Opener

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.profile import Observations, PhaseTimings, Profile
from nodewise.domain.workload import Network, Workload
from nodewise.profiles.batches import Batch, TraceChunk
from nodewise.profiles.digest import content_digest
from nodewise.profiles.naming import MOST_LABELS, Naming
from nodewise.profiles.store import (
    AppendRequest,
    DeleteRequest,
    Evidence,
    ProfileStore,
    ProfileSummary,
    RetractRequest,
    SessionStatus,
)


def refused(reason: Reason, call: Callable[..., object], *arguments: object) -> NodewiseError:
    with pytest.raises(NodewiseError) as caught:
        call(*arguments)
    assert caught.value.reason == reason
    return caught.value


# --- sessions


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
    assert list(store.profiles()) == []
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


# --- idempotence and order


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


# --- facts


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


# --- reading


def test_load_returns_what_is_known_while_it_is_the_newest(store: ProfileStore) -> None:
    store.append("job", "s", [batch(1, 1.0, commit=True)])
    first = store.load("job")
    assert store.load("job", first) is first
    store.append("job", "s", [batch(2, 2.0, network=NETWORK, commit=True), batch(3, 3.0, commit=True)])
    second = store.load("job", first)
    assert (second.revision, speeds(second), second.network) == (3, {1: 1.0, 2: 2.0, 3: 3.0}, NETWORK)
    assert second.digest == store.load("job").digest
    assert speeds(first) == {1: 1.0}


def test_what_is_known_of_an_earlier_profile_of_that_name_is_of_no_use(store: ProfileStore) -> None:
    store.append("job", "s", [batch(1, 1.0, commit=True)])
    known = store.load("job")
    store.delete("job")
    store.append("job", "s", [batch(1, 5.0, commit=True)])
    fresh = store.load("job", known)
    assert fresh.uid != known.uid
    assert speeds(fresh) == {1: 5.0}


def test_every_revision_can_be_had_as_it_was(store: ProfileStore) -> None:
    history: list[Profile] = []

    def happened() -> None:
        history.append(store.load("job"))

    store.append("job", "a", [batch(1, 1.0, network=NETWORK, commit=True)])
    happened()
    rows, timings = varied_observations(5, 1), varied_timings(2, 2)
    later = Batch(
        sequence_number=2, observations=rows, phase_timings=timings, trace_chunks=(chunk(0, b"t", last=True),)
    )
    store.append("job", "a", [later, batch(3, workload=WORKLOAD, commit=True)])
    happened()
    store.retract("job", "r", Evidence.of([1, 3]))
    happened()
    store.append("job", "b", [batch(1, phase_timings=phase_timings(0.5), commit=True)])
    happened()
    store.append("job", "b", [batch(2, 2.0, 3.0, commit=True)])
    store.retract("job", "r2", Evidence.of([2]))
    happened()
    assert [profile.revision for profile in history] == [1, 2, 3, 4, 6]
    for then in history:
        for known in (None, *history):
            found = store.load("job", known, then.revision)
            assert (found.digest, found.revision, found.uid) == (then.digest, then.revision, then.uid)
            assert (found.workload, found.network, found.traces) == (then.workload, then.network, then.traces)
            assert (found.create_time_s, found.update_time_s) == (then.create_time_s, then.update_time_s)
            assert rows_of(found.observations) == rows_of(then.observations)
    assert speeds(store.load("job", None, 5)).keys() == {2, 4, 5, 6, 7, 8}
    for missing in (0, -1, 7):
        refused(Reason.REVISION_NOT_FOUND, store.load, "job", None, missing)
    refused(Reason.PROFILE_NOT_FOUND, store.load, "nobody", None, 1)


def test_equal_content_has_an_equal_digest_however_it_came(store: ProfileStore) -> None:
    store.append("a", "s", [batch(1, 1.0, workload=WORKLOAD), batch(2, 2.0, commit=True)])
    store.append("b", "s1", [batch(1, 1.0, commit=True)])
    store.append("b", "s2", [batch(1, workload=WORKLOAD, commit=True)])
    different = store.load("b").digest
    store.append("b", "s2", [batch(2, observations=observations(1.0, 2.0).take(np.array([1])), commit=True)])
    first = store.load("a")
    assert different != first.digest
    # Worker counts come from the position, so the second row of both is made to agree.
    store.append("c", "s", [Batch(sequence_number=1, observations=first.observations, workload=WORKLOAD, commit=True)])
    assert store.load("c").digest == first.digest == content_digest(without_identity(first))


def test_a_profile_that_does_not_exist_is_named(store: ProfileStore) -> None:
    error = refused(Reason.PROFILE_NOT_FOUND, store.load, "nobody")
    assert error.metadata == {"profile_id": "nobody"}


def test_lists_by_name_prefix_and_position(store: ProfileStore) -> None:
    names = ["b/2", "a", "b/10", "b", "c%_", "b/1"]
    for position, name in enumerate(names):
        store.append(name, "s", [batch(1, *range(1, position + 2), commit=True)])
    store.append("bare", "s", [batch(1, 1.0)])
    assert [found.profile_id for found in store.list()] == sorted(names)
    assert [found.profile_id for found in store.list("b")] == ["b", "b/1", "b/10", "b/2"]
    assert [found.profile_id for found in store.list("b", "b/1")] == ["b/10", "b/2"]
    assert [found.profile_id for found in store.list("b", "", 2)] == ["b", "b/1"]
    assert [found.profile_id for found in store.list("", "b/2", 1)] == ["c%_"]
    assert store.list("%") == ()
    loaded = store.load("b/10")
    (found,) = store.list("b/10")
    assert found == ProfileSummary(
        profile_id="b/10",
        uid=loaded.uid,
        revision=1,
        digest=loaded.digest,
        create_time_s=loaded.create_time_s,
        update_time_s=loaded.update_time_s,
        observations_count=3,
    )
    assert found.etag == loaded.etag


def test_iterates_over_every_profile(store: ProfileStore) -> None:
    names = [f"job {number:03}" for number in range(300)]
    store.apply([AppendRequest(name, "s", [batch(1, 1.0, commit=True)]) for name in names])
    found = []
    for profile in store.profiles():
        found.append(profile.profile_id)
        if profile.profile_id == "job 000":
            store.delete("job 001")
    assert found == [name for name in names if name != "job 001"]


def test_names_are_data(store: ProfileStore) -> None:
    name = "x'; DROP TABLE profiles; --"
    store.append(name, name, [batch(1, 1.0, commit=True)])
    assert store.load(name).profile_id == name
    store.retract(name, name, Evidence.of([1]), name)
    assert [found.profile_id for found in store.list("x'")] == [name]
    store.delete(name)
    assert store.list() == ()


# --- retraction and deletion


def test_a_retraction_takes_observations_out_and_moves_the_revision(store: ProfileStore) -> None:
    store.append("job", "s", [batch(1, 1.0, 2.0, 3.0, commit=True)])
    before = store.load("job")
    generation = store.generation()
    summary = store.retract("job", "r1", Evidence.of([3, 1, 3]), "the node was throttled")
    after = store.load("job", before)
    assert speeds(after) == speeds(store.load("job")) == {2: 2.0}
    assert (summary.revision, summary.observations_count, summary.digest) == (2, 1, after.digest)
    assert after.digest != before.digest
    assert store.generation() != generation
    assert store.append("job", "s", [batch(2, 4.0, commit=True)]).observations_count == 2
    assert speeds(store.load("job", before)) == speeds(store.load("job", after)) == {2: 2.0, 4: 4.0}


def test_a_retraction_of_the_newest_restores_the_digest_before_them(store: ProfileStore) -> None:
    store.append("job", "s", [batch(1, 1.0, commit=True)])
    before = store.load("job")
    store.append("job", "s", [batch(2, 2.0, 3.0, commit=True)])
    assert store.retract("job", "r", Evidence.of([2, 3])).digest == before.digest


def test_a_retraction_sent_twice_changes_nothing(store: ProfileStore) -> None:
    store.append("job", "s", [batch(1, 1.0, 2.0, commit=True)])
    first = store.retract("job", "r", Evidence.of([1]))
    generation = store.generation()
    assert store.retract("job", "r", Evidence.of((1, 1))) == first
    assert store.generation() == generation
    refused(Reason.REQUEST_ID_REUSED, store.retract, "job", "r", Evidence.of([2]))


def test_observations_that_are_not_there_cannot_be_retracted(store: ProfileStore) -> None:
    store.append("job", "s", [batch(1, 1.0, 2.0, commit=True)])
    store.retract("job", "r", Evidence.of([1]))
    error = refused(Reason.EVIDENCE_NOT_FOUND, store.retract, "job", "r2", Evidence.of([1, 2, 3, 0, 2**70]))
    assert error.metadata["observation_numbers"] == f"0,1,3,{2**70}"
    refused(Reason.INVALID_FIELD, store.retract, "job", "r3", Evidence.of([]))
    assert speeds(store.load("job")) == {2: 2.0}


def test_all_observations_may_go(store: ProfileStore) -> None:
    store.append("job", "s", [batch(1, 1.0, commit=True)])
    assert store.retract("job", "r", Evidence.of([1])).observations_count == 0
    profile = store.load("job")
    assert profile.is_empty
    assert profile.digest == content_digest(Profile())


def test_facts_timings_and_traces_are_retracted_and_may_come_again(store: ProfileStore) -> None:
    sent = Batch(
        sequence_number=1,
        workload=Workload(parameter_bytes=8, tensors=3),
        network=NETWORK,
        phase_timings=varied_timings(3, 1),
        trace_chunks=(chunk(0, b"t", last=True),),
        commit=True,
    )
    store.append("job", "s", [sent])
    history = [store.load("job")]
    gone = Evidence.of(
        (), [2], ["workload.parameter_bytes", "network.half_duplex"], [history[0].traces[0].content_sha256]
    )
    store.retract("job", "r", gone)
    assert store.retract("job", "r", gone).revision == 2
    history.append(store.load("job", history[0]))
    assert history[1].phase_timing_numbers.tolist() == [1, 3]
    assert rows_of(history[1].phase_timings) == rows_of(varied_timings(3, 1).take(np.array([0, 2])))
    assert (history[1].workload, history[1].traces) == (Workload(tensors=3), ())
    assert history[1].network == replace(NETWORK, half_duplex=None)
    refused(Reason.EVIDENCE_NOT_FOUND, store.retract, "job", "r2", gone)
    refused(Reason.REQUEST_ID_REUSED, store.retract, "job", "r", Evidence.of(facts=["workload.tensors"]))
    other = Workload(parameter_bytes=9)
    store.append("job", "t", [replace(sent, workload=other, network=Network())])
    history.append(store.load("job", history[1]))
    assert history[2].phase_timing_numbers.tolist() == [1, 3, 4, 5, 6]
    assert (history[2].workload, len(history[2].traces)) == (Workload(parameter_bytes=9, tensors=3), 1)
    store.retract("job", "r3", Evidence.of(facts=["workload.parameter_bytes"], phase_timings=[6]))
    history.append(store.load("job", history[0]))
    for then in history:
        for known in (None, *history):
            found = store.load("job", known, then.revision)
            assert (found.digest, found.workload, found.traces) == (then.digest, then.workload, then.traces)
            assert found.phase_timing_numbers.tolist() == then.phase_timing_numbers.tolist()


def test_deletes_a_profile_with_its_sessions(store: ProfileStore) -> None:
    store.append("job", "s", [batch(1, 1.0, commit=True), batch(2, 2.0)])
    store.append("job", "t", [batch(1, 3.0)])
    store.retract("job", "r", Evidence.of([1]))
    generation = store.generation()
    store.delete("job")
    assert store.generation() != generation
    refused(Reason.PROFILE_NOT_FOUND, store.load, "job")
    refused(Reason.PROFILE_NOT_FOUND, store.delete, "job")
    assert store.open_session("job", "s") == store.open_session("job", "t") == SessionStatus()
    error = refused(Reason.BATCH_OUT_OF_ORDER, store.append, "job", "s", [batch(3, 1.0)])
    assert error.metadata["expected_sequence_number"] == "1"
    store.append("job", "s", [batch(1, 9.0, commit=True)])
    assert speeds(store.load("job")) == {1: 9.0}


def test_an_etag_guards_a_deletion(store: ProfileStore) -> None:
    store.append("job", "s", [batch(1, 1.0, commit=True)])
    etag = store.load("job").etag
    store.append("job", "s", [batch(2, 2.0, commit=True)])
    error = refused(Reason.ETAG_MISMATCH, store.delete, "job", etag)
    assert error.metadata["etag"] == store.load("job").etag
    store.delete("job", store.load("job").etag)


def test_a_deleted_profile_comes_back_as_it_was(store: ProfileStore) -> None:
    store.append("job", "s", [batch(1, 1.0, commit=True), batch(2, 2.0)])
    before, status = store.load("job"), store.open_session("job", "s")
    deleted = store.delete("job", before.etag)
    assert deleted.purge_time_s > deleted.delete_time_s >= before.update_time_s
    assert replace(deleted, delete_time_s=0.0, purge_time_s=0.0) == ProfileSummary.of(before)
    generation = store.generation()
    assert store.delete("job", before.etag) == deleted
    assert store.generation() == generation
    assert store.undelete("job") == store.undelete("job") == ProfileSummary.of(before)
    assert store.generation() != generation
    assert store.open_session("job", "s") == status
    assert speeds(store.load("job")) == {1: 1.0}
    assert store.append("job", "s", [batch(3, commit=True)]).observations_count == 2


def test_a_profile_begun_under_the_name_of_a_deleted_one_keeps_it(store: ProfileStore) -> None:
    refused(Reason.PROFILE_NOT_FOUND, store.undelete, "job")
    store.append("job", "s", [batch(1, 1.0, commit=True)])
    store.delete("job")
    store.append("job", "s", [batch(1, 2.0)])
    refused(Reason.PROFILE_NOT_FOUND, store.undelete, "job")
    assert store.list(deleted=True) == ()
    store.append("job", "s", [batch(2, commit=True)])
    assert speeds(store.load("job")) == {1: 2.0}


def test_lists_deleted_profiles_where_they_are_wanted(store: ProfileStore) -> None:
    for name in ("a", "b", "c"):
        store.append(name, "s", [batch(1, 1.0, naming=Naming(labels={"of": name}), commit=True)])
    deleted = store.delete("b")
    assert [found.profile_id for found in store.list()] == ["a", "c"]
    assert [found.profile_id for found in store.list(deleted=True)] == ["a", "b", "c"]
    assert store.list("", "a", 1, deleted=True) == store.list(labels=[("of", "b")], deleted=True) == (deleted,)
    assert store.list(labels=[("of", "b")]) == ()


# --- names and labels


def test_names_and_labels_count_from_their_commit_on(store: ProfileStore) -> None:
    store.append("job", "s", [batch(1, 1.0, naming=Naming(display_name="one", labels={"a": "1", "b": "2"}))])
    store.append("job", "s", [batch(2, naming=Naming(labels={"a": "", "c": "3"}), commit=True)])
    first = store.load("job")
    assert (first.display_name, first.labels) == ("one", {"b": "2", "c": "3"})
    assert first.digest == content_digest(without_identity(first))
    status = store.append("job", "t", [batch(1, naming=Naming(display_name=""), commit=True)])
    assert (status.revision, status.observations_count) == (2, 1)
    second = store.load("job", first)
    assert (second.display_name, second.labels, second.digest) == ("", first.labels, first.digest)
    for known in (None, first, second):
        found = store.load("job", known, 1)
        assert (found.display_name, found.labels) == (first.display_name, first.labels)
    refused(Reason.BATCH_CONFLICT, store.append, "job", "t", [batch(1, naming=Naming(display_name="x"), commit=True)])


def test_a_profile_has_so_many_labels_at_most(store: ProfileStore) -> None:
    many = Naming(labels={str(number): "x" for number in range(MOST_LABELS)})
    store.append("job", "s", [batch(1, naming=many, commit=True)])
    error = refused(Reason.INVALID_FIELD, store.append, "job", "s", [batch(2, naming=Naming(labels={"one": "more"}))])
    assert error.violations[0].field == "labels"
    store.append("job", "s", [batch(2, naming=Naming(labels={"one": "more", "0": ""}), commit=True)])
    assert len(store.load("job").labels) == MOST_LABELS


# --- changes


def test_tells_what_changed_after_a_generation(store: ProfileStore) -> None:
    start, none = store.changes(0)
    assert none == ()
    store.apply([AppendRequest(name, "s", [batch(1, 1.0, commit=True)]) for name in ("a", "b", "other")])
    store.append("a", "s", [batch(2, 2.0)])
    middle, found = store.changes(start)
    assert [summary.profile_id for summary in found] == ["a", "b", "other"]
    assert found == store.list()
    assert store.changes(middle) == (middle, ())
    store.append("b", "s", [batch(2, 2.0, commit=True)])
    deleted = store.delete("a")
    store.append("a", "s", [batch(1, 5.0, commit=True)])
    last, found = store.changes(middle)
    assert found == (deleted, *store.list("b"), *store.list("a"))
    assert [summary.profile_id for summary in store.changes(start, "b")[1]] == ["b"]
    store.retract("b", "r", Evidence.of([1]))
    assert store.changes(last)[1] == store.list("b")


# --- traces


def chunk(offset_bytes: int, data: bytes, trace_id: str = "rank 0", *, last: bool = False) -> TraceChunk:
    return TraceChunk(
        trace_id=trace_id, data=data, offset_bytes=offset_bytes, last=last, format="kineto", rank=0, world_size=2
    )


def test_traces_are_kept_under_their_hash_from_the_commit_on(store: ProfileStore) -> None:
    store.append("job", "s", [batch(1, 1.0, trace_chunks=(chunk(0, b"abc"),))])
    store.append("job", "s", [batch(2, trace_chunks=(chunk(3, b"def", last=True), chunk(0, b"x", "../..", last=True)))])
    refused(Reason.PROFILE_NOT_FOUND, store.load, "job")
    store.append("job", "s", [batch(3, commit=True)])
    first, second = store.load("job").traces
    assert first.content_sha256 == hashlib.sha256(b"abcdef").hexdigest()
    assert (first.format, first.rank, first.world_size, first.size_bytes) == ("kineto", 0, 2, 6)
    assert second.content_sha256 == hashlib.sha256(b"x").hexdigest()
    assert store.load("job").digest != content_digest(replace(store.load("job"), traces=()))


def test_the_same_trace_twice_is_one_reference(store: ProfileStore) -> None:
    store.append("job", "s", [batch(1, trace_chunks=(chunk(0, b"abc", last=True),), commit=True)])
    known = store.load("job")
    store.append("job", "t", [batch(1, trace_chunks=(chunk(0, b"abc", last=True),), commit=True)])
    assert len(store.load("job").traces) == len(store.load("job", known).traces) == 1


def test_half_a_trace_is_never_committed(store: ProfileStore) -> None:
    sent = batch(1, trace_chunks=(chunk(0, b"abc"),), commit=True)
    assert refused(Reason.INVALID_FIELD, store.append, "job", "s", [sent]).violations[0].field == "commit"
    store.append("job", "s", [batch(1, trace_chunks=(chunk(0, b"abd"),))])
    refused(Reason.INVALID_FIELD, store.append, "job", "s", [batch(2, commit=True)])
    store.append("job", "s", [batch(2, trace_chunks=(chunk(3, b"e", last=True),), commit=True)])
    assert store.load("job").traces[0].content_sha256 == hashlib.sha256(b"abde").hexdigest()


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        (chunk(4, b"x"), "offset_bytes"),
        (chunk(-1, b"x"), "offset_bytes"),
        (chunk(0, b"abx"), "data"),
        (chunk(1, b"", ""), "trace_id"),
        (chunk(0, b"", "new", last=True), "data"),
        (replace(chunk(0, b"x", "new"), format=""), "format"),
        (replace(chunk(0, b"x", "new"), world_size=-1), "world_size"),
        (replace(chunk(0, b"x", "new"), rank=-2), "rank"),
        (replace(chunk(0, b"x", "new"), rank=2), "rank"),
        (chunk(1, b"y", "done"), "trace_id"),
    ],
)
def test_chunks_that_do_not_continue_their_trace_are_refused(store: ProfileStore, bad: TraceChunk, field: str) -> None:
    status = store.append("job", "s", [batch(1, trace_chunks=(chunk(0, b"abc"), chunk(0, b"z", "done", last=True)))])
    sent = batch(2, trace_chunks=(chunk(3, b"de"), bad)) if bad.offset_bytes != 4 else batch(2, trace_chunks=(bad,))
    error = refused(Reason.INVALID_FIELD, store.append, "job", "s", [sent])
    assert error.violations[0].field.startswith("trace_chunks")
    assert error.violations[0].field.endswith(field)
    assert store.open_session("job", "s") == status
    # What was refused left nothing behind: other bytes may come, and bytes sent again may overlap.
    store.append("job", "s", [batch(2, trace_chunks=(chunk(1, b"bcXY", last=True),), commit=True)])
    assert hashlib.sha256(b"abcXY").hexdigest() in {trace.content_sha256 for trace in store.load("job").traces}


def test_a_trace_that_ended_in_a_refused_append_may_end_again(store: ProfileStore) -> None:
    store.append("job", "s", [batch(1, trace_chunks=(chunk(0, b"abc"), chunk(0, b"abc", "other")))])
    ends, wrong = chunk(3, b"d", last=True), chunk(0, b"X", "other")
    refused(Reason.INVALID_FIELD, store.append, "job", "s", [batch(2, trace_chunks=(ends, wrong))])
    right = chunk(3, b"e", "other", last=True)
    store.append("job", "s", [batch(2, trace_chunks=(ends, right), commit=True)])
    contents = []
    for trace in store.load("job").traces:
        with store.traces.open(trace.content_sha256) as file:
            contents.append(file.read())
    assert contents == [b"abcd", b"abce"]


# --- several writes at once


def test_requests_that_share_a_transaction_fail_alone(store: ProfileStore) -> None:
    store.append("old", "s", [batch(1, 1.0, commit=True)])
    outcomes = store.apply(
        [
            AppendRequest("a", "s", [batch(1, 1.0, commit=True)]),
            AppendRequest("b", "s", [batch(2, 1.0)]),
            AppendRequest("a", "s", [batch(2, np.nan)]),
            RetractRequest("old", "r", Evidence.of((7,))),
            AppendRequest("a", "s", [batch(2, 2.0, commit=True)]),
            DeleteRequest("old"),
            DeleteRequest("old"),
            AppendRequest("old", "s", [batch(1, 5.0, commit=True)]),
            RetractRequest("a", "r", Evidence.of((1,))),
        ]
    )
    reasons = [outcome.reason if isinstance(outcome, NodewiseError) else None for outcome in outcomes]
    assert reasons == [
        None,
        Reason.BATCH_OUT_OF_ORDER,
        Reason.INVALID_FIELD,
        Reason.EVIDENCE_NOT_FOUND,
        None,
        None,
        Reason.PROFILE_NOT_FOUND,
        None,
        None,
    ]
    assert speeds(store.load("a")) == {2: 2.0}
    assert speeds(store.load("old")) == {1: 5.0}
    assert isinstance(outcomes[8], ProfileSummary)
    assert outcomes[8].digest == store.load("a").digest
    assert store.apply([]) == []


def test_a_closed_store_is_unavailable(store: ProfileStore) -> None:
    store.append("job", "s", [batch(1, 1.0, commit=True)])
    store.close()
    refused(Reason.STORE_UNAVAILABLE, store.load, "job")
    refused(Reason.STORE_UNAVAILABLE, store.append, "job", "s", [batch(2, 1.0)])
    refused(Reason.STORE_UNAVAILABLE, store.open_session, "job", "s")
    refused(Reason.STORE_UNAVAILABLE, store.generation)
    store.close()


def test_threads_share_a_store(store: ProfileStore) -> None:
    together = threading.Barrier(4)

    def work(worker: int) -> None:
        together.wait()
        for number in range(1, 11):
            store.append("job", f"s{worker}", [batch(number, float(worker), commit=True)])
            profile = store.load("job")
            assert profile.digest == content_digest(profile)
            assert profile.observations.number.tolist() == list(range(1, profile.revision + 1))
            store.list()

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(work, worker) for worker in range(4)]:
            done.result()
    assert store.load("job").revision == 40
    assert sorted(speeds(store.load("job")).values()) == [0.0] * 10 + [1.0] * 10 + [2.0] * 10 + [3.0] * 10


# --- several processes (each with a store of its own)


def test_what_is_acknowledged_is_there_after_reopening(shared: Opener) -> None:
    store = shared()
    store.append("job", "s", [batch(1, 1.0, workload=WORKLOAD, trace_chunks=(chunk(0, b"ab"),)), batch(2, 2.0)])
    status = store.open_session("job", "s")
    store.close()
    store = shared()
    assert store.open_session("job", "s") == status
    refused(Reason.CONTRADICTORY_FACTS, store.append, "job", "s", [batch(3, workload=replace(WORKLOAD, tensors=17))])
    store.append("job", "s", [batch(3, trace_chunks=(chunk(2, b"c", last=True),), commit=True)])
    profile = store.load("job")
    store.close()
    store = shared()
    again = store.load("job")
    assert (again.uid, again.digest, again.revision) == (profile.uid, profile.digest, 1)
    assert speeds(again) == {1: 1.0, 2: 2.0}
    assert again.traces[0].content_sha256 == hashlib.sha256(b"abc").hexdigest()
    store.close()


def test_every_process_sees_what_another_committed(shared: Opener) -> None:
    one, other = shared(), shared()
    seen = {other.generation()}
    one.append("job", "s", [batch(1, 1.0)])
    assert other.generation() in seen
    assert other.open_session("job", "s").durable_sequence_number == 1
    one.append("job", "s", [batch(2, commit=True)])
    assert other.generation() not in seen
    seen.add(other.generation())
    assert other.generation() in seen
    known = other.load("job")
    other.append("job", "s", [batch(3, 2.0, commit=True)])
    assert one.generation() == other.generation()
    assert other.generation() not in seen
    seen.add(other.generation())
    assert speeds(one.load("job", known)) == {1: 1.0, 2: 2.0}
    one.retract("job", "r", Evidence.of([1]))
    assert other.generation() not in seen
    seen.add(other.generation())
    one.delete("job")
    assert other.generation() not in seen
    refused(Reason.PROFILE_NOT_FOUND, other.load, "job", known)
    one.close()
    other.close()


def test_the_same_batches_sent_to_two_processes_are_stored_once(shared: Opener) -> None:
    stores = [shared(), shared()]
    together = threading.Barrier(2)

    def send(store: ProfileStore) -> None:
        together.wait()
        for number in range(1, 101):
            store.append("job", "s", [batch(number, float(number), commit=number % 10 == 0)])

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(send, store) for store in stores]:
            done.result()
    for store in stores:
        assert speeds(store.load("job")) == {number: float(number) for number in range(1, 101)}
        assert store.load("job").revision == 10
        store.close()


def test_a_reader_does_not_wait_for_a_writer(shared: Opener) -> None:
    store = shared()
    store.append("job", "s", [batch(1, 1.0, commit=True)])
    inside, go_on = threading.Event(), threading.Event()

    class Slow(Batch):
        """Stops the writer inside its transaction."""

        __slots__ = ()

        @property
        def has_facts(self) -> bool:
            inside.set()
            assert go_on.wait(PATIENCE_S)
            return False

    with ThreadPoolExecutor(1) as pool:
        slow = Slow(sequence_number=2, observations=observations(2.0), phase_timings=PhaseTimings.none())
        writing = pool.submit(store.append, "job", "s", [slow])
        assert inside.wait(PATIENCE_S)
        assert speeds(store.load("job")) == {1: 1.0}
        assert store.open_session("job", "s").durable_sequence_number == 1
        assert store.list()[0].revision == 1
        store.generation()
        go_on.set()
        assert writing.result(PATIENCE_S).durable_sequence_number == 2
    store.close()
