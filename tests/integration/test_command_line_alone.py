"""The command line without the server, NumPy and what else comes with `nodewise`, as `nodewise-cli` installs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from nodewise.runtime.embedded_server import EmbeddedServer

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
PROGRAM = ROOT / "tests" / "support" / "command_line_alone.py"


def run(tmp_path: Path, commands: list[str]) -> list[tuple[int, str, str]]:
    """Exit status, output and errors of each."""
    file = tmp_path / "commands.json"
    file.write_text(json.dumps([each.split() for each in commands]))
    done = subprocess.run([sys.executable, PROGRAM, file], capture_output=True, text=True, cwd=EXAMPLES, check=False)
    assert done.returncode == 0, done.stderr
    return [(status, output, errors) for status, output, errors in json.loads(done.stdout)]


def test_a_server_elsewhere_answers_it(tmp_path: Path) -> None:
    commands = [
        "ingest testbed.csv",
        "predict testbed.csv --job a1 --workers 1-16",
        "predict profile.json --workers 1-4 --json",
        "predict --measured 1=19800,2=38100 --unit samples_per_s --gpus-per-node 8 --batch-per-worker 256",
        "suggest testbed.csv --job a1 --workers 1-16",
        "plan plan_mlp_32_machines.json",
        "plan config.json --cluster H100=1x8 --batch 64",
        "card config.json --nodes 1 --workers-per-node 8 --device H100 --global-batch 64 --tokens 1e9",
        "schedule schedule.json",
        "spot spot.json",
        "share share.json",
        "diagnose traces",
        "backtest testbed.csv --estimator queueing",
        "profiles list",
        "estimators",
        "plugins",
        "devices",
        "health",
    ]
    with EmbeddedServer() as server:
        results = run(tmp_path, [f"{command} --server {server.target}" for command in commands])
    failed = {command: errors for command, (status, _, errors) in zip(commands, results) if status}
    assert not failed


def test_what_it_lacks_is_named(tmp_path: Path) -> None:
    commands: dict[str, Any] = {
        "predict testbed.csv --job a1 --workers 1-16": (2, "--server: must be given, as no server is installed here"),
        "serve": (1, "this needs the server, which is not installed"),
        "demo": (1, "needs matplotlib"),
        "schema plan": (1, "the server is not installed"),
        "sweep simulation/sweep.json": (1, "this needs the server, which is not installed"),
        "simulate simulation/simulate.json --server 127.0.0.1:1": (1, "this needs NumPy, which is not installed"),
        "--help": (0, ""),
    }
    for (command, (expected, text)), (status, _, errors) in zip(commands.items(), run(tmp_path, list(commands))):
        assert (status, text in errors) == (expected, True), (command, errors)
