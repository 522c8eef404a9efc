"""An ingest session whose server is killed, again and again."""

from __future__ import annotations

import queue
import random
from collections.abc import Iterator

import grpc
from serving import Stubs, observed
from warm_servers import WarmServer

from nodewise_protos.v1 import profile_service_pb2 as profiles

__all__ = ["COMMIT_EVERY", "batch", "send_until_killed"]

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
