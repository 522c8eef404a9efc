"""Older releases of Nodewise, from the history of the repository, beside this one."""

from __future__ import annotations

import subprocess
import tarfile
from io import BytesIO
from pathlib import Path
from typing import Final

import pytest
from serving import COMMAND

__all__ = ["OF_SCHEMA_4", "OF_VERSION_0_1", "command_of"]

OF_VERSION_0_1: Final = "81fc8da8"
"""Version 0.1, whose stores have schema 2."""
OF_SCHEMA_4: Final = "cbc65bd9"
"""The last release whose stores have schema 4."""
_ROOT: Final = Path(__file__).resolve().parents[2]
_SOURCES: Final = ("server", "clients/cli", "clients/python", "plugins", "protos/python")


def command_of(commit: str, folder: Path) -> Path:
    """The command ``nodewise`` of a release, in a folder ``bin``; it runs on the libraries of this environment."""
    archive = subprocess.run(["git", "archive", commit, *_SOURCES], cwd=_ROOT, capture_output=True, check=False)
    if archive.returncode:
        pytest.skip(f"the history of the repository does not have {commit}")
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as files:
        files.extractall(folder / commit, filter="data")
    command = folder / commit / "bin" / "nodewise"
    command.parent.mkdir()
    paths = ":".join(str(folder / commit / each) for each in _SOURCES)
    command.write_text(f'#!/bin/sh\nPYTHONPATH={paths} exec {COMMAND[0]} "$@"\n')
    command.chmod(0o755)
    return command
