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
PLANTED = """
import _thread, os, sys, time
from pathlib import Path

def hang():
    import ctypes
    told = Path(__file__).with_name(f"hang-{os.getpid()}")
    while not told.exists():
        time.sleep(0.05)
    ctypes.PyDLL(None).sleep(100000)  # and never lets go of the interpreter

if any("nodewise.runtime.zygote" in each for each in sys.orig_argv):
    if os.environ.get("PLANTED") == "thread":
        _thread.start_new_thread(time.sleep, (100000,))
    # Not traced: coverage imports for a new thread, while the worker does.
    os.register_at_fork(after_in_child=lambda: _thread.start_new_thread(hang, ()))
elif "serve" in sys.argv:
    from nodewise.runtime import recycling
    recycling.LEAST_LIFE_S = 0.0
"""
"""What a site does to processes of a server: its workers hang when they are told to, and are recycled however young."""


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
    found = tmp_path_factory.mktemp("served")
    (found / "sitecustomize.py").write_text(PLANTED, encoding="utf-8")
    return found


def planted(folder: Path) -> dict[str, str]:
    """Environment of a server of that site."""
    return {"PYTHONPATH": os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])}


@pytest.fixture(scope="module")
def settings(folder: Path) -> str:
    return f'store = "sqlite:{folder}/store.db"\nwarm_spare = true\nhung_after_s = 5.0\ngrace_s = 600.0\n'


@pytest.fixture(scope="module")
def server(folder: Path, settings: str) -> Iterator[ServerProcess]:
    config = folder / "settings.toml"
    config.write_text(settings, encoding="utf-8")
    with ServerProcess("--config", str(config), environment=planted(folder)) as found:
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


def test_a_warm_spare_takes_over_from_a_worker_that_was_killed(server: ServerProcess) -> None:
    wait_until(lambda: len(server.workers()) == 2)
    (killed,) = listening(server)
    (spare,) = set(server.workers()) - {killed}
    os.kill(killed, signal.SIGKILL)
    server.log_until("worker_died")
    assert ask(server.target) == 1
    assert listening(server) == [spare]


@pytest.mark.long
def test_a_worker_that_hangs_is_replaced(server: ServerProcess, folder: Path) -> None:
    wait_until(lambda: len(server.workers()) == 2)
    (serving,) = listening(server)
    (folder / f"hang-{serving}").touch()
    server.log_until("worker_killed")
    assert ask(server.target) == 1
    assert serving not in server.workers()


@pytest.mark.long
def test_a_zygote_that_is_killed_is_replaced_and_is_no_need(server: ServerProcess) -> None:
    wait_until(lambda: len(server.workers()) == 2)
    (zygote,) = [pid for pid in children_of(server.pid) if name_of(pid) == "nodewise-zygote"]
    (serving,) = listening(server)
    os.kill(zygote, signal.SIGKILL)
    os.kill(serving, signal.SIGKILL)
    server.log_until("preloading_failed")
    assert ask(server.target) == 1
    server.log_until("preloaded")


@pytest.mark.long
def test_restarts_lose_no_call(server: ServerProcess, folder: Path, settings: str) -> None:
    """Of one worker; to two of them, each on a core of its own; and of two."""
    with (
        Callers(server.target, 2, wait_for_ready=True) as patient,
        Callers(server.target, 2, wait_for_ready=False) as quick,
    ):
        wait_until(lambda: patient.answered and quick.answered)
        for _ in range(RESTARTS - 2):
            restart(server)
        (folder / "settings.toml").write_text(f"{settings}\nworkers = 2\npin_workers = true\n", encoding="utf-8")
        # Told again while it restarts: that one is remembered.
        os.kill(server.pid, signal.SIGHUP)
        server.log_until("restarting")
        os.kill(server.pid, signal.SIGHUP)
        server.log_until("restarted")
        server.log_until("restarted")
        before = patient.answered, quick.answered
        wait_until(lambda: patient.answered > before[0] and quick.answered > before[1])
    assert (dict(patient.failed), dict(quick.failed)) == ({}, {})
    kept_to = [os.sched_getaffinity(pid) for pid in listening(server)]
    assert [len(cores) for cores in kept_to] == [1, 1]
    assert len(frozenset.union(*map(frozenset, kept_to))) == min(2, len(os.sched_getaffinity(0)))


@pytest.mark.long
def test_workers_that_grow_beyond_their_limit_are_replaced(server: ServerProcess, folder: Path, settings: str) -> None:
    (folder / "settings.toml").write_text(f"{settings}\nrecycle_bytes = 1_000_000\n", encoding="utf-8")
    with Callers(server.target, 2, wait_for_ready=True) as callers:
        restart(server)
        for _ in range(2):
            server.log_until("worker_recycled")
            server.log_until("worker_drains")
        before = callers.answered
        wait_until(lambda: callers.answered > before)
    assert not callers.failed


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
def test_a_server_starts_where_one_was_killed_with_connections_open(tmp_path: Path, folder: Path) -> None:
    """Connections of the first are open then; the second has a zygote that must not fork, and gives up its workers."""
    store = ("--store", f"sqlite:{tmp_path}/store.db")
    threaded = {**planted(folder), "PLANTED": "thread", "NODEWISE_CRASH_BUDGET": "1"}
    with ServerProcess(*store, "--drain-delay-s", "600") as killed:
        left = killed.workers()
        with Stubs(killed.target) as stubs:
            question = predictions.PredictRequest(profile=inline(), configurations=workers(1))
            stubs.prediction.Predict(question, timeout=PATIENCE_S)
            killed.kill()
            with (
                ServerProcess(*store, listen=killed.target, environment=threaded) as server,
                Stubs(server.target) as others,
            ):
                others.prediction.Predict(question, timeout=PATIENCE_S)
                wait_until(lambda: all(map(ended, left)))
                (serving,) = server.workers()
                os.kill(serving, signal.SIGKILL)
                status, log = server.wait()
    assert status == 1
    assert "has 2 threads" in log
    assert "given_up" in log


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
