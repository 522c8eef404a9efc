"""The interpreter of the environment that holds what benchmarks are measured beside."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["peers_python"]


def peers_python() -> Path | None:
    """``NODEWISE_PEERS_PYTHON``, else that of ``.venv-peers``, which ``make bench`` sets up; None = there is none."""
    named = os.environ.get("NODEWISE_PEERS_PYTHON")
    path = Path(named) if named else Path(__file__).parent.parent / ".venv-peers" / "bin" / "python"
    return path if path.is_file() else None
