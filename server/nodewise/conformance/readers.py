"""Checks of trace readers: one record against files, whole and damaged."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO, Final, cast

import numpy as np

from nodewise.conformance.evidence import Evidence, File
from nodewise.conformance.findings import (
    Checks,
    NonConformanceError,
    difference,
    has_path,
    require,
    sound,
    sound_answer,
)
from nodewise.domain.errors import NodewiseError
from nodewise.domain.trace import Trace, TraceSource
from nodewise.hosting.calls import unless_wrong
from nodewise.hosting.registry import LoadedPlugin
from nodewise.plugin import TraceReaderRecord
from nodewise.profiles.trace_checks import wrong_with

__all__ = ["READER_CHECKS"]

HEAD_BYTES: Final = 4096
CHUNKS: Final = (1, 7, 4096)
"""Most bytes per read."""
READS_AFTER_END: Final = 1000
"""Empty reads after which a reader counts as waiting forever."""
DAMAGES: Final = 24
"""Damaged copies of each file: cut, overwritten, repeated."""
_FOREIGN: Final = (b"", b"\0" * 64, b"{", b'{"traceEvents": []}', b"PK\x03\x04", bytes(range(256)) * 4)


class _Chunks(io.RawIOBase):
    """A file whose reads return few bytes each, and that detects a reader that reads on after its end."""

    def __init__(self, content: bytes, most: int) -> None:
        self._content, self._most, self._at, self._ended = content, most, 0, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = self._content[self._at : self._at + min(len(buffer), self._most)]
        buffer[: len(part)] = part
        self._at += len(part)
        self._ended += not part
        require(self._ended < READS_AFTER_END, "the reader reads on after the end of the file (an empty read)")
        return len(part)


def _read_with(
    plugin: LoadedPlugin[TraceReaderRecord], content: bytes, source: TraceSource, most: int
) -> Sequence[Trace]:
    stream = cast("BinaryIO", io.BufferedReader(_Chunks(content, most), max(most, 1)))
    return sound_answer("read", lambda: plugin.record.reader.read(stream, source), unless_wrong(wrong_with))


def _whole(plugin: LoadedPlugin[TraceReaderRecord], file: File, most: int = HEAD_BYTES) -> Sequence[Trace]:
    """The traces of an undamaged file."""
    try:
        return _read_with(plugin, file.content, file.source, most)
    except NodewiseError as error:
        raise NonConformanceError(f"read refuses {file.name!r}, which it recognises: {error.message}") from error


def _own(plugin: LoadedPlugin[TraceReaderRecord], evidence: Evidence) -> Iterator[File]:
    """Files of the reader's format."""
    for file in evidence.files:
        if file.format in ("", plugin.record.name):
            sure = _confidence(plugin, file.content[:HEAD_BYTES], file.source)
            require(sure or not file.format, f"the reader does not recognise {file.name!r}, a file of its format")
            if sure:
                yield file


def _confidence(plugin: LoadedPlugin[TraceReaderRecord], head: bytes, source: TraceSource) -> float:
    confidence = sound("recognises", lambda: plugin.record.reader.recognises(head, source))
    require(_is_confidence(confidence), f"recognises returned {confidence!r}; it must return a confidence from 0 to 1")
    return float(confidence)


def _is_confidence(value: Any) -> bool:
    return isinstance(value, float | int) and 0 <= value <= 1


def _recognises(plugin: LoadedPlugin[TraceReaderRecord], evidence: Evidence) -> None:
    for content in _FOREIGN:
        _confidence(plugin, content, TraceSource())
    require(any(True for _ in _own(plugin, evidence)), "the reader recognises no file; pass others as evidence")


def _each(
    check: Callable[[LoadedPlugin[TraceReaderRecord], File], None],
) -> Callable[[LoadedPlugin[Any], Evidence], None]:
    def run(plugin: LoadedPlugin[TraceReaderRecord], evidence: Evidence) -> None:
        for file in _own(plugin, evidence):
            check(plugin, file)

    return run


def _reads(plugin: LoadedPlugin[TraceReaderRecord], file: File) -> None:
    traces = _whole(plugin, file)
    require(any(len(trace) for trace in traces), f"read finds no event in {file.name!r}")
    other = [trace.format for trace in traces if trace.format != plugin.record.name]
    require(not other, f"read states the format {other[:1]}; it must be the reader's own name, {plugin.record.name!r}")


def _streams(plugin: LoadedPlugin[TraceReaderRecord], file: File) -> None:
    whole = _whole(plugin, file)
    for most in CHUNKS:
        where = difference(whole, _whole(plugin, file, most), "traces")
        require(where is None, f"{file.name!r} read in pieces of {most} bytes gives another trace: {where} differs")


def _damage(plugin: LoadedPlugin[TraceReaderRecord], file: File) -> None:
    for content in (*_FOREIGN, *_damaged_copies(file.content)):
        try:
            _read_with(plugin, content, file.source, 4096)
        except NodewiseError as error:
            text = f"{error.message} {error.metadata}"
            leaks = [secret for secret in file.secrets if secret in text]
            require(not leaks and not has_path(text), f"an error about {file.name!r} reveals private text: {text!r}")


def _damaged_copies(content: bytes) -> Iterator[bytes]:
    chance = np.random.default_rng(0)
    for _ in range(DAMAGES // 3):
        at, length = int(chance.integers(len(content))), int(chance.integers(1, 64))
        yield content[:at]
        yield content[:at] + chance.bytes(length) + content[at + length :]
        yield content[:at] + content[max(at - length, 0) :]


def _secrets(plugin: LoadedPlugin[TraceReaderRecord], file: File) -> None:
    for trace in _whole(plugin, file):
        words = (*trace.names, *trace.devices, *trace.report.warnings, *(lane.name for lane in trace.lanes))
        for word in words:
            if has_path(word) or any(secret in word for secret in file.secrets):
                raise NonConformanceError(f"the trace of {file.name!r} holds {word!r}; strip paths, hosts and users")


READER_CHECKS: Final[Checks] = {
    "recognises": _recognises,
    "reads": _each(_reads),
    "pieces of any size": _each(_streams),
    "damage": _each(_damage),
    "paths, hosts and users": _each(_secrets),
}
