"""Loading traces: choice of the reader of a file, and its columns from the artefacts or from the reader."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import structlog

from nodewise.domain.errors import NodewiseError, Reason, Violation
from nodewise.domain.profile import Profile, TraceReference
from nodewise.domain.trace import Trace, TraceReport, TraceSource
from nodewise.hosting.calls import ImpossibleAnswerError, PluginError, call, unless_wrong
from nodewise.hosting.registry import LoadedPlugin
from nodewise.plugin import TraceReaderRecord
from nodewise.profiles.artefacts import ArtefactKey
from nodewise.profiles.trace_checks import wrong_with
from nodewise.profiles.traces import TraceStore
from nodewise.profiles.unpacking import TraceStream

__all__ = ["AUTO_FORMAT", "DEFAULT_UNPACKED_BYTES", "LoadedTrace", "TraceLoader"]

_log = structlog.get_logger(__name__)

AUTO_FORMAT: Final = "auto"
"""Format of a trace whose reader is chosen by its content; no reader has this name."""
DEFAULT_UNPACKED_BYTES: Final = 8 << 30
HEAD_BYTES: Final = 64 << 10
"""Bytes of a file that a reader gets to recognise it."""
BUFFER_BYTES: Final = 1 << 20
_MOST_TEXT: Final = 1000
"""Characters of a reader's message that are passed on."""

Advanced = Callable[[int, int], None]
Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class LoadedTrace:
    """A trace, the file that it came from, and its reader."""

    trace: Trace
    content_sha256: str
    reader: str
    reader_version: str


@dataclass(frozen=True, slots=True)
class _TraceFile:
    """A file to read, its reference, and its index in the profile."""

    reference: TraceReference
    mapping: Pairs
    path: str = field(compare=False)

    @property
    def source(self) -> TraceSource:
        """The file's facts, as readers get them."""
        reference = self.reference
        return TraceSource(rank=reference.rank, world_size=reference.world_size, mapping=dict(self.mapping))


_Flight = Future[tuple[LoadedTrace, ...]]


class TraceLoader:
    """Reads the traces that profiles refer to; concurrent requests for a file share one reading.

    Parameters
    ----------
    store : TraceStore
        Holds the files and their artefacts.
    readers : mapping of name to Loaded
        Readers of traces.
    max_unpacked_bytes : int
        Largest file, unpacked.
    """

    def __init__(
        self,
        store: TraceStore,
        readers: Mapping[str, LoadedPlugin[TraceReaderRecord]],
        max_unpacked_bytes: int = DEFAULT_UNPACKED_BYTES,
    ) -> None:
        self._store = store
        self._readers = readers
        self._max_unpacked_bytes = max_unpacked_bytes
        self._lock = threading.Lock()
        self._flights: dict[_TraceFile, _Flight] = {}

    def traces_of(self, profile: Profile) -> tuple[Trace, ...]:
        """The traces of a profile in its order, those of one file by rank.

        Raises
        ------
        NodewiseError
            As :meth:`load`.
        """
        return tuple(each.trace for each in self.load(profile.traces))

    def load(
        self,
        references: Sequence[TraceReference],
        advanced: Advanced | None = None,
        remaining_s: Callable[[], float] | None = None,
        mapping: Pairs = (),
    ) -> tuple[LoadedTrace, ...]:
        """Load files, from artefacts where there are any. The first time is slow: call it in a thread.

        Parameters
        ----------
        advanced : callable or None
            Called with the bytes read so far, and the bytes of all files.
        remaining_s : callable or None
            Seconds left; none left = stop.
        mapping : pairs of str
            For readers of formats that do not name categories, see :class:`TraceSource`.

        Raises
        ------
        NodewiseError
            INVALID_FIELD or LIMIT_EXCEEDED, naming a trace that cannot be read; READER_FAILED, READER_INVALID_RESULT;
            DEADLINE_EXCEEDED.
        """
        total, done_bytes = sum(reference.size_bytes for reference in references), 0
        traces: list[LoadedTrace] = []
        for place, reference in enumerate(references):

            def check(read_bytes: int, before: int = done_bytes) -> None:
                if remaining_s is not None and remaining_s() <= 0:
                    raise _late()
                if advanced is not None:
                    advanced(min(before + read_bytes, total), total)

            check(0)
            traces += self._join(_TraceFile(reference, mapping, f"profile.traces[{place}]"), check)
            done_bytes += reference.size_bytes
        if advanced is not None:
            advanced(total, total)
        return tuple(traces)

    def _join(self, file: _TraceFile, check: Callable[[int], None]) -> tuple[LoadedTrace, ...]:
        """The result of a running reading; starts one where there is none, or where its caller has gone."""
        while True:
            with self._lock:
                flight = self._flights.get(file)
                mine = flight is None
                if flight is None:
                    flight = self._flights[file] = Future()
            if mine:
                return self._run_flight(file, check, flight)
            try:
                return flight.result()
            except NodewiseError as error:
                if error.reason is not Reason.DEADLINE_EXCEEDED:
                    raise
                check(0)

    def _run_flight(self, file: _TraceFile, check: Callable[[int], None], flight: _Flight) -> tuple[LoadedTrace, ...]:
        try:
            traces = self._read_file(file, check)
        except BaseException as error:
            with self._lock:
                del self._flights[file]
            flight.set_exception(error)
            raise
        with self._lock:
            del self._flights[file]
        flight.set_result(traces)
        return traces

    def _read_file(self, file: _TraceFile, check: Callable[[int], None]) -> tuple[LoadedTrace, ...]:
        reader = self._reader_by_name(file) or self._recognise(file)
        record, reference = reader.record, file.reference
        key = ArtefactKey(
            content_sha256=reference.content_sha256,
            reader=record.name,
            reader_version=record.version,
            rank=reference.rank,
            world_size=reference.world_size,
            mapping=file.mapping,
        )
        traces = self._store.artefacts.get(key)
        if traces is None:
            traces = self._store.artefacts.put(key, self._read(file, reader, check))
        read = {"content_sha256": key.content_sha256, "reader": key.reader, "reader_version": key.reader_version}
        return tuple(LoadedTrace(trace=trace, **read) for trace in traces)

    def _reader_by_name(self, file: _TraceFile) -> LoadedPlugin[TraceReaderRecord] | None:
        """The reader that a reference names; None = it is chosen by content."""
        name = file.reference.format
        if name in {"", AUTO_FORMAT}:
            return None
        reader = self._readers.get(name)
        if reader is None:
            right = f"must be {AUTO_FORMAT} or a reader's name ({self._reader_names()}), found {name!r}"
            raise NodewiseError.invalid([Violation(f"{file.path}.format", right)])
        return reader

    def _reader_names(self) -> str:
        return ", ".join(self._readers) or "none is loaded"

    def _recognise(self, file: _TraceFile) -> LoadedPlugin[TraceReaderRecord]:
        """The reader with the highest confidence, of equals the first by name; readers that fail are skipped."""
        with self._open(file, lambda _: None) as stream:
            head = io.BufferedReader(stream, HEAD_BYTES).read(HEAD_BYTES)
        if not head.strip():
            raise _unreadable(file, "it is empty")
        failure: NodewiseError | None = None
        sure: dict[str, float] = {}
        for name, plugin in self._readers.items():
            reader, about = plugin.record.reader, _which(file)
            try:
                sure[name] = call(plugin, reader, "recognises", head, file.source, check=_confidence, about=about)
            except NodewiseError as error:
                failure = failure or error
        most = max(sure.values(), default=0.0)
        if most > 0:
            first, *others = sorted(name for name, confidence in sure.items() if confidence == most)
            if others:
                _log.warning("readers_tie", chosen=first, others=others, confidence=most)
            return self._readers[first]
        if isinstance(failure, PluginError):
            raise failure
        if failure is not None:
            raise _unreadable(file, _text_of(failure), failure.reason)
        raise _unreadable(file, f"no reader recognises it; loaded are: {self._reader_names()}")

    def _open(self, file: _TraceFile, check: Callable[[int], None]) -> TraceStream:
        return TraceStream(self._store.open(file.reference.content_sha256), self._max_unpacked_bytes, check)

    def _read(
        self, file: _TraceFile, plugin: LoadedPlugin[TraceReaderRecord], advance: Callable[[int], None]
    ) -> list[Trace]:
        """The traces of a file, by rank."""
        reader, about = plugin.record.reader, _which(file)
        check = unless_wrong(wrong_with)
        with self._open(file, advance) as raw, io.BufferedReader(raw, BUFFER_BYTES) as stream:
            try:
                traces: Sequence[Trace] = call(plugin, reader, "read", stream, file.source, check=check, about=about)
            except NodewiseError as error:
                cause = raw.failure or error
                if cause.reason is Reason.DEADLINE_EXCEEDED or isinstance(cause, PluginError):
                    raise cause from None
                raise _unreadable(file, _text_of(cause), cause.reason) from None
            if raw.failure is not None:
                raise raw.failure
            problem = raw.problem
        by_rank = sorted(traces, key=lambda trace: trace.rank)
        return [_with_warning(trace, problem) for trace in by_rank] if problem else by_rank


def _confidence(answer: Any) -> float:
    """A reader's confidence that it recognises a file, 0 to 1, checked."""
    if not isinstance(answer, int | float | np.number | np.bool_) or not 0 <= answer <= 1:
        raise ImpossibleAnswerError("a value that is not a confidence from 0 to 1")
    return float(answer)


def _with_warning(trace: Trace, problem: str) -> Trace:
    report = TraceReport(counts={**trace.report.counts, "truncated": 1}, warnings=(*trace.report.warnings, problem))
    return replace(trace, report=report)


def _which(file: _TraceFile) -> str:
    """The name of a trace for its sender."""
    rank = "" if file.reference.rank < 0 else f" of rank {file.reference.rank}"
    return f"trace {file.reference.content_sha256[:12]}{rank}"


def _text_of(error: NodewiseError) -> str:
    """The message of a reader's error, if it is fit for callers."""
    message: Any = error.message
    text = message if isinstance(message, str) else "it cannot be read"
    return text.encode(errors="replace").decode()[:_MOST_TEXT]


def _unreadable(file: _TraceFile, why: str, reason: Reason = Reason.INVALID_FIELD) -> NodewiseError:
    """The error for a trace that cannot be read."""
    # A file is invalid or too large; other reasons of a reader would be about the service.
    reason_for_caller = reason if reason is Reason.LIMIT_EXCEEDED else Reason.INVALID_FIELD
    error = NodewiseError.invalid([Violation(file.path, f"{_which(file)}: {why}")], reason_for_caller)
    return replace(error, metadata={**error.metadata, "content_sha256": file.reference.content_sha256})


def _late() -> NodewiseError:
    return NodewiseError(Reason.DEADLINE_EXCEEDED, "the deadline passed before the traces were read")
