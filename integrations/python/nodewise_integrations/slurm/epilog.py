"""`nodewise-epilog`: a TaskEpilog of Slurm that adds what a job measured to its profile. It ends well, and soon."""

from __future__ import annotations

import os
import re
import signal
import sys
import syslog
import time
from collections.abc import Mapping
from types import FrameType
from typing import Any, Final, NoReturn

from nodewise_integrations.slurm.measured import Measured, NothingMeasuredError, measured_by
from nodewise_integrations.slurm.note import Note, note_of

__all__ = ["main"]

LONGEST_SECONDS: Final = 20.0
FIRST_SPECIAL_STEP: Final = 0xFFFF_FFF0
"""From here on numbers name parts of a job that are no steps, its script among them (slurm.h)."""
LOG: Final = "NODEWISE_EPILOG_LOG"
"""A file for what it says; else the system's log."""


def main() -> NoReturn:
    """Tell Nodewise what the job measured, or say why not. The status is 0 whatever happened: it is a node's health."""
    try:
        _run()
    except BaseException as error:  # noqa: BLE001  # as said
        _log(f"{type(error).__name__}: {error}")
    # At once: threads of a connection that hangs are not waited for.
    os._exit(0)


def _run() -> None:
    # Slurm runs it after every task; what belongs to a step was started within the job.
    step = os.environ.get("SLURM_STEP_ID", "")
    if (step.isdecimal() and int(step) < FIRST_SPECIAL_STEP) or os.environ.get("SLURM_PROCID", "0") != "0":
        return
    note = note_of(os.environ)
    if note is None:
        return
    if not sys.flags.isolated:
        # The job's environment is its owner's, PYTHONPATH too.
        module = "nodewise_integrations.slurm.epilog"
        os.execv(sys.executable, [sys.executable, "-I", "-m", module])  # noqa: S606  # this very program
    signal.signal(signal.SIGALRM, _too_long)
    signal.setitimer(signal.ITIMER_REAL, LONGEST_SECONDS)
    try:
        measured = measured_by(note, os.environ)
    except NothingMeasuredError as error:
        _log(f"nothing to add to {note.profile}: {error}")
    else:
        _log(_told(note, measured, os.environ))


def _told(note: Note, measured: Measured, environment: Mapping[str, str]) -> str:
    """Send it; returns what became of it."""
    from nodewise_client import ProfileContent, observations  # noqa: PLC0415  # loads gRPC: for jobs with a note alone
    from nodewise_integrations.advice import Adviser, NoAnswer  # noqa: PLC0415
    from nodewise_integrations.slurm.evidence import configuration_that_ran  # noqa: PLC0415

    adviser = Adviser.of_command(note.server or None, user_agent="nodewise-epilog")
    ran = configuration_that_ran(adviser, note, environment)
    if isinstance(ran, NoAnswer):
        return f"{measured.steps_per_second:.4g} steps/s are not added to {note.profile} ({ran})"
    columns: dict[str, Any] = {
        "steps_per_second": measured.steps_per_second,
        "measured_at_unix_seconds": measured.at_unix_seconds,
        "steps_counts": measured.steps,
        "step_variation": measured.step_variation,
        "measured_memory_bytes": measured.measured_memory_bytes,
    }
    content = ProfileContent(
        observations=observations(
            configurations=ran, **{name: value for name, value in columns.items() if value is not None}
        )
    )
    told = adviser.append(note.profile, content, request_id=_request_id(environment))
    if isinstance(told, NoAnswer):
        return f"{measured.steps_per_second:.4g} steps/s are not added to {note.profile} ({told})"
    return f"{measured.steps_per_second:.4g} steps/s are added to {note.profile}, revision {told.revision}"


def _request_id(environment: Mapping[str, str]) -> str:
    """One for every run of a job: whatever is sent twice counts once."""
    parts = (environment.get(f"SLURM_{name}") or "0" for name in ("CLUSTER_NAME", "JOB_ID", "RESTART_COUNT"))
    return "-".join(("slurm", *(re.sub(r"[^\w.-]", "-", part, flags=re.ASCII) for part in parts)))


def _too_long(_number: int, _frame: FrameType | None) -> None:
    _log(f"not done after {LONGEST_SECONDS:g} s; left undone")
    os._exit(0)


def _log(line: str) -> None:
    """One line, where it may be written; nowhere is no failure."""
    text = f"nodewise-epilog: job {os.environ.get('SLURM_JOB_ID', '?')}: {' '.join(line.split())}"
    file = os.environ.get(LOG)
    try:
        if not file:
            syslog.syslog(text)
            return
        descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
        with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
            opened.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {text}\n")
    except (OSError, ValueError):
        pass


if __name__ == "__main__":
    main()
