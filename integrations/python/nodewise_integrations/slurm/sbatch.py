"""`nodewise-sbatch`: sbatch, with what its owner leaves to a prediction filled in. Without an answer it is sbatch."""

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
    """What sbatch is started with."""

    arguments: tuple[str, ...]
    note: Note | None = None


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Read the command line, ask, and become sbatch."""
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
        _say("--nodewise-profile is not stated: submitted as it is")
    if wishes.explain:
        print(shlex.join(["sbatch", *submitted.arguments]))
        raise SystemExit(0)
    _become(submitted, script if from_input else None)


def _script_of(submission: Submission) -> tuple[str, bool]:
    """The script, and whether it came by standard input, which sbatch will want to read too."""
    if submission.script is not None:
        return read_script(submission.script, submission.options.get("chdir", "")), False
    if "wrap" in submission.options or sys.stdin is None or sys.stdin.isatty():
        return "", False
    return sys.stdin.buffer.read().decode("utf-8", "surrogateescape"), True


def _advised(submission: Submission, wishes: Wishes, requests: Requests) -> _Submitted:
    """The command line with what was filled in before everything else: of two options sbatch takes the last.

    Only where a number of nodes was chosen of a range that was typed, it stands after what was typed.
    """
    if requests.heterogeneous:
        _say("jobs with several components are submitted as they are")
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
        _say(f"submitted as it is: {requests.problem}")
        return _Submitted(submission.rest, note)
    if requests.kept:
        _say(f"the number of nodes is left as it is: {requests.kept}")
    if requests.nodes_from and not wishes.works:
        return _Submitted(submission.rest, note)
    try:
        with _quiet_grpc():
            # Loads gRPC, which takes longer than sbatch: not where nothing is asked.
            from nodewise_integrations.slurm.filling import Filling, filled, table  # noqa: PLC0415

            told = filled(wishes, requests)
    except Exception as error:  # noqa: BLE001  # a broken installation, say: the job is worth more than its number of nodes
        _say(f"no answer, submitted as it is (fault: {type(error).__name__}: {error})")
        return _Submitted(submission.rest, note)
    if not isinstance(told, Filling):
        _say(f"no answer, submitted as it is ({told})")
        return _Submitted(submission.rest, note)
    if wishes.explain:
        print("\n".join(table(told.advice)))
    for line in told.lines:
        _say(line)
    before, after = submission.rest[: submission.options_end], submission.rest[submission.options_end :]
    return _Submitted((*told.options, *before, *told.last, *after), note)


@contextmanager
def _quiet_grpc() -> Iterator[None]:
    """Without gRPC's own lines beside ours; the job's environment stays what it was."""
    if _VERBOSITY in os.environ:
        yield
        return
    os.environ[_VERBOSITY] = "NONE"
    try:
        yield
    finally:
        del os.environ[_VERBOSITY]


def _become(submitted: _Submitted, script: str | None) -> NoReturn:
    """Go on as sbatch itself, so that its output, its status and signals are the caller's own business."""
    # That of a job within which this runs is not this job's.
    os.environ.pop(VARIABLE, None)
    if submitted.note is not None:
        os.environ[VARIABLE] = submitted.note.text()
    if script is not None:
        with tempfile.TemporaryFile() as kept:
            kept.write(script.encode("utf-8", "surrogateescape"))
            kept.seek(0)
            os.dup2(kept.fileno(), 0)
    program = os.environ.get("NODEWISE_SBATCH", "sbatch")
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execvp(program, [Path(program).name, *submitted.arguments])  # noqa: S606  # a shell would read the arguments again
    except OSError as error:
        _say(f"{program} cannot be started: {error.strerror}; name it in NODEWISE_SBATCH")
        raise SystemExit(127) from None


def _say(line: str) -> None:
    print(f"nodewise-sbatch: {line}", file=sys.stderr)
