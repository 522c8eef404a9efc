"""Loading a generation in a process of its own."""

from __future__ import annotations

import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from tiny_wheels import wheel

from nodewise.runtime.generations.folder import PluginsFolder
from nodewise.runtime.generations.load_check import load_failures
from nodewise.runtime.generations.manifest import InstalledDistribution
from nodewise.runtime.settings import Settings


def unpacked(
    folder: PluginsFolder, wheels: Path, distribution: str, module: str | None = None
) -> InstalledDistribution:
    with (
        folder.new_folder() as made,
        zipfile.ZipFile(wheel(wheels, "1.0", distribution=distribution, module=module)) as it,
    ):
        it.extractall(made)
        return folder.complete(made, distribution, "1.0", "0" * 12)


@pytest.mark.long
def test_what_keeps_new_processes_from_loading_is_told(tmp_path: Path) -> None:
    folder = PluginsFolder(tmp_path / "plugins")
    names = ("told-plugin", "other-plugin", "dies-plugin")
    settings = Settings(store="memory:", plugins_folder=str(folder.path), trusted_plugins=names)
    one, same = (unpacked(folder, tmp_path, name) for name in names[:2])
    dies = unpacked(folder, tmp_path, "dies-plugin", "import os; os._exit(3)")

    def failures(*distributions: InstalledDistribution) -> tuple[str, ...]:
        number = folder.add("by hand", distributions).number
        return load_failures(settings, folder, number, SimpleNamespace(problems=()))

    assert failures(one) == ()
    (taken,) = failures(one, same)
    assert "told" in taken
    (died,) = failures(dies)
    assert "status 3" in died
