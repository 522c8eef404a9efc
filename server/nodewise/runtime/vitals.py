"""What the kernel says of a process, and whether one that says nothing any more hangs or merely waits for a core."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["Pulse", "Vitals", "born_ticks", "memory_bytes", "rss_bytes", "vitals_of"]

_TICK_S: Final = 1.0 / os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 0.01
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_CGROUP_LIMITS: Final = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


@dataclass(frozen=True, slots=True)
class Vitals:
    """One look at a process.

    Parameters
    ----------
    cpu_s : float
        CPU time of all its threads so far.
    asleep : bool
        Whether every thread slept: none ran, waited for a core or for a disk, or was stopped.
    """

    cpu_s: float
    asleep: bool


def vitals_of(pid: int) -> Vitals | None:
    """Of a living process; None where the kernel does not tell (no ``/proc``), or of a dead one."""
    try:
        fields = _stat(Path(f"/proc/{pid}/stat"))
        cpu_s = (int(fields[11]) + int(fields[12])) * _TICK_S
        asleep = all(_stat(task / "stat")[0] == "S" for task in Path(f"/proc/{pid}/task").iterdir())
    except (OSError, IndexError, ValueError):
        return None
    return Vitals(cpu_s, asleep)


def born_ticks(pid: int) -> int:
    """When a process began, in ticks since the machine did: tells it from another that has its number later.

    0 where the kernel does not tell, or nobody has that number.
    """
    try:
        return int(_stat(Path(f"/proc/{pid}/stat"))[19])
    except (OSError, IndexError, ValueError):
        return 0


def rss_bytes(pid: int) -> int:
    """Memory of a process that lies in RAM; 0 where the kernel does not tell."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * _PAGE_BYTES
    except (OSError, IndexError, ValueError):
        return 0


def memory_bytes() -> int | None:
    """RAM of this machine, or what its container may use of it; None where neither is told."""
    try:
        found = os.sysconf("SC_PHYS_PAGES") * _PAGE_BYTES
    except (AttributeError, OSError, ValueError):
        return None
    for path in _CGROUP_LIMITS:
        try:
            found = min(found, int(path.read_text(encoding="ascii")))
        except (OSError, ValueError):  # there is no such limit, or it is `max`
            continue
    return found


class Pulse:
    """Tells a process that hangs from one that is starved.

    Wall-clock alone cannot: on a machine under load a healthy process may be silent for minutes, since it gets no core.
    Silence counts only for the time in which the process could have spoken: the CPU time that it had meanwhile (a
    thread that computes and never lets the loop run), and the looks at which all its threads slept, though the loop's
    timer was due (a lock that nobody lets go). Who waits for a core or a disk, or is stopped, does not sleep, and
    neither grows; nor do they while the machine is suspended. A look at which a thread is awake makes up for one at
    which all slept, and not for all: threads that wait for the interpreter wake up two hundred times a second.

    Parameters
    ----------
    limit_s : float
        So much of either without a beat is a hang.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._cpu_s: float | None = None
        self._asleep_s = 0.0

    def beat(self) -> None:
        """It spoke."""
        self._cpu_s = None
        self._asleep_s = 0.0

    def hangs(self, seen: Vitals, since_s: float) -> bool:
        """Whether it hangs, by one more look, so long after the one before."""
        if self._cpu_s is None:
            self._cpu_s = seen.cpu_s
            return False
        self._asleep_s = max(0.0, self._asleep_s + (since_s if seen.asleep else -since_s))
        return seen.cpu_s - self._cpu_s >= self._limit_s or self._asleep_s >= self._limit_s


def _stat(path: Path) -> list[str]:
    """Fields of a ``stat`` file from the state on: the name before them may hold anything."""
    return path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
