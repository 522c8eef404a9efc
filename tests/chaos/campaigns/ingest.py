"""Servers are killed by chance while clients ingest: one on a file, two on a database that is restarted in between.

Whoever ingests uses the shipped client. What it had acknowledged must be there in the end, each
row once and in its order, and no client may have seen an error.
"""

from __future__ import annotations

import argparse
import random
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any, Final

import grpc
import pytest
from patience import PATIENCE_S
from postgres_clusters import PostgresCluster, running_cluster
from serving import Stubs
from warm_servers import WarmServer, WarmServers, warm_servers

from nodewise_client import Client, ResumePolicy, configurations, observations
from nodewise_protos.v1 import profile_service_pb2 as profiles

WRITERS: Final = 3
BARE: Final = {"scoring": False, "learn_interval_s": 0.0, "compute_processes": 0}
"""Servers that do little besides what is tested."""
COMMIT_EVERY: Final = 20
"""Rows; a batch holds up to four of them."""
DATABASE_EVERY: Final = 10
"""Kills between two crashes of the database."""
ALL_EVERY: Final = 10
"""Kills of which the last waits until every client got on."""
TOLD_EVERY: Final = 20
PATIENT: Final = ResumePolicy(max_attempts=100_000, deadline_s=PATIENCE_S, opening_deadline_s=PATIENCE_S)
"""A busy machine takes longer to start a server than the 30 s of the shipped policy: how long commits took is told."""


def run(arguments: argparse.Namespace, folder: Path) -> Iterator[dict[str, Any]]:
    """What became of the rows, on every kind of store."""
    for kind in ("sqlite", "postgresql"):
        if arguments.kinds and kind not in arguments.kinds:
            continue
        try:
            with ExitStack() as stack:
                cluster = None
                if kind == "postgresql":
                    folder.chmod(0o711)
                    cluster = stack.enter_context(running_cluster(lambda: folder))
                for told in _killed(arguments, folder / kind, cluster, stack):
                    yield {"store": kind, **told}
        except pytest.skip.Exception as skipped:
            yield {"store": kind, "skipped": str(skipped)}


def _killed(
    arguments: argparse.Namespace, folder: Path, cluster: PostgresCluster | None, stack: ExitStack
) -> Iterator[dict[str, Any]]:
    folder.mkdir(exist_ok=True)
    chance = random.Random(arguments.seed)
    store = f"sqlite:{folder}/store.db" if cluster is None else cluster.url
    settings = {"store": store, "traces": str(folder / "traces"), "log_level": "error", **BARE}
    ports = [_free_port() for _ in range(1 if cluster is None else 2)]
    kinds = [stack.enter_context(warm_servers()) for _ in ports]
    servers = [_started(kind, port, settings) for kind, port in zip(kinds, ports, strict=True)]
    stack.callback(lambda: [server.kill() for server in servers])
    writers = [Writer(ports[number % len(ports) :] + ports[: number % len(ports)], number) for number in range(WRITERS)]
    kills, crashes, began = 0, 0, time.monotonic()
    for number in range(1, arguments.kills + 1):
        if time.monotonic() - began > 60.0 * arguments.at_most_minutes:
            break
        _until_progress(writers, len(writers) if number % ALL_EVERY == 0 else 1)
        time.sleep(chance.uniform(0.0, 0.5))
        which = chance.randrange(len(ports))
        servers[which].kill()
        if cluster is not None and number % DATABASE_EVERY == 0:
            cluster.stop()
            crashes += 1
            cluster.start()
        servers[which] = _started(kinds[which], ports[which], settings)
        kills = number
        if number % TOLD_EVERY == 0:
            yield {"kills": number, "rows": sum(each.acknowledged for each in writers)}
    for writer in writers:
        writer.end()
    wrong = [found for writer in writers if (found := writer.wrong(f"127.0.0.1:{ports[0]}"))]
    if cluster is None:
        with sqlite3.connect(folder / "store.db") as connection:
            (sound,) = connection.execute("PRAGMA integrity_check").fetchone()
        connection.close()
        wrong += [] if sound == "ok" else [sound]
    errors = [error for writer in writers for error in writer.errors]
    yield {
        "kills": kills,
        "crashes_of_the_database": crashes,
        "seconds": round(time.monotonic() - began, 1),
        "rows_acknowledged": sum(each.acknowledged for each in writers),
        "commits": sum(each.commits for each in writers),
        "median_commit_s": round(median(each for writer in writers for each in writer.took_s), 2),
        "longest_commit_s": round(max(each for writer in writers for each in writer.took_s), 2),
        "errors": errors[:5],
        "wrong": wrong[:5],
        "kept": kills == arguments.kills and not errors and not wrong and all(each.commits for each in writers),
    }


def _until_progress(writers: list[Writer], least: int) -> None:
    """So that every kill meets an ingest under way: after a start, channels wait a second or more to connect again."""
    before = [each.commits for each in writers]
    ends = time.monotonic() + PATIENCE_S
    while time.monotonic() < ends:
        progress = [each.errors or each.commits > count for each, count in zip(writers, before, strict=True)]
        if sum(map(bool, progress)) >= least:
            return
        time.sleep(0.01)


class Writer:
    """A client that ingests rows whose rates tell their numbers, until it is told to end."""

    def __init__(self, ports: list[int], number: int) -> None:
        self._target = "ipv4:" + ",".join(f"127.0.0.1:{port}" for port in ports)
        self._profile = f"chaos-{number}"
        self._ended = threading.Event()
        self.acknowledged, self.commits = 0, 0
        self.took_s: list[float] = []
        self.errors: list[str] = []
        self._thread = threading.Thread(target=self._ingest)
        self._thread.start()

    def _ingest(self) -> None:
        try:
            with (
                Client(self._target) as client,
                client.ingest(self._profile, batch_rows=4, linger_s=0.0, resume=PATIENT) as writer,
            ):
                while not self._ended.is_set():
                    first = self.acknowledged + 1
                    for rate in range(first, first + COMMIT_EVERY):
                        rows = configurations(nodes=[1], workers=[1], sync_modes="allreduce")
                        writer.observe(observations(configurations=rows, steps_per_second=[float(rate)]))
                    began = time.monotonic()
                    result = writer.commit()
                    self.took_s.append(time.monotonic() - began)
                    self.commits += 1
                    self.acknowledged += COMMIT_EVERY
                    if result.observations_count != self.acknowledged:
                        self.errors.append(f"{self.acknowledged} were committed, {result.observations_count} count")
        except Exception as error:  # noqa: BLE001 - whatever a client sees is what is told
            self.errors.append(repr(error))

    def end(self) -> None:
        """Finish the unit in hand."""
        self._ended.set()
        self._thread.join()

    def wrong(self, target: str) -> str:
        """What the store holds otherwise than it was acknowledged; empty = nothing."""
        rates: list[int] = []
        with Stubs(target) as stubs:
            asked = profiles.GetProfileRequest(profile_id=self._profile)
            while True:
                try:
                    page = stubs.profile.GetProfile(asked, wait_for_ready=True, timeout=60.0)
                except grpc.RpcError as error:
                    return f"{self._profile}: {error.details()}"
                rates += [int(rate) for rate in page.profile.content.observations.steps_per_second]
                if not page.next_page_token:
                    break
                asked.page_token = page.next_page_token
        if rates == list(range(1, self.acknowledged + 1)):
            return ""
        lost = len(set(range(1, self.acknowledged + 1)) - set(rates))
        return f"{self._profile}: {len(rates)} rows of {self.acknowledged}, {lost} lost"


def _started(kind: WarmServers, port: int, settings: dict[str, Any]) -> WarmServer:
    return kind.start(**settings, listen=f"127.0.0.1:{port}")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port
