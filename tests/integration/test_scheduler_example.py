"""The example that every client has, Python's: against a fresh server it prints what the page says."""

import subprocess
import sys
from pathlib import Path

from patience import PATIENCE_S

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.settings import Settings

CLIENTS = Path(__file__).parents[2] / "clients"
SCHEDULER = CLIENTS / "python" / "examples" / "scheduler.py"


def test_the_scheduler_prints_what_it_prints_in_every_language() -> None:
    with EmbeddedServer(Settings(store="memory:", scoring=False)) as server:
        ran = subprocess.run(
            [sys.executable, SCHEDULER, server.target],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
            env={},
        )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert f"```\n{ran.stdout}```\n" in (CLIENTS / "examples.md").read_text(encoding="utf-8")


def test_what_is_wrong_with_its_arguments_is_said() -> None:
    ran = subprocess.run(
        [sys.executable, SCHEDULER, "127.0.0.1:1", "6"], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert ran.returncode == 1
    assert "multiple" in ran.stderr
