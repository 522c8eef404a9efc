"""A store that holds every kind of evidence, and all that can be asked of it."""

from __future__ import annotations

from typing import Any

from profile_batches import NETWORK, WORKLOAD, batch, chunk, phase_timings

from nodewise.domain.scores import ScoreSums
from nodewise.domain.sharing import SharedDeviceRun, SharingMode
from nodewise.profiles.sql_store import SqlProfileStore
from nodewise.profiles.store import Evidence, ProfileStore

__all__ = ["TRACE", "as_asked", "fill_up"]

TRACE = b"the bytes of a trace"
RUN = SharedDeviceRun(device="V100", mode=SharingMode.MPS, partner_profile_id="other", share=0.5, partner_share=0.5)


def fill_up(store: ProfileStore) -> None:
    """Bring it all: facts, timings, rows, traces, shared runs, retractions, deletions, scores, and what is staged."""
    store.append("jobs/full", "s", [batch(1, 1.0, 2.0, workload=WORKLOAD, network=NETWORK, commit=True)])
    store.append("jobs/full", "s", [batch(2, 3.0, phase_timings=phase_timings(0.5), shared_runs=(RUN,), commit=True)])
    whole = (chunk(0, TRACE[:5]), chunk(5, TRACE[5:], last=True), chunk(0, b"another", "other", last=True))
    store.append("jobs/full", "t", [batch(1, trace_chunks=whole, commit=True)])
    store.retract("jobs/full", "r1", Evidence.of([1], [1], ["workload.framework"]), "the clock was throttled")
    store.append("jobs/full", "u", [batch(1, 4.0), batch(2, trace_chunks=(chunk(0, b"half of"),))])
    store.append("jobs/gone", "s", [batch(1, 1.0, trace_chunks=(chunk(0, b"gone", last=True),), commit=True)])
    store.delete("jobs/gone")
    store.append("jobs/scored", "s", [batch(number, float(number), commit=True) for number in (1, 2, 3)])
    commit = store.scores.claim(1000.0)
    assert commit is not None
    store.scores.settle(commit, {("queueing", "1"): ScoreSums(observations=1, log_error=0.1, absolute_log_error=0.1)})


def go_on(store: ProfileStore) -> None:
    """What only a store can that has everything: a session and its trace go on, what was deleted comes back."""
    store.append("jobs/full", "u", [batch(3, trace_chunks=(chunk(7, b" it", last=True),), commit=True)])
    assert store.load("jobs/full").traces[-1].size_bytes == 10
    store.undelete("jobs/gone")
    store.append("jobs/new", "s", [batch(1, 1.0, commit=True)])


def as_asked(store: ProfileStore) -> Any:
    """All that can be asked of it, but for its generation."""
    assert isinstance(store, SqlProfileStore)
    listed = store.list(deleted=True)
    profiles = {}
    for profile in [store.load(summary.profile_id) for summary in store.list()]:
        earlier = [store.load(profile.profile_id, revision=number + 1).digest for number in range(profile.revision)]
        contents = []
        for trace in profile.traces:
            with store.traces.open(trace.content_sha256) as file:
                contents.append(file.read())
        times = (profile.create_time_s, profile.update_time_s, profile.uid)
        profiles[profile.profile_id] = (profile.digest, earlier, contents, times)
    sessions = [store.open_session("jobs/full", session) for session in ("s", "t", "u")]
    return listed, profiles, sessions, store.scores.scores(), store.scores.waiting()
