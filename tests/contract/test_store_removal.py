"""What every profile store forgets when it is told to: retracted evidence, deleted profiles."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from profile_batches import NETWORK, batch, chunk, rows_of, speeds, varied_timings
from stores import Opener, refused

from nodewise.domain.errors import Reason
from nodewise.domain.profile import Profile
from nodewise.domain.workload import Network, Workload
from nodewise.profiles.batches import Batch
from nodewise.profiles.digest import content_digest
from nodewise.profiles.naming import Naming
from nodewise.profiles.sql_store import SqlProfileStore
from nodewise.profiles.store import Evidence, ProfileStore, ProfileSummary, SessionStatus


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


def test_there_is_a_day_to_bring_a_profile_back_by_whichever_process(shared: Opener) -> None:
    first, second = shared(), shared()
    assert isinstance(second, SqlProfileStore)
    first.append("job", "s", [batch(1, 1.0, commit=True)])
    deleted = first.delete("job", ProfileSummary.of(first.load("job")).etag)
    assert deleted.purge_time_s - deleted.delete_time_s == 86_400.0
    second._now = lambda: deleted.delete_time_s + 86_399.0
    assert second.undelete("job").etag == deleted.etag
    deleted = first.delete("job", deleted.etag)
    second._now = lambda: deleted.delete_time_s + 86_401.0
    refused(Reason.PROFILE_NOT_FOUND, second.undelete, "job")
    second.append("other", "s", [batch(1, 1.0, commit=True)])
    assert first.usage()[""].profiles == 1, "whoever writes next purges it"
    first.close()
    second.close()
