"""Numbers in the commands of a script that another number of nodes would contradict."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from nodewise_integrations.slurm.submission import commands, split

__all__ = ["Literal", "literals"]


@dataclass(frozen=True, slots=True)
class Literal:
    """A number in a command."""

    source: str
    """Line of the script, and the words there."""
    fewest: int
    most: int
    of_nodes: bool
    """Whether it counts nodes. If not, it counts processes on all nodes together."""
    of_step: bool
    """Whether it belongs to an `srun`. A script may have several that use only part of the nodes."""


_VALUE: Final = r"""["']?(?:
    (?P<first>\d{1,9})(?::(?P<last>\d{1,9}))?
    | \$\{(?!SLURM_)\w+:?-(?P<default>\d{1,9})\}
    | \$\{?(?P<name>[A-Za-z]\w*)\}?
)(?![\w:$.])"""
_OPTION: Final = re.compile(
    rf"""(?<![\w$-])(?:
        (?:-{{1,2}}|\+{{1,2}})?(?:[\w-]+\.)*(?P<nodes>nnodes|num[-_]nodes|num[-_]machines) | --world[-_]size
    )(?:\s*=\s*|\s+){_VALUE}""",
    re.VERBOSE,
)
_PROCESSES: Final = re.compile(
    rf"""(?:\baccelerate\b.*?\s--num[-_]processes|\bmpi(?:run|exec)\b.*?\s(?:-np|-n|--np|-c))(?:\s*=\s*|\s+){_VALUE}""",
    re.VERBOSE,
)
_ASSIGNED: Final = re.compile(
    r"""(?:^|[\s;])(?P<name>[A-Za-z_]\w*)=(?:["']?(?:(?P<number>\d{1,9})|\$\{(?!SLURM_)\w+:?[-=](?P<default>\d{1,9})\})["']?(?=[\s;]|$))?"""
)
_NODES: Final = re.compile(r"(?:SLURM_(?:JOB_)?)?(?:N|N_|NUM_|NR_)?(?:NODES|MACHINES)|NODE_COUNT", re.IGNORECASE)
_TOTAL: Final = re.compile(r"WORLD_SIZE|NUM_PROCESSES|N_?PROCS", re.IGNORECASE)


def literals(script: str) -> list[Literal]:
    """Return numbers of nodes, and of processes on all nodes, that commands of a script state as digits."""
    assigned: dict[str, Literal | None] = {}
    found: list[Literal] = []
    for line, command in commands(script):
        where = f"line {line} of the script says"
        for match in _ASSIGNED.finditer(command):
            digits = match["number"] or match["default"]
            literal = _literal(f"{where} {match[0].strip('; ')}", digits) if digits else None
            # If the script also assigns another value, such as Slurm's own, the digits are only a default.
            assigned[match["name"]] = None if assigned.get(match["name"], literal) is None else literal
        for match in _OPTION.finditer(command):
            found += _used(
                match, f"{where} {' '.join(match[0].split())}", assigned, of_nodes=match["nodes"] is not None
            )
        for match in _PROCESSES.finditer(command):
            found += _used(match, f"{where} {' '.join(match[0].split()[-2:])}", assigned, of_nodes=False)
        found += _steps(where, command)
    for name, literal in assigned.items():
        if literal is not None and _NODES.fullmatch(name):
            found.append(literal)
        elif literal is not None and _TOTAL.fullmatch(name):
            found.append(replace(literal, of_nodes=False))
    return found


def _literal(source: str, digits: str, last: str | None = None) -> Literal:
    return Literal(source, int(digits), int(last or digits), of_nodes=True, of_step=False)


def _used(
    match: re.Match[str], source: str, assigned: Mapping[str, Literal | None], *, of_nodes: bool
) -> Iterator[Literal]:
    digits = match["first"] or match["default"]
    literal = assigned.get(match["name"] or "") if digits is None else _literal(source, digits, match["last"])
    if literal is not None:
        yield replace(literal, source=source, of_nodes=of_nodes)


def _steps(where: str, command: str) -> Iterator[Literal]:
    """Yield the numbers of each `srun`."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    for place, word in enumerate(words, start=1):
        if re.search(r"(?:^|\W)srun$", word) is None:
            continue
        options = split(words[place:]).options
        for option in ("nodes", "ntasks") if "nodelist" not in options else ():
            value = options.get(option, "")
            if re.fullmatch(r"\d{1,9}", value, re.ASCII):
                source = f"{where} srun --{option}={value}"
                yield Literal(source, int(value), int(value), option == "nodes", of_step=True)
                break
