"""A server that is killed at any moment of an ingest loses nothing it acknowledged and stores nothing twice."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from killed_ingest import COMMIT_EVERY, send_until_killed
from serving import ServerProcess, Stubs
from warm_servers import warm_servers

from nodewise_protos.v1 import profile_service_pb2 as profiles

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(1800)]

KILLS = 12
SEED = 2026


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
