"""Trace files in arguments: the files, their ranks, and their transfer to a server."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import tempfile
import uuid
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, cast

from nodewise_cli.console import complain
from nodewise_cli.failures import InputError, unreadable
from nodewise_cli.inputs.foreign_files import refuse_foreign
from nodewise_cli.inputs.profile_names import fit_name
from nodewise_cli.waiting import Waiting
from nodewise_client import Client, GetProfileRequest, NotFoundError, ProfileView, prepared_trace

__all__ = ["TraceFile", "profile_name", "send_traces", "trace_files", "truncation_of"]

SUFFIXES: Final = (
    *(".json", ".json.gz", ".et", ".et.gz", ".sqlite", ".xplane.pb", ".xplane.pb.gz"),
    *(".pftrace", ".pftrace.gz", ".perfetto-trace"),
)
"""Files of a directory that are traces; any file may be named by itself."""
_DUMP: Final = re.compile(r"_trace_rank_\d+$")
"""Ends of the names that PyTorch's flight recorder gives its dumps."""
_DUPLICATE: Final = re.compile(r"(?<!\.pt)\.trace\.json\.gz$|^perfetto_trace\.json\.gz$")
"""What JAX's profiler writes beside its xplane: the same events."""
_EXPORTS: Final = {
    ".nsys-rep": "nsys export --type sqlite",
    ".qdrep": "nsys export --type sqlite",
}
"""Formats that only their own tool reads, and its command that writes another one."""
FORMAT: Final = "auto"
HEAD_BYTES: Final = 64 << 10
READ_BYTES: Final = 1 << 20
_MARKS: Final = (
    *(b'"traceEvents"', b'"ph"', b'"schemaVersion"', b'"schema"', b'"workload_graph"'),
    *(b'"pg_config"', b'"profiling_name"', b'"rocprofiler-sdk-tool"'),
)
"""What a trace in JSON holds near its beginning: Chrome traces, execution graphs, flight recorders, rocprofv3."""
_RANK_STATED: Final = re.compile(rb'"distributedInfo"\s*:\s*\{[^{}\[\]]*"rank"')
_STATED_BYTES: Final = 512
"""A statement of a rank is found although it lies across two pieces."""
_RANK: Final = re.compile(r"(?:rank|worker|gpu|process)[-_. ]?(\d{1,6})", re.IGNORECASE)
_NUMBER: Final = re.compile(r"(\d+)")
MOST_RANKS: Final = 1 << 20
"""A larger number in a name is no rank but a time."""


@dataclass(frozen=True, slots=True)
class TraceFile:
    """A file and the rank in its name; None = the one in the trace."""

    path: Path
    rank: int | None = None


def trace_files(sources: Sequence[Path]) -> list[TraceFile]:
    """The files that arguments name; those of a directory are all its traces, in order of numbers in their names.

    A rank is taken from a file's name where there are several files, every name tells another rank, and the trace
    does not state its own.

    Raises
    ------
    InputError
        Naming what cannot be a trace.
    """
    paths: list[Path] = []
    for path in sources:
        paths += _within(path) if path.is_dir() else [_check_file(path)]
    if len({path.resolve() for path in paths}) < len(paths):
        raise InputError(f"{sources[-1]}: the file is given twice")
    ranks = _told_ranks([path.name for path in paths])
    if ranks is None:
        return [TraceFile(path) for path in paths]
    return [TraceFile(path, None if _states_rank(path) else rank) for path, rank in zip(paths, ranks)]


def _told_ranks(names: Sequence[str]) -> list[int] | None:
    """Distinct ranks from several names: by a word such as rank3, else by the only number that differs."""
    words = [_RANK.findall(name) for name in names]
    parts = [_NUMBER.split(name) for name in names]
    if len(names) > 1 and all(words):
        ranks = [int(numbers[-1]) for numbers in words]
    elif len({tuple(each[::2]) for each in parts}) == 1:
        differing = [numbers for numbers in zip(*(each[1::2] for each in parts)) if len(set(numbers)) > 1]
        ranks = [int(number) for number in differing[0]] if len(differing) == 1 else []
        ranks = ranks if max(ranks, default=0) < MOST_RANKS else []
    else:
        return None
    return ranks if len(set(ranks)) == len(names) else None


def profile_name(sources: Sequence[Path]) -> str:
    """A name for the profile of some arguments: that of the only file or directory, or of the directory they are in."""
    first = sources[0].resolve()
    name = first.name if len(sources) == 1 else first.parent.name
    for suffix in (*SUFFIXES, ".pt.trace"):
        name = name.removesuffix(suffix)
    return fit_name(name, "traces")


def send_traces(
    client: Client,
    profile_id: str,
    files: Sequence[TraceFile],
    *,
    keep_names: bool,
    allow_truncated: bool,
    progress: Waiting,
) -> dict[str, Path]:
    """Store traces in a profile, all or none; stored ones are left out. Returns files by SHA-256.

    Parameters
    ----------
    keep_names : bool
        Whether paths, host and user names stay in what is sent.
    allow_truncated : bool
        Whether a packed file that ends early is sent as far as it goes.
    """
    stored_digests, sent_files = _stored_traces(client, profile_id), dict[str, Path]()
    with client.ingest(profile_id, session_id=f"traces-{uuid.uuid4().hex}") as writer:
        any_sent = False
        for number, file in enumerate(files):
            progress.tell(number, len(files))
            with _prepare(file.path, keep_names=keep_names, allow_truncated=allow_truncated) as (content, digest):
                sent_files[digest] = file.path
                if (digest, file.rank) in stored_digests:
                    continue
                stored_digests.add((digest, file.rank))
                any_sent = True
                writer.trace(content, trace_id=f"trace-{number}", trace_format=FORMAT, rank=file.rank)
        if any_sent:
            writer.commit()
    return sent_files


def _stored_traces(client: Client, profile_id: str) -> set[tuple[str, int | None]]:
    """Hashes and stated ranks of the traces that a profile holds."""
    try:
        content = client.get_profile(GetProfileRequest(profile_id=profile_id, view=ProfileView.FACTS)).content
    except NotFoundError:
        return set()
    return set() if content is None else {(trace.content_sha256, trace.rank) for trace in content.traces}


@contextmanager
def _prepare(path: Path, *, keep_names: bool, allow_truncated: bool) -> Iterator[tuple[BinaryIO, str]]:
    """What is sent of a file, and its SHA-256."""
    raw = keep_names or not _is_text(path)
    try:
        with (
            nullcontext(path) if raw or not allow_truncated else _rescue(path) as whole,
            whole.open("rb") if raw else prepared_trace(whole) as content,
        ):
            digest = hashlib.file_digest(content, "sha256").hexdigest()  # type: ignore[arg-type]  # it has readinto
            content.seek(0)
            yield content, digest
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise InputError(f"{path}: the compressed file is damaged or ends early") from None
    except OSError as error:
        raise unreadable(path, error) from None


@contextmanager
def _rescue(path: Path) -> Iterator[Path]:
    """A file, or the readable part of a compressed file that ends early."""
    with tempfile.NamedTemporaryFile(suffix=".json") as target:
        try:
            with _unpack(path) as file:
                while piece := file.read1(READ_BYTES):  # type: ignore[attr-defined]  # all of it that is there
                    target.write(piece)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            target.flush()
            yield Path(target.name)
            return
    yield path


def truncation_of(path: Path) -> str:
    """Why a trace ends early; empty = it does not, or only its reader can detect it."""
    first = last = b""
    depth = [0, 0]
    try:
        with _unpack(path) as file:
            while piece := file.read(READ_BYTES):
                first = first or piece.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
                last = piece.rstrip()[-1:] or last
                depth = [
                    depth[0] + piece.count(b"{") - piece.count(b"}"),
                    depth[1] + piece.count(b"[") - piece.count(b"]"),
                ]
    except (EOFError, zlib.error, gzip.BadGzipFile):
        return f"{path}: the compressed file is damaged or ends early"
    except OSError as error:
        raise unreadable(path, error) from None
    if (
        not _is_text(path)
        or first not in (b"{", b"[")
        or (last in (b"}", b"]") and (max(depth) <= 0 or _is_json(path)))
    ):
        return ""  # a format of its own, or whole: texts may hold brackets
    return f"{path}: ends before the end of its list of events"


def _is_json(path: Path) -> bool:
    with _unpack(path) as file:
        try:
            json.load(file, strict=False)
        except (ValueError, RecursionError):
            return False
    return True


def _check_file(path: Path) -> Path:
    """A path that is a file of some bytes."""
    try:
        size = path.stat().st_size
    except OSError as error:
        raise unreadable(path, error) from None
    if not path.is_file():
        raise InputError(f"{path}: must be a file or a directory of traces")
    if not size:
        raise InputError(f"{path}: is empty")
    export = _EXPORTS.get(path.suffix.lower())
    if export is not None:
        raise InputError(f"{path}: is a report that only Nsight Systems can read; export it by: {export} {path.name}")
    _refuse_text_of_others(path)
    if not _may_be_trace(path):
        raise InputError(
            f"{path}: must be a trace, but contains no events; a table of measurements to ingest must end in .csv"
        )
    return path


def _refuse_text_of_others(path: Path) -> None:
    """Refuse a configuration of another project or a model: it is text without events. Raises InputError."""
    try:
        with _unpack(path) as file:
            head = file.read(HEAD_BYTES)
    except (OSError, EOFError, zlib.error):
        return  # the server says what is wrong with it
    if b"\0" not in head and not any(mark in head for mark in _MARKS):
        refuse_foreign(path, head.decode("utf-8", "ignore"))


def _within(directory: Path) -> list[Path]:
    """Traces of a directory, or of those below it if it has none itself."""
    candidates: list[Path] = []
    for paths in (directory.iterdir(), directory.rglob("*")):
        candidates = [path for path in paths if _is_named_as_trace(path.name) and path.is_file()]
        if candidates:
            break
    planes = {path.parent for path in candidates if ".xplane.pb" in path.name}
    duplicates = {path for path in candidates if path.parent in planes and _DUPLICATE.search(path.name)}
    for path in sorted(duplicates):
        complain(f"{path}: left out: the xplane file beside it has the same data")
    candidates = [path for path in candidates if path not in duplicates]
    traces = [path for path in candidates if _may_be_trace(path)]
    for path in sorted(set(candidates) - set(traces)):
        complain(f"{path}: left out: it is not a trace")
    if not traces:
        raise InputError(f"{directory}: must contain traces ({', '.join(SUFFIXES)})")
    return sorted(traces, key=_by_numbers)


def _is_named_as_trace(name: str) -> bool:
    return name.lower().endswith(SUFFIXES) or _DUMP.search(name) is not None


def _by_numbers(path: Path) -> list[tuple[int, str]]:
    """rank2 before rank10."""
    parts = _NUMBER.split(str(path))
    return [(int(part), "") if place % 2 else (-1, part) for place, part in enumerate(parts)]


def _is_text(path: Path) -> bool:
    return path.name.lower().removesuffix(".gz").endswith(".json")


def _may_be_trace(path: Path) -> bool:
    """Whether a file of a directory looks like a trace; other JSON may lie beside."""
    if not _is_text(path):
        return True
    try:
        with _unpack(path) as file:
            head = file.read(HEAD_BYTES)
    except (OSError, EOFError, zlib.error):
        return True  # the server says what is wrong with it
    return any(mark in head for mark in _MARKS)


def _states_rank(path: Path) -> bool:
    """Whether a trace states its rank."""
    tail = b""
    with suppress(OSError, EOFError, zlib.error), _unpack(path) as file:
        while piece := file.read(READ_BYTES):
            if _RANK_STATED.search(tail + piece):
                return True
            tail = piece[-_STATED_BYTES:]
    return False


@contextmanager
def _unpack(path: Path) -> Iterator[BinaryIO]:
    with path.open("rb") as file:
        is_compressed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        with gzip.GzipFile(fileobj=file) if is_compressed else nullcontext(file) as content:
            yield cast("BinaryIO", content)
