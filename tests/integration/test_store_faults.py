"""A store that is deleted, replaced, damaged, locked, full or read-only is told at every door, and nothing is lost."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from patience import wait_until
from serving import Failure, Stubs, failure_of, inline, observed, stored, workers
from small_disks import fill, small_disk
from warm_servers import WarmServer, WarmServers, warm_servers

from nodewise.profiles.store import StoreFormatError
from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.settings import Settings
from nodewise_protos.v1 import prediction_service_pb2 as predictions
from nodewise_protos.v1 import profile_pb2
from nodewise_protos.v1 import profile_service_pb2 as profiles

pytestmark = pytest.mark.long

SERVICE = "nodewise.v1.ProfileService"
DEADLINE_S = 30.0


@pytest.fixture(scope="module")
def servers() -> Iterator[WarmServers]:
    with warm_servers() as ready:
        yield ready


@contextmanager
def serving(servers: WarmServers, path: Path) -> Iterator[tuple[WarmServer, Stubs]]:
    """A server on a file, with one profile in it; it may fill its disk."""
    with servers.start(store=f"sqlite:{path}", quotas={"free_bytes": 0}) as server, Stubs(server.target) as stubs:
        append(stubs, "first")
        yield server, stubs


def request(request_id: str, rows: int = 1) -> profiles.AppendProfileRequest:
    rates = [1.0 + number / 7.0 for number in range(rows)]
    content = profile_pb2.ProfileContent(observations=observed([1] * rows, rates))
    return profiles.AppendProfileRequest(profile_id="job", request_id=request_id, content=content)


def append(stubs: Stubs, request_id: str) -> int:
    """The observations that count afterwards."""
    reply = stubs.profile.AppendProfile(request(request_id), timeout=DEADLINE_S)
    return int(reply.profile.observations_count)


def refused(stubs: Stubs, cause: str, asked: profiles.AppendProfileRequest | None = None) -> Failure:
    failure = failure_of(stubs.profile.AppendProfile, asked or request("refused"), timeout=DEADLINE_S)
    assert (failure.code, failure.reason) == (grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE"), failure.message
    assert failure.metadata == {"cause": cause}
    return failure


def predicted(stubs: Stubs, source: profile_pb2.ProfileSource) -> predictions.PredictResponse:
    asked = predictions.PredictRequest(profile=source, configurations=workers(1))
    reply: predictions.PredictResponse = stubs.prediction.Predict(asked, timeout=DEADLINE_S)
    return reply


def rates_of(stubs: Stubs) -> int:
    found = stubs.profile.GetProfile(profiles.GetProfileRequest(profile_id="job"), timeout=DEADLINE_S).profile
    return len(found.content.observations.steps_per_second)


def health_of(stubs: Stubs, service: str) -> bool:
    asked = health_pb2.HealthCheckRequest(service=service)
    status = health_pb2_grpc.HealthStub(stubs.channel).Check(asked, timeout=DEADLINE_S).status
    return bool(status == health_pb2.HealthCheckResponse.SERVING)


def told_by_health(stubs: Stubs) -> None:
    """Health tells what needs the store, and keeps telling the rest, which goes on."""
    wait_until(lambda: not health_of(stubs, "store"))
    assert not health_of(stubs, SERVICE)
    assert health_of(stubs, "nodewise.v1.PredictionService")
    assert health_of(stubs, "")
    assert predicted(stubs, inline()).predictions is not None


def recovered(stubs: Stubs) -> None:
    wait_until(lambda: health_of(stubs, "store"))
    assert health_of(stubs, SERVICE)


def test_a_file_that_is_gone_is_told_and_missed_by_nobody_once_it_is_back(servers: WarmServers, tmp_path: Path) -> None:
    path, away = tmp_path / "store.db", tmp_path / "away.db"
    with serving(servers, path) as (_, stubs):
        predicted(stubs, stored("job"))
        path.rename(away)
        refused(stubs, "deleted")
        told_by_health(stubs)
        assert failure_of(predicted, stubs, stored("job")).metadata == {"cause": "deleted"}
        with pytest.raises(StoreFormatError, match="the file is gone, but a store was here before"):
            EmbeddedServer(Settings(store=f"sqlite:{path}")).__enter__()
        assert not path.exists()
        away.rename(path)
        recovered(stubs)
        assert append(stubs, "second") == 2
        assert rates_of(stubs) == 2


def test_a_copy_in_the_place_of_the_file_splits_no_brain(servers: WarmServers, tmp_path: Path) -> None:
    path, copy = tmp_path / "store.db", tmp_path / "copy.db"
    with warm_servers() as others, serving(servers, path) as (_, stubs):
        predicted(stubs, stored("job"))
        with sqlite3.connect(path) as connection:
            connection.execute(f"VACUUM INTO '{copy}'")
        connection.close()
        for suffix in ("-wal", "-shm"):
            Path(f"{path}{suffix}").unlink()
        copy.replace(path)
        told_by_health(stubs)
        with others.start(store=f"sqlite:{path}") as other, Stubs(other.target) as fresh:
            assert append(fresh, "there") == 2
            for _ in range(8):  # one view of the job, or none
                assert failure_of(predicted, stubs, stored("job")).metadata == {"cause": "replaced"}
                refused(stubs, "replaced")
                assert rates_of(fresh) == 2


def test_another_store_or_an_empty_file_is_not_begun_with(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    for name in (path, tmp_path / "other.db"):
        with EmbeddedServer(Settings(store=f"sqlite:{name}")):
            """A store each."""
    (tmp_path / "other.db").replace(path)
    with pytest.raises(StoreFormatError, match="another store than the one that was here"):
        EmbeddedServer(Settings(store=f"sqlite:{path}")).__enter__()
    path.write_bytes(b"")
    with pytest.raises(
        StoreFormatError, match=r"the file is empty, .*remove store.db-id beside it to start a new store"
    ):
        EmbeddedServer(Settings(store=f"sqlite:{path}")).__enter__()
    (tmp_path / "store.db-id").unlink()
    with EmbeddedServer(Settings(store=f"sqlite:{path}")) as server, Stubs(server.target) as stubs:
        assert append(stubs, "first") == 1


def test_damage_is_found_before_anybody_reads_it(servers: WarmServers, tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with serving(servers, path) as (_, stubs):
        whole = request("large", rows=3000)
        whole.profile_id = "damaged"
        stubs.profile.AppendProfile(whole, timeout=DEADLINE_S)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        ((payload,),) = connection.execute("SELECT payload FROM batches ORDER BY length(payload) DESC LIMIT 1")
    connection.close()
    content = path.read_bytes()
    place = content.index(payload[20_000:20_200])
    path.write_bytes(content[:place] + bytes(100) + content[place + 100 :])
    with servers.start(store=f"sqlite:{path}") as server, Stubs(server.target) as stubs:
        told_by_health(stubs)
        asked = profiles.GetProfileRequest(profile_id="damaged")
        failure = failure_of(stubs.profile.GetProfile, asked, timeout=DEADLINE_S)
        assert (failure.reason, failure.metadata) == ("STORE_UNAVAILABLE", {"cause": "corrupt"})
        assert rates_of(stubs) == 1


def test_a_lock_of_somebody_else_is_told_long_before_the_deadline(servers: WarmServers, tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with serving(servers, path) as (_, stubs):
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        failure = refused(stubs, "locked")
        assert time.monotonic() - began < DEADLINE_S / 2
        assert any("RetryInfo" in detail.type_url for detail in failure.status.details)
        told_by_health(stubs)
        assert rates_of(stubs) == 1
        assert predicted(stubs, stored("job")).predictions is not None
        other.execute("ROLLBACK")
        other.close()
        recovered(stubs)
        assert append(stubs, "refused") == 2


def told_full(stubs: Stubs, make_room: Any) -> None:
    refused(stubs, "full", request("large", rows=4000))
    told_by_health(stubs)
    assert rates_of(stubs) == 1
    make_room()
    recovered(stubs)
    stubs.profile.AppendProfile(request("large", rows=4000), timeout=DEADLINE_S)
    assert rates_of(stubs) > 1


def test_a_disk_that_is_full(servers: WarmServers, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk"), serving(servers, tmp_path / "disk" / "store.db") as (_, stubs):
        filling = fill(tmp_path / "disk")
        told_full(stubs, filling.unlink)


@contextmanager
def immutable(*paths: Path) -> Iterator[None]:
    """Files that nobody may write, not even who has them open; where this user and file system know that."""
    command = ["chattr", "+i", *map(str, paths)]
    if shutil.which("chattr") is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no file can be made immutable here")
    try:
        yield
    finally:
        subprocess.run(["chattr", "-i", *map(str, paths)], check=True)


def test_files_that_may_not_be_written_are_told_and_read_on(servers: WarmServers, tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with serving(servers, path) as (_, stubs):
        with immutable(path, tmp_path / "store.db-wal"):
            refused(stubs, "unreachable")
            told_by_health(stubs)
            assert rates_of(stubs) == 1
        recovered(stubs)
        assert append(stubs, "refused") == 2


def test_a_store_that_refuses_to_write_is_read_only(tmp_path: Path) -> None:
    with EmbeddedServer(Settings(store=f"sqlite:{tmp_path}/store.db")) as server, Stubs(server.target) as stubs:
        append(stubs, "first")
        writer = server._application._store._writer  # type: ignore[attr-defined]
        writer.execute("PRAGMA query_only = ON")
        refused(stubs, "read_only")
        assert rates_of(stubs) == 1
        writer.execute("PRAGMA query_only = OFF")
        assert append(stubs, "refused") == 2
        wait_until(lambda: health_of(stubs, "store"))
