"""`nodewise-epilog`: a TaskEpilog of Slurm that adds a job's measurements to its profile. It always ends with 0."""

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
"""From here on, numbers name parts of a job that are not steps, such as its script (slurm.h)."""
LOG: Final = "NODEWISE_EPILOG_LOG"
"""Variable that names a log file. Without it, messages go to the system's log."""


def main() -> NoReturn:
    """Add the job's measurements to its profile, or log why not. The status is always 0: others drain the node."""
    try:
        _run()
    except BaseException as error:  # noqa: BLE001  # the status must be 0
        _log(f"{type(error).__name__}: {error}")
    # Exit at once, without waiting for the threads of a connection that hangs.
    os._exit(0)


def _run() -> None:
    # Slurm runs the epilog after every task. Only the end of the job's script counts, not the end of its steps.
    step = os.environ.get("SLURM_STEP_ID", "")
    if (step.isdecimal() and int(step) < FIRST_SPECIAL_STEP) or os.environ.get("SLURM_PROCID", "0") != "0":
        return
    note = note_of(os.environ)
    if note is None:
        return
    if not sys.flags.isolated:
        # The job's owner controls its environment, including PYTHONPATH.
        module = "nodewise_integrations.slurm.epilog"
        os.execv(sys.executable, [sys.executable, "-I", "-m", module])  # noqa: S606  # this very program
    signal.signal(signal.SIGALRM, _too_long)
    signal.setitimer(signal.ITIMER_REAL, LONGEST_SECONDS)
    try:
        measured = measured_by(note, os.environ)
    except NothingMeasuredError as error:
        _log(f"nothing to add to {note.profile}: {error}")
    else:
        _log(_send(note, measured, os.environ))


def _send(note: Note, measured: Measured, environment: Mapping[str, str]) -> str:
    """Add the measurements to the profile; returns the result for the log."""
    from nodewise_client import ProfileContent, observations  # noqa: PLC0415  # loads gRPC: only for jobs with a note
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
    profile = adviser.append(note.profile, content, request_id=_request_id(environment))
    if isinstance(profile, NoAnswer):
        return f"{measured.steps_per_second:.4g} steps/s are not added to {note.profile} ({profile})"
    return f"{measured.steps_per_second:.4g} steps/s are added to {note.profile}, revision {profile.revision}"


def _request_id(environment: Mapping[str, str]) -> str:
    """Return an id for this run of the job, so that measurements sent twice count once."""
    parts = (environment.get(f"SLURM_{name}") or "0" for name in ("CLUSTER_NAME", "JOB_ID", "RESTART_COUNT"))
    return "-".join(("slurm", *(re.sub(r"[^\w.-]", "-", part, flags=re.ASCII) for part in parts)))


def _too_long(_number: int, _frame: FrameType | None) -> None:
    _log(f"stopped after {LONGEST_SECONDS:g} s; nothing may have been added")
    os._exit(0)


def _log(line: str) -> None:
    """Log one line. If it cannot be written, it is dropped."""
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
