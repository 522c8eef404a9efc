"""Programs that run in the environment of a cluster manager, beside a server of the tests' own."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from patience import PATIENCE_S

from nodewise_conformance.programs import why_not

__all__ = ["Program", "program_of"]

ROOT: Final = Path(__file__).parents[2]
MODULES: Final = {"ray": "ray", "skypilot": "sky"}


class Program:
    """Tells one JSON object per line, and waits for a line where it says so: what happens meanwhile is the test's."""

    def __init__(self, process: subprocess.Popen[str], errors: Path) -> None:
        self._process = process
        self._errors = errors

    def told(self) -> dict[str, Any]:
        """The next object; what the manager prints between them is passed over."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith('{"'):
                return dict(json.loads(line))
        raise AssertionError(f"it ended without a word: {self.log()[-4000:]}")

    def go_on(self) -> None:
        """Whatever it waits for has happened."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def log(self) -> str:
        """What it logged until now."""
        return self._errors.read_text(encoding="utf-8", errors="replace")


@cache
def _why_not(manager: str, python: Path) -> str:
    """Why a manager cannot be imported in its environment, which may be half installed; empty = it can."""
    if why := why_not(str(python)):
        return why
    tried = subprocess.run([python, "-c", f"import {MODULES[manager]}"], capture_output=True, text=True, check=False)
    return tried.stderr.strip().rpartition("\n")[2] if tried.returncode else ""


@contextmanager
def program_of(
    manager: str, script: str, *arguments: str, folder: Path, environment: Mapping[str, str]
) -> Iterator[Program]:
    """A script of tests/support in the environment of a manager, at home in a folder."""
    python = ROOT / f".venv-{manager}" / "bin" / "python"
    if why := _why_not(manager, python):
        pytest.skip(f"{manager}: {why}: make test-integrations")
    errors = folder / f"{script}.log"
    with (
        errors.open("w") as log,
        subprocess.Popen(
            [python, str(ROOT / "tests" / "support" / script), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=folder,
            env={**os.environ, "HOME": str(folder), **environment},
        ) as process,
    ):
        try:
            yield Program(process, errors)
        finally:
            # Its input ends: a program that still waits ends too.
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(timeout=PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
