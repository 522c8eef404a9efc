"""tools/check_commits.py: what the message of a commit may be."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
TOOL = ROOT / "tools" / "check_commits.py"


def check(message: str, folder: Path) -> subprocess.CompletedProcess[str]:
    file = folder / "COMMIT_EDITMSG"
    file.write_text(message, encoding="utf-8")
    command = [sys.executable, str(TOOL), "--message", str(file)]
    return subprocess.run(command, check=False, capture_output=True, text=True)


@pytest.mark.parametrize(
    "message",
    [
        "Add a queue for long calls\n\nCallers waited for each other.\n",
        "Address, pass and bring\n",
        "Merge branch 'main' into queues\n",
        "# a comment of the editor\n\nNeed no lock\n",
    ],
)
def test_a_good_message_passes(message: str, tmp_path: Path) -> None:
    assert check(message, tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ("Added a queue\n", "must be imperative"),
        ("Adding a queue\n", "must be imperative"),
        ("Callers wait no longer\n", "must be imperative"),
        ("add a queue\n", "capital letter"),
        ("Add a queue.\n", "full stop"),
        ("Add " + "a" * 70 + "\n", "the subject has 74 characters"),
        ("Add a queue\nbecause callers waited\n", "second line"),
        ("\n# nothing\n", "is empty"),
    ],
)
def test_a_bad_message_is_refused_by_what_is_wrong(message: str, problem: str, tmp_path: Path) -> None:
    done = check(message, tmp_path)
    assert done.returncode == 1
    assert problem in done.stderr
