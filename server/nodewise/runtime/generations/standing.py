"""The serving generation, and whether other generations or the installed plugins differ from it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from nodewise.domain.errors import NodewiseError, Reason, Violation
from nodewise.runtime.generations.folder import PluginsFolder, PluginsFolderError
from nodewise.runtime.generations.loading import catalogue_bytes, catalogue_digest, prints_of
from nodewise.runtime.generations.manifest import Generation
from nodewise.runtime.settings import Settings

__all__ = ["Standing", "folder_faults", "generation_in"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """State of a generation when a process began to serve it.

    Attributes
    ----------
    prints : tuple of mappings
        Fingerprints of the generation from :func:`prints_of`: inline, and hosted.
    catalogue : str
        Digest of its file of devices and links.
    """

    settings: Settings
    folder: PluginsFolder
    generation: Generation
    prints: tuple[dict[str, str], ...]
    catalogue: str

    @classmethod
    def of(cls, settings: Settings, folder: PluginsFolder, generation: Generation) -> Standing:
        """Return the present state."""
        return cls(
            settings=settings,
            folder=folder,
            generation=generation,
            prints=prints_of(settings, folder, generation),
            catalogue=generation.catalogue_digest,
        )

    @classmethod
    def at_start(cls, settings: Settings, folder: PluginsFolder, number: int) -> Standing:
        """Return the state of a process's first generation. Without its own catalogue it has the operator's."""
        result = cls.of(settings, folder, folder.generation(number))
        return result if result.catalogue else replace(result, catalogue=catalogue_digest(catalogue_bytes(settings)))

    def needs_new_processes(self, generation: Generation) -> bool:
        """Return whether it has other builds of inline plugins, which a process imports only once."""
        return prints_of(self.settings, self.folder, generation)[0] != self.prints[0]

    def next_generation(self, number: int | None) -> Generation | None:
        """Return the next generation: the one with this number, the candidate, or a new one of the installed plugins.

        None = no difference.

        Raises
        ------
        NodewiseError
            GENERATION_NOT_FOUND.
        SettingsError
            The catalogue cannot be read.
        """
        number = number if number is not None else self.folder.state().candidate or None
        if number is not None:
            candidate = generation_in(self.folder, number)
            same = number == self.generation.number and prints_of(self.settings, self.folder, candidate) == self.prints
            return None if same else candidate
        content = catalogue_bytes(self.settings)
        what = [
            *(["the catalogue"] if catalogue_digest(content) != self.catalogue else []),
            *(["what is installed"] if prints_of(self.settings, self.folder, self.generation) != self.prints else []),
        ]
        if not what:
            return None
        return self.folder.add(f"changed: {', '.join(what)}", self.generation.distributions, content)


def generation_in(folder: PluginsFolder, number: int) -> Generation:
    """Return a generation that a caller names, or that was stable before. Raises GENERATION_NOT_FOUND."""
    try:
        return folder.generation(number)
    except PluginsFolderError as error:
        metadata = {"generation": str(number), "field": "generation"}
        violations = (Violation("generation", str(error)),)
        raise NodewiseError(Reason.GENERATION_NOT_FOUND, str(error), metadata, violations) from None


@contextmanager
def folder_faults() -> Iterator[None]:
    """Convert errors of the folder into STORE_UNAVAILABLE for callers."""
    try:
        yield
    except PluginsFolderError as error:
        raise NodewiseError(Reason.STORE_UNAVAILABLE, f"the folder of plugins: {error}") from None
