"""The table of languages: every `clients/*/client.toml`, and what of it can run on this machine."""

from __future__ import annotations

import re
import shutil
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, cast

from nodewise_conformance.programs import why_not_any

__all__ = [
    "NOT_BUILT",
    "ROOT",
    "STEPS",
    "Column",
    "Command",
    "Language",
    "Over",
    "TableError",
    "read_languages",
]

ROOT: Final = Path(__file__).resolve().parents[3]
TABLE: Final = "client.toml"
STEPS: Final = ("build", "lint", "test", "example")
"""What `make test-clients` does in a language, in this order."""

NOT_BUILT: Final = "is not built"
"""How the reason ends why an executable that could run does not."""

Command = tuple[str, ...]
Over = Literal["grpc", "http"]


class TableError(Exception):
    """A client.toml that cannot be used; the text names the file, the key and what would be right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of the table of results: one executable.

    Attributes
    ----------
    name : str
        Title of the column.
    over : "grpc" or "http"
        Which scenarios it runs: those whose `faces` hold it.
    command : tuple of str
        Starts the executable.
    folder : Path
        Where it is started.
    needs : tuple of str
        Programs that must run; else it is left out.
    """

    name: str
    over: Over
    command: Command
    folder: Path
    needs: tuple[str, ...]

    @property
    def slug(self) -> str:
        """Its name, as a part of names of profiles."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")

    @property
    def absent(self) -> str | None:
        """Why the executable cannot be started; None = it can."""
        if why := why_not_any(self.needs, self.folder):
            return why
        if shutil.which(self.command[0], path=None) is None and not (self.folder / self.command[0]).is_file():
            return f"{self.command[0]} {NOT_BUILT}"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """One client.

    Attributes
    ----------
    name : str
        Name of its folder.
    title : str
        Name for people.
    folder : Path
        Where its commands run.
    needs : tuple of str
        Programs that must run; else the language is left out.
    steps : mapping of str to tuples of str
        Commands of each of STEPS that it has.
    columns : tuple of Column
        Its executables.
    """

    name: str
    title: str
    folder: Path
    needs: tuple[str, ...]
    steps: Mapping[str, Sequence[Command]]
    columns: tuple[Column, ...]


def read_languages(clients: Path = ROOT / "clients") -> tuple[Language, ...]:
    """All languages, Python first and the others by name.

    Raises
    ------
    TableError
        For a table that is not as the page says.
    """
    tables = sorted(clients.glob(f"*/{TABLE}"), key=lambda path: (path.parent.name != "python", path.parent.name))
    return tuple(_language(path) for path in tables)


def _language(path: Path) -> Language:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise TableError(f"{path}: is not valid TOML: {error}") from None
    unknown = sorted(set(table) - {"title", "needs", "steps", "conformance"})
    if unknown:
        raise TableError(f"{path}: unknown key {unknown[0]!r}; keys are title, needs, steps, conformance")
    steps = cast("dict[str, Any]", table.get("steps", {}))
    strange = sorted(set(steps) - set(STEPS))
    if strange:
        raise TableError(f"{path}: unknown step {strange[0]!r}; steps are {', '.join(STEPS)}")
    needs = _words(path, "needs", table.get("needs", []))
    title = str(table.get("title", path.parent.name))
    return Language(
        name=path.parent.name,
        title=title,
        folder=path.parent,
        needs=needs,
        steps={
            step: tuple(_command(path, f"steps.{step}", each) for each in steps[step])
            for step in STEPS
            if step in steps
        },
        columns=tuple(_column(path, title, needs, each) for each in table.get("conformance", [])),
    )


def _column(path: Path, title: str, needs: tuple[str, ...], table: Mapping[str, Any]) -> Column:
    over = table.get("over", "grpc")
    if over not in ("grpc", "http"):
        raise TableError(f"{path}: conformance.over is {over!r}; expected grpc or http")
    if "command" not in table:
        raise TableError(f"{path}: conformance.command is missing: the words that start the executable")
    return Column(
        name=str(table.get("column", title)),
        over=cast("Over", over),
        command=_command(path, "conformance.command", table["command"]),
        folder=path.parent,
        needs=(*needs, *_words(path, "conformance.needs", table.get("needs", []))),
    )


def _command(path: Path, key: str, value: object) -> Command:
    words = _words(path, key, value)
    if not words:
        raise TableError(f"{path}: {key} is empty; expected a list of words, the first of them a program")
    return tuple(word.replace("{python}", sys.executable).replace("{root}", str(ROOT)) for word in words)


def _words(path: Path, key: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise TableError(f"{path}: {key} is {value!r}; expected a list of words")
    return tuple(value)
