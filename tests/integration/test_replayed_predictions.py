"""A job that is known by its traces alone, asked of a real server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from serving import ServerProcess

from nodewise_client import (
    Client,
    PredictRequest,
    RefusedError,
    configurations,
    prepared_trace,
    profile_source,
)

FIXTURES = Path(__file__).parent.parent / "fixtures" / "traces"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("store")
    store = ("--store", f"sqlite:{folder / 'store.db'}", "--traces", str(folder / "traces"))
    with ServerProcess(*store) as process, Client(process.target) as connected:
        yield connected


def ingest(client: Client, name: str, job: str) -> None:
    with client.ingest(name) as writer:
        for rank, path in enumerate(sorted((FIXTURES / job).glob("rank*.json.gz"))):
            with prepared_trace(path) as trace:
                writer.trace(trace, trace_id=f"rank{rank}", rank=rank, world_size=2)
        writer.commit()


def test_traces_alone_are_answered_by_replay(client: Client) -> None:
    ingest(client, "team/traced", "ddp_2_ranks_3_buckets")
    found = client.predict(
        PredictRequest(
            profile=profile_source("team/traced"), configurations=configurations(workers=[1, 2, 4], nodes=[1, 2, 4])
        )
    )
    assert found.basis.estimator == "replay"
    # Two and four ranks as measured without a profiler.
    assert [row.step_seconds for row in found][1:] == pytest.approx([0.1741, 0.1999], rel=0.1)
    assert "PERSISTENCE" in {warning.reason for warning in found.warnings}


def test_what_was_not_recorded_is_refused(client: Client) -> None:
    ingest(client, "team/asynchronous", "ddp_2_ranks_3_buckets")
    with pytest.raises(RefusedError):
        client.predict(
            PredictRequest(
                profile=profile_source("team/asynchronous"),
                configurations=configurations(workers=[2], nodes=[2], sync_modes="async"),
            )
        )
