"""Options that commands about traces share, the way they are written, and the profile that they ask about."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

from typer import Argument, Option

from nodewise_cli.commands.options import Call
from nodewise_cli.failures import CommandError, InputError
from nodewise_cli.inputs.counts import listed_counts
from nodewise_cli.inputs.trace_files import profile_name, send_traces, trace_files
from nodewise_cli.outputs import checked_output
from nodewise_cli.views.replay import truncated_traces
from nodewise_cli.waiting import waiting
from nodewise_client import (
    Client,
    DiagnosisAnswer,
    NodewiseError,
    ReplayAnswer,
    ReplayChange,
    ReplayChangeKind,
    profile_source,
)

__all__ = [
    "AllowTruncated",
    "TraceQuestion",
    "asked_profile",
    "asked_profiles",
    "checked_whole",
    "fail_if_truncated",
    "parse_change",
    "parse_mapping",
    "parse_steps",
]


AllowTruncated: TypeAlias = Annotated[
    bool,
    Option(
        "--allow-truncated",
        help="Accept traces that end early: use what they hold, and exit with status 1.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceQuestion:
    """What the options state about the traces and the diagnoser."""

    traces: Annotated[
        list[Path] | None,
        Argument(
            metavar="TRACE...",
            help="Traces of one job, or directories of them: .json, .json.gz, .et, .sqlite, .pb, .pftrace.",
        ),
    ] = None
    profile: Annotated[
        str | None, Option(metavar="ID", help="Stored profile whose traces to use, instead of files.")
    ] = None
    timeline: Annotated[
        Path | None,
        Option(metavar="OUT.json", help="Write the timeline of a step for Perfetto; replay: beside the original."),
    ] = None
    mapping: Annotated[
        list[str] | None,
        Option(metavar="KEY=VALUE", help="How to read a generic Chrome trace, such as kernel='GPU Op'; repeatable."),
    ] = None
    diagnoser: Annotated[
        str, Option(metavar="NAME", help="Diagnoser. Default: the only one, or the one that ships with Nodewise.")
    ] = ""
    allow_truncated: AllowTruncated = False
    budget_s: Annotated[
        float, Option(metavar="SECONDS", help="Stop after this time with the result so far; 0 = no limit.")
    ] = 0.0


_SHOWN_DIGITS: Final = 12
"""Digits of a hash that the service prints in its errors."""

CHANGE_KINDS: Final = {kind.removeprefix("link_").replace("_", "-"): kind for kind in ReplayChangeKind}


def parse_steps(text: str | None, option: str) -> tuple[int, ...]:
    """Ordinals of steps such as ``2-5`` or ``1,3``; nothing and ``all`` are no ordinals.

    Raises
    ------
    InputError
        Naming the option and what would be right.
    """
    return () if text is None or text.strip().lower() == "all" else listed_counts(text, option, "steps")


def parse_change(change: str) -> ReplayChange:
    """A change such as ``scale=0.5;events=kernel;name=gemm;ranks=0,2``.

    Raises
    ------
    InputError
        Saying what would be right.
    """
    first, *rest = [part.strip() for part in change.split(";")]
    word, _, number = first.partition("=")
    kind = CHANGE_KINDS.get(word.strip().lower())
    if kind is None:
        raise InputError(f"--change: must begin with one of {', '.join(CHANGE_KINDS)} and =NUMBER, found {change!r}")
    selectors: dict[str, str] = {}
    for part in rest:
        name, equals, text = part.partition("=")
        if not equals or name not in {"name", "events", "ranks"} or name in selectors:
            raise InputError(
                f"--change: a part after ; must be name=, events= or ranks=, each at most once, found {part!r}"
            )
        selectors[name] = text
    lists = {name: tuple(each.strip() for each in selectors[name].split(",")) for name in selectors if name != "name"}
    try:
        value = float(number)
    except ValueError:
        raise InputError(f"--change: {word} must be a number, found {number!r}") from None
    try:
        ranks = tuple(map(int, lists.get("ranks", ())))
    except ValueError:
        raise InputError(f"--change: ranks must be numbers such as 0,2, found {selectors['ranks']!r}") from None
    name, events = selectors.get("name", ""), lists.get("events", ())
    return ReplayChange(kind=kind, value=value, name_pattern=name, event_kinds=events, ranks=ranks)


def parse_mapping(parts_given: Sequence[str]) -> dict[str, str]:
    """How to read a trace, such as ``kernel=GPU Op``.

    Raises
    ------
    InputError
        If a part has no ``=``.
    """
    parts = {part: part.partition("=") for part in parts_given}
    for part, (key, equals, _) in parts.items():
        if not equals or not key:
            raise InputError(f"--mapping: must be KEY=VALUE, found {part!r}")
    return {key: value for key, _, value in parts.values()}


@contextmanager
def asked_profile(question: TraceQuestion, call: Call) -> Iterator[tuple[Client, dict[str, Any], dict[str, Any]]]:
    """A client, what requests of replays and diagnoses share, and how both are called.

    The profile is a stored one, or one that is made of files and goes again.

    Raises
    ------
    InputError
        If neither or both are given, or an option is wrong.
    """
    with asked_profiles(question, call) as (client, (common,), how):
        yield client, common, how


@contextmanager
def asked_profiles(
    question: TraceQuestion, call: Call, against: Sequence[str] = ()
) -> Iterator[tuple[Client, list[dict[str, Any]], dict[str, Any]]]:
    """The same of the question's profile and of another one that it is compared with.

    Parameters
    ----------
    against : sequence of str
        Files of traces, or the name of a stored profile where the question names one; none = no other.

    Raises
    ------
    InputError
        If neither or both are given, or an option is wrong.
    """
    traces, profile_id = question.traces or (), question.profile
    checked_output(question.timeline, "--timeline", [".json"])
    mapping = parse_mapping(question.mapping or ())
    if bool(traces) == bool(profile_id):
        raise InputError("give either TRACE files, or --profile and the --server that stores it")
    if profile_id and call.server is None:
        raise InputError("--server: must name the server that stores the profile, such as 127.0.0.1:50551")
    if profile_id and len(against) > 1:
        raise InputError(
            f"--against: must be the name of one profile when --profile is given, found {len(against)} names"
        )
    sources = [tuple(traces), *([tuple(map(Path, against))] if against else [])]
    files = [trace_files(each) for each in (() if profile_id else sources)]
    with call.connect() as client, waiting("reading") as progress, ExitStack() as after:
        paths_by_digest: dict[str, Path] = {}
        names = [profile_id, *against] if profile_id else [f"nodewise-{uuid.uuid4().hex}" for _ in sources]
        if not profile_id and call.server is None:
            names[0] = profile_name(sources[0])
        elif not profile_id:
            client.health()  # a writer waits for a server that comes back; one that was never there is said at once
        for name, trace_files_of_name in zip(names, files):
            if call.server is not None:
                after.callback(_forget, client, name)
            paths_by_digest |= send_traces(
                client,
                name,
                trace_files_of_name,
                keep_names=call.server is None,
                allow_truncated=question.allow_truncated,
                progress=progress,
            )
        common = {
            "trace_mapping": mapping,
            "diagnoser": question.diagnoser,
            "budget_seconds": question.budget_s or None,
        }
        try:
            how = {"on_progress": progress.follow, "timeout_s": call.timeout_s}
            yield client, [{"profile": profile_source(name), **common} for name in names if name], how
        except NodewiseError as error:
            raise _with_files(error, paths_by_digest) from error


def _with_files(error: NodewiseError, paths_by_digest: Mapping[str, Path]) -> NodewiseError:
    """An error with the names of files in place of the hashes by which a server knows them."""

    def name_files(text: str) -> str:
        for digest, path in paths_by_digest.items():
            text = text.replace(f"trace {digest[:_SHOWN_DIGITS]}", str(path))
        return text

    return type(error)(
        name_files(error.message),
        code=error.code,
        reason=error.reason,
        metadata=error.metadata,
        violations=[replace(one, description=name_files(one.description)) for one in error.violations],
        retry_delay_s=error.retry_delay_s,
    )


def checked_whole(result: ReplayAnswer | DiagnosisAnswer, question: TraceQuestion) -> None:
    """Refuse an answer from traces that end early, unless it was asked for.

    Raises
    ------
    InputError
        Naming the traces.
    """
    truncations = truncated_traces(result)
    if truncations and not question.allow_truncated:
        raise InputError(
            f"{'; '.join(truncations)}. Record the steps again, or use what the traces hold by --allow-truncated"
        )


def fail_if_truncated(truncations: Sequence[str]) -> None:
    """End a command that took traces which end early.

    Raises
    ------
    CommandError
        Naming the traces.
    """
    if truncations:
        raise CommandError(f"traces end early, so the answer is incomplete: {'; '.join(truncations)}")


def _forget(client: Client, name: str) -> None:
    with suppress(NodewiseError):  # it was never made, or what went wrong before is the news
        client.delete_profile(name, etag="*")
