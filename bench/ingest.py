"""Rows per second: ingest over gRPC until durable, beside inserting the same rows into SQLite and nothing else."""

from __future__ import annotations

import sqlite3
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
from processes import Server
from results import Result

from nodewise_protos.v1 import configuration_pb2, profile_pb2
from nodewise_protos.v1 import profile_service_pb2 as pb

ROWS = 1_000
BATCHES = 200


def messages() -> Iterator[bytes]:
    opening = pb.OpenSession(profile_id="bench", session_id="bench")
    yield pb.IngestProfileRequest(open=opening).SerializeToString()
    for number in range(1, BATCHES + 1):
        observations = profile_pb2.Observations(
            configurations=configuration_pb2.Configurations(
                nodes=[1 + row % 16 for row in range(ROWS)],
                workers=[1 + row % 16 for row in range(ROWS)],
                sync_modes=[1],
                parameter_servers=[1],
                batch_per_worker_samples=[32],
            ),
            steps_per_second=[10.0 + (number * ROWS + row) % 977 for row in range(ROWS)],
            measured_at_unix_seconds=[1.7e9 + number * ROWS + row for row in range(ROWS)],
            steps_counts=[100],
        )
        batch = pb.ProfileBatch(sequence_number=number, observations=observations, commit=number == BATCHES)
        yield pb.IngestProfileRequest(batch=batch).SerializeToString()


def ours_rows_per_s(folder: str) -> float:
    command = ("-m", "nodewise", "serve", "--listen", "127.0.0.1:0", "--store", f"sqlite:{folder}/ours.db")
    prepared = list(messages())
    with Server(*command) as server, grpc.insecure_channel(server.target) as channel:
        started = time.perf_counter()
        replies = list(channel.stream_stream("/nodewise.v1.ProfileService/IngestProfile")(iter(prepared)))
        elapsed_s = time.perf_counter() - started
        last = pb.IngestProfileResponse.FromString(replies[-1]).state
        if last.observations_count != ROWS * BATCHES:
            raise RuntimeError(f"{last.observations_count} rows counted")
    return ROWS * BATCHES / elapsed_s


def bare_rows_per_s(folder: str) -> float:
    """The same number of rows and columns, one transaction per batch, the same durability."""
    database = sqlite3.connect(Path(folder) / "bare.db", isolation_level=None)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA synchronous=NORMAL")
    database.execute(
        "CREATE TABLE rows (batch INTEGER, row INTEGER, nodes INTEGER, workers INTEGER, steps_per_s REAL, at_s REAL,"
        " PRIMARY KEY (batch, row)) WITHOUT ROWID"
    )
    started = time.perf_counter()
    for batch in range(BATCHES):
        database.execute("BEGIN IMMEDIATE")
        database.executemany(
            "INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?)",
            [(batch, row, 1 + row % 16, 1 + row % 16, 10.0 + row, 1.7e9 + row) for row in range(ROWS)],
        )
        database.execute("COMMIT")
    elapsed_s = time.perf_counter() - started
    database.close()
    return ROWS * BATCHES / elapsed_s


def run() -> Iterator[Result]:
    """Best of three, alternating."""
    ours, bare = [], []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            ours.append(ours_rows_per_s(folder))
            bare.append(bare_rows_per_s(folder))
    yield Result("ingest_durable_rows", max(ours), "rows/s", max(bare))
