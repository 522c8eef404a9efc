"""From a reference to a trace: the reader that knows its format, its columns as kept, or read now and kept."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import structlog

from nodewise.domain.errors import NodewiseError, Reason, Violation
from nodewise.domain.profile import Profile, TraceReference
from nodewise.domain.trace import Trace, TraceReport, TraceSource
from nodewise.plugin import TraceReaderRecord
from nodewise.profiles.artefacts import ArtefactKey
from nodewise.profiles.trace_checks import wrong_with
from nodewise.profiles.traces import TraceStore
from nodewise.profiles.unpacking import TraceStream

__all__ = ["AUTO_FORMAT", "DEFAULT_UNPACKED_BYTES", "LoadedTrace", "TraceLoader"]

_log = structlog.get_logger(__name__)

AUTO_FORMAT: Final = "auto"
"""Format of a trace whose reader is to be found by its content; no reader is called so."""
DEFAULT_UNPACKED_BYTES: Final = 8 << 30
HEAD_BYTES: Final = 64 << 10
"""What a reader sees of a file to recognise it."""
BUFFER_BYTES: Final = 1 << 20
_MOST_TEXT: Final = 1000
"""Characters of what a reader says that are passed on."""

Advanced = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class LoadedTrace:
    """A trace, the file that it came from, and who read it."""

    trace: Trace
    content_sha256: str
    reader: str
    reader_version: str


class TraceLoader:
    """Reads the traces that profiles refer to, each file once however many ask for it at the same time.

    Parameters
    ----------
    store : TraceStore
        Holds the files, and what was read of them.
    readers : mapping of name to TraceReaderRecord
        Who can read them.
    max_unpacked_bytes : int
        Largest file, unpacked.
    """

    def __init__(
        self,
        store: TraceStore,
        readers: Mapping[str, TraceReaderRecord],
        max_unpacked_bytes: int = DEFAULT_UNPACKED_BYTES,
    ) -> None:
        self._store = store
        self._readers = readers
        self._max_unpacked_bytes = max_unpacked_bytes
        self._lock = threading.Lock()
        self._flights: dict[TraceReference, Future[tuple[LoadedTrace, ...]]] = {}

    def traces_of(self, profile: Profile) -> tuple[Trace, ...]:
        """The traces of a profile in its order, those of one file by rank.

        Raises
        ------
        NodewiseError
            As :meth:`load`.
        """
        return tuple(found.trace for found in self.load(profile.traces))

    def load(
        self,
        references: Sequence[TraceReference],
        advanced: Advanced | None = None,
        remaining_s: Callable[[], float] | None = None,
    ) -> tuple[LoadedTrace, ...]:
        """Read files, or find them read. Slow the first time: for a thread.

        Parameters
        ----------
        advanced : callable or None
            Told how many bytes of how many are read.
        remaining_s : callable or None
            Seconds left; none left = stop.

        Raises
        ------
        NodewiseError
            INVALID_FIELD or LIMIT_EXCEEDED, naming a trace that cannot be read; READER_FAILED, READER_INVALID_RESULT;
            DEADLINE_EXCEEDED.
        """
        total, done = sum(reference.size_bytes for reference in references), 0
        found: list[LoadedTrace] = []
        for place, reference in enumerate(references):

            def check(taken: int, before: int = done) -> None:
                if remaining_s is not None and remaining_s() <= 0:
                    raise _late()
                if advanced is not None:
                    advanced(min(before + taken, total), total)

            check(0)
            found += self._joined(reference, f"profile.traces[{place}]", check)
            done += reference.size_bytes
        if advanced is not None:
            advanced(total, total)
        return tuple(found)

    def _joined(self, reference: TraceReference, path: str, check: Callable[[int], None]) -> tuple[LoadedTrace, ...]:
        """What the reading under way comes to; reads where there is none, or where that one's asker has gone."""
        while True:
            with self._lock:
                flight = self._flights.get(reference)
                mine = flight is None
                if flight is None:
                    flight = self._flights[reference] = Future()
            if mine:
                return self._flown(reference, path, check, flight)
            try:
                return flight.result()
            except NodewiseError as error:
                if error.reason is not Reason.DEADLINE_EXCEEDED:
                    raise
                check(0)

    def _flown(
        self,
        reference: TraceReference,
        path: str,
        check: Callable[[int], None],
        flight: Future[tuple[LoadedTrace, ...]],
    ) -> tuple[LoadedTrace, ...]:
        try:
            found = self._found(reference, path, check)
        except BaseException as error:
            with self._lock:
                del self._flights[reference]
            flight.set_exception(error)
            raise
        with self._lock:
            del self._flights[reference]
        flight.set_result(found)
        return found

    def _found(self, reference: TraceReference, path: str, check: Callable[[int], None]) -> tuple[LoadedTrace, ...]:
        source = TraceSource(rank=reference.rank, world_size=reference.world_size)
        record = self._named(reference, path)
        if record is not None:
            kept = self._kept(reference, record)
            if kept is not None:
                return kept
            return self._read(reference, path, record, source, check)
        # Any reader that would recognise the file may have read it before: only its head is looked at then.
        record = self._recognised(reference, path, source)
        kept = self._kept(reference, record)
        return self._read(reference, path, record, source, check) if kept is None else kept

    def _named(self, reference: TraceReference, path: str) -> TraceReaderRecord | None:
        """The reader that a reference names; None = it is to be recognised."""
        if reference.format in {"", AUTO_FORMAT}:
            return None
        record = self._readers.get(reference.format)
        if record is None:
            raise NodewiseError.invalid(
                [
                    Violation(
                        f"{path}.format",
                        f"must be {AUTO_FORMAT} or a reader's name ({self._listed()}), found {reference.format!r}",
                    )
                ]
            )
        return record

    def _listed(self) -> str:
        return ", ".join(self._readers) or "none is loaded"

    def _kept(self, reference: TraceReference, record: TraceReaderRecord) -> tuple[LoadedTrace, ...] | None:
        traces = self._store.artefacts.get(_key(reference, record))
        return None if traces is None else _loaded(traces, reference, record)

    def _recognised(self, reference: TraceReference, path: str, source: TraceSource) -> TraceReaderRecord:
        with self._opened(reference, lambda _: None) as stream:
            head = io.BufferedReader(stream, HEAD_BYTES).read(HEAD_BYTES)
        if not head.strip():
            raise _unreadable(reference, path, "it is empty")
        for record in self._readers.values():
            if self._called(record, reference, "recognises", partial(record.reader.recognises, head, source)):
                return record
        raise _unreadable(reference, path, f"no reader recognises it; loaded are: {self._listed()}")

    def _opened(self, reference: TraceReference, check: Callable[[int], None]) -> TraceStream:
        return TraceStream(self._store.open(reference.content_sha256), self._max_unpacked_bytes, check)

    def _read(
        self,
        reference: TraceReference,
        path: str,
        record: TraceReaderRecord,
        source: TraceSource,
        check: Callable[[int], None],
    ) -> tuple[LoadedTrace, ...]:
        with self._opened(reference, check) as raw, io.BufferedReader(raw, BUFFER_BYTES) as stream:
            try:
                traces = self._called(record, reference, "read", lambda: record.reader.read(stream, source))
            except NodewiseError as error:
                ended = raw.failure or error
                if ended.reason in {Reason.DEADLINE_EXCEEDED, Reason.READER_FAILED}:
                    raise ended from None
                raise _unreadable(reference, path, _said(ended), ended.reason) from None
            if raw.failure is not None:
                raise raw.failure
            problem = raw.problem
        wrong = wrong_with(traces)
        if wrong is not None:
            raise NodewiseError(
                Reason.READER_INVALID_RESULT,
                f"reader {record.name!r} {record.version} made of {_which(reference)} what cannot be: {wrong}",
                {"reader": record.name, "version": record.version, "problem": wrong},
            )
        by_rank = sorted(traces, key=lambda trace: trace.rank)
        if problem:
            by_rank = [_warned(trace, problem) for trace in by_rank]
        kept = self._store.artefacts.put(_key(reference, record), by_rank)
        return _loaded(kept, reference, record)

    def _called(
        self, record: TraceReaderRecord, reference: TraceReference, method: str, call: Callable[[], Any]
    ) -> Any:
        try:
            return call()
        except NodewiseError:
            raise
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  # a plugin's SystemExit must not end the server
            _log.error("reader_failed", reader=record.name, version=record.version, method=method, exc_info=error)
            raise NodewiseError(
                Reason.READER_FAILED,
                f"reader {record.name!r} {record.version} failed in {method} on {_which(reference)}",
                {"reader": record.name, "version": record.version, "method": method},
            ) from None


def _key(reference: TraceReference, record: TraceReaderRecord) -> ArtefactKey:
    return ArtefactKey(
        content_sha256=reference.content_sha256,
        reader=record.name,
        reader_version=record.version,
        rank=reference.rank,
        world_size=reference.world_size,
    )


def _loaded(traces: Iterable[Trace], reference: TraceReference, record: TraceReaderRecord) -> tuple[LoadedTrace, ...]:
    return tuple(
        LoadedTrace(
            trace=trace,
            content_sha256=reference.content_sha256,
            reader=record.name,
            reader_version=record.version,
        )
        for trace in traces
    )


def _warned(trace: Trace, problem: str) -> Trace:
    report = TraceReport(counts=trace.report.counts, warnings=(*trace.report.warnings, problem))
    return replace(trace, report=report)


def _which(reference: TraceReference) -> str:
    """A trace as its sender knows it."""
    rank = "" if reference.rank < 0 else f" of rank {reference.rank}"
    return f"trace {reference.content_sha256[:12]}{rank}"


def _said(error: NodewiseError) -> str:
    """What a reader says of a file, fit to be passed on."""
    message: Any = error.message
    text = message if isinstance(message, str) else "it cannot be read"
    return text.encode(errors="replace").decode()[:_MOST_TEXT]


def _unreadable(reference: TraceReference, path: str, why: str, reason: Reason = Reason.INVALID_FIELD) -> NodewiseError:
    """That a trace cannot be read: which and why."""
    error = NodewiseError.invalid([Violation(path, f"{_which(reference)}: {why}")], _of_input(reason))
    return replace(error, metadata={**error.metadata, "content_sha256": reference.content_sha256})


def _of_input(reason: Reason) -> Reason:
    """A file is wrong or too large; a reader's other reasons would claim something of the service."""
    return reason if reason is Reason.LIMIT_EXCEEDED else Reason.INVALID_FIELD


def _late() -> NodewiseError:
    return NodewiseError(Reason.DEADLINE_EXCEEDED, "the call's time was over before the traces were read")
