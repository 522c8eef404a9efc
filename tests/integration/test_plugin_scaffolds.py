"""`nodewise plugins new` writes plugins that pass what is asked of their kind, as they are written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from patience import PATIENCE_S
from typer.testing import CliRunner, Result

from nodewise_cli.app import app

KINDS = ("estimator", "policy", "reader", "diagnoser")


def plugins(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["plugins", *arguments], catch_exceptions=False)


def checked(folder: Path) -> subprocess.CompletedProcess[str]:
    # The suite runs in a process of its own: nothing of this one's options and warnings is its.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


@pytest.fixture(autouse=True)
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plugins are written where the command is typed."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.long
def test_a_new_plugin_passes_the_suite_as_it_is_written(tmp_path: Path, kind: str) -> None:
    made = plugins("new", f"my-{kind}", "--kind", kind, "--json")
    assert made.exit_code == 0, made.output
    written = [Path(path).name for path in json.loads(made.stdout)["files"]]
    assert written == ["pyproject.toml", "README.md", f"my_{kind}.py", f"test_my_{kind}.py"]
    suite = checked(tmp_path / f"my-{kind}")
    assert suite.returncode == 0, suite.stdout
    assert " passed" in suite.stdout


def test_a_new_estimator_states_how_far_it_extrapolates(tmp_path: Path) -> None:
    assert plugins("new", "my-estimator").exit_code == 0
    folder = tmp_path / "my-estimator"
    assert "An estimator for Nodewise." in (folder / "README.md").read_text()
    module = (folder / "my_estimator.py").read_text()
    assert "extrapolation=beyond" in module
    assert "class MyEstimator:" in module


@pytest.mark.long
def test_a_fault_in_a_new_plugin_is_found(tmp_path: Path) -> None:
    assert plugins("new", "mine").exit_code == 0
    module = tmp_path / "mine" / "mine.py"
    module.write_text(module.read_text().replace("log_spread=self.log_spread", "log_spread=float('nan')"))
    suite = checked(tmp_path / "mine")
    assert suite.returncode == 1
    assert "log_spread is not finite" in suite.stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["Mine"], "NAME: must be at most 63 lower case letters, digits and dashes"),
        (["auto"], "no reserved word"),
        (["class"], "no reserved word"),
        (["mine", "--kind", "store"], "--kind: must be one of estimator, policy, reader, diagnoser, found 'store'"),
        (["there"], "there exists already; nothing was written"),
    ],
)
def test_what_cannot_be_written(tmp_path: Path, arguments: list[str], told: str) -> None:
    (tmp_path / "there").mkdir()
    made = plugins("new", *arguments)
    assert made.exit_code == 2
    assert told in made.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_listing_stays_as_it_was() -> None:
    listed = plugins("--json")
    assert {"name", "version", "kind", "distribution", "mode", "status"} <= set(json.loads(listed.stdout)["plugins"][0])
