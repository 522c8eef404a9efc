"""Changes of a server's plugins from outside its processes, for the operator's commands."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from nodewise.plugin import ENTRY_POINT_GROUP
from nodewise.runtime.generations.discovery import registering
from nodewise.runtime.generations.folder import PluginsFolder, PluginsFolderError, plugins_folder_of
from nodewise.runtime.generations.manifest import Generation, InstalledDistribution
from nodewise.runtime.settings import SettingsError, load_settings
from nodewise.runtime.starting import StartError

__all__ = ["Operating"]

_NOT_CONTENT = frozenset({"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"})
"""Files of an installed distribution about its source and installation, not its content."""


@dataclass(frozen=True, slots=True)
class Operating:
    """The plugins folder of a server."""

    folder: PluginsFolder

    @classmethod
    def of(cls, config: Path | None, **options: Any) -> Operating:
        """Return the folder of a server with these settings. Raises StartError."""
        try:
            folder = plugins_folder_of(load_settings(config, **options))
        except SettingsError as error:
            raise StartError(str(error), of_input=True) from None
        if folder is None:
            message = "a server with the store memory: has no lasting folder of plugins; name one with --plugins-folder"
            raise StartError(message, of_input=True)
        return cls(folder)

    def install(self, requirements: Sequence[str], fill: Callable[[str, Path], None]) -> dict[str, Any]:
        """Create a generation with other or more distributions. The next reload tries and activates it.

        Parameters
        ----------
        requirements : sequence of str
            Requirements to install, each into a folder of its own.
        fill : callable
            Installs a requirement, with its dependencies that the server's environment lacks, into an empty folder.

        Raises
        ------
        StartError
            If a requirement has no plugin, or several distributions of plugins.
        """
        with _failures():
            distributions = [self._install(each, fill) for each in requirements]
            names = {each.name for each in distributions}
            others = tuple(each for each in self._newest().distributions if each.name not in names)
            text = ", ".join(f"{each.name} {each.version}" for each in distributions)
            return self._add(f"installed {text}", (*others, *distributions))

    def remove(self, names: Sequence[str]) -> dict[str, Any]:
        """Create a generation without these distributions. Raises StartError if the newest one lacks any of them."""
        with _failures():
            before = self._newest().distributions
            removals = {str(canonicalize_name(name)) for name in names}
            unknown = removals - {each.name for each in before}
            if unknown or not removals:
                installed_names = ", ".join(each.name for each in before) or "none"
                missing = ", ".join(sorted(unknown))
                raise PluginsFolderError(f"not in the newest generation: {missing}; it has: {installed_names}")
            rest = tuple(each for each in before if each.name not in removals)
            return self._add(f"removed {', '.join(sorted(removals))}", rest)

    def generations(self) -> list[dict[str, Any]]:
        """Return all generations, newest first, and the state. Raises StartError."""
        with _failures():
            state = self.folder.state()
            canary = 0 if state.canary is None else state.canary.number
            words = {state.stable: "stable", canary: "canary", state.candidate: "waits"}
            return [
                {**_plain(each), "serves": words.get(each.number, "")} for each in reversed(self.folder.generations())
            ]

    def _newest(self) -> Generation:
        """Return the base of the next generation: the candidate, else the stable one."""
        state = self.folder.state()
        return self.folder.generation(state.candidate or state.stable)

    def _add(self, why: str, distributions: tuple[InstalledDistribution, ...]) -> dict[str, Any]:
        catalogue = self.folder.catalogue_of(self._newest())
        generation = self.folder.add(why, distributions, b"" if catalogue is None else catalogue.read_bytes())
        self.folder.change(lambda now: replace(now, candidate=generation.number))
        return _plain(generation)

    def _install(self, requirement: str, fill: Callable[[str, Path], None]) -> InstalledDistribution:
        with self.folder.new_folder() as folder:
            fill(requirement, folder)
            plugins = registering(folder)
            if len(plugins) != 1:
                names = ", ".join(sorted(each.name for each in plugins)) or "none"
                must = f"must install one distribution with entry points of the group {ENTRY_POINT_GROUP!r}"
                raise PluginsFolderError(f"{requirement}: {must}, found {names}")
            return self.folder.complete(folder, plugins[0].name, plugins[0].version, _digest(folder))


def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.name not in _NOT_CONTENT):
        digest.update(f"{path.relative_to(folder)}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _plain(generation: Generation) -> dict[str, Any]:
    return {
        "generation": generation.number,
        "created_unix_s": generation.created_unix_s,
        "why": generation.why,
        "distributions": [{"name": each.name, "version": each.version} for each in generation.distributions],
        "catalogue_digest": generation.catalogue_digest,
    }


@contextmanager
def _failures() -> Iterator[None]:
    try:
        yield
    except PluginsFolderError as error:
        raise StartError(str(error), of_input=False) from None
