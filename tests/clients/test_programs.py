"""A toolchain that is installed and does not run is left out and named; it fails nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nodewise_conformance.programs import why_not, why_not_any

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder at the head of PATH whose programs are there and do not run."""
    texts = {
        "go": "#!/bin/sh\necho 'go: no toolchain' >&2\nexit 3\n",
        "cargo": "#!/no/such/interpreter\n",
        "node": "#!/bin/sh\nkill -SEGV $$\n",
        "works": '#!/bin/sh\ntest "$1" != lint\n',
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    return tmp_path


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("works", ""),
        ("works lint", "`works lint --version` exits with 1"),
        ("go", "`go version` exits with 3: go: no toolchain"),
        ("cargo", "`cargo --version` does not start: No such file or directory"),
        ("node", "`node --version` exits with -11"),
        ("no-such-program", "no no-such-program on PATH"),
    ],
)
def test_a_program_is_tried(command: str, why: str) -> None:
    assert why_not(command) == why


@pytest.mark.usefixtures("broken")
def test_every_program_that_does_not_run_is_named() -> None:
    assert why_not_any(["works", "go", "no-such-program"]) == (
        "`go version` exits with 3: go: no toolchain; no no-such-program on PATH"
    )


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["test_clients.py", "--no-conformance", "--only", "go", "--only", "rust", "--only", "typescript"],
            [
                "make test-clients: Go is left out: `go version` exits with 3: go: no toolchain",
                "make test-clients: Rust is left out: `cargo --version` does not start",
                "make test-clients: TypeScript is left out: `node --version` exits with -11",
            ],
        ),
        (
            ["test_integrations.py", "--only", "kubernetes"],
            ["make test-integrations: Kubernetes is left out: `go version` exits with 3: go: no toolchain"],
        ),
    ],
    ids=["clients", "integrations"],
)
def test_what_does_not_run_is_left_out_and_named(arguments: list[str], said: list[str]) -> None:
    command = [sys.executable, str(ROOT / "tools" / arguments[0]), *arguments[1:]]
    ran = subprocess.run(command, check=False, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    for line in said:
        assert line in ran.stdout
