"""Options that commands about traces share, the way they are written, and the profile that they ask about."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from nodewise_cli.failures import InputError
from nodewise_cli.inputs.counts import parse_counts
from nodewise_cli.inputs.trace_files import profile_name, send_traces, trace_files
from nodewise_cli.service import connected
from nodewise_cli.waiting import Waiting, waiting
from nodewise_client import Client, DiagnosisProgress, NodewiseError, ReplayChange, ReplayChangeKind

__all__ = [
    "BudgetS",
    "Diagnoser",
    "Mapped",
    "ProfileId",
    "TimelineFile",
    "Traces",
    "asked_profile",
    "checked_output",
    "parse_change",
    "parse_mapping",
    "parse_steps",
    "told",
]

Traces: TypeAlias = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="TRACE...", help="Trace files of one job, or directories of them: .json, .json.gz, .et; one a rank."
    ),
]
ProfileId: TypeAlias = Annotated[
    str | None, typer.Option("--profile", metavar="ID", help="A profile whose traces the server has, instead of files.")
]
Diagnoser: TypeAlias = Annotated[
    str, typer.Option("--diagnoser", metavar="NAME", help="Who answers. Default: the only one, or the shipped one.")
]
BudgetS: TypeAlias = Annotated[
    float, typer.Option("--budget-s", metavar="SECONDS", help="Answer with what there is after so long.")
]
Mapped: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--mapping", metavar="KEY=VALUE", help="What is what in generic Chrome traces. May be repeated."),
]
TimelineFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--timeline", metavar="OUT.json", help="Write what was executed for Perfetto; replay: beside the original."
    ),
]

CHANGE_KINDS: Final = {
    "scale": "scale",
    "delay": "delay",
    "bandwidth": "link_bandwidth",
    "latency": "link_latency",
    "world-size": "world_size",
    "bucket-bytes": "bucket_bytes",
}
MOST_STEPS: Final = 10_000


def parse_steps(given: str | None, option: str) -> tuple[int, ...]:
    """Ordinals of steps such as ``2-5`` or ``1,3``; nothing and ``all`` are no ordinals.

    Raises
    ------
    InputError
        Naming the option and what would be right.
    """
    if given is None or given.strip().lower() == "all":
        return ()
    found: set[int] = set()
    for counts in parse_counts(given, option):
        if counts.powers_of_two:
            raise InputError(f"{option}: must be steps such as 2-5 or 1,3, found {given!r}")
        if counts.last > MOST_STEPS:
            raise InputError(f"{option}: must end at {MOST_STEPS} or before, found {given!r}")
        found.update(range(counts.first, counts.last + 1, counts.step))
    return tuple(sorted(found))


def parse_change(given: str) -> ReplayChange:
    """A change such as ``scale=0.5;events=kernel;name=gemm;ranks=0,2``.

    Raises
    ------
    InputError
        Saying what would be right.
    """
    first, *rest = [part.strip() for part in given.split(";")]
    word, _, number = first.partition("=")
    kind = CHANGE_KINDS.get(word.strip().lower())
    if kind is None:
        raise InputError(f"--change: must begin with one of {', '.join(CHANGE_KINDS)} and =NUMBER, found {given!r}")
    try:
        value = float(number)
    except ValueError:
        raise InputError(f"--change: {word} must be a number, found {number!r}") from None
    chosen: dict[str, str] = {}
    for part in rest:
        name, equals, text = part.partition("=")
        if not equals or name not in {"name", "events", "ranks"} or name in chosen:
            raise InputError(f"--change: after ; must stand name=, events= or ranks=, once each, found {part!r}")
        chosen[name] = text
    try:
        ranks = [int(rank) for rank in chosen["ranks"].split(",")] if "ranks" in chosen else []
    except ValueError:
        raise InputError(f"--change: ranks must be numbers such as 0,2, found {chosen['ranks']!r}") from None
    return ReplayChange(
        kind=ReplayChangeKind(kind),
        value=value,
        name_pattern=chosen.get("name", ""),
        event_kinds=tuple(word.strip() for word in chosen["events"].split(",")) if "events" in chosen else (),
        ranks=tuple(ranks),
    )


def parse_mapping(given: Sequence[str] | None) -> dict[str, str]:
    """What is what in a trace, such as ``kernel=GPU Op``.

    Raises
    ------
    InputError
        If a part has no ``=``.
    """
    found: dict[str, str] = {}
    for part in given or ():
        key, equals, value = part.partition("=")
        if not equals or not key:
            raise InputError(f"--mapping: must be KEY=VALUE, found {part!r}")
        found[key] = value
    return found


def checked_output(path: Path | None, option: str, suffixes: Sequence[str]) -> None:
    """Refuse before the work a file that could not be written after it.

    Raises
    ------
    InputError
        Naming the option.
    """
    if path is None:
        return
    if path.suffix.lower() not in suffixes:
        raise InputError(f"{option}: must end in {' or '.join(suffixes)}, found {str(path)!r}")
    if path.is_dir() or not path.parent.is_dir():
        raise InputError(f"{option}: must be a file in a directory that exists, found {str(path)!r}")


@contextmanager
def asked_profile(
    traces: Sequence[Path] | None, profile: str | None, server: str | None, timeout_s: float
) -> Iterator[tuple[Client, str, Waiting]]:
    """A client and the name of a profile with the traces: a stored one, or one that is made of files and goes again.

    Raises
    ------
    InputError
        If neither or both are given.
    """
    if bool(traces) == bool(profile):
        raise InputError("must be given either TRACE files, or --profile with the server that has it")
    if profile and server is None:
        raise InputError("--server: must name the server that has the profile, such as 127.0.0.1:50551")
    files = trace_files(traces) if traces else []
    with connected(server, timeout_s) as client, waiting("reading") as progress:
        if profile or not traces:
            yield client, profile or "", progress
            return
        if server is None:
            name = profile_name(traces)
        else:
            client.health()  # a writer waits for a server that comes back; one that was never there is said at once
            name = f"nodewise-{uuid.uuid4().hex}"
        try:
            send_traces(client, name, files, keep_names=server is None, progress=progress)
            yield client, name, progress
        finally:
            if server is not None:
                with suppress(NodewiseError):  # it was never made, or what went wrong before is the news
                    client.delete_profile(name)


def told(progress: Waiting, found: DiagnosisProgress) -> None:
    """Show how far an answer is."""
    progress.tell(found.done_count, found.total_count)
