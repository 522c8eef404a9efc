"""Targets of make: which there are, what they hand on to tests, and that each test belongs to one of them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from _pytest.mark.expression import Expression
from programs import needs

ROOT = Path(__file__).resolve().parents[3]
CONTRACT = (
    *("demo", "test", "test-clients", "test-integrations", "test-all", "lint", "bench", "check", "accuracy"),
    *("audit", "chaos", "soak"),
)
ENVIRONMENT = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": os.devnull}
GOLDEN = "tests/unit/laws/test_golden_table.py"


def made(*arguments: str) -> str:
    """What make prints."""
    command = ["make", "--no-print-directory", *arguments]
    return subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, check=True, capture_output=True, text=True).stdout


@needs("make")
@pytest.mark.parametrize("target", CONTRACT)
def test_the_targets_of_the_contract_are_there(target: str) -> None:
    assert made("--dry-run", target)
    assert f"make {target} " in made("help")


@needs("make")
@pytest.mark.parametrize(
    ("given", "found"), [((), []), (("NODEWISE_DATA=/measured",), ["NODEWISE_DATA=/measured"])], ids=["none", "named"]
)
def test_measurements_are_handed_on_only_where_they_are_named(given: tuple[str, ...], found: list[str]) -> None:
    lines = made("--eval=variables: ; @env", "variables", *given).splitlines()
    assert [line for line in lines if line.startswith("NODEWISE_DATA")] == found


@needs("make")
@pytest.mark.parametrize(
    "marks",
    [
        *(
            [],
            ["wheel"],
            ["wheel", "long"],
            ["chaos"],
            ["oracle"],
            ["data"],
            ["data", "oracle"],
            ["long"],
            ["long", "data"],
            ["long", "stores"],
            ["stores"],
        ),
        *(["stores", "chaos"], ["slurm"], ["slurm", "wheel"], ["ray"], ["skypilot"], ["torch"]),
    ],
    ids=lambda marks: " ".join(marks) or "none",
)
def test_each_test_runs_in_one_target(marks: list[str]) -> None:
    """As `make test-all` runs them; those without a mark, or marked `wheel` alone, are within `make test`."""
    runs = {
        target: re.findall(r'pytest.* -m ("[^"]*"|\w+)', made("--dry-run", target)) for target in ("test", "test-all")
    }
    chosen = {
        target: [run for run in found if Expression.compile(run.strip('"')).evaluate(lambda name, **_: name in marks)]
        for target, found in runs.items()
    }
    assert len(chosen["test-all"]) == 1
    assert len(chosen["test"]) == (set(marks) <= {"wheel"})


def test_continuous_integration_runs_every_target() -> None:
    run = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    rest = re.search(r"^test-rest: (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert rest is not None
    named = re.findall(r"\bmake ([a-z -]+)$", run, re.MULTILINE)
    assert sorted(" ".join(named).split()) == sorted(["test", "lint", *rest[1].split()])


@pytest.mark.parametrize(
    ("named", "why"), [("", "names no measurements"), ("no-such-folder", "NODEWISE_DATA=no-such-folder is no folder")]
)
def test_tests_on_measurements_are_skipped_with_a_reason(named: str, why: str) -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-m", "data", GOLDEN]
    ran = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "NODEWISE_DATA": named}, check=False, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stdout
    assert why in ran.stdout
    assert "1 skipped" in ran.stdout


def test_one_place_says_where_measurements_are() -> None:
    readers = [
        path.relative_to(ROOT).as_posix()
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if re.search(r"environ\W.*NODEWISE_DATA", path.read_text(encoding="utf-8")) and path != Path(__file__)
    ]
    assert readers == ["tests/support/measurements.py"]
