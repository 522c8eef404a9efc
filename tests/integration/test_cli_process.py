"""The installed command as processes of their own: standard streams, signals, exit statuses."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from patience import PATIENCE_S
from serving import COMMAND, ServerProcess

pytestmark = pytest.mark.wheel

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(*arguments: str | Path, command: tuple[str, ...] = COMMAND) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*command, *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with ServerProcess("--store", "memory:", "--log-level", "warning") as process:
        yield process


def test_a_server_is_asked_over_a_socket(server: ServerProcess) -> None:
    ingested = run("ingest", EXAMPLES / "testbed.csv", "--server", server.target, "--json")
    assert (ingested.returncode, ingested.stderr) == (0, "")
    assert json.loads(ingested.stdout)["profiles"].keys() == {"a1", "a4", "s2"}
    predicted = run("predict", "--profile", "a1", "--nodes", "1-16", "--server", server.target, "--json")
    assert len(json.loads(predicted.stdout)["predictions"]) == 16
    assert run("health", "--server", server.target).returncode == 0


def test_embedded_answers_leave_nothing_but_json_behind() -> None:
    ran = run("backtest", EXAMPLES / "testbed.csv", "--json", command=(sys.executable, "-m", "nodewise"))
    assert (ran.returncode, ran.stderr) == (0, "")
    assert json.loads(ran.stdout)["estimators"]["auto"]["n"] == 18


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains_and_exits_0(number: signal.Signals) -> None:
    with ServerProcess("--store", "memory:", "--log-level", "warning") as process:
        assert process.target.startswith("127.0.0.1:")
        os.kill(process.pid, number)
        assert process.terminate() == (0, "")


def test_errors_are_one_line_and_no_traceback(server: ServerProcess) -> None:
    taken = run("serve", "--listen", server.target, "--store", "memory:", "--log-level", "error")
    assert taken.returncode == 1
    assert taken.stderr.startswith(f"nodewise: cannot listen on {server.target}: ")
    assert taken.stderr.count("\n") == 1
    unknown = run("predict", "--profile", "nobody", "--nodes", "1-4", "--server", server.target)
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert unknown.stderr == "nodewise: PROFILE_NOT_FOUND: no profile is named 'nobody'\n"


def test_a_reader_that_goes_away_is_no_traceback() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ran = subprocess.run(
            [*COMMAND, "predict", str(EXAMPLES / "testbed.csv"), "--job", "a1", "--nodes", "1-4"],
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    finally:
        os.close(writing)
    assert ran.returncode == 1
    assert "Traceback" not in ran.stderr


INTERRUPTED = """
import os, signal, sys, threading
from nodewise_cli.main import main
threading.Timer(float(sys.argv.pop(1)), os.kill, (os.getpid(), signal.SIGINT)).start()
main()
"""


@pytest.mark.parametrize("delay_s", [0.2, 0.6, 1.2, 2.0])
def test_an_interrupt_ends_quietly_at_any_time(delay_s: float) -> None:
    arguments = ["simulate", EXAMPLES / "simulation" / "simulate.json", "--repetitions", "1000"]
    ran = run(str(delay_s), *arguments, command=(sys.executable, "-c", INTERRUPTED))
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "")
