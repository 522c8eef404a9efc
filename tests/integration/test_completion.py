"""Completion in each real shell: what a person types, with the tab key, and what then runs."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

BIN = Path(sys.executable).parent
PROMPT = "ready>"
SETUP = {
    "bash": 'eval "$(nodewise completion bash)"',
    "zsh": 'autoload -Uz compinit; compinit -u -d "$HOME/dump"; eval "$(nodewise completion zsh)"',
}
PLAIN = {"bash": ["--norc", "--noprofile", "-i"], "zsh": ["-f", "-i"]}
PATIENCE_S = 120.0


def environment(home: Path) -> dict[str, str]:
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(home), "TERM": "dumb", "PS1": f"{PROMPT} ", "LC_ALL": "C.UTF-8", "COLUMNS": "80"}


def needs(shell: str) -> str:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    return program


@contextmanager
def terminal(shell: str, home: Path) -> Iterator[int]:
    """A shell in a terminal of its own, by the descriptor of its keyboard and screen."""
    ours, its = pty.openpty()
    process = subprocess.Popen(
        [needs(shell), *PLAIN[shell]],
        stdin=its,
        stdout=its,
        stderr=its,
        cwd=home,
        env=environment(home),
        start_new_session=True,
    )
    os.close(its)
    try:
        yield ours
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def read_until(screen: int, text: str) -> str:
    """What the screen shows, until it shows a text."""
    shown = ""
    while text not in shown:
        ready, _, _ = select.select([screen], [], [], PATIENCE_S)
        assert ready, f"no {text!r} in {shown!r}"
        shown += os.read(screen, 65_536).decode(errors="replace")
    return shown


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_the_tab_key_completes_commands_options_and_values(shell: str, tmp_path: Path) -> None:
    typed = {
        "nodewise pla\t-h": "Usage: nodewise plan [OPTIONS]",
        "nodewise predict --memory-t\t-h": "Usage: nodewise predict [OPTIONS]",
        "nodewise profiles sho\t-h": "Usage: nodewise profiles show [OPTIONS]",
        "nodewise completion fi\t": "complete --command nodewise",
    }
    with terminal(shell, tmp_path) as screen:
        os.write(screen, f"{SETUP[shell]}; echo begin''s\n".encode())
        read_until(screen, "begins")
        for keys, answer in typed.items():
            os.write(screen, f"{keys}\n".encode())
            read_until(screen, answer)


def test_fish_completes_commands_options_and_values(tmp_path: Path) -> None:
    fish = needs("fish")

    def completed(line: str) -> list[str]:
        script = f"nodewise completion fish | source; complete -C '{line}'"
        result = subprocess.run(
            [fish, "--no-config", "-c", script],
            capture_output=True,
            text=True,
            check=True,
            env=environment(tmp_path),
            cwd=tmp_path,
            timeout=PATIENCE_S,
        )
        return [each.split("\t")[0] for each in result.stdout.splitlines()]

    assert completed("nodewise pla") == ["plan"]
    assert "--memory-timeline" in completed("nodewise predict --memory")
    assert completed("nodewise profiles sho") == ["show"]
    assert completed("nodewise completion f") == ["fish"]
    assert "--nodes" in completed("nodewise predict --no")
