"""`nodewise-sbatch`: sbatch with options filled in from a prediction. Without an answer it is plain sbatch."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from nodewise_integrations.slurm.note import VARIABLE, Note
from nodewise_integrations.slurm.requests import Requests, read_requests
from nodewise_integrations.slurm.submission import Submission, read_script, split
from nodewise_integrations.slurm.wishes import Wishes, WrongWishError, read_wishes

__all__ = ["main"]

BAD_INPUT: Final = 2
_VERBOSITY: Final = "GRPC_VERBOSITY"


@dataclass(frozen=True, slots=True)
class _Submitted:
    """Arguments of sbatch, and the note for the epilog."""

    arguments: tuple[str, ...]
    note: Note | None = None


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Read the command line, ask for a prediction, and run sbatch in place of this process."""
    submission = split(sys.argv[1:] if arguments is None else arguments)
    script, from_input = _script_of(submission)
    try:
        wishes = read_wishes(script, submission.ours)
    except WrongWishError as error:
        _say(str(error))
        raise SystemExit(BAD_INPUT) from None
    submitted = _Submitted(submission.rest)
    if wishes.profile:
        submitted = _advised(submission, wishes, read_requests(submission, script, os.environ, wishes))
    elif submission.ours:
        _say("--nodewise-profile is not given; the job is submitted unchanged")
    if wishes.explain:
        print(shlex.join(["sbatch", *submitted.arguments]))
        raise SystemExit(0)
    _become(submitted, script if from_input else None)


def _script_of(submission: Submission) -> tuple[str, bool]:
    """Return the script, and whether it came from standard input, which sbatch must then read as well."""
    if submission.script is not None:
        return read_script(submission.script, submission.options.get("chdir", "")), False
    if "wrap" in submission.options or sys.stdin is None or sys.stdin.isatty():
        return "", False
    return sys.stdin.buffer.read().decode("utf-8", "surrogateescape"), True


def _advised(submission: Submission, wishes: Wishes, requests: Requests) -> _Submitted:
    """Return the command line with the filled-in options first, because sbatch uses the last of two equal options.

    Only a number of nodes that replaces a typed range comes after the typed options.
    """
    if requests.heterogeneous:
        _say("a job with several components is submitted unchanged")
        return _Submitted(submission.rest)
    note = Note(
        profile=wishes.profile,
        measured=wishes.measured,
        output=requests.output,
        pattern=wishes.pattern,
        workers_per_node=requests.gpus_per_node,
        columns=wishes.columns,
        server=wishes.server,
    )
    if not (wishes.nodes or wishes.works):
        return _Submitted(submission.rest, note)
    if requests.problem:
        _say(f"the job is submitted unchanged: {requests.problem}")
        return _Submitted(submission.rest, note)
    if requests.kept:
        _say(f"the number of nodes is not changed: {requests.kept}")
    if requests.nodes_from and not wishes.works:
        return _Submitted(submission.rest, note)
    try:
        with _quiet_grpc():
            # Imported here because gRPC takes longer to load than sbatch runs.
            from nodewise_integrations.slurm.filling import Filling, filled, table  # noqa: PLC0415

            filling = filled(wishes, requests)
    except Exception as error:  # noqa: BLE001  # e.g. a broken installation: the job must be submitted anyway
        _say(f"no answer; the job is submitted unchanged (fault: {type(error).__name__}: {error})")
        return _Submitted(submission.rest, note)
    if not isinstance(filling, Filling):
        _say(f"no answer; the job is submitted unchanged ({filling})")
        return _Submitted(submission.rest, note)
    if wishes.explain:
        print("\n".join(table(filling.advice)))
    for line in filling.lines:
        _say(line)
    before, after = submission.rest[: submission.options_end], submission.rest[submission.options_end :]
    return _Submitted((*filling.options, *before, *filling.last, *after), note)


@contextmanager
def _quiet_grpc() -> Iterator[None]:
    """Suppress gRPC's own messages, and restore the environment for the job afterwards."""
    if _VERBOSITY in os.environ:
        yield
        return
    os.environ[_VERBOSITY] = "NONE"
    try:
        yield
    finally:
        del os.environ[_VERBOSITY]


def _become(submitted: _Submitted, script: str | None) -> NoReturn:
    """Replace this process by sbatch, so that the caller gets its output, status and signals directly."""
    # If this runs within another job, the note of that job does not apply.
    os.environ.pop(VARIABLE, None)
    if submitted.note is not None:
        os.environ[VARIABLE] = submitted.note.text()
    if script is not None:
        with tempfile.TemporaryFile() as copy:
            copy.write(script.encode("utf-8", "surrogateescape"))
            copy.seek(0)
            os.dup2(copy.fileno(), 0)
    program = os.environ.get("NODEWISE_SBATCH", "sbatch")
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execvp(program, [Path(program).name, *submitted.arguments])  # noqa: S606  # a shell would read the arguments again
    except OSError as error:
        _say(f"{program} cannot be started: {error.strerror}; set NODEWISE_SBATCH to the path of sbatch")
        raise SystemExit(127) from None


def _say(line: str) -> None:
    print(f"nodewise-sbatch: {line}", file=sys.stderr)
