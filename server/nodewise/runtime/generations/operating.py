"""The door for who manages a server's plugins from outside its processes: settings in, plain values out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nodewise.runtime.generations.folder import PluginsFolder, PluginsFolderError, plugins_folder_of
from nodewise.runtime.generations.installing import PipOptions, installed, removed
from nodewise.runtime.generations.manifest import Generation
from nodewise.runtime.settings import SettingsError, load_settings

__all__ = ["Operating", "OperatingError", "PipOptions"]


class OperatingError(Exception):
    """What is wrong, in words for the operator; ``of_input`` as of StartError."""

    def __init__(self, message: str, *, of_input: bool) -> None:
        super().__init__(message)
        self.of_input = of_input


@dataclass(frozen=True, slots=True)
class Operating:
    """A folder of plugins.

    Attributes
    ----------
    folder : PluginsFolder
    """

    folder: PluginsFolder

    @classmethod
    def of(cls, config: Path | None, **options: Any) -> Operating:
        """The folder that a server with these settings has; raises OperatingError."""
        try:
            folder = plugins_folder_of(load_settings(config, **options))
        except SettingsError as error:
            raise OperatingError(str(error), of_input=True) from None
        if folder is None:
            told = "a server whose store is memory: has no folder of plugins that lasts; name one with --plugins-folder"
            raise OperatingError(told, of_input=True)
        return cls(folder)

    def install(self, wanted: Sequence[str], options: PipOptions) -> dict[str, Any]:
        """A new generation with these; raises OperatingError."""
        return self._made(lambda: installed(self.folder, wanted, options))

    def remove(self, names: Sequence[str]) -> dict[str, Any]:
        """A new generation without these; raises OperatingError."""
        return self._made(lambda: removed(self.folder, names))

    def generations(self) -> list[dict[str, Any]]:
        """All of them, the newest first, with who serves; raises OperatingError."""
        with _told():
            state = self.folder.state()
            canary = 0 if state.canary is None else state.canary.number
            words = {state.stable: "stable", canary: "canary", state.candidate: "waits"}
            found = [*reversed(self.folder.generations())]
            return [{**_plain(each), "serves": words.get(each.number, "")} for each in found]

    def _made(self, make: Callable[[], Generation]) -> dict[str, Any]:
        with _told():
            return _plain(make())


def _plain(generation: Generation) -> dict[str, Any]:
    return {
        "generation": generation.number,
        "created_unix_s": generation.created_unix_s,
        "why": generation.why,
        "distributions": [{"name": each.name, "version": each.version} for each in generation.distributions],
        "catalogue_digest": generation.catalogue_digest,
    }


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except PluginsFolderError as error:
        raise OperatingError(str(error), of_input=False) from None
