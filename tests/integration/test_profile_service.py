"""ProfileService over a socket, by bare stubs: what only a real server shows."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from patience import PATIENCE_S
from serving import Stubs, failure_of, observed

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.settings import Settings
from nodewise_protos.v1 import profile_pb2
from nodewise_protos.v1 import profile_service_pb2 as pb

pytestmark = pytest.mark.wheel

MANY = 30_000


@pytest.fixture(scope="module")
def stubs() -> Iterator[Stubs]:
    with EmbeddedServer(Settings(store="memory:", grace_s=1.0)) as server, Stubs(server.target) as found:
        yield found


def append(stubs: Stubs, profile_id: str, request_id: str = "first", rate: float = 1.0) -> profile_pb2.Profile:
    content = profile_pb2.ProfileContent(observations=observed([1], [rate]))
    request = pb.AppendProfileRequest(profile_id=profile_id, request_id=request_id, content=content)
    found: profile_pb2.Profile = stubs.profile.AppendProfile(request).profile
    return found


def batch(number: int, rows: int = 1) -> pb.ProfileBatch:
    rates = [float(number)] * rows
    return pb.ProfileBatch(sequence_number=number, observations=observed([1] * rows, rates), commit=True)


def test_a_stream_and_calls_share_a_session(stubs: Stubs) -> None:
    opening = pb.IngestProfileRequest(open=pb.OpenSession(profile_id="shared", session_id="s"))
    replies = list(stubs.profile.IngestProfile(iter([opening, pb.IngestProfileRequest(batch=batch(1))])))
    assert [reply.state.durable_sequence_number for reply in replies] == [0, 1]
    state = stubs.profile.IngestBatch(pb.IngestBatchRequest(profile_id="shared", session_id="s", batch=batch(2))).state
    assert (state.committed_sequence_number, state.revision) == (2, 2)
    (reply,) = stubs.profile.IngestProfile(iter([opening]))
    assert reply.state == state


def test_a_large_profile_comes_in_pages(stubs: Stubs) -> None:
    for number in range(1, MANY // 10_000 + 1):
        request = pb.IngestBatchRequest(profile_id="large", session_id="s", batch=batch(number, 10_000))
        stubs.profile.IngestBatch(request)
    numbers: list[int] = []
    token, pages = "", 0
    while token or not pages:
        reply = stubs.profile.GetProfile(pb.GetProfileRequest(profile_id="large", page_token=token))
        numbers += reply.profile.content.observations.numbers
        token, pages = reply.next_page_token, pages + 1
    assert (numbers, pages) == (list(range(1, MANY + 1)), 2)


def test_deletion_and_return(stubs: Stubs) -> None:
    made = append(stubs, "away")
    assert failure_of(stubs.profile.DeleteProfile, pb.DeleteProfileRequest(profile_id="away")).reason == "INVALID_FIELD"
    deleted = stubs.profile.DeleteProfile(pb.DeleteProfileRequest(profile_id="away", etag=made.etag)).profile
    assert deleted.HasField("purge_time")
    failure = failure_of(stubs.profile.GetProfile, pb.GetProfileRequest(profile_id="away"))
    assert (failure.code, failure.reason) == (grpc.StatusCode.NOT_FOUND, "PROFILE_NOT_FOUND")
    assert stubs.profile.UndeleteProfile(pb.UndeleteProfileRequest(profile_id="away")).profile == made


def test_changes_of_another_server_on_the_same_file_are_watched(tmp_path: Path) -> None:
    settings = Settings(store=f"sqlite:{tmp_path / 'store.db'}", grace_s=1.0)
    with (
        EmbeddedServer(settings) as one,
        EmbeddedServer(settings) as other,
        Stubs(one.target) as here,
        Stubs(other.target) as there,
    ):
        append(there, "team/a")
        append(there, "elsewhere")
        watch = here.profile.WatchProfiles(pb.WatchProfilesRequest(name_prefix="team/"), timeout=PATIENCE_S)
        first = next(watch)
        assert ([found.profile_id for found in first.profiles], first.caught_up) == (["team/a"], True)
        append(there, "elsewhere", "second", 2.0)
        append(there, "team/b")
        assert [found.profile_id for found in next(watch).profiles] == ["team/b"]
        there.profile.DeleteProfile(pb.DeleteProfileRequest(profile_id="team/a", etag="*"))
        (gone,) = next(watch).profiles
        assert (gone.profile_id, gone.HasField("delete_time")) == ("team/a", True)
        watch.cancel()


def test_a_server_that_stops_sends_watchers_away() -> None:
    ended: list[grpc.StatusCode] = []
    caught_up = threading.Event()

    def watch(target: str) -> None:
        with Stubs(target) as stubs:
            try:
                for reply in stubs.profile.WatchProfiles(pb.WatchProfilesRequest()):
                    if reply.caught_up:
                        caught_up.set()
            except grpc.RpcError as error:
                ended.append(error.code())

    with EmbeddedServer(Settings(store="memory:", grace_s=2.0 * PATIENCE_S)) as server:
        watching = threading.Thread(target=watch, args=(server.target,))
        watching.start()
        assert caught_up.wait(PATIENCE_S)
        stopped_s = time.monotonic()
    watching.join(PATIENCE_S)
    assert ended == [grpc.StatusCode.UNAVAILABLE]
    assert time.monotonic() - stopped_s < PATIENCE_S, "not for as long as it is given to end"


def test_what_was_read_ahead_of_a_refused_batch_is_nobodys_failure(caplog: pytest.LogCaptureFixture) -> None:
    opened = pb.IngestProfileRequest(open=pb.OpenSession(profile_id="ahead", session_id="s"))
    late = [pb.IngestProfileRequest(batch=pb.ProfileBatch(sequence_number=each, commit=True)) for each in range(5, 65)]
    with EmbeddedServer(Settings(store="memory:", grace_s=0.1, scoring=False)) as server, Stubs(server.target) as there:
        for _ in range(5):
            failure = failure_of(there.profile.IngestProfile, iter([opened, *late]), timeout=PATIENCE_S)
            assert failure.reason == "BATCH_OUT_OF_ORDER"
    gc.collect()
    assert "never retrieved" not in caplog.text
