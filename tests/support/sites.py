"""A process that serves generations of nothing: what it decides and follows, without plugins that take time to load."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

from nodewise.runtime.generations.changes import Changes
from nodewise.runtime.generations.folder import PluginsFolder
from nodewise.runtime.generations.serving import Serving
from nodewise.runtime.generations.traffic_router import Tracks
from nodewise.runtime.settings import Settings


@dataclass(eq=False)
class ServingState:
    """Stands in for those of a generation."""

    number: int
    closed: bool = False

    @property
    def loaded_plugins(self) -> SimpleNamespace:
        return SimpleNamespace(number=self.number, registry=SimpleNamespace(problems=()))

    def close(self) -> None:
        self.closed = True


@dataclass
class Application:
    """Stands in for one: it serves whatever it is told."""

    tracks: Tracks = field(default_factory=lambda: Tracks(ServingState(0)))

    async def switch(self, tracks: Tracks) -> None:
        self.tracks = tracks


class Site(Serving):
    """A process that serves, whose generations are ready at once."""

    def __init__(self, path: Path) -> None:
        super().__init__(Application(), Settings(store="memory:", plugins_folder=str(path)), PluginsFolder(path))
        self.serving_states: list[ServingState] = []
        self.changes = Changes(self)

    async def make_state(self, number: int, track: str = "", *, beside: ServingState | None = None) -> ServingState:
        self.serving_states.append(ServingState(number))
        return self.serving_states[-1]

    def waiting(self) -> int:
        """A generation that the next reload takes."""
        number = self.folder.add("by hand", ()).number
        self.folder.change(lambda now: replace(now, candidate=number))
        return number
