"""Two servers on one database, killed in turn while they ingest one session, lose nothing and store nothing twice."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from killed_ingest import COMMIT_EVERY, batch, send_until_killed
from postgres_clusters import PostgresCluster
from serving import ServerProcess, Stubs, stored, workers
from warm_servers import warm_servers

from nodewise_protos.v1 import prediction_service_pb2 as pb
from nodewise_protos.v1 import profile_service_pb2 as profiles

pytestmark = [pytest.mark.chaos, pytest.mark.stores, pytest.mark.timeout(1800)]

KILLS = 8
SEED = 2026
CRASH_EVERY = 4


def sent_through(target: str, *numbers: int) -> int:
    """Send batches; returns the number that is durable then."""
    opening = profiles.IngestProfileRequest(open=profiles.OpenSession(profile_id="chaos", session_id="s"))
    with Stubs(target) as stubs:
        replies = list(stubs.profile.IngestProfile(iter([opening, *map(batch, numbers)])))
    return replies[-1].state.durable_sequence_number


def test_replicas_and_their_database_may_die(
    tmp_path: Path, cluster: PostgresCluster, database: Callable[[], str]
) -> None:
    moment = random.Random(SEED)
    settings = {"store": database(), "traces": str(tmp_path / "traces")}
    acknowledged = 0
    with warm_servers() as ones, warm_servers() as others:
        replicas = [(kind, kind.start(**settings, log_level="error")) for kind in (ones, others)]
        for kill in range(KILLS):
            kind, server = replicas.pop(0)
            acknowledged = send_until_killed(server, acknowledged, moment)
            replicas.append((kind, kind.start(**settings, log_level="error")))
            if kill % CRASH_EVERY == CRASH_EVERY - 1:
                cluster.stop()
                cluster.start()
            # The other replica goes on where the killed one stopped.
            other = replicas[0][1].target
            durable = sent_through(other)
            assert durable >= acknowledged
            acknowledged = sent_through(other, durable, durable + 1) if durable else durable
            assert acknowledged in (durable, durable + 1)
        for _, server in replicas:
            server.kill()
    assert acknowledged > KILLS
    with ServerProcess("--store", settings["store"], "--traces", settings["traces"]) as server:
        durable = sent_through(server.target)
        assert durable >= acknowledged
        with Stubs(server.target) as stubs:
            found = stubs.profile.GetProfile(profiles.GetProfileRequest(profile_id="chaos")).profile
            rates = [int(rate) for rate in found.content.observations.steps_per_second]
            asked = pb.PredictRequest(profile=stored("chaos"), configurations=workers(1))
            assert stubs.prediction.Predict(asked).basis.profile_revision == found.revision
    assert rates == list(range(1, durable - durable % COMMIT_EVERY + 1))
    assert found.revision == durable // COMMIT_EVERY
