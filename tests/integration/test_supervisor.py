"""The supervisor: whatever ends a worker, another serves; restarts leave no gap; and it ends when it is told to."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import grpc
import pytest
from patience import PATIENCE_S, wait_until
from restarting import Callers, restart
from serving import (
    COMMAND,
    ServerProcess,
    Stubs,
    children_of,
    ended,
    inline,
    name_of,
    one_worker_phases,
    stored,
    workers,
    workers_of,
)

from nodewise_protos.v1 import prediction_service_pb2 as predictions
from nodewise_protos.v1 import profile_service_pb2 as profiles

RESTARTS = int(os.environ.get("NODEWISE_TEST_RESTARTS", "3"))
"""Rolling restarts under load; the long form has a hundred."""


def listening(server: ServerProcess) -> list[int]:
    """Workers that take connections: others are warm, or drain."""
    port = f":{int(server.target.rpartition(':')[2]):04X}"
    tables = (Path("/proc/net", name).read_text().splitlines() for name in ("tcp", "tcp6"))
    rows = (line.split() for table in tables for line in table)
    sockets = {f"socket:[{row[9]}]" for row in rows if row[1].endswith(port) and row[3] == "0A"}
    return [pid for pid in server.workers() if sockets & descriptors(pid)]


def descriptors(pid: int) -> set[str]:
    """What a process has open; some may be closed, or the process end, meanwhile."""
    found = set()
    with suppress(FileNotFoundError, ProcessLookupError):
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):
                found.add(str(descriptor.readlink()))
    return found


def ask(target: str) -> int:
    """A question to whoever serves; returns the revision that it was answered from."""
    question = predictions.PredictRequest(profile=stored("kept"), configurations=workers(1))
    while True:
        with Stubs(target) as stubs:
            try:
                reply = stubs.prediction.Predict(question, wait_for_ready=True, timeout=PATIENCE_S)
            except grpc.RpcError as failure:
                if failure.code() is grpc.StatusCode.UNAVAILABLE:
                    continue  # a connection that waited at a worker which was killed is reset; clients ask again
                raise
        return int(reply.basis.profile_revision)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="module")
def settings(folder: Path) -> str:
    return f'store = "sqlite:{folder}/store.db"\ngrace_s = 600.0\n'


@pytest.fixture(scope="module")
def server(folder: Path, settings: str) -> Iterator[ServerProcess]:
    config = folder / "settings.toml"
    config.write_text(settings, encoding="utf-8")
    with ServerProcess("--config", str(config)) as found:
        with Stubs(found.target) as stubs:
            content = one_worker_phases()
            stubs.profile.AppendProfile(
                profiles.AppendProfileRequest(profile_id="kept", request_id="1", content=content)
            )
        yield found


@pytest.mark.parametrize(
    ("wrong", "event"),
    [
        ("no_such_setting = 1", "restart_refused"),
        ('catalogue = "/nowhere.toml"', "restart_failed"),
    ],
)
def test_settings_that_are_wrong_change_nothing(
    server: ServerProcess, folder: Path, settings: str, wrong: str, event: str
) -> None:
    (serving,) = listening(server)
    (folder / "settings.toml").write_text(settings + wrong, encoding="utf-8")
    os.kill(server.pid, signal.SIGHUP)
    server.log_until(event)
    assert listening(server) == [serving]
    assert ask(server.target) == 1
    (folder / "settings.toml").write_text(settings, encoding="utf-8")


def test_another_worker_serves_after_one_was_killed(server: ServerProcess) -> None:
    (killed,) = listening(server)
    os.kill(killed, signal.SIGKILL)
    server.log_until("worker_died")
    assert ask(server.target) == 1
    (serving,) = listening(server)
    assert serving != killed


@pytest.mark.long
def test_restarts_lose_no_call(server: ServerProcess, folder: Path, settings: str) -> None:
    """Of one worker; to two of them; and of two."""
    with (
        Callers(server.target, 2, wait_for_ready=True) as patient,
        Callers(server.target, 2, wait_for_ready=False) as quick,
    ):
        wait_until(lambda: patient.answered and quick.answered)
        for _ in range(RESTARTS - 2):
            restart(server)
        (folder / "settings.toml").write_text(f"{settings}\nworkers = 2\n", encoding="utf-8")
        # Told again while it restarts: that one is remembered.
        os.kill(server.pid, signal.SIGHUP)
        server.log_until("restarting")
        os.kill(server.pid, signal.SIGHUP)
        server.log_until("restarted")
        server.log_until("restarted")
        before = patient.answered, quick.answered
        wait_until(lambda: patient.answered > before[0] and quick.answered > before[1])
    assert (dict(patient.failed), dict(quick.failed)) == ({}, {})
    assert len(listening(server)) == 2


def test_a_second_signal_ends_what_the_first_did_not(server: ServerProcess) -> None:
    """Last of this server."""
    for worker in server.workers():
        os.kill(worker, signal.SIGSTOP)  # it will not drain, and has ten minutes to
    os.kill(server.pid, signal.SIGTERM)
    server.log_until("stopping")
    time.sleep(1.0)  # a second signal within half of it would be the same one
    status, _ = server.terminate()
    assert status == 0


@pytest.mark.long
def test_a_server_starts_where_one_was_killed_with_connections_open(tmp_path: Path) -> None:
    """Connections of the first are open then; the second gives up its worker."""
    store = ("--store", f"sqlite:{tmp_path}/store.db")
    with ServerProcess(*store, "--drain-delay-s", "600") as killed:
        left = killed.workers()
        with Stubs(killed.target) as stubs:
            question = predictions.PredictRequest(profile=inline(), configurations=workers(1))
            stubs.prediction.Predict(question, timeout=PATIENCE_S)
            killed.kill()
            with (
                ServerProcess(*store, listen=killed.target, environment={"NODEWISE_CRASH_BUDGET": "1"}) as server,
                Stubs(server.target) as others,
            ):
                others.prediction.Predict(question, timeout=PATIENCE_S)
                wait_until(lambda: all(map(ended, left)))
                (serving,) = server.workers()
                os.kill(serving, signal.SIGKILL)
                status, log = server.wait()
    assert status == 1
    assert "crash_budget_spent" in log


@pytest.mark.long
def test_workers_that_drain_do_not_outlive_a_supervisor_that_is_killed(tmp_path: Path) -> None:
    with ServerProcess("--store", f"sqlite:{tmp_path}/store.db", "--drain-delay-s", "600") as server:
        left = server.workers()
        os.kill(server.pid, signal.SIGTERM)
        server.log_until("draining")
        server.kill()
        wait_until(lambda: all(map(ended, left)))


@pytest.mark.long
def test_a_signal_while_a_worker_starts_ends_the_server(tmp_path: Path) -> None:
    command = [*COMMAND, "serve", "--listen", "127.0.0.1:0", "--store", f"sqlite:{tmp_path}/store.db"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        wait_until(lambda: workers_of(process.pid))
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, output) == (0, b"")


@pytest.mark.long
def test_the_only_worker_is_replaced_by_its_spare(tmp_path: Path) -> None:
    with ServerProcess("--store", f"sqlite:{tmp_path}/store.db") as server:
        wait_until(lambda: "nodewise-spare" in map(name_of, children_of(server.pid)))
        (spare,) = (pid for pid in children_of(server.pid) if name_of(pid) == "nodewise-spare")
        os.kill(*server.workers(), signal.SIGKILL)
        wait_until(lambda: listening(server) == [spare])
