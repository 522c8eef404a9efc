"""Plugins installed by pip into a folder of plugins, from wheels on the disk alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from nodewise.runtime.generations.folder import PluginsFolder
from nodewise.runtime.generations.operating import Operating
from nodewise_cli.pip import install_into


def pip_offline(*options: str) -> Callable[[str, Path], None]:
    """As `nodewise plugins install --no-index` runs it."""
    return lambda wanted, folder: install_into(wanted, folder, ["--no-index", *options])


def installed(folder: PluginsFolder, *wanted: str) -> int:
    """A new generation with these; returns its number."""
    number: int = Operating(folder).install(wanted, pip_offline())["generation"]
    return number
