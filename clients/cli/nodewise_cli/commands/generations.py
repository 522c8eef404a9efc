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
    """The settings that state where a server stores its plugins."""

    plugins_folder: Annotated[
        str | None,
        Option(metavar="DIRECTORY", help="Folder of the generations of plugins. Default: beside the server's store."),
    ] = None
    store: Annotated[str | None, Option(metavar="URL", help="The server's store. Default: sqlite:nodewise.db.")] = None
    config: Annotated[Path | None, Option(metavar="FILE.toml", help="The server's settings.")] = None
    as_json: AsJson = False


_PLACE = _Place()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pip:
    """Where pip finds packages."""

    index_url: Annotated[str, Option(metavar="URL", help="Package index, as for pip.")] = ""
    find_links: Annotated[
        list[str] | None, Option(metavar="PLACE", help="Place of wheels, as for pip; repeatable.")
    ] = None
    no_index: Annotated[bool, Option("--no-index", help="Use no package index, only --find-links.")] = False
    no_build_isolation: Annotated[
        bool, Option("--no-build-isolation", help="Build projects in the current environment, as for pip.")
    ] = False

    @property
    def options(self) -> list[str]:
        """Options of pip's command line."""
        return [
            *(["--index-url", self.index_url] if self.index_url else []),
            *(part for place in self.find_links or () for part in ("--find-links", place)),
            *(["--no-index"] if self.no_index else []),
            *(["--no-build-isolation"] if self.no_build_isolation else []),
        ]


_PIP = _Pip()


def install(
    wanted: Annotated[
        list[str] | None, Argument(metavar="NAME==VERSION|WHEEL|FOLDER", help="Distributions that provide plugins.")
    ] = None,
    requirement: Annotated[
        Path | None,
        Option("--requirement", "-r", metavar="FILE.txt", help="File of more distributions, one in each line."),
    ] = None,
    pip: _Pip = _PIP,
    place: _Place = _PLACE,
) -> None:
    """Install plugins, as a new generation.

    Each goes into a folder of its own; `nodewise reload` activates the generation. Run the command in the server's
    environment. Packages in that environment are not installed again; a plugin that needs another version of one is
    refused.
    """
    distributions = [*(wanted or ()), *_lines(requirement)]
    if not distributions:
        raise InputError("NAME: must be given, or a file of distributions by --requirement")
    with _operating(place) as operating, waiting("installing"):
        generation = operating.install(distributions, lambda each, folder: install_into(each, folder, pip.options))
    _tell_made(place, generation)


def remove(
    names: Annotated[list[str], Argument(metavar="NAME", help="Distributions to remove.")],
    place: _Place = _PLACE,
) -> None:
    """Remove plugins, as a new generation.

    `nodewise reload` activates the generation.
    """
    with _operating(place) as operating:
        generation = operating.remove(names)
    _tell_made(place, generation)


def generations(place: _Place = _PLACE) -> None:
    """List generations, the newest first, and which of them serves."""
    with _operating(place) as operating:
        entries = operating.generations()
    if place.as_json:
        print_json({"generations": entries})
    elif entries:
        show_generations(entries)
    else:
        say("no generation exists; the server uses the plugins in its own environment")


def rollback(call: AdminCall = ADMIN) -> None:
    """End the canary, or return to the previous generation.

    Without a canary, the previous stable generation of the server takes over again.
    """
    with call.connect() as client:
        response = client.rollback()
    call.tell(fields_of, lambda value: show_tracks(value.tracks), response)
    if response.outcome is ReloadOutcome.FAILED:
        raise CommandError(f"generation {response.generation} was not activated: {'; '.join(response.failures)}")


def promote(call: AdminCall = ADMIN) -> None:
    """Let the canary of a server answer all jobs."""
    with call.connect() as client:
        response = client.promote()
    call.tell(fields_of, lambda value: show_tracks(value.tracks), response)


def canary(
    share: Annotated[float, Option(help="Share of the jobs, above 0 and below 1. A job stays on its track.")],
    generation: Annotated[
        int | None, Option(metavar="NUMBER", help="Generation of the canary. Default: the pending one.")
    ] = None,
    call: AdminCall = ADMIN,
) -> None:
    """Let a generation answer a share of the jobs.

    The server tries it first, as with `nodewise reload`. It serves until `nodewise plugins promote` or
    `nodewise plugins rollback`.
    """
    with call.connect() as client, waiting("trying the new generation"):
        response = client.set_canary(SetCanaryRequest(generation=generation, share=share))
    call.tell(fields_of, lambda value: show_tracks(value.tracks), response)
    if response.outcome is ReloadOutcome.FAILED:
        why = "; ".join(response.trial.failures) if response.trial is not None else "the trial did not run"
        raise CommandError(f"generation {response.generation} was not activated: {why}")


def add_to(commands: Commands) -> None:
    """Add these commands to the group `plugins`."""
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


def _tell_made(place: _Place, generation: dict[str, Any]) -> None:
    if place.as_json:
        print_json(generation)
        return
    say(f"generation {generation['generation']}: {generation['why']}")
    say("It is pending: `nodewise reload` tries and activates it; so does the next start of the server.")
