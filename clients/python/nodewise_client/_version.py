"""The version of this distribution."""

from __future__ import annotations

from functools import cache
from importlib import metadata


@cache
def version() -> str:
    """The installed version, or `0` where the package runs without being installed."""
    try:
        return metadata.version("nodewise-client")
    except metadata.PackageNotFoundError:
        return "0"
