"""Connections: who is silent, idle, frozen or too much is let go of, and others are served meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import grpc
import pytest
from patience import PATIENCE_S, wait_until
from raw_connections import (
    END_HEADERS,
    GOAWAY,
    HEADERS,
    MAX_CONCURRENT_STREAMS,
    PING,
    SETTINGS,
    RawConnection,
    frame,
    headers,
)
from serving import Failure, Stubs, failure_of, inline

from nodewise.ports.limits import Limits
from nodewise.runtime.connections import connection_options, most_connections
from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.groups_of_settings import MOST_CONNECTIONS, ConnectionSettings
from nodewise.runtime.settings import Settings
from nodewise_protos.v1 import configuration_pb2, prediction_service_pb2
from nodewise_protos.v1 import profile_service_pb2 as pb

MOST = 16
NO_WINDOW = (4).to_bytes(2, "big") + bytes(4)
"""SETTINGS_INITIAL_WINDOW_SIZE = 0: nothing of a reply is taken."""
WATCH = headers("/nodewise.v1.ProfileService/WatchProfiles")


def settings_of(**connections: float) -> Settings:
    return Settings(store="memory:", grace_s=0.1, connections=ConnectionSettings(**connections))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    """Of a server that is quick to let go."""
    with EmbeddedServer(settings_of(most=MOST, handshake_s=1.0, idle_s=1.0, alive_s=2.0, calls=7)) as server:
        yield server.target


def served(target: str) -> None:
    with Stubs(target) as stubs:
        stubs.profile.ListProfiles(pb.ListProfilesRequest(), timeout=PATIENCE_S, wait_for_ready=True)


def test_silent_connections_are_dropped_and_hold_up_nobody(target: str) -> None:
    with ExitStack() as stack:
        silent = [stack.enter_context(RawConnection(target)) for _ in range(MOST // 2)]
        served(target)
        for each in silent:
            each.wait_for_the_end()


def test_connections_without_a_call_are_dropped(target: str) -> None:
    with RawConnection(target) as idle:
        idle.begin()
        idle.wait_for_the_end()
        assert GOAWAY in [kind for kind, _ in idle.frames()]


def test_one_too_many_is_closed_at_once_and_a_place_is_free_again_later(target: str) -> None:
    with ExitStack() as stack:
        # More than there is room for; whichever are let in are silent, and go.
        connections = [stack.enter_context(RawConnection(target)) for _ in range(2 * MOST)]
        for each in connections:
            each.wait_for_the_end()
        served(target)


def test_a_caller_that_answers_no_ping_is_gone(target: str) -> None:
    with RawConnection(target) as frozen:
        frozen.begin(frame(HEADERS, END_HEADERS, 1, WATCH), frame(0, 1, 1, b"\x00\x00\x00\x00\x00"))
        frozen.wait_for_the_end()
        assert PING in [kind for kind, _ in frozen.frames()]


def test_a_caller_that_pings_without_end_is_gone(target: str) -> None:
    with RawConnection(target) as eager:
        eager.begin(*(frame(PING, payload=bytes(8)) for _ in range(16)))
        eager.wait_for_the_end()
        (told,) = (payload for kind, payload in eager.frames() if kind == GOAWAY)
        assert told.endswith(b"too_many_pings")


def test_a_connection_says_how_many_calls_it_has(target: str) -> None:
    with RawConnection(target) as connection:
        connection.begin()
        said = connection.wait_for(SETTINGS)
    pairs = [(int.from_bytes(said[at : at + 2], "big"), said[at + 2 : at + 6]) for at in range(0, len(said), 6)]
    assert int.from_bytes(dict(pairs)[MAX_CONCURRENT_STREAMS], "big") == 7


def test_headers_without_end_are_refused(target: str) -> None:
    with Stubs(target, [("grpc.max_metadata_size", 1 << 20), ("grpc.absolute_max_metadata_size", 1 << 20)]) as stubs:
        usual = {"timeout": PATIENCE_S, "wait_for_ready": True}
        metadata = [("authorization", "Bearer " + "x" * 40_000)]
        failure = failure_of(stubs.profile.ListProfiles, pb.ListProfilesRequest(), metadata=metadata, **usual)
        assert failure.code is grpc.StatusCode.RESOURCE_EXHAUSTED
        metadata = [("authorization", "Bearer " + "x" * 6_000)]
        stubs.profile.ListProfiles(pb.ListProfilesRequest(), metadata=metadata, **usual)


def test_streams_outlive_what_ends_idle_connections(target: str) -> None:
    with Stubs(target) as stubs:
        watch = stubs.profile.WatchProfiles(pb.WatchProfilesRequest(), timeout=PATIENCE_S, wait_for_ready=True)
        assert next(watch).caught_up
        with RawConnection(target) as idle:  # the time after which it would have been dropped passes
            idle.begin()
            idle.wait_for_the_end()
        assert watch.is_active()
        watch.cancel()


def test_replies_that_nobody_reads_are_bounded() -> None:
    ask = prediction_service_pb2.PredictRequest(
        profile=inline(), ranges=[configuration_pb2.ConfigurationRange(workers={"first": 1, "last": 4_000})]
    )
    sent = ask.SerializeToString()
    limits = Limits(unread_reply_bytes=100_000)
    settings = Settings(store="memory:", grace_s=0.1, limits=limits)
    with EmbeddedServer(settings) as server, Stubs(server.target) as stubs:

        def reason() -> str:
            try:
                stubs.prediction.Predict(ask, timeout=PATIENCE_S, wait_for_ready=True)
            except grpc.RpcError as error:
                failure = Failure(error)
                assert failure.metadata["limit"] == "unread_reply_bytes"
                return failure.reason
            return ""

        assert reason() == ""  # alone, though it is larger
        with ExitStack() as unread:

            def leave_unread() -> None:
                connection = unread.enter_context(RawConnection(server.target))
                connection.begin(
                    frame(SETTINGS, payload=NO_WINDOW),
                    frame(HEADERS, END_HEADERS, 1, headers("/nodewise.v1.PredictionService/Predict")),
                    frame(0, 1, 1, b"\x00" + len(sent).to_bytes(4, "big") + sent),
                )

            # Each time anew: one that comes while the reply before is not yet counted as read is refused itself.
            wait_until(lambda: leave_unread() or reason() == "OVERLOADED")
        wait_until(lambda: reason() == "")


def test_an_old_connection_takes_no_more_calls_and_those_under_way_end_as_they_began() -> None:
    with EmbeddedServer(settings_of(age_s=0.3, idle_s=0.0)) as server, Stubs(server.target) as stubs:
        watch = stubs.profile.WatchProfiles(pb.WatchProfilesRequest(), timeout=PATIENCE_S, wait_for_ready=True)
        assert next(watch).caught_up
        with RawConnection(server.target) as old:
            old.begin()
            old.wait_for_the_end(answering=True)
            assert GOAWAY in [kind for kind, _ in old.frames()]
        assert watch.is_active()
        watch.cancel()
        served(server.target)


def test_what_is_not_stated_follows_from_the_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    for descriptors, most in ((1024, 768), (1 << 20, MOST_CONNECTIONS), (64, 16), (-1, MOST_CONNECTIONS)):
        monkeypatch.setattr("nodewise.runtime.connections.resource.getrlimit", lambda _, found=descriptors: (found, 0))
        assert most_connections(None) == most
    assert most_connections(5) == 5
    unlimited = dict(connection_options(ConnectionSettings(most=0, idle_s=0.0)))
    assert "grpc.max_allowed_incoming_connections" not in unlimited
    assert "grpc.max_connection_idle_ms" not in unlimited
