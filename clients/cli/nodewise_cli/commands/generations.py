"""`nodewise plugins install`, `remove`, `generations`, `canary`, `promote`, `rollback`: which plugins a server has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from nodewise_cli.commands.options import AsJson, Commands
from nodewise_cli.commands.reload import ADMIN, AdminCall
from nodewise_cli.console import print_json, say
from nodewise_cli.failures import CommandError, InputError
from nodewise_cli.pip import install_into
from nodewise_cli.service import starting
from nodewise_cli.views.generations import show_generations, show_tracks
from nodewise_cli.views.plain import fields_of
from nodewise_cli.waiting import waiting
from nodewise_client import ReloadOutcome, SetCanaryRequest

if TYPE_CHECKING:
    from nodewise.runtime.generations.operating import Operating

__all__ = ["add_to"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Whose plugins: the settings that say where a server keeps them."""

    plugins_folder: Annotated[
        str | None, Option(metavar="DIRECTORY", help="Generations of plugins. Default: beside the server's store.")
    ] = None
    store: Annotated[str | None, Option(metavar="URL", help="The server's store. Default sqlite:nodewise.db.")] = None
    config: Annotated[Path | None, Option(metavar="FILE.toml", help="The server's settings.")] = None
    as_json: AsJson = False


_PLACE = _Place()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pip:
    """Where pip looks."""

    index_url: Annotated[str, Option(metavar="URL", help="Of a package index, as for pip.")] = ""
    find_links: Annotated[list[str] | None, Option(metavar="PLACE", help="Wheels, as for pip; repeatable.")] = None
    no_index: Annotated[bool, Option("--no-index", help="Look nowhere else than --find-links says.")] = False
    no_build_isolation: Annotated[
        bool, Option("--no-build-isolation", help="Build projects with what is installed, as for pip.")
    ] = False

    @property
    def options(self) -> list[str]:
        """For pip's command line."""
        return [
            *(["--index-url", self.index_url] if self.index_url else []),
            *(part for place in self.find_links or () for part in ("--find-links", place)),
            *(["--no-index"] if self.no_index else []),
            *(["--no-build-isolation"] if self.no_build_isolation else []),
        ]


_PIP = _Pip()


def install(
    wanted: Annotated[
        list[str] | None, Argument(metavar="NAME==VERSION|WHEEL|FOLDER", help="Distributions that bring plugins.")
    ] = None,
    requirement: Annotated[
        Path | None, Option("--requirement", "-r", metavar="FILE.txt", help="More of them, one a line.")
    ] = None,
    pip: _Pip = _PIP,
    place: _Place = _PLACE,
) -> None:
    """Install plugins into folders of their own, as a new generation; `nodewise reload` lets it take over.

    Run it in the server's environment: what that brings is not installed again, and a plugin that needs another
    version of it is refused.
    """
    named = [*(wanted or ()), *_lines(requirement)]
    if not named:
        raise InputError("name at least one distribution, or a file of them with --requirement")
    with _operating(place) as operating, waiting("installing"):
        made = operating.install(named, lambda each, folder: install_into(each, folder, pip.options))
    _tell_made(place, made)


def remove(
    names: Annotated[list[str], Argument(metavar="NAME", help="Distributions that were installed so.")],
    place: _Place = _PLACE,
) -> None:
    """Make a new generation without some distributions; `nodewise reload` lets it take over."""
    with _operating(place) as operating:
        made = operating.remove(names)
    _tell_made(place, made)


def generations(place: _Place = _PLACE) -> None:
    """List generations, the newest first, and who serves."""
    with _operating(place) as operating:
        entries = operating.generations()
    if place.as_json:
        print_json({"generations": entries})
    elif entries:
        show_generations(entries)
    else:
        say("no generation was made; what is installed with the server serves")


def rollback(call: AdminCall = ADMIN) -> None:
    """End the canary of a server; without one, return to the generation that was stable before."""
    with call.connect() as client:
        found = client.rollback()
    call.tell(fields_of, lambda told: show_tracks(told.tracks), found)
    if found.outcome is ReloadOutcome.FAILED:
        raise CommandError(f"generation {found.generation} was not taken: {'; '.join(found.failures)}")


def promote(call: AdminCall = ADMIN) -> None:
    """Let the canary of a server answer all jobs."""
    with call.connect() as client:
        found = client.promote()
    call.tell(fields_of, lambda told: show_tracks(told.tracks), found)


def canary(
    share: Annotated[float, Option(help="Of the jobs, above 0 and below 1. A job stays on its track.")],
    generation: Annotated[
        int | None, Option(metavar="NUMBER", help="Default: the one that waits for a reload.")
    ] = None,
    call: AdminCall = ADMIN,
) -> None:
    """Let a generation answer a share of a server's jobs, after a trial as by `nodewise reload`.

    It stays until `nodewise plugins promote` or `nodewise plugins rollback`.
    """
    with call.connect() as client, waiting("trying"):
        found = client.set_canary(SetCanaryRequest(generation=generation, share=share))
    call.tell(fields_of, lambda told: show_tracks(told.tracks), found)
    if found.outcome is ReloadOutcome.FAILED:
        why = "; ".join(found.trial.failures) if found.trial is not None else "it was not tried"
        raise CommandError(f"generation {found.generation} was not taken: {why}")


def add_to(commands: Commands) -> None:
    """Add these to the commands about plugins."""
    for command in (install, remove, generations, canary, promote, rollback):
        commands.command()(command)


def _lines(path: Path | None) -> list[str]:
    if path is None:
        return []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--requirement: {path} cannot be read ({error})") from None
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]


@contextmanager
def _operating(place: _Place) -> Iterator[Operating]:
    # Only here: the other commands should not wait for the server's imports.
    from nodewise.runtime.generations.operating import Operating

    with starting():
        yield Operating.of(place.config, plugins_folder=place.plugins_folder, store=place.store)


def _tell_made(place: _Place, made: dict[str, Any]) -> None:
    if place.as_json:
        print_json(made)
        return
    say(f"generation {made['generation']}: {made['why']}")
    say("It waits: `nodewise reload` tries it and lets it take over, as does a start of the server.")
