"""The examples of policies, trace readers and diagnosers, installed by pip, answer commands beside what is shipped."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE_S

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ("rotation", "steplog", "busy")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if importlib.util.find_spec("hatchling") is None:
        pytest.skip("hatchling, which builds the examples, is not installed in this environment")
    folder = tmp_path_factory.mktemp("site")
    projects = [str(ROOT / "examples" / "plugins" / f"nodewise_example_{name}") for name in EXAMPLES]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps"]
    command = [*pip, "--no-build-isolation", "--target", str(folder), *projects]
    finished = subprocess.run(command, check=False, capture_output=True, text=True, env={**os.environ})
    assert finished.returncode == 0, finished.stderr
    return folder


def answered(site: Path, *arguments: str) -> dict[str, Any]:
    """What a command prints with the examples installed."""
    paths = [str(site), *filter(None, [os.environ.get("PYTHONPATH")])]
    finished = subprocess.run(
        [sys.executable, "-m", "nodewise", *arguments, "--json"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    found: dict[str, Any] = json.loads(finished.stdout)
    return found


def test_each_is_listed_with_its_kind_and_distribution(site: Path) -> None:
    listed = {entry["name"]: entry for entry in answered(site, "plugins")["plugins"]}
    kinds = {"rotation": "policy", "steplog": "trace_reader", "busy": "diagnoser"}
    for name in EXAMPLES:
        assert listed[name]["kind"] == kinds[name]
        assert listed[name]["distribution"] == f"nodewise-example-{name} 1.0.0"
        assert listed[name]["status"] == "loaded"


def test_the_policy_schedules(site: Path) -> None:
    found = answered(site, "schedule", "examples/schedule.json", "--policy", "rotation")
    assert found["policy"] == "rotation"
    assert any(job["devices"] for job in found["allocations"])


def test_what_the_reader_reads_the_diagnoser_explains(site: Path, tmp_path: Path) -> None:
    for rank in range(2):
        lines = [f"# steplog 1 rank={rank} world=2"]
        for step in range(4):
            lines += [f"{step},forward,{step * 9000},{3000 + 500 * rank}", f"{step},backward,{step * 9000 + 4000},5000"]
        (tmp_path / f"rank{rank}.txt").write_text("\n".join(lines) + "\n")
    files = [str(tmp_path / f"rank{rank}.txt") for rank in range(2)]
    diagnosed = answered(site, "diagnose", *files, "--diagnoser", "busy")
    assert diagnosed["bottlenecks"][0]["what"] == "backward"
    assert diagnosed["bottlenecks"][0]["seconds"] == pytest.approx(0.005)
    replayed = answered(site, "replay", *files, "--diagnoser", "busy")
    assert replayed["host_error"] == pytest.approx(0.0, abs=1e-9)
    assert replayed["ranks"] == [0, 1]
