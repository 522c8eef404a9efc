"""Several workers of one server: what one of them stores, deletes or tells, all of them do."""

from __future__ import annotations

import hashlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import grpc
import pytest
from patience import PATIENCE_S
from serving import ServerProcess, Stubs, failure_of, observed, one_worker_phases, stored, workers

from nodewise_client import Client, WatchProfilesRequest
from nodewise_protos.v1 import prediction_service_pb2 as predictions
from nodewise_protos.v1 import profile_pb2
from nodewise_protos.v1 import profile_service_pb2 as profiles

pytestmark = pytest.mark.wheel

"""Longer than anything here takes; nothing waits so long."""
CONNECTIONS = 10
"""The kernel spreads connections over the workers: with so many of them each has some."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    store = tmp_path_factory.mktemp("store") / "store.db"
    with ServerProcess("--workers", "2", "--store", f"sqlite:{store}", "--grace-s", "1") as running:
        yield running


@pytest.fixture
def connections(server: ServerProcess) -> Iterator[list[Stubs]]:
    with ExitStack() as stack:
        yield [stack.enter_context(Stubs(server.target)) for _ in range(CONNECTIONS)]


def append(stubs: Stubs, profile_id: str, request_id: str = "first", /, **fields: Any) -> profile_pb2.Profile:
    request = profiles.AppendProfileRequest(
        **{"profile_id": profile_id, "request_id": request_id, "content": one_worker_phases(), **fields}
    )
    found: profile_pb2.Profile = stubs.profile.AppendProfile(request, timeout=PATIENCE_S).profile
    return found


# --- sessions


UNIT = 3
BATCHES = 12


def piece(number: int) -> bytes:
    return bytes([number]) * 2048


def batch(number: int, rate: float | None = None) -> profiles.ProfileBatch:
    """One run, whose rate tells the number, and a piece of the trace that ends with the unit."""
    unit, place = divmod(number - 1, UNIT)
    ends = place == UNIT - 1
    chunk = profile_pb2.TraceChunk(
        trace_id=f"t{unit}", format="kineto", offset_bytes=2048 * place, data=piece(number), last=ends
    )
    return profiles.ProfileBatch(
        sequence_number=number,
        observations=observed([1], [rate or float(number)]),
        trace_chunks=[chunk],
        commit=ends,
    )


def sent(stubs: Stubs, *batches: profiles.ProfileBatch) -> profiles.IngestState:
    """By a stream of their own; with none it only opens."""
    opening = profiles.OpenSession(profile_id="both/ways", session_id="s")
    requests = [profiles.IngestProfileRequest(open=opening)]
    requests += [profiles.IngestProfileRequest(batch=each) for each in batches]
    *_, last = stubs.profile.IngestProfile(iter(requests), timeout=PATIENCE_S)
    state: profiles.IngestState = last.state
    return state


def told(stubs: Stubs, one: profiles.ProfileBatch | None = None) -> profiles.IngestState:
    """By a call each; with none it only asks."""
    request = profiles.IngestBatchRequest(profile_id="both/ways", session_id="s", batch=one)
    state: profiles.IngestState = stubs.profile.IngestBatch(request, timeout=PATIENCE_S).state
    return state


def test_streams_and_calls_resume_each_other_wherever_they_arrive(connections: list[Stubs]) -> None:
    ways: list[Callable[[Stubs, profiles.ProfileBatch], profiles.IngestState]] = [sent, told]
    assert told(connections[0]).durable_sequence_number == 0, "nothing was sent"
    for number in range(1, BATCHES + 1):
        here, there = connections[number % CONNECTIONS], connections[(number + 1) % CONNECTIONS]
        way, other = ways[number % 2], ways[(number + 1) % 2]
        state = way(here, batch(number))
        committed = number - number % UNIT
        assert (state.durable_sequence_number, state.committed_sequence_number) == (number, committed)
        assert (state.revision, state.observations_count) == (committed // UNIT, committed)
        # The other way, somewhere else: the same again changes nothing, and both tell the same.
        assert other(there, batch(number)) == state
        assert told(there) == sent(here) == state
    found = connections[0].profile.GetProfile(profiles.GetProfileRequest(profile_id="both/ways")).profile
    assert list(found.content.observations.steps_per_second) == [float(number) for number in range(1, BATCHES + 1)]
    traces = [b"".join(map(piece, range(first, first + UNIT))) for first in range(1, BATCHES + 1, UNIT)]
    assert {each.content_sha256: each.size_bytes for each in found.content.traces} == {
        hashlib.sha256(trace).hexdigest(): len(trace) for trace in traces
    }


def test_what_does_not_continue_a_session_is_refused_alike_both_ways(connections: list[Stubs]) -> None:
    for name, way in (("by-stream", _refused_on_stream), ("by-call", _refused_in_call)):
        assert way(connections[0], name, batch(2)) == (grpc.StatusCode.FAILED_PRECONDITION, "BATCH_OUT_OF_ORDER")
        first = profiles.IngestBatchRequest(profile_id=name, session_id="s", batch=batch(1))
        connections[1].profile.IngestBatch(first, timeout=PATIENCE_S)
        assert way(connections[2], name, batch(1, 99.0)) == (grpc.StatusCode.ALREADY_EXISTS, "BATCH_CONFLICT")
        assert way(connections[3], name, batch(3)) == (grpc.StatusCode.FAILED_PRECONDITION, "BATCH_OUT_OF_ORDER")
        again = connections[4].profile.IngestBatch(first, timeout=PATIENCE_S)
        assert again.state.durable_sequence_number == 1


def _refused_on_stream(stubs: Stubs, name: str, one: profiles.ProfileBatch) -> tuple[grpc.StatusCode, str]:
    opening = profiles.OpenSession(profile_id=name, session_id="s")
    requests = [profiles.IngestProfileRequest(open=opening), profiles.IngestProfileRequest(batch=one)]
    failure = failure_of(stubs.profile.IngestProfile, iter(requests), timeout=PATIENCE_S)
    return failure.code, failure.reason


def _refused_in_call(stubs: Stubs, name: str, one: profiles.ProfileBatch) -> tuple[grpc.StatusCode, str]:
    request = profiles.IngestBatchRequest(profile_id=name, session_id="s", batch=one)
    failure = failure_of(stubs.profile.IngestBatch, request, timeout=PATIENCE_S)
    return failure.code, failure.reason


# --- changes


class Watching:
    """A watch on a connection of its own, read in a thread until a profile is told of."""

    def __init__(self, target: str, until: str) -> None:
        self.caught_up, self.known, self.last = threading.Event(), dict[str, profile_pb2.Profile](), until
        self.before: dict[str, int] = {}
        self._stubs = Stubs(target)
        request = profiles.WatchProfilesRequest(name_prefix="team/", labels=["watched"])
        self._call = self._stubs.profile.WatchProfiles(request, timeout=PATIENCE_S)
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        marks = 0
        for reply in self._call:
            self.known.update({found.profile_id: found for found in reply.profiles})
            if reply.caught_up:
                marks += 1
                self.before = {name: found.revision for name, found in self.known.items()}
                self.caught_up.set()
            if self.last in self.known:
                break
        assert marks == 1
        self._call.cancel()

    def end(self) -> None:
        self._thread.join(PATIENCE_S)
        self._stubs.channel.close()
        assert not self._thread.is_alive()


def test_every_worker_tells_its_watchers_of_changes_made_at_any(
    server: ServerProcess, connections: list[Stubs]
) -> None:
    watched = {"labels": {"watched": "yes"}}
    here, there, elsewhere, *_ = connections
    append(here, "team/a", **watched)
    append(there, "team/b", **watched)
    append(there, "team/not-labelled")
    append(there, "other/a", **watched)
    watching = [Watching(server.target, until="team/z") for _ in range(CONNECTIONS)]
    for each in watching:
        assert each.caught_up.wait(PATIENCE_S)
        assert each.before == {"team/a": 1, "team/b": 1}
    etag = append(elsewhere, "team/a", "second", content=profile_pb2.ProfileContent(observations=observed([1], [2.0])))
    append(there, "team/c", **watched)
    append(here, "other/b", **watched)
    there.profile.DeleteProfile(profiles.DeleteProfileRequest(profile_id="team/b", etag="*"), timeout=PATIENCE_S)
    append(elsewhere, "team/z", **watched)
    for each in watching:
        each.end()
        assert {name: found.revision for name, found in each.known.items() if not found.HasField("delete_time")} == {
            "team/a": 2,
            "team/c": 1,
            "team/z": 1,
        }
        assert each.known["team/b"].HasField("delete_time")
        assert each.known["team/a"] == etag


@pytest.mark.long
def test_a_clients_watch_outlives_the_worker_that_told_it(tmp_path: Path) -> None:
    with (
        ServerProcess("--workers", "2", "--store", f"sqlite:{tmp_path / 'store.db'}") as server,
        Stubs(server.target) as stubs,
        Client(server.target) as client,
    ):
        append(stubs, "team/a")
        events = client.watch_profiles(WatchProfilesRequest(name_prefix="team/"), timeout_s=PATIENCE_S)
        first = next(events)
        assert ([found.profile_id for found in first.profiles], first.caught_up) == (["team/a"], True)
        for pid in server.workers():
            os.kill(pid, signal.SIGKILL)
        server.log_until("worker_died")
        server.log_until("worker_died")
        with Stubs(server.target) as others:
            others.profile.ListProfiles(profiles.ListProfilesRequest(), wait_for_ready=True, timeout=PATIENCE_S)
            append(others, "team/b")
        names: set[str] = set()
        while "team/b" not in names:
            names |= {found.profile_id for found in next(events).profiles}
        assert names == {"team/a", "team/b"}, "told anew of what there is, and of what came"


# --- deletion, and what answers rest on


def question(name: str, **fields: Any) -> predictions.PredictRequest:
    return predictions.PredictRequest(profile=stored(name), configurations=workers(1, 2), **fields)


@pytest.mark.long
def test_what_was_deleted_is_gone_everywhere_until_it_is_brought_back(connections: list[Stubs]) -> None:
    made = append(connections[0], "away")
    first = [stubs.prediction.Predict(question("away"), timeout=PATIENCE_S) for stubs in connections]
    (digest,) = {reply.basis.digest for reply in first}
    deleting = profiles.DeleteProfileRequest(profile_id="away", etag=made.etag)
    deleted = connections[1].profile.DeleteProfile(deleting, timeout=PATIENCE_S).profile
    for stubs in connections:
        assert failure_of(stubs.prediction.Predict, question("away"), timeout=PATIENCE_S).reason == "PROFILE_NOT_FOUND"
        assert stubs.profile.DeleteProfile(deleting, timeout=PATIENCE_S).profile == deleted, "the same deletion again"
    (listed,) = (
        connections[2]
        .profile.ListProfiles(profiles.ListProfilesRequest(name_prefix="away", show_deleted=True), timeout=PATIENCE_S)
        .profiles
    )
    assert listed == deleted
    back = connections[3].profile.UndeleteProfile(
        profiles.UndeleteProfileRequest(profile_id="away"), timeout=PATIENCE_S
    )
    assert back.profile == made
    for stubs in connections:
        reply = stubs.prediction.Predict(question("away", if_none_match=digest), timeout=PATIENCE_S)
        assert (reply.unchanged, reply.basis.profile_revision) == (True, 1)


@pytest.mark.long
def test_a_name_that_is_written_again_is_another_profile(connections: list[Stubs]) -> None:
    made = append(connections[0], "renewed")
    for stubs in connections:
        stubs.prediction.Predict(question("renewed"), timeout=PATIENCE_S)
    connections[1].profile.DeleteProfile(
        profiles.DeleteProfileRequest(profile_id="renewed", etag=made.etag), timeout=PATIENCE_S
    )
    other = append(connections[2], "renewed", "another", content=one_worker_phases(compute_s=3.0))
    assert other.revision == 1
    assert other.uid != made.uid
    for stubs in connections:
        reply = stubs.prediction.Predict(question("renewed"), timeout=PATIENCE_S)
        assert reply.basis.profile_digest == other.digest
        assert reply.predictions.step_seconds[0] > 3.0
