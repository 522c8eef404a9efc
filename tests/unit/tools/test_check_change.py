"""`make check` on a repository of its own: what it finds changed, and that it stops in time."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from programs import needs

pytestmark = needs("git")

TOOLS = Path(__file__).resolve().parents[3] / "tools"
PROJECT = '[project.scripts]\nhouse = "house.values:main"\n'
AUTHOR = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
AUTHOR["GIT_CONFIG_GLOBAL"] = os.devnull


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    files = {
        ".gitignore": "__pycache__/\n",
        "pyproject.toml": PROJECT,
        "server/house/__init__.py": "",
        "server/house/values.py": "A = 1\n",
        "server/house/other.py": "B = 1\n",
        "tests/test_values.py": "from house.values import A\n",
        "tests/test_other.py": "from house.other import B\n",
        "tests/test_command.py": 'COMMAND = "house"\n',
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    (tmp_path / "tools").mkdir()
    for name in ("check_change.py", "check_plugin.py", "import_graph.py"):
        shutil.copy(TOOLS / name, tmp_path / "tools")
    for command in (
        ["init", "-q", "-b", "main"],
        ["add", "."],
        ["commit", "-q", "-m", "one"],
        ["switch", "-qc", "mine"],
    ):
        git(tmp_path, *command)
    return tmp_path


def git(where: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=where, check=True, env={**os.environ, **AUTHOR})


def listed(where: Path) -> str:
    command = [sys.executable, "tools/check_change.py", "--list"]
    return subprocess.run(command, cwd=where, check=True, capture_output=True, text=True).stdout


def test_nothing_changed(repository: Path) -> None:
    assert listed(repository) == "nothing differs from main\n"


def test_commits_of_the_branch_the_working_tree_and_new_files_are_the_change(repository: Path) -> None:
    (repository / "server/house/values.py").write_text("A = 2\n")
    assert listed(repository) == "1 tests/test_command.py\n1 tests/test_values.py\n"
    git(repository, "commit", "-qam", "two")
    (repository / "tests/test_new.py").write_text("")
    (repository / "server/house/other.py").unlink()
    assert listed(repository).splitlines() == [
        "0 tests/test_new.py",
        "1 tests/test_command.py",
        "1 tests/test_other.py",
        "1 tests/test_values.py",
    ]


def test_what_others_changed_on_main_since_is_not_mine(repository: Path) -> None:
    git(repository, "switch", "-q", "main")
    (repository / "server/house/other.py").write_text("B = 2\n")
    git(repository, "commit", "-qam", "theirs")
    git(repository, "switch", "-q", "mine")
    assert listed(repository) == "nothing differs from main\n"


@pytest.mark.parametrize(("until", "cut"), [("0", ["test_two.py"]), ("1e18", [])])
def test_no_test_begins_after_the_end(tmp_path: Path, until: str, cut: list[str]) -> None:
    (tmp_path / "test_one.py").write_text("def test_one(): pass\n")
    (tmp_path / "test_two.py").write_text("def test_two(): assert False\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    variables = {"PYTHONPATH": str(TOOLS), "NODEWISE_CHECK_UNTIL": until, "NODEWISE_CHECK_RECORD": str(tmp_path)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "check_plugin", "test_one.py", "test_two.py"]
    subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, env={**os.environ, **variables})
    assert json.loads((tmp_path / "outcome.json").read_text()) == {"cut": cut, "failed": int(not cut)}
    seconds = json.loads((tmp_path / "seconds.json").read_text())
    assert set(seconds) == {"test_one.py", "test_two.py"}
    assert min(seconds.values()) >= 0
