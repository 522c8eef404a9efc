"""Measurements from outside the repository, for tests marked `data`: only this module reads NODEWISE_DATA."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

__all__ = ["DATA", "WHY_NO_DATA", "data_path"]

_NAMED: Final = os.environ.get("NODEWISE_DATA", "")

DATA: Final = Path(_NAMED or os.devnull).absolute()
"""The folder of measurements. Nothing lies below it where none is named, so that a test without the mark fails."""

WHY_NO_DATA: Final = (
    "" if DATA.is_dir() else f"NODEWISE_DATA={_NAMED} is no folder" if _NAMED else "NODEWISE_DATA names no measurements"
)
"""Why tests marked `data` are skipped; empty = they run."""


def data_path(*parts: str) -> Path:
    """A file of the measurements; the test is skipped where these lack it."""
    path = DATA.joinpath(*parts)
    if WHY_NO_DATA:
        pytest.fail(f"reads {'/'.join(parts)} of NODEWISE_DATA: mark the test `data`")
    if not path.exists():
        pytest.skip(f"NODEWISE_DATA holds no {'/'.join(parts)}")
    return path
