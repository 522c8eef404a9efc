"""From a reference to a trace: the reader that knows its format, its columns as kept, or read now and kept."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
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
Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class LoadedTrace:
    """A trace, the file that it came from, and who read it."""

    trace: Trace
    content_sha256: str
    reader: str
    reader_version: str


@dataclass(frozen=True, slots=True)
class _Asked:
    """A file to read, what is said of it, and where it stands in the profile."""

    reference: TraceReference
    mapping: Pairs
    path: str = field(compare=False)

    @property
    def source(self) -> TraceSource:
        """As readers take it."""
        reference = self.reference
        return TraceSource(rank=reference.rank, world_size=reference.world_size, mapping=dict(self.mapping))


_Flight = Future[tuple[LoadedTrace, ...]]


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
        self._flights: dict[_Asked, _Flight] = {}

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
        mapping: Pairs = (),
    ) -> tuple[LoadedTrace, ...]:
        """Read files, or find them read. Slow the first time: for a thread.

        Parameters
        ----------
        advanced : callable or None
            Told how many bytes of how many are read.
        remaining_s : callable or None
            Seconds left; none left = stop.
        mapping : pairs of str
            For readers of formats that do not say what is what.

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
            found += self._joined(_Asked(reference, mapping, f"profile.traces[{place}]"), check)
            done += reference.size_bytes
        if advanced is not None:
            advanced(total, total)
        return tuple(found)

    def _joined(self, asked: _Asked, check: Callable[[int], None]) -> tuple[LoadedTrace, ...]:
        """What the reading under way comes to; reads where there is none, or where that one's asker has gone."""
        while True:
            with self._lock:
                flight = self._flights.get(asked)
                mine = flight is None
                if flight is None:
                    flight = self._flights[asked] = Future()
            if mine:
                return self._flown(asked, check, flight)
            try:
                return flight.result()
            except NodewiseError as error:
                if error.reason is not Reason.DEADLINE_EXCEEDED:
                    raise
                check(0)

    def _flown(self, asked: _Asked, check: Callable[[int], None], flight: _Flight) -> tuple[LoadedTrace, ...]:
        try:
            found = self._found(asked, check)
        except BaseException as error:
            with self._lock:
                del self._flights[asked]
            flight.set_exception(error)
            raise
        with self._lock:
            del self._flights[asked]
        flight.set_result(found)
        return found

    def _found(self, asked: _Asked, check: Callable[[int], None]) -> tuple[LoadedTrace, ...]:
        record = self._named(asked) or self._recognised(asked)
        traces = self._store.artefacts.get(_key(asked, record))
        if traces is None:
            traces = self._store.artefacts.put(_key(asked, record), self._read(asked, record, check))
        return tuple(
            LoadedTrace(
                trace=trace,
                content_sha256=asked.reference.content_sha256,
                reader=record.name,
                reader_version=record.version,
            )
            for trace in traces
        )

    def _named(self, asked: _Asked) -> TraceReaderRecord | None:
        """The reader that a reference names; None = it is to be recognised."""
        name = asked.reference.format
        if name in {"", AUTO_FORMAT}:
            return None
        record = self._readers.get(name)
        if record is None:
            right = f"must be {AUTO_FORMAT} or a reader's name ({self._listed()}), found {name!r}"
            raise NodewiseError.invalid([Violation(f"{asked.path}.format", right)])
        return record

    def _listed(self) -> str:
        return ", ".join(self._readers) or "none is loaded"

    def _recognised(self, asked: _Asked) -> TraceReaderRecord:
        """The reader that is surest of the file; of equally sure ones the first by name, which the log tells."""
        with self._opened(asked, lambda _: None) as stream:
            head = io.BufferedReader(stream, HEAD_BYTES).read(HEAD_BYTES)
        if not head.strip():
            raise _unreadable(asked, "it is empty")
        sure = {name: self._confidence(record, asked, head) for name, record in self._readers.items()}
        most = max(sure.values(), default=0.0)
        if not most:
            raise _unreadable(asked, f"no reader recognises it; loaded are: {self._listed()}")
        first, *others = sorted(name for name, confidence in sure.items() if confidence == most)
        if others:
            _log.warning("readers_tie", chosen=first, others=others, confidence=most)
        return self._readers[first]

    def _confidence(self, record: TraceReaderRecord, asked: _Asked, head: bytes) -> float:
        """How surely a reader recognises a file that begins so, 0 to 1."""
        said = self._called(record, asked, "recognises", partial(record.reader.recognises, head, asked.source))
        if not isinstance(said, (int, float)) or not 0 <= said <= 1:
            raise _invalid_result(record, asked, "recognises must answer with a confidence from 0 to 1")
        return float(said)

    def _opened(self, asked: _Asked, check: Callable[[int], None]) -> TraceStream:
        return TraceStream(self._store.open(asked.reference.content_sha256), self._max_unpacked_bytes, check)

    def _read(self, asked: _Asked, record: TraceReaderRecord, check: Callable[[int], None]) -> list[Trace]:
        """The traces of a file, by rank."""
        with self._opened(asked, check) as raw, io.BufferedReader(raw, BUFFER_BYTES) as stream:
            try:
                traces = self._called(record, asked, "read", lambda: record.reader.read(stream, asked.source))
            except NodewiseError as error:
                ended = raw.failure or error
                if ended.reason in {Reason.DEADLINE_EXCEEDED, Reason.READER_FAILED}:
                    raise ended from None
                raise _unreadable(asked, _said(ended), ended.reason) from None
            if raw.failure is not None:
                raise raw.failure
            problem = raw.problem
        wrong = wrong_with(traces)
        if wrong is not None:
            raise _invalid_result(record, asked, wrong)
        by_rank = sorted(traces, key=lambda trace: trace.rank)
        return [_warned(trace, problem) for trace in by_rank] if problem else by_rank

    def _called(self, record: TraceReaderRecord, asked: _Asked, method: str, call: Callable[[], Any]) -> Any:
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
                f"reader {record.name!r} {record.version} failed in {method} on {_which(asked)}",
                {"reader": record.name, "version": record.version, "method": method},
            ) from None


def _key(asked: _Asked, record: TraceReaderRecord) -> ArtefactKey:
    return ArtefactKey(
        content_sha256=asked.reference.content_sha256,
        reader=record.name,
        reader_version=record.version,
        rank=asked.reference.rank,
        world_size=asked.reference.world_size,
        mapping=asked.mapping,
    )


def _warned(trace: Trace, problem: str) -> Trace:
    report = TraceReport(counts=trace.report.counts, warnings=(*trace.report.warnings, problem))
    return replace(trace, report=report)


def _invalid_result(record: TraceReaderRecord, asked: _Asked, wrong: str) -> NodewiseError:
    return NodewiseError(
        Reason.READER_INVALID_RESULT,
        f"reader {record.name!r} {record.version} made of {_which(asked)} what cannot be: {wrong}",
        {"reader": record.name, "version": record.version, "problem": wrong},
    )


def _which(asked: _Asked) -> str:
    """A trace as its sender knows it."""
    rank = "" if asked.reference.rank < 0 else f" of rank {asked.reference.rank}"
    return f"trace {asked.reference.content_sha256[:12]}{rank}"


def _said(error: NodewiseError) -> str:
    """What a reader says of a file, fit to be passed on."""
    message: Any = error.message
    text = message if isinstance(message, str) else "it cannot be read"
    return text.encode(errors="replace").decode()[:_MOST_TEXT]


def _unreadable(asked: _Asked, why: str, reason: Reason = Reason.INVALID_FIELD) -> NodewiseError:
    """That a trace cannot be read: which and why."""
    # A file is wrong or too large; a reader's other reasons would claim something of the service.
    told = reason if reason is Reason.LIMIT_EXCEEDED else Reason.INVALID_FIELD
    error = NodewiseError.invalid([Violation(asked.path, f"{_which(asked)}: {why}")], told)
    return replace(error, metadata={**error.metadata, "content_sha256": asked.reference.content_sha256})


def _late() -> NodewiseError:
    return NodewiseError(Reason.DEADLINE_EXCEEDED, "the call's time was over before the traces were read")
