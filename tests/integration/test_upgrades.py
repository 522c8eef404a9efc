"""Upgrades and returns to the older release, by the commands of the page, on stores that replicas of it serve."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
import threading
from pathlib import Path

import grpc
import pytest
from logged_server import LoggedServer
from patience import PATIENCE_S, wait_until
from postgres_clusters import PostgresCluster
from releases import OF_SCHEMA_4, OF_VERSION_0_1, command_of
from serving import COMMAND, Stubs, observed, stored, workers

from nodewise_protos.v1 import prediction_service_pb2 as predictions
from nodewise_protos.v1 import profile_pb2
from nodewise_protos.v1 import profile_service_pb2 as profiles

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "guides" / "upgrades.md").read_text(encoding="utf-8")
FEW_PROCESSES = {"NODEWISE_COMPUTE_PROCESSES": "0", "NODEWISE_SCORING": "false", "NODEWISE_LEARN_INTERVAL_S": "0"}
RESTORED = "postgresql://db.example.org/nodewise_before"


def commands_of_page() -> set[str]:
    """All that the page has people run, but for what restarts a site's services."""
    blocks = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    lines = [line.strip() for block in blocks for line in block.splitlines()]
    return {*filter(None, lines), *re.findall(r"`(nodewise [^`]+)`", PAGE)}


class Replicas:
    """Two servers on one store, at fixed addresses, and what a shell beside them knows."""

    def __init__(self, folder: Path, store: str, command: Path) -> None:
        self.folder, self.store = folder, store
        self._targets = ["127.0.0.1:0"] * 2
        self.servers: list[LoggedServer | None] = [None, None]
        self._ran: set[str] = set()
        for number in range(2):
            self.start(number, command)

    def start(self, number: int, command: Path, store: str = "", *more: str) -> LoggedServer:
        """Start a replica of a release, at its address, once the one before has ended."""
        self.stop(number)
        folder = self.folder / f"replica{number}"
        folder.mkdir(exist_ok=True)
        arguments = ["--store", store or self.store, "--traces", str(self.folder / "traces"), "--safe-mode", *more]
        server = LoggedServer(
            folder, *arguments, listen=self._targets[number], command=[str(command)], environment=FEW_PROCESSES
        )
        self.servers[number], self._targets[number] = server, server.target
        return server

    def stop(self, number: int) -> None:
        server = self.servers[number]
        if server is not None:
            server.__exit__()

    def target(self, number: int) -> str:
        return self._targets[number]

    def upgrades(self, number: int) -> list[tuple[int, int]]:
        server = self.servers[number]
        assert server is not None
        lines = [line for line in server.logged()[0] if line["event"] == "store_upgraded"]
        return [(line["schema_before"], line["schema"]) for line in lines]

    def run(self, line: str, command: Path, *instead: tuple[str, str]) -> str:
        """Run a line of the page with a release, each placeholder replaced once; returns what it printed."""
        assert line in commands_of_page()
        self._ran.add(line)
        for placeholder, value in instead:
            line = line.replace(placeholder, f"'{value}'", 1)
        path = os.pathsep.join([str(command.parent), os.environ["PATH"]])
        settings = {"NODEWISE_STORE": self.store, "NODEWISE_TRACES": str(self.folder / "traces"), "PATH": path}
        done = subprocess.run(
            ["bash", "-ec", line],
            cwd=self.folder,
            env={**os.environ, **settings},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def has_run_all(self) -> bool:
        return self._ran == commands_of_page()


class Caller:
    """Appends to both replicas in turn and asks about what it appended, until it is told to stop."""

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas
        self.acknowledged: list[list[float]] = [[], []]
        """Rates by the replica that acknowledged them."""
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=self._call, args=(number,)) for number in range(2)]

    def _call(self, number: int) -> None:
        for turn in itertools.count(1):
            if self._is_over.wait(0.05):  # as servers that start need the cores
                return
            rate = turn + (number + 1) / 8
            content = profile_pb2.ProfileContent(observations=observed([turn % 8 + 1], [rate]))
            request = profiles.AppendProfileRequest(profile_id="job", request_id=f"{number}-{turn}", content=content)
            question = predictions.PredictRequest(profile=stored("job"), configurations=workers(2))
            while not self._is_over.is_set():
                with Stubs(self._replicas.target(number)) as stubs:
                    try:
                        stubs.profile.AppendProfile(request, timeout=PATIENCE_S)
                        self.acknowledged[number].append(rate)
                        stubs.prediction.Predict(question, timeout=PATIENCE_S)
                        break
                    except grpc.RpcError:  # the replica restarts; the same request id stores the run once
                        self._is_over.wait(0.2)

    def __enter__(self) -> Caller:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def wait_for_more(self, number: int) -> None:
        """Until a replica has acknowledged ten more runs."""
        most = len(self.acknowledged[number]) + 10
        wait_until(lambda: len(self.acknowledged[number]) >= most)

    @property
    def rates(self) -> set[float]:
        return {*self.acknowledged[0], *self.acknowledged[1]}


def stored_rates(target: str) -> list[float]:
    with Stubs(target) as stubs:
        found: list[float] = []
        request = profiles.GetProfileRequest(profile_id="job")
        while True:
            reply = stubs.profile.GetProfile(request, timeout=PATIENCE_S)
            found += reply.profile.content.observations.steps_per_second
            if not reply.next_page_token:
                return found
            request.page_token = reply.next_page_token


@pytest.fixture(params=["file", pytest.param("database", marks=pytest.mark.stores)])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """An empty store, and another one to restore into."""
    if request.param == "file":
        return f"sqlite:{tmp_path}/store.db", f"sqlite:{tmp_path}/before.db"
    import psycopg

    cluster: PostgresCluster = request.getfixturevalue("cluster")
    store = cluster.emptied()
    with psycopg.connect(store, autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS nodewise_before")
        connection.execute("CREATE DATABASE nodewise_before")
    return store, store.replace("/postgres?", "/nodewise_before?")


def test_replicas_are_upgraded_one_after_the_other(stores: tuple[str, str], tmp_path: Path) -> None:
    store, before = stores
    old, new = command_of(OF_SCHEMA_4, tmp_path), Path(COMMAND[0])
    (tmp_path / "backups").mkdir()
    replicas = Replicas(tmp_path, store, old)
    try:
        with Caller(replicas) as caller:
            for number in range(2):
                caller.wait_for_more(number)
            before_backup = caller.rates
            replicas.run(
                'nodewise backup --store "$NODEWISE_STORE" backups/before && nodewise verify backups/before', old
            )
            assert "queueing" in replicas.run("nodewise plugins", new)
            first = replicas.start(0, new, "", "--http", "127.0.0.1:0")
            http = first.http_target
            assert replicas.upgrades(0) == [(4, 5)]
            for number in range(2):  # the older release still answers, on the newer schema
                caller.wait_for_more(number)
            with pytest.raises(RuntimeError, match="has schema 5 and this release knows 4"):
                LoggedServer(
                    tmp_path, "--store", store, "--traces", str(tmp_path / "traces"), "--safe-mode", command=[str(old)]
                )
            replicas.start(1, new)
            assert replicas.upgrades(1) == []
            for number in range(2):
                caller.wait_for_more(number)
        for number in range(2):
            rates = stored_rates(replicas.target(number))
            assert len(rates) == len(set(rates))
            assert caller.rates <= set(rates)
        status = "nodewise status HOST:PORT --http HOST:PORT"
        assert "is ready" in replicas.run(status, new, ("HOST:PORT", first.target), ("HOST:PORT", http))

        for number in range(2):
            replicas.stop(number)
        replicas.run(f"nodewise restore --store {RESTORED} backups/before", old, (RESTORED, before))
        replicas.start(0, old, before)
        rates = stored_rates(replicas.target(0))
        assert before_backup <= set(rates) <= {*caller.rates, *rates}
        assert len(rates) < len(caller.rates)
        assert replicas.has_run_all()
    finally:
        for number in range(2):
            replicas.stop(number)


def test_version_0_1_is_stopped_copied_and_upgraded(tmp_path: Path) -> None:
    """Its contract has other bytes, so its own command talks to its own server."""
    old, new = command_of(OF_VERSION_0_1, tmp_path), Path(COMMAND[0])
    store, copy, table = tmp_path / "store.db", tmp_path / "copy.db", tmp_path / "table.csv"
    rows = [f"old,V100,{count},{count},train,{count / (1 + 0.02 * count)}" for count in (1, 2, 4, 8)]
    table.write_text("job,device,nodes,workers,split,steps_per_s\n" + "\n".join(rows) + "\n")

    def nodewise(command: Path, *arguments: str) -> str:
        done = subprocess.run([command, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def served(path: Path, command: Path) -> LoggedServer:
        arguments = ["--store", f"sqlite:{path}", "--safe-mode"]
        return LoggedServer(tmp_path, *arguments, command=[str(command)], environment=FEW_PROCESSES)

    with served(store, old) as server:
        nodewise(old, "ingest", str(table), "--server", server.target)
    shutil.copy(store, copy)
    with served(store, new) as server:
        upgrades = [line for line in server.logged()[0] if line["event"] == "store_upgraded"]
        assert [(line["schema_before"], line["schema"]) for line in upgrades] == [(2, 5)]
        assert '"observations":4' in nodewise(new, "profiles", "list", "--json", "--server", server.target).replace(
            " ", ""
        )
        nodewise(new, "verify", "--store", f"sqlite:{store}", "--quick")
    with served(copy, old) as server:
        assert "old" in nodewise(old, "profiles", "list", "--server", server.target)
