"""What the system says of processes: memory, descriptors, threads, processor time, children."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")


def resident_bytes(pid: int) -> int:
    """Memory of a process that is in memory; 0 once it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * PAGE_BYTES
    except (FileNotFoundError, ProcessLookupError):
        return 0


def descriptors(pid: int) -> int:
    """Open files and sockets of a process; 0 once it is gone."""
    try:
        return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0


def threads(pid: int) -> int:
    """Threads of a process; 0 once it is gone."""
    try:
        return sum(1 for _ in Path(f"/proc/{pid}/task").iterdir())
    except (FileNotFoundError, ProcessLookupError):
        return 0


def processor_s(pid: int) -> float:
    """Processor time that a process has used, its threads together; 0 once it is gone."""
    fields = _status(pid)
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S if fields else 0.0


def family(pid: int) -> list[int]:
    """A process and all that descend from it, parents first."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _status(int(entry.name))):
            children.setdefault(int(fields[1]), []).append(int(entry.name))

    def below(parent: int) -> Iterator[int]:
        yield parent
        for child in sorted(children.get(parent, ())):
            yield from below(child)

    return list(below(pid))


def command_of(pid: int) -> str:
    """The command line of a process, its arguments parted by blanks; empty once it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _status(pid: int) -> list[str]:
    """Fields of /proc/PID/stat behind the name, the state first; empty once the process is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return []
    return text.rpartition(")")[2].split()
