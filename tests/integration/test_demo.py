"""The demo: what it prints, what it draws, and that it leaves no process behind."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from patience import PATIENCE_S

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "examples" / "demo" / "run_demo.py"


def servers() -> set[str]:
    """Processes of the demo's servers, by what they were started with."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if " serve " in command and "nodewise-demo-" in command:
            found.add(command)
    return found


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are found in /proc")
def test_the_demo(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is an extra")
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, str(DEMO)], capture_output=True, text=True, timeout=PATIENCE_S, check=False, env=environment
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert max(map(len, ran.stdout.splitlines())) <= 100
    error = re.search(r"Mean error ([\d.]+) % over 48 rows", ran.stdout)
    assert error is not None
    assert float(error[1]) < 10
    assert "Shake-Shake-Big/P100/1ps" in ran.stdout
    for drawn in re.findall(r"Drawn: (\S+)", ran.stdout):
        assert (ROOT / drawn).read_bytes().startswith(b"\x89PNG")
    assert not [command for command in servers() if str(tmp_path) in command]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are found in /proc")
def test_a_demo_that_is_stopped_leaves_no_server(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    demo = subprocess.Popen(
        [sys.executable, str(DEMO)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    )
    assert demo.stdout is not None
    with demo.stdout:
        assert demo.stdout.readline().startswith("A server listens on 127.0.0.1:")
        demo.terminate()
        demo.stdout.read()
    assert demo.wait(PATIENCE_S) == 143
    assert not [command for command in servers() if str(tmp_path) in command]
