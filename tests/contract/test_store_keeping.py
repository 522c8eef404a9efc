"""What every store keeps to where things are kept no longer, tasks are shared, and damage is looked for."""

from __future__ import annotations

import pytest
from profile_batches import batch, speeds
from stores import Opener, refused

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.profiles.batches import TraceChunk
from nodewise.profiles.store import ProfileStore, Retention


def chunk(data: bytes) -> TraceChunk:
    return TraceChunk(trace_id="t", data=data, last=True, format="f", world_size=1)


def test_nothing_goes_unless_a_rule_says_so(store: ProfileStore) -> None:
    store.append("job", "s", [batch(1, 1.0, commit=True, trace_chunks=(chunk(b"trace"),))])
    assert store.keep(Retention()) == {}
    hour = Retention(profiles_s=3600.0, observations_s=3600.0, traces_s=3600.0)
    assert store.keep(hour) == {}
    assert speeds(store.load("job")) == {1: 1.0}


def test_profiles_that_nobody_touched_are_deleted_and_can_be_brought_back(store: ProfileStore) -> None:
    for number in range(70):  # more than go at once
        store.append(f"job-{number}", "s", [batch(1, 1.0, commit=True)])
    store.append("begun", "s", [batch(1, 1.0, commit=True), batch(2, 2.0)])
    assert store.keep(Retention(profiles_s=0.0)) == {"profiles": 70}
    assert [found.profile_id for found in store.list()] == ["begun"]
    assert store.undelete("job-7").revision == 1
    assert speeds(store.load("job-7")) == {1: 1.0}


def test_old_observations_are_retracted_and_stay_in_the_history(store: ProfileStore) -> None:
    store.append("job", "s", [batch(1, 1.0, 2.0, commit=True), batch(2, 3.0, commit=True)])
    store.append("other", "s", [batch(1, 4.0, commit=True)])
    assert store.keep(Retention(observations_s=0.0)) == {"observations": 4}
    assert speeds(store.load("job")) == {}
    assert speeds(store.load("job", None, 2)) == {1: 1.0, 2: 2.0, 3: 3.0}
    assert store.keep(Retention(observations_s=0.0)) == {}


def test_no_trace_goes_that_anything_refers_to(store: ProfileStore) -> None:
    store.append("job", "s", [batch(1, 1.0, commit=True, trace_chunks=(chunk(b"referred to"),))])
    store.append("deleted", "s", [batch(1, 1.0, commit=True, trace_chunks=(chunk(b"may come back"),))])
    store.delete("deleted")
    stray = store.traces.finish(_staged(store), 5)
    assert store.keep(Retention(traces_s=0.0)) == {"traces": 1}
    with pytest.raises(NodewiseError):
        store.traces.open(stray)
    for name in ("job", "deleted"):
        store.undelete(name)
        with store.traces.open(store.load(name).traces[0].content_sha256) as file:
            assert file.read()


def _staged(store: ProfileStore) -> str:
    """A trace whose batch was never stored."""
    stage = "0" * 64
    store.traces.write(stage, 0, 0, b"stray")
    return stage


def test_a_task_is_one_process_s_until_its_lease_ends(shared: Opener) -> None:
    one, other = shared(), shared()
    assert one.claim("inspect", 3600.0)
    assert not other.claim("inspect", 3600.0)
    assert other.claim("keep", -1.0)
    assert one.claim("keep", 3600.0)
    for store in (one, other):
        store.close()


def test_what_is_well_is_found_so(store: ProfileStore) -> None:
    for number in range(40):  # more than one step
        store.append(f"job-{number}", "s", [batch(1, 1.0, commit=True)])
    rests: list[None] = []
    store.check()
    assert store.inspect(lambda: rests.append(None) or True) == 0  # type: ignore[func-returns-value]
    assert len(rests) >= 2
    store.close()
    refused(Reason.STORE_UNAVAILABLE, store.check)
