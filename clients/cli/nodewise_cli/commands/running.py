"""A running job: `nodewise diagnose --since` diagnoses its steps, `nodewise record` asks its ranks for traces."""

from __future__ import annotations

import re
import uuid
from typing import Annotated, Final

from typer import Option

from nodewise_cli.commands.options import ONE_MINUTE, Call
from nodewise_cli.failures import InputError
from nodewise_cli.views.running import document, recording_document, show, show_recording
from nodewise_client import AppendProfileRequest, DiagnoseRequest, profile_source

__all__ = ["diagnose_running", "parse_ranks", "parse_since", "record"]

_SECONDS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_LABEL: Final = "nodewise.record"
_LONGEST_LABEL: Final = 128


def parse_since(text: str) -> float:
    """Seconds of a duration such as ``90s``, ``30m``, ``1h`` or ``2d``.

    Raises
    ------
    InputError
        Saying what would be right.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", text.strip())
    if match is None or not float(match[1]):
        raise InputError(f"--since: must be a duration above 0 such as 90s, 30m, 1h or 2d, found {text!r}")
    return float(match[1]) * _SECONDS[match[2]]


def parse_ranks(text: str) -> tuple[int, ...]:
    """Ranks such as ``0,17``, in order, none twice.

    Raises
    ------
    InputError
        Saying what would be right.
    """
    if not re.fullmatch(r"\d{1,7}(,\d{1,7})*", text.replace(" ", "")):
        raise InputError(f"--ranks: must be ranks from 0 on such as 0,17, found {text!r}")
    return tuple(sorted(set(map(int, text.split(",")))))


def diagnose_running(profile: str | None, since: str, diagnoser: str, call: Call) -> None:
    """Find slow ranks, machines and periods in the steps that the ranks of a job reported lately.

    Raises
    ------
    InputError
        Without a profile, or a server that has it.
    """
    since_s = parse_since(since)
    if profile is None or call.server is None:
        raise InputError("--since: needs --profile ID, and the --server HOST:PORT that the job's ranks report to")
    with call.connect() as client:
        request = DiagnoseRequest(profile=profile_source(profile), since_seconds=since_s, diagnoser=diagnoser)
        result = client.diagnose(request, timeout_s=call.timeout_s)
    call.tell(document, show, result)


def record(
    profile: Annotated[str, Option(metavar="ID", help="Profile of the job.")],
    steps: Annotated[
        int, Option(metavar="N", min=1, max=1000, help="Number of steps to record, starting with the next one.")
    ] = 3,
    ranks: Annotated[str | None, Option(metavar="LIST", help="Ranks that record, such as 0,17. Default: all.")] = None,
    call: Call = ONE_MINUTE,
) -> None:
    """Ask the ranks of a running job to record steps. Ranks receive the request with their next report, within seconds.

    The ranks add the traces to the profile. A later request replaces one that no rank has received yet.
    """
    if call.server is None:
        raise InputError("--server: must name the server that the job's ranks report to, such as 127.0.0.1:50551")
    rank_numbers = () if ranks is None else parse_ranks(ranks)
    request_id = uuid.uuid4().hex[:8]
    value = f"{request_id} {steps}" + (f" {','.join(map(str, rank_numbers))}" if rank_numbers else "")
    if len(value) > _LONGEST_LABEL:
        raise InputError(f"--ranks: names too many ranks ({len(rank_numbers)}); leave it out to record on all ranks")
    with call.connect() as client:
        client.get_profile(profile)  # a slip of the pen makes no profile
        client.append_profile(AppendProfileRequest(profile_id=profile, labels={_LABEL: value}))
    call.tell(recording_document, show_recording, (request_id, steps, rank_numbers))
