"""A server that is killed at any moment of an ingest loses nothing it acknowledged and stores nothing twice."""

from __future__ import annotations

import queue
import random
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from serving import ServerProcess, Stubs, observed
from warm_servers import WarmServer, warm_servers

from nodewise_protos.v1 import profile_service_pb2 as profiles

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(1800)]

KILLS = 50
SEED = 2026
COMMIT_EVERY = 3


def batch(number: int) -> profiles.IngestProfileRequest:
    """The batch of a number is always the same: one observation, whose rate tells the number."""
    content = profiles.ProfileBatch(
        sequence_number=number, observations=observed([1], [float(number)]), commit=number % COMMIT_EVERY == 0
    )
    return profiles.IngestProfileRequest(batch=content)


def send_until_killed(server: WarmServer, acknowledged: int, moment: random.Random) -> int:
    """Resume the session, send, and kill the server at a random moment; returns the last acknowledged number."""
    outgoing: queue.SimpleQueue[profiles.IngestProfileRequest | None] = queue.SimpleQueue()
    outgoing.put(profiles.IngestProfileRequest(open=profiles.OpenSession(profile_id="chaos", session_id="s")))
    replies_before_kill, unacknowledged = moment.randrange(0, 10), moment.randrange(1, 6)
    with Stubs(server.target) as stubs:
        requests: Iterator[profiles.IngestProfileRequest] = iter(outgoing.get, None)
        stream = stubs.profile.IngestProfile(requests)
        durable = next(stream).state.durable_sequence_number
        assert durable >= acknowledged, "an acknowledged batch was lost"
        # Some batches are durable whose acknowledgement never arrived: sending them again must change nothing.
        number = max(1, durable - moment.randrange(0, 4))
        sent = number - 1
        acknowledged = durable
        try:
            for _ in range(replies_before_kill):
                while sent < number - 1 + unacknowledged:
                    sent += 1
                    outgoing.put(batch(sent))
                acknowledged = max(acknowledged, next(stream).state.durable_sequence_number)
                number += 1
            for _ in range(unacknowledged):
                sent += 1
                outgoing.put(batch(sent))
            server.kill()
            for reply in stream:
                acknowledged = max(acknowledged, reply.state.durable_sequence_number)
        except grpc.RpcError:
            pass
        outgoing.put(None)
    return acknowledged


def test_nothing_acknowledged_is_lost_and_nothing_is_stored_twice(tmp_path: Path) -> None:
    moment = random.Random(SEED)
    store = f"sqlite:{tmp_path}/store.db"
    acknowledged = 0
    with warm_servers() as servers:
        for _ in range(KILLS):
            with servers.start(store=store, log_level="error") as server:
                acknowledged = send_until_killed(server, acknowledged, moment)
    assert acknowledged > KILLS
    with ServerProcess("--store", store) as server, Stubs(server.target) as stubs:
        opening = profiles.IngestProfileRequest(open=profiles.OpenSession(profile_id="chaos", session_id="s"))
        (reply,) = stubs.profile.IngestProfile(iter([opening]))
        status = reply.state
        assert status.durable_sequence_number >= acknowledged
        found = stubs.profile.GetProfile(profiles.GetProfileRequest(profile_id="chaos")).profile
        rates = [int(rate) for rate in found.content.observations.steps_per_second]
    committed = status.committed_sequence_number
    assert committed >= acknowledged - acknowledged % COMMIT_EVERY
    assert rates == list(range(1, committed + 1))
    assert found.revision == committed // COMMIT_EVERY
