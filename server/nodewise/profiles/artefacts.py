"""Artefacts of traces: their columns in files, so that a trace is parsed once and then mapped into memory.

A directory keeps one file for each trace as one reader read it: a head, then every column at a multiple of 64 bytes.
One file and not one ``.npy`` for each of thirty columns: it is opened and mapped once, and it appears as a whole, under
its name only when all of it is on the disk. Workers that map the same file share its pages.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import shutil
import struct
import tempfile
import time
import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

import numpy as np
import orjson
import structlog
from numpy.typing import NDArray

from nodewise.domain.trace import (
    Collectives,
    Frames,
    Lane,
    MemorySamples,
    ProcessGroup,
    SyncRecords,
    Trace,
    TraceReport,
    TraceSteps,
)
from nodewise.ports.cache import LruCache

__all__ = [
    "DEFAULT_ARTEFACT_BYTES",
    "ArtefactKey",
    "TraceArtefacts",
    "columns_of",
    "make_room",
]

_log = structlog.get_logger(__name__)

DEFAULT_ARTEFACT_BYTES: Final = 32 << 30
MAPPED_NAMES_BYTES: Final = 256 << 20
"""Most bytes of dictionaries of mapped traces, the only part in a process's own memory; at least LEAST_WEIGHT each."""
LEAST_WEIGHT: Final = 1 << 20

ABANDONED_S: Final = 86_400.0
"""Age at which an unfinished file may be deleted."""
_UNFINISHED: Final = "reading-"

FORMAT: Final = 3
"""Version of the files; part of every key, so that files of another release are ignored."""
_MAGIC: Final = b"nodewise trace\0\0"
_HEAD: Final = struct.Struct("<16sQQI4x")
"""Magic, bytes of the description, bytes of the file, CRC-32 of the description."""
_ALIGNMENT: Final = 64

_COLUMNS: Final = (
    "name",
    "lane",
    "kind",
    "begin_ns",
    "duration_ns",
    "correlation",
    "sequence",
    "forward_lane",
    "bytes",
    "dependencies",
)
_TABLES: Final = {
    "steps": TraceSteps,
    "collectives": Collectives,
    "syncs": SyncRecords,
    "memory": MemorySamples,
    "frames": Frames,
}
_STATED: Final = tuple(f.name for f in fields(Trace) if f.name not in {*_COLUMNS, *_TABLES})
"""Fields of a trace that are not columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtefactKey:
    """What the columns of a trace depend on: its bytes, their reader, and the sender's statements about it."""

    content_sha256: str
    reader: str
    reader_version: str
    rank: int
    world_size: int
    mapping: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """A unique and valid file name, whatever characters a reader's version holds."""
        identity = (FORMAT, self.reader, self.reader_version, self.rank, self.world_size, self.mapping)
        return hashlib.sha256(repr(identity).encode()).hexdigest()[:40]


class TraceArtefacts:
    """Stores parsed traces. Safe from many threads and processes; bounded, the least recently used are deleted first.

    Files: ``<first two digits>/<sha256 of the trace>/<name of the key>.columns``.

    Parameters
    ----------
    root : path
        Directory, in an existing one; created with the first artefact.
    max_bytes : int
        Most bytes of all files together. The newest file is kept whatever its size.
    """

    def __init__(self, root: Path, max_bytes: int = DEFAULT_ARTEFACT_BYTES) -> None:
        self._root = root
        self._max_bytes = max_bytes
        self._maps: LruCache[ArtefactKey, tuple[Trace, ...]] = LruCache(MAPPED_NAMES_BYTES)

    def get(self, key: ArtefactKey) -> tuple[Trace, ...] | None:
        """The traces of a file; None = there is no usable artefact."""
        mapped_traces = self._maps.get(key)
        if mapped_traces is not None:
            return mapped_traces
        path = self._path(key)
        try:
            traces = _map_file(path)
            os.utime(path)  # files are dropped in order of their last use
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError):
            # Damaged by a power loss or another program: the trace is parsed again.
            _log.warning("trace_artefact_unusable", trace=key.content_sha256, reader=key.reader, exc_info=True)
            with suppress(OSError):
                path.unlink()
            return None
        self._maps.put(key, traces, max(LEAST_WEIGHT, sum(map(_name_bytes, traces))))
        return traces

    def put(self, key: ArtefactKey, traces: Sequence[Trace]) -> tuple[Trace, ...]:
        """Store the traces of a file; returns them as ``get`` does. A failed write is logged, not raised.

        The file is on the disk when this returns.
        """
        path = self._path(key)
        try:
            for folder in (self._root, path.parent.parent, path.parent):  # not above: a closed store stays deleted
                folder.mkdir(mode=0o700, exist_ok=True)
            self._write(path, traces)
            self._make_room()
        except OSError:
            _log.warning("trace_artefact_not_kept", trace=key.content_sha256, exc_info=True)
            return tuple(traces)
        return self.get(key) or tuple(traces)

    def remove(self, content_sha256: str) -> None:
        """Delete the artefacts of a trace. Processes that have mapped them keep them."""
        self._maps.drop(lambda key: key.content_sha256 == content_sha256)
        shutil.rmtree(self._folder(content_sha256), ignore_errors=True)

    def _folder(self, content_sha256: str) -> Path:
        return self._root / content_sha256[:2] / content_sha256

    def _path(self, key: ArtefactKey) -> Path:
        return self._folder(key.content_sha256) / f"{key.name}.columns"

    def _write(self, path: Path, traces: Sequence[Trace]) -> None:
        description, columns, size = _describe(traces)
        with tempfile.NamedTemporaryFile(dir=self._root, prefix=_UNFINISHED, delete=False) as file:
            try:
                file.write(_HEAD.pack(_MAGIC, len(description), size, zlib.crc32(description)))
                file.write(description)
                for column in columns:
                    file.write(b"\0" * (-file.tell() % _ALIGNMENT))
                    file.write(np.ascontiguousarray(column).tobytes())
                file.flush()
                os.fsync(file.fileno())
                Path(file.name).replace(path)
            except BaseException:
                Path(file.name).unlink(missing_ok=True)
                raise

    def _make_room(self) -> None:
        """Delete the least recently used files until the rest fits; and unfinished files of processes that died."""
        for path in self._root.glob(f"{_UNFINISHED}*"):
            with suppress(OSError):
                if path.stat().st_mtime < time.time() - ABANDONED_S:
                    path.unlink()
        make_room(self._root.glob("*/*/*.columns"), self._max_bytes)


def make_room(paths: Iterable[Path], most_bytes: int) -> None:
    """Delete the least recently used files until the rest fits; the newest stays, whatever its size."""
    files = []
    for path in paths:
        with suppress(OSError):  # gone meanwhile
            state = path.stat()
            files.append((state.st_mtime_ns, state.st_size, path))
    left = sum(size for _, size, _ in files)
    for _, size, path in sorted(files)[:-1]:
        if left <= most_bytes:
            return
        path.unlink(missing_ok=True)
        left -= size


def columns_of(trace: Trace) -> dict[str, NDArray[Any]]:
    """Every array of a trace by its path, e.g. ``steps.begin_ns``."""
    columns = {name: getattr(trace, name) for name in _COLUMNS}
    for name, table in _TABLES.items():
        part = getattr(trace, name)
        columns |= {f"{name}.{f.name}": getattr(part, f.name) for f in fields(table) if f.name != "groups"}
    return columns


def _describe(traces: Sequence[Trace]) -> tuple[bytes, list[NDArray[Any]], int]:
    """The description of a file, its columns, and its size in bytes."""
    descriptions: list[dict[str, Any]] = []
    columns: list[NDArray[Any]] = []
    for trace in traces:
        own = columns_of(trace)
        descriptions.append(
            {
                **{name: getattr(trace, name) for name in _STATED},
                "groups": trace.collectives.groups,
                "columns": [(name, column.dtype.str, column.shape) for name, column in own.items()],
            }
        )
        columns += own.values()
    description = orjson.dumps(descriptions, dict, orjson.OPT_SERIALIZE_NUMPY)
    end = _HEAD.size + len(description)
    for column in columns:
        end += -end % _ALIGNMENT + column.nbytes
    return description, columns, end


def _map_file(path: Path) -> tuple[Trace, ...]:
    """The traces of a file, mapped.

    Raises
    ------
    ValueError, KeyError, TypeError
        If the file is damaged.
    """
    with path.open("rb") as file:
        whole = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if len(whole) < _HEAD.size:
        raise ValueError("it is shorter than its header")
    magic, length, size, check = _HEAD.unpack_from(whole)
    end = _HEAD.size + length
    description = whole[_HEAD.size : end]
    if magic != _MAGIC or size != len(whole) or zlib.crc32(description) != check:
        raise ValueError("its digest does not match")
    traces = []
    for trace_description in orjson.loads(description):
        columns: dict[str, NDArray[Any]] = {}
        for name, kind, shape in trace_description["columns"]:
            end += -end % _ALIGNMENT
            dtype, count = np.dtype(kind), int(np.prod(shape))
            columns[name] = np.frombuffer(whole, dtype, count, end).reshape(shape) if count else np.zeros(shape, dtype)
            end += columns[name].nbytes
        traces.append(_trace(trace_description, columns))
    return tuple(traces)


def _trace(description: dict[str, Any], columns: dict[str, NDArray[Any]]) -> Trace:
    groups = tuple(ProcessGroup(**group | {"ranks": tuple(group["ranks"])}) for group in description["groups"])
    more: dict[str, Any] = {"collectives": {"groups": groups}}
    tables: dict[str, Any] = {
        name: table(
            **{f.name: columns[f"{name}.{f.name}"] for f in fields(table) if f.name != "groups"} | more.get(name, {})
        )
        for name, table in _TABLES.items()
    }
    own: dict[str, Any] = {name: columns[name] for name in _COLUMNS}
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value := description[name], list) else value for name in _STATED
    }
    report = description["report"]
    values["report"] = TraceReport(counts=report["counts"], warnings=tuple(report["warnings"]))
    values["lanes"] = tuple(Lane(**lane) for lane in description["lanes"])
    return Trace(**values, **own, **tables)


def _name_bytes(trace: Trace) -> int:
    """Approximate bytes of the dictionaries: a string's header is 50 bytes."""
    return _text_bytes(trace.names) + _text_bytes(lane.name for lane in trace.lanes)


def _text_bytes(texts: Iterable[str]) -> int:
    return sum(len(text) + 58 for text in texts)
