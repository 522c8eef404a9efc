"""Options that commands about traces share, the way they are written, and the profile that they ask about."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from nodewise_cli.commands.options import Server
from nodewise_cli.failures import InputError
from nodewise_cli.inputs.counts import listed_counts
from nodewise_cli.inputs.trace_files import profile_name, send_traces, trace_files
from nodewise_cli.outputs import checked_output
from nodewise_cli.service import connected
from nodewise_cli.waiting import waiting
from nodewise_client import Client, DeleteProfileRequest, NodewiseError, ReplayChange, ReplayChangeKind, profile_source

__all__ = ["TraceQuestion", "asked_profile", "parse_change", "parse_mapping", "parse_steps"]

LONGEST_S: Final = 3600.0
"""Seconds that a command waits for an answer from traces unless told otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceQuestion:
    """What the options say of the traces asked about, and of who answers."""

    traces: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="TRACE...", help="Trace files of one job, or directories of them: .json, .json.gz, .et; one a rank."
        ),
    ] = None
    profile: Annotated[
        str | None, typer.Option(metavar="ID", help="A profile whose traces the server has, instead of files.")
    ] = None
    timeline: Annotated[
        Path | None,
        typer.Option(metavar="OUT.json", help="Write what was executed for Perfetto; replay: beside the original."),
    ] = None
    mapping: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="What is what in generic Chrome traces. May be repeated."),
    ] = None
    diagnoser: Annotated[
        str, typer.Option(metavar="NAME", help="Who answers. Default: the only one, or the shipped one.")
    ] = ""
    server: Server = None
    budget_s: Annotated[float, typer.Option(metavar="SECONDS", help="Answer with what there is after so long.")] = 0.0
    timeout_s: Annotated[float, typer.Option(metavar="SECONDS", help="Longest wait for the answer.")] = LONGEST_S


CHANGE_KINDS: Final = {
    "scale": "scale",
    "delay": "delay",
    "bandwidth": "link_bandwidth",
    "latency": "link_latency",
    "world-size": "world_size",
    "bucket-bytes": "bucket_bytes",
}


def parse_steps(given: str | None, option: str) -> tuple[int, ...]:
    """Ordinals of steps such as ``2-5`` or ``1,3``; nothing and ``all`` are no ordinals.

    Raises
    ------
    InputError
        Naming the option and what would be right.
    """
    if given is None or given.strip().lower() == "all":
        return ()
    return listed_counts(given, option, "steps")


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


@contextmanager
def asked_profile(question: TraceQuestion) -> Iterator[tuple[Client, dict[str, Any], dict[str, Any]]]:
    """A client, what requests of replays and diagnoses share, and how both are called.

    The profile is a stored one, or one that is made of files and goes again.

    Raises
    ------
    InputError
        If neither or both are given, or an option is wrong.
    """
    traces, profile, server = question.traces, question.profile, question.server
    checked_output(question.timeline, "--timeline", [".json"])
    mapping = parse_mapping(question.mapping)
    if bool(traces) == bool(profile):
        raise InputError("must be given either TRACE files, or --profile with the server that has it")
    if profile and server is None:
        raise InputError("--server: must name the server that has the profile, such as 127.0.0.1:50551")
    files = trace_files(traces) if traces else []
    with connected(server, question.timeout_s) as client, waiting("reading") as progress:
        common: dict[str, Any] = {
            "trace_mapping": mapping,
            "diagnoser": question.diagnoser,
            "budget_seconds": question.budget_s or None,
        }
        call: dict[str, Any] = {
            "on_progress": lambda found: progress.tell(found.done_count, found.total_count),
            "timeout_s": question.timeout_s,
        }
        if profile or not traces:
            yield client, {"profile": profile_source(profile or ""), **common}, call
            return
        if server is None:
            name = profile_name(traces)
        else:
            client.health()  # a writer waits for a server that comes back; one that was never there is said at once
            name = f"nodewise-{uuid.uuid4().hex}"
        try:
            send_traces(client, name, files, keep_names=server is None, progress=progress)
            yield client, {"profile": profile_source(name), **common}, call
        finally:
            if server is not None:
                with suppress(NodewiseError):  # it was never made, or what went wrong before is the news
                    client.delete_profile(DeleteProfileRequest(profile_id=name, etag="*"))
