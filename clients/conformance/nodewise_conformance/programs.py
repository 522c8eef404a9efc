"""Programs of others: whether they run on this machine, found by running them.

A program on PATH may not run: rustup without a default toolchain, a Java without its libraries, a script whose
interpreter is gone.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

__all__ = ["why_not", "why_not_any"]

VERSION: Final = {
    "go": "version",
    "openssl": "version",
    "java": "-version",
    **dict.fromkeys(("slurmctld", "slurmd", "sbatch", "scontrol", "sinfo"), "-V"),
}
"""What makes a program print its version, where that is not --version."""
PATIENCE_S: Final = 60.0


def why_not(command: str, folder: Path | None = None, *, user: str | None = None) -> str:
    """Say why a program does not run; empty = it runs.

    Parameters
    ----------
    command : str
        Name or path of a program, perhaps with a subcommand: ``cargo fmt``.
    folder : Path, optional
        Where it will run: some toolchains choose their version by files there.
    user : str, optional
        User that will run it; None = the current one.
    """
    return _tried(command, folder or Path.cwd(), user, os.environ.get("PATH", ""))


def why_not_any(commands: Sequence[str], folder: Path | None = None) -> str:
    """Say why one or more of several programs do not run; empty = all run."""
    return "; ".join(filter(None, (why_not(command, folder) for command in commands)))


@cache
def _tried(command: str, folder: Path, user: str | None, path: str) -> str:
    words = command.split(" ")
    program = shutil.which(words[0], path=path)
    if program is None:
        return f"no {words[0]} on PATH"
    version_command = (*words, VERSION.get(Path(words[0]).name, "--version"))
    try:
        ran = subprocess.run(
            [program, *version_command[1:]],
            cwd=folder,
            user=user,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"`{' '.join(version_command)}` took more than {PATIENCE_S:.0f} s"
    except OSError as error:
        return f"`{' '.join(version_command)}` does not start: {error.strerror}"
    if ran.returncode == 0:
        return ""
    output = ran.stdout.decode(errors="replace").strip().splitlines()
    return f"`{' '.join(version_command)}` exits with {ran.returncode}" + (f": {output[0]}" if output else "")
