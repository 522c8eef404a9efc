"""Options of sbatch, on its command line and in the lines `#SBATCH` of a script, read as sbatch reads them."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

__all__ = ["OURS", "Submission", "commands", "directives", "read_script", "sbatch_directives", "split", "translated"]

OURS: Final = "--nodewise-"
"""Prefix of Nodewise's own options."""
_FLAGS: Final = frozenset({
    "consolidate-segments", "container-entrypoint", "container-mount-home", "container-readonly",
    "container-remap-root", "container-writable", "contiguous", "exclusive", "external", "get-user-env", "help", "hold",
    "ignore-pbs", "nice", "no-container-entrypoint", "no-container-mount-home", "no-container-remap-root", "no-kill",
    "no-requeue", "overcommit", "oversubscribe", "parsable", "propagate", "quiet", "reboot", "requeue", "resv-ports",
    "spread-job", "spread-segments", "stepmgr", "test-only", "usage", "use-min-nodes", "verbose", "version", "wait",
})  # fmt: skip
"""Options of sbatch and of the plugin pyxis that take no value, or take it only after `=`."""
_VALUED: Final = frozenset({
    "account", "acctg-freq", "array", "batch", "bb", "bbf", "begin", "chdir", "cluster", "cluster-constraint",
    "clusters", "comment", "constraint", "container", "container-env", "container-id", "container-image",
    "container-mounts", "container-name", "container-save", "container-workdir", "context", "core-spec",
    "cores-per-socket", "cpu-freq", "cpus-per-gpu", "cpus-per-task", "deadline", "delay-boot", "dependency",
    "distribution", "error", "exclude", "export", "export-file", "extra", "extra-node-info", "gid", "gpu-bind",
    "gpu-freq", "gpus", "gpus-per-node", "gpus-per-socket", "gpus-per-task", "gres", "gres-flags", "hint", "input",
    "job-name", "kill-on-invalid-dep", "licenses", "mail-type", "mail-user", "mcs-label", "mem", "mem-bind",
    "mem-per-cpu", "mem-per-gpu", "mincpus", "network", "nodefile", "nodelist", "nodes", "ntasks",
    "ntasks-per-core", "ntasks-per-gpu", "ntasks-per-node", "ntasks-per-socket", "ntasks-per-tres", "oom-kill-step",
    "open-mode", "output", "partition", "power", "prefer", "priority", "profile", "qos", "reservation", "segment",
    "signal", "sockets-per-node", "switches", "tasks", "tasks-per-node", "thread-spec", "threads-per-core", "time",
    "time-min", "tmp", "tres-bind", "tres-per-node", "tres-per-task", "uid", "wait-all-nodes", "wckey", "workdir",
    "wrap",
})  # fmt: skip
_SAME: Final = {"tasks": "ntasks", "tasks-per-node": "ntasks-per-node", "workdir": "chdir"}
_SHORT: Final = {
    "A": "account", "B": "extra-node-info", "C": "constraint", "D": "chdir", "F": "nodefile", "G": "gpus", "H": "hold",
    "J": "job-name", "L": "licenses", "M": "clusters", "N": "nodes", "O": "overcommit", "Q": "quiet", "S": "core-spec",
    "V": "version", "W": "wait", "a": "array", "b": "begin", "c": "cpus-per-task", "d": "dependency", "e": "error",
    "h": "help", "i": "input", "k": "no-kill", "m": "distribution", "n": "ntasks", "o": "output", "p": "partition",
    "q": "qos", "s": "oversubscribe", "t": "time", "v": "verbose", "w": "nodelist", "x": "exclude",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Submission:
    """The words after the command's name."""

    ours: tuple[str, ...] = ()
    """Nodewise's options without their prefix: `nodes=1-16`."""
    rest: tuple[str, ...] = ()
    """All other words, unchanged."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Options of sbatch before the script, by their long names. If one is repeated the last counts, as in sbatch."""
    script: str | None = None
    """Name of the script; None = sbatch reads the script from standard input or wraps a command."""
    heterogeneous: bool = False
    """Whether the job has several components."""
    options_end: int = 0
    """Index in `rest` at which the options end and the script begins."""
    problem: str = ""
    """Why the options cannot be read with certainty. Empty = they can be."""


def split(arguments: Sequence[str], *, script: bool = True) -> Submission:
    """Read a command line as sbatch does: options end at the first other word, the script.

    With `script=False` the words come from lines `#SBATCH`, which cannot name a script.
    """
    ours: list[str] = []
    rest: list[str] = []
    options: dict[str, str] = {}
    heterogeneous = False
    problem, name, options_end = "", None, None
    words = list(arguments)
    place = 0
    while place < len(words):
        word = words[place]
        place += 1
        if word.startswith(OURS):
            ours.append(word.removeprefix(OURS))
            continue
        rest.append(word)
        if word == ":":
            heterogeneous = True
        elif word == "--" or not word.startswith("-") or word == "-":
            options_end = len(rest) - 1
            name = word if word != "--" else next(iter(words[place:]), None)
            rest += words[place:]
            break
        else:
            following = words[place] if place < len(words) else None
            takes, why = _option(word, following, options, script=script)
            problem = problem or why
            if takes and following is not None:
                rest.append(following)
                place += 1
    if options_end is None:
        options_end = len(rest)
    return Submission(tuple(ours), tuple(rest), options, name, heterogeneous, options_end, problem)


def _option(word: str, following: str | None, found: dict[str, str], *, script: bool) -> tuple[bool, str]:
    """Record an option; returns whether the next word is its value, and what is uncertain about it."""
    if word.startswith("--"):
        typed, given, value = word[2:].partition("=")
        names = _named(typed)
        if len(names) > 1:
            return False, f"--{typed} may be {' or '.join(f'--{each}' for each in sorted(names))}"
        (name,) = names or {typed}
        if given or name in _FLAGS:
            found[name] = value
            return False, ""
        known = name in _VALUED
        if not known and (following is None or following.startswith("-")):
            found[name] = ""
            return False, ""
        found[name] = following or ""
        sure = known or not script
        return True, "" if sure else f"--{name} is not a known option; write --{name}={following} if that is its value"
    for place, letter in enumerate(word[1:], start=2):
        name = _SHORT.get(letter, letter)
        if letter != "k" and (name in _FLAGS or letter not in _SHORT):
            found[name] = ""
            continue
        attached = word[place:]
        found[name] = attached or (following or "" if letter != "k" else "")
        return not attached and letter != "k", ""
    return False, ""


def _named(typed: str) -> set[str]:
    """Return the options that a long name may mean: itself, else all that begin with it, as in getopt."""
    # --tasks meant --ntasks in old versions, and abbreviates --tasks-per-node today.
    exact = {typed} & (_FLAGS | _VALUED) - {"tasks"}
    matching = exact or {name for name in _FLAGS | _VALUED if name.startswith(typed)}
    return {_SAME.get(name, name) for name in matching}


def read_script(name: str, folder: str = "") -> str:
    """Read a script from where sbatch looks for it: `--chdir` or this folder, else the path. Empty = not readable."""
    here = Path(folder, name)
    found = here if here.is_file() else shutil.which(name)
    if found is None:
        return ""
    try:
        return Path(found).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


_COMMENT: Final = re.compile(r"\s*(#.*)?", re.DOTALL)
_SBATCH: Final = re.compile(r"#(?:SBATCH|SLURM)(.*)", re.DOTALL)
_COMPONENT: Final = re.compile(r"\A\s*(?:hetjob|packjob)(?=\s|$)", re.IGNORECASE)
_OTHERS: Final = re.compile(r"#(?:PBS|BSUB)\b")


def directives(script: str, prefix: str) -> list[str]:
    """Return the words of lines that begin with a prefix such as `#NODEWISE`, up to the script's first command.

    Raises ValueError, which names the line, if quotes do not end.
    """
    words: list[str] = []
    for number, line in _head(script):
        if line.startswith(prefix) and line[len(prefix) :][:1].isspace():
            try:
                words += shlex.split(line[len(prefix) :], comments=True)
            except ValueError as error:
                raise ValueError(f"line {number}: {prefix}: {error}") from None
    return words


def sbatch_directives(script: str) -> Submission:
    """Read the options in lines `#SBATCH`. As in sbatch, no space is needed after that word."""
    words: list[str] = []
    heterogeneous = False
    problem = ""
    for number, line in _head(script):
        match = _SBATCH.match(line)
        if match is not None:
            text, components = _COMPONENT.subn("", match[1], count=1)
            heterogeneous = heterogeneous or components > 0
            lexer = shlex.shlex(text, posix=True, punctuation_chars=False)
            lexer.whitespace_split = True
            lexer.escapedquotes = "\"'"
            try:
                words += lexer
            except ValueError as error:
                problem = problem or f"line {number} of the script: #SBATCH: {error}"
    read = split(words, script=False)
    if read.script is not None:
        problem = problem or f"#SBATCH: {read.script!r} is not an option"
    return Submission(options=read.options, heterogeneous=heterogeneous, problem=problem or read.problem)


def translated(script: str) -> str:
    """Return the first line with an option of another system, which sbatch reads too. Empty = there is none."""
    return next((line for _, line in _head(script) if _OTHERS.match(line)), "")


def commands(script: str) -> Iterator[tuple[int, str]]:
    """Yield the commands of a script with their line numbers; lines joined by a backslash are one command."""
    lines = enumerate(script.split("\n"), start=1)
    for number, first in lines:
        line = first
        if line.lstrip().startswith("#"):
            continue
        while line.endswith("\\"):
            line = f"{line[:-1]} {next(lines, (0, ''))[1]}"
        if line.strip():
            yield number, re.sub(r"\s#.*", "", line)


def _head(script: str) -> Iterator[tuple[int, str]]:
    """Lines before the first command."""
    for number, line in enumerate(script.split("\n"), start=1):
        if not _COMMENT.fullmatch(line):
            return
        yield number, line
