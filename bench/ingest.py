"""Rows per second of a processor: ingest over gRPC until durable, beside writing the same rows into the bare database.

For SQLite the baseline is ``executemany`` of sqlite3, for PostgreSQL ``COPY`` of psycopg; each in transactions as large
as our batches, with the same durability. What is divided by is the CPU time of the server's processes, and of the
database's, not that of the client.
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median

import grpc
from databases import Database, database
from processes import Server
from results import Result

from nodewise_protos.v1 import configuration_pb2, profile_pb2
from nodewise_protos.v1 import profile_service_pb2 as pb

ROWS = 1_000
BATCHES = 400
ROUNDS = 5
IDLE_S = 0.3
_COLUMNS = (
    "batch INTEGER, row INTEGER, nodes INTEGER, workers INTEGER, steps_per_s DOUBLE PRECISION, at_s DOUBLE PRECISION"
)


def messages(profile_id: str, batches: int) -> list[bytes]:
    opening = pb.OpenSession(profile_id=profile_id, session_id="bench")
    found = [pb.IngestProfileRequest(open=opening).SerializeToString()]
    for number in range(1, batches + 1):
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
        batch = pb.ProfileBatch(sequence_number=number, observations=observations, commit=number == batches)
        found.append(pb.IngestProfileRequest(batch=batch).SerializeToString())
    return found


def ours_rows_per_s(channel: grpc.Channel, cpu_s: Callable[[], float], profile_id: str) -> float:
    """Of one session whose client is ahead of the server."""
    prepared = messages(profile_id, BATCHES)
    _wait_until_idle(cpu_s)
    before_s = cpu_s()
    replies = list(channel.stream_stream("/nodewise.v1.ProfileService/IngestProfile")(iter(prepared)))
    used_s = cpu_s() - before_s
    last = pb.IngestProfileResponse.FromString(replies[-1]).state
    if last.observations_count != ROWS * BATCHES:
        raise RuntimeError(f"{last.observations_count} rows counted")
    return ROWS * BATCHES / used_s


def _wait_until_idle(cpu_s: Callable[[], float]) -> None:
    """A commit is fitted ahead after it was acknowledged, which is not ingest's cost."""
    used_s = cpu_s()
    while True:
        time.sleep(IDLE_S)
        before_s, used_s = used_s, cpu_s()
        if used_s - before_s < IDLE_S / 20:
            return


def _rows(batch: int) -> list[tuple[int, int, int, int, float, float]]:
    return [(batch, row, 1 + row % 16, 1 + row % 16, 10.0 + row, 1.7e9 + row) for row in range(ROWS)]


def bare_sqlite_rows_per_s(folder: str, name: str) -> float:
    with sqlite3.connect(Path(folder) / f"{name}.db", isolation_level=None) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute(f"CREATE TABLE rows ({_COLUMNS}, PRIMARY KEY (batch, row)) WITHOUT ROWID")
        prepared = [_rows(batch) for batch in range(BATCHES)]
        started = time.process_time()
        for rows in prepared:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?)", rows)
            connection.execute("COMMIT")
        used_s = time.process_time() - started
    connection.close()
    return ROWS * BATCHES / used_s


def bare_postgres_rows_per_s(running: Database, name: str) -> float:
    import psycopg  # noqa: PLC0415  # only where there is a server

    with psycopg.connect(running.url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE {name} ({_COLUMNS}, PRIMARY KEY (batch, row))")  # type: ignore[arg-type]
        prepared = [_rows(batch) for batch in range(BATCHES)]
        started = time.process_time() + running.cpu_s()
        for rows in prepared:
            with connection.cursor() as cursor, cursor.copy(f"COPY {name} FROM STDIN") as copy:  # type: ignore[arg-type]
                for row in rows:
                    copy.write_row(row)
        used_s = time.process_time() + running.cpu_s() - started
        connection.execute(f"DROP TABLE {name}")  # type: ignore[arg-type]
    return ROWS * BATCHES / used_s


def _served(folder: str, store: str, cpu_s: Callable[[], float], bare: Callable[[str], float], name: str) -> Result:
    """Rounds that alternate; the first of ours, in which the server gets warm, does not count."""
    options = ("--store", store, "--traces", f"{folder}/traces")
    ours, theirs = [], []
    with (
        Server("-m", "nodewise", "serve", "--listen", "127.0.0.1:0", *options) as server,
        grpc.insecure_channel(server.target) as channel,
    ):
        for number in range(ROUNDS + 1):
            ours.append(ours_rows_per_s(channel, lambda: server.cpu_s() + cpu_s(), f"bench-{number}"))
            theirs.append(bare(f"bare_{number}"))
    ratios = [one / other for one, other in zip(ours[1:], theirs[1:], strict=True)]
    return Result(name, median(ours[1:]), "rows/s of a processor", median(theirs[1:]), ratio=median(ratios))


def run() -> Iterator[Result]:
    """Both databases; PostgreSQL where its programs are installed."""
    with tempfile.TemporaryDirectory() as folder:
        store = f"sqlite:{folder}/ours.db"
        yield _served(folder, store, lambda: 0.0, lambda name: bare_sqlite_rows_per_s(folder, name), "ingest_sqlite")
    with tempfile.TemporaryDirectory() as folder, database() as running:
        if running is None:
            print("ingest_postgresql is left out: PostgreSQL is not installed", file=sys.stderr)
            return
        bare = partial(bare_postgres_rows_per_s, running)
        yield _served(folder, running.url, running.cpu_s, bare, "ingest_postgresql")
