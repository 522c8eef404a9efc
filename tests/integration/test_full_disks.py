"""A full disk ends each way of writing at once, by its cause, and states what is stored; freed space lets it resume."""

from __future__ import annotations

import io
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import grpc
import pytest
from postgres_clusters import running_cluster
from profile_batches import batch
from serving import Stubs, failure_of, observed
from small_disks import fill, small_disk
from typer.testing import CliRunner
from warm_servers import WarmServers, warm_servers

from nodewise.domain.errors import NodewiseError
from nodewise.profiles.opening import open_store
from nodewise.profiles.store import StoreOptions
from nodewise.profiles.traces import TraceStore
from nodewise.runtime.learning.saved_lessons import Learnt, SavedLessons
from nodewise.runtime.learning.sources import Corpora, Source
from nodewise_cli.app import app
from nodewise_client import Client, Configurations, Observations, ResourceExhaustedError, SyncMode, UnavailableError
from nodewise_protos.v1 import profile_pb2
from nodewise_protos.v1 import profile_service_pb2 as profiles

pytestmark = pytest.mark.long

BATCHES = 60
ROWS = 1000


@pytest.fixture(scope="module")
def servers() -> Iterator[WarmServers]:
    with warm_servers() as ready:
        yield ready


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk"):
        yield tmp_path / "disk"


def run(*arguments: str | Path, status: int) -> str:
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    assert result.exit_code == status, result.output
    return result.stdout if status == 0 else result.stderr


def rows(number: int) -> Observations:
    """A thousand runs, whose rates state the number of their batch."""
    return Observations(
        configurations=Configurations(nodes=(1,) * ROWS, workers=(1,) * ROWS, sync_modes=(SyncMode.ALLREDUCE,) * ROWS),
        steps_per_second=tuple(number + (row + 1) / 7000.0 for row in range(ROWS)),
    )


def send(client: Client) -> int:
    """Resume a session of 60 batches; returns the observations of its profile."""
    with client.ingest("job", session_id="s", linger_s=86_400.0) as writer:
        for number in range(writer.durable_sequence_number, BATCHES):
            writer.observe(rows(number))
        return writer.commit().observations_count


def send_trace(client: Client, session_id: str, content: bytes) -> int:
    """Send a trace; returns the revision of the profile."""
    with client.ingest("job", session_id=session_id) as writer:
        writer.trace(io.BytesIO(content), trace_id="a", rank=0, world_size=1)
        return writer.commit().revision


def durable_number(target: str) -> int:
    with Stubs(target) as stubs:
        request = profiles.IngestBatchRequest(profile_id="job", session_id="s")
        return int(stubs.profile.IngestBatch(request).state.durable_sequence_number)


def test_a_stream_states_what_is_durable_and_resumes_there(servers: WarmServers, disk: Path) -> None:
    filling = disk / "filling"
    filling.write_bytes(bytes(300_000))
    with servers.start(store=f"sqlite:{disk}/store.db", quotas={"free_bytes": 0}) as server:
        client = Client(server.target)
        with pytest.raises(UnavailableError) as caught:
            send(client)
        error, durable = caught.value, durable_number(server.target)
        assert 0 < durable < BATCHES
        assert (error.reason, error.retry_delay_s) == ("STORE_UNAVAILABLE", None)
        assert error.metadata == {"cause": "full", "durableSequenceNumber": str(durable)}
        # The server's own text: the client did not try again.
        assert error.message == (
            "the store is full, and the request was not stored; free space, then retry; "
            f"batches up to {durable} of the session are durable; resume with batch {durable + 1}"
        )
        filling.unlink()
        with pytest.raises(UnavailableError):  # until the next fault: 60 batches need more than the disk has
            send(client)
        assert durable_number(server.target) > durable


def test_the_reserve_of_a_disk_ends_a_stream_alike(servers: WarmServers, tmp_path: Path) -> None:
    with (
        small_disk(tmp_path / "disk", "8m"),
        servers.start(store=f"sqlite:{tmp_path}/disk/store.db", quotas={"free_bytes": (8 << 20) - 300_000}) as server,
    ):
        with pytest.raises(ResourceExhaustedError) as caught:
            send(Client(server.target))
        durable = durable_number(server.target)
        assert (caught.value.reason, caught.value.metadata["quota"]) == ("QUOTA_EXCEEDED", "free_bytes")
        assert caught.value.metadata["durableSequenceNumber"] == str(durable)
        assert durable > 0


def test_one_call_is_not_tried_again(servers: WarmServers, disk: Path) -> None:
    with (
        servers.start(store=f"sqlite:{disk}/store.db", quotas={"free_bytes": 0}) as server,
        Stubs(server.target) as stubs,
    ):
        filling = fill(disk)
        content = profile_pb2.ProfileContent(observations=observed([1] * 4000, [1 + row / 7 for row in range(4000)]))
        request = profiles.AppendProfileRequest(profile_id="job", request_id="r", content=content)
        one = profiles.IngestBatchRequest(
            profile_id="job",
            session_id="s",
            batch=profiles.ProfileBatch(sequence_number=1, observations=content.observations),
        )
        for method, asked in ((stubs.profile.AppendProfile, request), (stubs.profile.IngestBatch, one)):
            failure = failure_of(method, asked)
            assert (failure.code, failure.metadata["cause"]) == (grpc.StatusCode.UNAVAILABLE, "full")
            assert failure.trailers["grpc-retry-pushback-ms"] == "-1"
            assert not any("RetryInfo" in detail.type_url for detail in failure.status.details)
        assert failure_of(stubs.profile.IngestBatch, one).metadata["durableSequenceNumber"] == "0"
        filling.unlink()
        assert stubs.profile.AppendProfile(request).profile.observations_count == 4000


def test_a_trace_leaves_no_half_chunk_and_resumes(servers: WarmServers, disk: Path) -> None:
    """The traces are on the full disk, the rows are not."""
    content = random.Random(1).randbytes(1_500_000)
    filling = disk / "filling"
    filling.write_bytes(bytes(300_000))
    settings = {"store": f"sqlite:{disk.parent}/store.db", "traces": str(disk), "quotas": {"free_bytes": 0}}
    with servers.start(**settings) as server:
        client = Client(server.target)
        with pytest.raises(UnavailableError) as caught:
            send_trace(client, "s", content)
        assert caught.value.metadata == {"cause": "full", "durableSequenceNumber": "1"}
        (staged,) = (disk / "staged").iterdir()
        assert staged.stat().st_size == 512 << 10
        with client.ingest("rows") as writer:
            writer.observe(rows(1))
            assert writer.commit().observations_count == ROWS  # what needs no traces is stored
        filling.unlink()
        assert send_trace(client, "t", content[: 400 << 10]) == 1


def test_the_command_states_what_it_stored_and_resumes(servers: WarmServers, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    lines = [f"{job},V100,{row % 8 + 1},{row % 8 + 1},{1 + row / 7}" for job in "abc" for row in range(12_000)]
    table.write_text("job,device,nodes,workers,steps_per_s\n" + "\n".join(lines) + "\n")
    disk = tmp_path / "disk"
    with (
        small_disk(disk, "4m"),
        servers.start(store=f"sqlite:{disk}/store.db", quotas={"free_bytes": 0}) as server,
    ):
        filling = disk / "filling"
        filling.write_bytes(bytes(3_400_000))
        text = run("ingest", table, "--server", server.target, status=1)
        stored = [each.observations_count for each in Client(server.target).list_profiles()]
        assert stored == [12_000] * len(stored)
        assert re.fullmatch(
            "nodewise: STORE_UNAVAILABLE: the store is full, and the request was not stored; free space, then retry; "
            r"(no batch|batches up to \d+) of the session (is|are) durable; resume with batch \d+. "
            rf"Stored: {len(stored)} profiles?, and (nothing|\d+,000 of 12,000 rows) of the job '[abc]'; "
            "run the command again to store the rest\n",
            text,
        )
        error = json.loads(run("ingest", table, "--server", server.target, "--json", status=1))["error"]
        assert (error["code"], error["reason"]) == ("UNAVAILABLE", "STORE_UNAVAILABLE")
        filling.unlink()
        run("ingest", table, "--server", server.target, status=0)
        assert [each.observations_count for each in Client(server.target).list_profiles()] == [12_000] * 3


def test_backups_copies_and_tokens_name_the_disk(disk: Path, tmp_path: Path) -> None:
    store, backup = f"sqlite:{tmp_path}/store.db", tmp_path / "backup"
    opened = open_store(store)
    for number in range(1, 40):
        opened.append("jobs/a", "s", [batch(number, *(number + row / 7 for row in range(1000)), commit=True)])
    opened.close()
    run("backup", "--store", store, backup, status=0)
    filling = fill(disk)
    restore, copy = (
        ["restore", "--store", f"sqlite:{disk}/a.db", backup],
        ["copy", "--store", store, f"sqlite:{disk}/b.db"],
    )
    for command in (restore, copy):
        assert "is full, and the request was not stored" in run(*command, status=1)
    assert "the store is full" in run("tokens", "create", "--store", f"sqlite:{disk}/c.db", "--role", "read", status=1)
    expected = f"{disk}/backup: the disk is full; free space, then run the backup again to continue it\n"
    assert run("backup", "--store", store, disk / "backup", status=1).endswith(expected)
    filling.unlink()
    run("backup", "--store", store, disk / "backup", status=1)  # it needs more than the disk has
    assert "does not exist" not in run("verify", "--store", store, status=0)


def test_a_pin_of_what_was_learned(disk: Path) -> None:
    saved = SavedLessons(disk / "lessons")
    lessons = Learnt(namespace="a", corpora=Corpora((Source("a/1", "u", 3),), ()), learned_unix_s=5.0)
    saved.remember(lessons)
    filling = fill(disk)
    saved.remember(lessons)
    with pytest.raises(NodewiseError) as caught:
        saved.pin(lessons)
    assert caught.value.metadata == {"cause": "full"}
    filling.unlink()
    saved.pin(lessons)
    assert saved.pins() == {"a": lessons}


def open_to_all(disk: Path) -> Path:
    """The same folder, which the user of the database can reach."""
    disk.parent.chmod(0o711)
    return disk


def test_a_database_whose_disk_is_full(tmp_path: Path) -> None:
    with (
        TemporaryDirectory() as name,
        small_disk(disk := Path(name) / "disk", "96m"),
        running_cluster(lambda: open_to_all(disk)) as cluster,
    ):
        store = open_store(cluster.url, StoreOptions(traces=TraceStore(tmp_path / "traces")))
        store.append("jobs/a", "s", [batch(1, 1.0, commit=True)])
        filling = fill(disk)
        noise = random.Random(2)
        with pytest.raises(NodewiseError) as caught:
            store.append("jobs/a", "s", [batch(2, *(noise.random() for _ in range(100_000)), commit=True)])
        assert caught.value.metadata == {"cause": "full"}
        filling.unlink()
        assert store.append("jobs/a", "s", [batch(2, 2.0, commit=True)]).revision == 2
        store.close()
