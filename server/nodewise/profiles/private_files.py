"""Files and directories that only the user of the service may read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO, cast

__all__ = ["make_private_folder", "open_private"]


def _opener(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def open_private(path: Path, mode: str) -> BinaryIO:
    """Open a binary file; a new one can be read only by its owner."""
    return cast(BinaryIO, open(path, mode, opener=_opener))  # Path.open takes no opener


def make_private_folder(path: Path) -> None:
    """Create a directory and its missing parents, for their owner alone."""
    if not path.is_dir():
        make_private_folder(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)
