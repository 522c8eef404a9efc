"""A command line of sbatch, read and not changed: what of it is Nodewise's, and where the script is."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["OURS", "Submission", "directives", "read_script", "split"]

OURS: Final = "--nodewise-"
"""Prefix of options that are not sbatch's."""
_FLAGS: Final = frozenset({
    "contiguous", "exclusive", "external", "get-user-env", "help", "hold", "ignore-pbs", "nice", "no-kill",
    "no-requeue", "overcommit", "oversubscribe", "parsable", "propagate", "quiet", "reboot", "requeue", "resv-ports",
    "spread-job", "stepmgr", "test-only", "usage", "use-min-nodes", "verbose", "version", "wait",
})  # fmt: skip
"""Options of sbatch that take no value, or take it after `=` alone."""
_SHORT_FLAGS: Final = frozenset("hHIkOQsvVW")
_SHORT: Final = {"N": "nodes", "t": "time", "o": "output", "D": "chdir", "J": "job-name", "G": "gpus"}


@dataclass(frozen=True, slots=True)
class Submission:
    """What was typed after the command's name."""

    ours: tuple[str, ...]
    """Options with Nodewise's prefix, without it: `nodes=1-16`."""
    rest: tuple[str, ...]
    """All the others, as they were."""
    options: Mapping[str, str]
    """Options of sbatch before the script, by their long names; of several of a name the last, as sbatch has it."""
    script: str | None
    """The script; None = there is none, and sbatch reads it from standard input or wraps a command."""
    heterogeneous: bool
    """Whether several jobs are described at once, with colons between them."""


def split(arguments: Sequence[str]) -> Submission:
    """Read a command line as sbatch does: options end at the first word that is none, and the rest is the script's."""
    ours: list[str] = []
    rest: list[str] = []
    options: dict[str, str] = {}
    heterogeneous = False
    waiting = iter(arguments)
    for word in waiting:
        if word.startswith(OURS):
            ours.append(word.removeprefix(OURS))
            continue
        rest.append(word)
        if word == ":":
            heterogeneous = True
        elif word == "--":
            script = next(waiting, None)
            rest += ([] if script is None else [script]) + list(waiting)
            return Submission(tuple(ours), tuple(rest), options, script, heterogeneous)
        elif not word.startswith("-") or word == "-":
            rest += waiting
            return Submission(tuple(ours), tuple(rest), options, word, heterogeneous)
        else:
            rest += _option(word, waiting, options)
    return Submission(tuple(ours), tuple(rest), options, None, heterogeneous)


def _option(word: str, following: Iterator[str], found: dict[str, str]) -> list[str]:
    """Note an option; returns the word after it where that is its value."""
    if word.startswith("--"):
        name, given, value = word[2:].partition("=")
        if given or name in _FLAGS:
            found[name] = value
            return []
        return _value_after(name, following, found)
    for place, letter in enumerate(word[1:], start=2):
        name = _SHORT.get(letter, letter)
        if letter in _SHORT_FLAGS:
            found[name] = ""
        elif word[place:]:
            found[name] = word[place:]
            return []
        else:
            return _value_after(name, following, found)
    return []


def _value_after(name: str, following: Iterator[str], found: dict[str, str]) -> list[str]:
    value = next(following, None)
    found[name] = value or ""
    return [] if value is None else [value]


def read_script(name: str) -> str:
    """What a script holds, found as sbatch finds it: here, else on the path. Empty where it cannot be read."""
    found = name if Path(name).is_file() else shutil.which(name)
    if found is None:
        return ""
    try:
        return Path(found).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


_COMMENT: Final = re.compile(r"\s*(#.*)?")


def directives(script: str, prefix: str) -> list[str]:
    """Words of the lines of a script that begin with a prefix such as `#SBATCH`, up to its first command.

    Raises ValueError naming the line where quotes do not end.
    """
    words: list[str] = []
    for number, line in enumerate(script.splitlines(), start=1):
        if not _COMMENT.fullmatch(line):
            break
        if line.startswith(prefix) and line[len(prefix) :][:1].isspace():
            try:
                words += shlex.split(line[len(prefix) :], comments=True)
            except ValueError as error:
                raise ValueError(f"line {number}: {prefix}: {error}") from None
    return words
