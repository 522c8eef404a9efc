"""What every profile store tells of its profiles: revisions, digests, lists, names, labels, changes."""

from __future__ import annotations

import numpy as np
from profile_batches import (
    NETWORK,
    WORKLOAD,
    batch,
    chunk,
    observations,
    phase_timings,
    rows_of,
    speeds,
    varied_observations,
    varied_timings,
    without_identity,
)
from stores import refused

from nodewise.domain.errors import Reason
from nodewise.domain.profile import Profile
from nodewise.profiles.batches import Batch
from nodewise.profiles.digest import content_digest
from nodewise.profiles.naming import MOST_LABELS, Naming
from nodewise.profiles.store import AppendRequest, Evidence, ProfileStore, ProfileSummary


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


def test_names_are_data(store: ProfileStore) -> None:
    name = "x'; DROP TABLE profiles; --"
    store.append(name, name, [batch(1, 1.0, commit=True)])
    assert store.load(name).profile_id == name
    store.retract(name, name, Evidence.of([1]), name)
    assert [found.profile_id for found in store.list("x'")] == [name]
    store.delete(name)
    assert store.list() == ()


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
