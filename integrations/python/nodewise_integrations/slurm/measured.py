"""The speed of a job, from a small file that it wrote, else from lines of its output."""

from __future__ import annotations

import json
import os
import re
import stat
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nodewise_integrations.slurm.note import Note

__all__ = ["Measured", "NothingMeasuredError", "expanded", "measured_by"]

_MOST_FILE_BYTES: Final = 64 * 1024
_MOST_OUTPUT_BYTES: Final = 4 * 1024 * 1024
_KEYS: Final = {"steps_per_second", "steps", "step_variation", "measured_memory_bytes"}


class NothingMeasuredError(Exception):
    """There are no measurements; the text says why, and what would be right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Throughput of a run. None = not known."""

    steps_per_second: float
    at_unix_seconds: float
    steps: int | None = None
    step_variation: float | None = None
    """Coefficient of variation of the step time."""
    measured_memory_bytes: float | None = None


def measured_by(note: Note, environment: Mapping[str, str]) -> Measured:
    """Read the speed of a job from the files that its note names. Raises NothingMeasuredError."""
    file = expanded(note.measured, environment)
    measured = _by_file(file)
    if measured is None and not note.pattern:
        raise NothingMeasuredError(f"the job did not write {file}")
    return measured or _by_output(expanded(note.output, environment), note.pattern)


def _by_file(path: Path) -> Measured | None:
    """Read the file of a job: `{"steps_per_second": 3.9, "steps": 1200}`. None = there is no such file."""
    found = _content(path, _MOST_FILE_BYTES)
    if found is None:
        return None
    text, at_seconds = found
    try:
        stated = json.loads(text)
    except ValueError as error:
        raise NothingMeasuredError(f"{path}: is not JSON: {error}") from None
    if not isinstance(stated, dict) or "steps_per_second" not in stated or stated.keys() - _KEYS:
        known = ", ".join(sorted(_KEYS))
        raise NothingMeasuredError(f"{path}: must be an object with steps_per_second, and with no keys but {known}")
    return Measured(
        steps_per_second=_positive(path, stated, "steps_per_second"),
        at_unix_seconds=at_seconds,
        steps=int(_positive(path, stated, "steps")) if "steps" in stated else None,
        step_variation=_positive(path, stated, "step_variation", or_zero=True) if "step_variation" in stated else None,
        measured_memory_bytes=_positive(path, stated, "measured_memory_bytes")
        if "measured_memory_bytes" in stated
        else None,
    )


def _by_output(path: Path, pattern: str) -> Measured:
    """Return the median over the later half of the matching lines; the earlier half includes the warm-up."""
    found = _content(path, _MOST_OUTPUT_BYTES)
    if found is None:
        raise NothingMeasuredError(f"{path}: this output file does not exist")
    text, at_seconds = found
    texts = [match[1] for line in text.splitlines() if (match := re.search(pattern, line))]
    try:
        rates = [float(each.replace(",", "")) for each in texts]
    except ValueError:
        raise NothingMeasuredError(f"{path}: {pattern!r} matches text that is not a number") from None
    rates = [rate for rate in rates[len(rates) // 2 :] if 0 < rate < float("inf")]
    if not rates:
        raise NothingMeasuredError(f"{path}: no line matches {pattern!r} with steps per second above 0")
    return Measured(steps_per_second=statistics.median(rates), at_unix_seconds=at_seconds)


def _positive(path: Path, stated: Mapping[str, Any], key: str, *, or_zero: bool = False) -> float:
    value = stated[key]
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not (0 < value < 1e18 or (or_zero and value == 0))
    ):
        raise NothingMeasuredError(f"{path}: {key} must be a number above 0, found {value!r}")
    return float(value)


def _content(path: Path, most_bytes: int) -> tuple[str, float] | None:
    """Return the end of a file, and when it was written. Only regular files are read, so that reading never blocks."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise NothingMeasuredError(f"{path}: cannot be read: {error.strerror}") from None
    with os.fdopen(descriptor, "rb") as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode):
            raise NothingMeasuredError(f"{path}: is not a regular file")
        file.seek(max(0, about.st_size - most_bytes))
        return file.read(most_bytes).decode("utf-8", "replace"), about.st_mtime


_PLACE: Final = re.compile(r"%(\d{0,2})([%AaJjNnstux])")


def expanded(pattern: str, environment: Mapping[str, str]) -> Path:
    """Replace `%j` and other patterns in a file's name as Slurm does. Names are relative to the job's first folder."""
    job = environment.get("SLURM_JOB_ID", "")
    known = {
        "%": "%",
        "A": environment.get("SLURM_ARRAY_JOB_ID") or job,
        "a": environment.get("SLURM_ARRAY_TASK_ID", "4294967294"),
        "J": job,
        "j": job,
        "N": environment.get("SLURMD_NODENAME", "").partition(".")[0],
        "n": "0",
        "s": "batch",
        "t": "0",
        "u": environment.get("SLURM_JOB_USER", ""),
        "x": environment.get("SLURM_JOB_NAME", ""),
    }
    name = _PLACE.sub(lambda place: known[place[2]].rjust(int(place[1] or 0), "0"), pattern)
    return Path(name) if name.startswith("/") else Path.cwd() / name
