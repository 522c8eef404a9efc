"""Traces on their way into a profile: whole or not at all, from several writers, across a server that dies."""

from __future__ import annotations

import asyncio
import hashlib
import io
import random
import shutil
import tempfile
from pathlib import Path

import pytest
from patience import PATIENCE_S
from serving import ServerProcess

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.settings import Settings
from nodewise_client import (
    AsyncClient,
    Client,
    DiagnoseRequest,
    InvalidArgumentError,
    ResumePolicy,
    prepared_trace,
    profile_source,
)

FIXTURES = Path(__file__).parent.parent / "fixtures" / "traces"


def store(folder: Path) -> tuple[str, ...]:
    return ("--store", f"sqlite:{folder / 'store.db'}", "--traces", str(folder / "traces"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("traces")


@pytest.fixture(scope="module")
def server(folder):
    with ServerProcess(*store(folder)) as process:
        yield process


def kept(folder: Path, content: bytes) -> bytes:
    sha256 = hashlib.sha256(content).hexdigest()
    return (folder / "traces" / "blobs" / sha256[:2] / sha256).read_bytes()


def test_each_rank_writes_a_session_of_its_own_into_one_profile(server, folder):
    job = FIXTURES / "ddp_4_ranks_straggler"
    sent = {}
    with Client(server.target) as client:
        with client.ingest("team/job") as first, client.ingest("team/job") as second:
            for rank, writer in ((0, first), (1, second), (3, second), (2, first)):
                with prepared_trace(job / f"rank{rank}.json.gz") as trace:
                    sent[rank] = trace.read()
                    trace.seek(0)
                    writer.trace(trace, trace_id=f"rank{rank}", rank=rank, world_size=4)
            # Both are open at the same time; revisions come in the order of the commits.
            assert (second.commit().revision, first.commit().revision) == (1, 2)
        traces = {trace.rank: trace for trace in client.get_profile("team/job").content.traces}
    assert sorted(traces) == [0, 1, 2, 3]
    for rank, content in sent.items():
        assert traces[rank].content_sha256 == hashlib.sha256(content).hexdigest()
        assert (traces[rank].format, traces[rank].world_size, traces[rank].size_bytes) == ("kineto", 4, len(content))
        assert kept(folder, content) == content


@pytest.mark.long
def test_a_trace_of_many_pieces_outlives_a_killed_server(tmp_path):
    content = random.Random(3).randbytes(5 << 20)
    policy = ResumePolicy(initial_pause_s=0.01, deadline_s=PATIENCE_S)
    with (
        ServerProcess(*store(tmp_path)) as process,
        Client(process.target) as client,
        client.ingest("team/killed", resume=policy) as writer,
    ):
        writer.trace(io.BytesIO(content), trace_id="first", rank=0, world_size=1)
        writer.flush()
        process.power_off()
        with ServerProcess(*store(tmp_path), listen=process.target):
            writer.trace(io.BytesIO(content[1:]), trace_id="second", rank=0, world_size=1)
            assert writer.commit().revision == 1
            assert kept(tmp_path, content) == content
            assert kept(tmp_path, content[1:]) == content[1:]
            writer.close()


@pytest.mark.long
def test_the_writer_of_asyncio_does_the_same(server, folder):
    content = b"a trace of asyncio"

    async def send():
        async with AsyncClient(server.target) as client:
            async with client.ingest("team/asyncio") as writer:
                await writer.trace(io.BytesIO(content), trace_id="only", trace_format="chrome", rank=2, world_size=3)
            return await client.get_profile("team/asyncio")

    (trace,) = asyncio.run(send()).content.traces
    assert (trace.format, trace.rank, trace.world_size) == ("chrome", 2, 3)
    assert kept(folder, content) == content


def test_what_cannot_be_a_trace_is_refused_and_names_the_field(server):
    with Client(server.target) as client:
        with client.ingest("team/empty") as writer, pytest.raises(ValueError, match="no bytes"):
            writer.trace(io.BytesIO(b""), trace_id="empty")
        writer = client.ingest("team/rank")
        with pytest.raises(InvalidArgumentError, match="below world_size"), writer:
            writer.trace(io.BytesIO(b"x"), trace_id="x", rank=4, world_size=4)


@pytest.mark.long
@pytest.mark.parametrize("processes", [0, 1])
def test_a_server_in_memory_has_a_temporary_directory_as_long_as_it_needs_one(tmp_path, monkeypatch, processes):
    def made() -> list[Path]:
        return list(tmp_path.glob("nodewise-traces-*"))

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with (
        EmbeddedServer(Settings(store="memory:", compute_processes=processes, grace_s=1.0)) as embedded,
        Client(embedded.target, timeout_s=PATIENCE_S) as client,
    ):
        assert not made()
        with client.ingest("team/job") as writer:
            for rank in range(4):
                with prepared_trace(FIXTURES / "ddp_4_ranks_straggler" / f"rank{rank}.json.gz") as trace:
                    writer.trace(trace, trace_id=f"rank{rank}", rank=rank, world_size=4)
        assert client.diagnose(DiagnoseRequest(profile=profile_source("team/job"))).bottlenecks
        (folder,) = made()
        assert len(list(folder.glob("artefacts/*/*/*.columns"))) == 4
    assert not made()


@pytest.mark.stores
def test_traces_in_a_bucket_outlive_a_killed_server_and_the_disk_of_its_machine(tmp_path, bucket):
    """Another server goes on with a session, and reads its traces in a process for long calls."""
    database = ("--store", f"sqlite:{tmp_path / 'store.db'}", "--traces", bucket())
    content = random.Random(4).randbytes(3 << 20)
    policy = ResumePolicy(initial_pause_s=0.01, deadline_s=PATIENCE_S)
    with (
        ServerProcess(*database) as process,
        Client(process.target, timeout_s=PATIENCE_S) as client,
        client.ingest("team/job", resume=policy) as writer,
    ):
        writer.trace(io.BytesIO(content), trace_id="noise", rank=1, world_size=4)
        writer.flush()
        process.power_off()
        shutil.rmtree(tmp_path / "store.db-traces")
        with ServerProcess(*database, listen=process.target):
            with prepared_trace(FIXTURES / "ddp_4_ranks_straggler" / "rank0.json.gz") as trace:
                writer.trace(trace, trace_id="rank0", rank=0, world_size=4)
            writer.commit()
            writer.close()
            noise, recorded = client.get_profile("team/job").content.traces
            assert noise.content_sha256 == hashlib.sha256(content).hexdigest()
            shutil.rmtree(tmp_path / "store.db-traces")
            asked = DiagnoseRequest(profile=profile_source("team/job"), trace_sha256s=[recorded.content_sha256])
            assert client.diagnose(asked).bottlenecks
