"""Traces: bytes that arrive in chunks and are stored under their SHA-256."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from nodewise.domain.errors import NodewiseError, Reason, invalid_field
from nodewise.profiles.artefacts import DEFAULT_ARTEFACT_BYTES, TraceArtefacts
from nodewise.profiles.private_files import make_private_folder, open_private

if TYPE_CHECKING:
    from hashlib import _Hash

    from nodewise.profiles.batches import TraceChunk

__all__ = [
    "DEFAULT_CACHE_BYTES",
    "DEFAULT_MAX_TRACE_BYTES",
    "Piece",
    "TraceStore",
    "UnfinishedTrace",
    "copy_checked",
    "free_bytes_at",
    "is_hash",
    "not_stored",
    "sha256_of",
    "stage_name",
    "sync",
]

DEFAULT_CACHE_BYTES: Final = 32 << 30
DEFAULT_MAX_TRACE_BYTES: Final = 4 << 30
_READ_BYTES: Final = 1 << 20
_RUNNING_HASHES: Final = 256
_HEX: Final = re.compile(r"[0-9a-f]{64}")


def stage_name(profile_uid: str, session_id: str, trace_id: str) -> str:
    """The name under which a session's trace is staged: 64 hexadecimal digits, whatever the client's names hold."""
    parts = (profile_uid.encode(), session_id.encode(), trace_id.encode())
    return hashlib.sha256(b"".join(len(part).to_bytes(8, "big") + part for part in parts)).hexdigest()


def free_bytes_at(path: str | Path) -> int | None:
    """Free bytes of the disk of a directory; None = unknown."""
    try:
        status = os.statvfs(path)
    except OSError:
        return None
    return status.f_bavail * status.f_frsize


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A chunk of a trace as the rows record it: its offset, its size and its hash."""

    offset_bytes: int
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfinishedTrace:
    """A trace that is still arriving.

    Attributes
    ----------
    stage : str
        Name of its stage.
    folder : str
        Folder of its pieces in a bucket: like the stage, but known before the profile exists.
    size_bytes : int
        Bytes that the rows record.
    pieces : callable
        Returns the chunks of the settled bytes.
    """

    stage: str
    folder: str
    size_bytes: int
    pieces: Callable[[], Sequence[Piece]]


def is_hash(name: str) -> bool:
    """Whether a name is a SHA-256; other names never become a part of a path."""
    return _HEX.fullmatch(name) is not None


def not_stored() -> NodewiseError:
    """The error for a hash without a trace."""
    return invalid_field("traces.content_sha256", "must name a stored trace")


class TraceStore:
    """Stores the bytes of traces, apart from the rows, and their artefacts.

    Files: ``staged/<stage>`` while a trace arrives, ``blobs/<first two digits>/<sha256>`` afterwards, ``artefacts``
    beside.

    The rows record how many bytes of a stage are settled. Later bytes were written for a batch that was never
    acknowledged, and are overwritten. Every method can be repeated after a failure. Methods raise OSError where
    the disk fails.

    Parameters
    ----------
    root : path or None
        Directory; created when the first chunk arrives. None = a temporary one, removed with the store.
    max_bytes : int
        Largest trace.
    sync_chunks : bool
        Whether every chunk is flushed to the disk before ``write`` returns (against power loss), not only complete
        traces.
    artefact_bytes : int
        Most bytes of artefacts.
    """

    away: bool = False
    """Whether the storage of traces may be unavailable, so that each append is prepared before it is stored."""

    def __init__(
        self,
        root: Path | None = None,
        max_bytes: int = DEFAULT_MAX_TRACE_BYTES,
        *,
        sync_chunks: bool = False,
        artefact_bytes: int = DEFAULT_ARTEFACT_BYTES,
    ) -> None:
        self._root = root
        self._remove_own: Callable[[], object] | None = None
        self._max_bytes = max_bytes
        self._sync_chunks = sync_chunks
        self._artefact_bytes = artefact_bytes
        self._hashes: OrderedDict[str, tuple[int, _Hash]] = OrderedDict()
        """Running hash of stages that this process has seen from the start: bytes hashed, and the state."""
        self._lock = threading.Lock()

    @property
    def root(self) -> Path:
        """The directory; a temporary one is created at the first use of this."""
        with self._lock:
            if self._root is None:
                self._root = Path(tempfile.mkdtemp(prefix="nodewise-traces-"))
                self._remove_own = weakref.finalize(self, shutil.rmtree, self._root, ignore_errors=True)
            return self._root

    @cached_property
    def artefacts(self) -> TraceArtefacts:
        """Artefacts of finished traces."""
        return TraceArtefacts(self.root / "artefacts", self._artefact_bytes)

    @property
    def has_root(self) -> bool:
        """Whether there is a directory; a temporary one is created when it is needed."""
        return self._root is not None

    def close(self) -> None:
        """Remove the directory if it is temporary. Without a call it is removed with the object or the process."""
        if self._remove_own is not None:
            self._remove_own()

    def prepare(self, arriving: Iterable[tuple[UnfinishedTrace, Sequence[TraceChunk]]]) -> None:
        """Store a request's chunks before its transaction, where that may take long. Can be repeated.

        Parameters
        ----------
        arriving : iterable of (Unfinished, sequence of TraceChunk)
            Traces with their next chunks, in order; the last chunk of each may end it. The stage of one whose profile
            is not in the store yet is empty.
        """

    def sweep(self, unfinished: Callable[[], set[str]], referred: Callable[[Sequence[str]], None]) -> None:
        """Delete in the background what was prepared more than a day ago for batches that were never stored.

        Parameters
        ----------
        unfinished : callable
            Returns the folders of unfinished traces.
        referred : callable
            Gets hashes of traces, and removes those that nothing refers to.
        """

    def write(self, stage: str, settled_bytes: int, offset_bytes: int, data: bytes) -> int:
        """Write a chunk; returns the size of the stage, ``max(settled_bytes, offset_bytes + len(data))``.

        Raises
        ------
        NodewiseError
            INVALID_FIELD for a gap, and for a chunk that differs from the settled bytes that it repeats;
            LIMIT_EXCEEDED.
        """
        size = max(settled_bytes, offset_bytes + len(data))
        if not 0 <= offset_bytes <= settled_bytes:
            raise invalid_field("trace_chunks.offset_bytes", f"must be {settled_bytes}, the end of the chunk before")
        if size > self._max_bytes:
            raise NodewiseError(
                Reason.LIMIT_EXCEEDED,
                f"a trace may have at most {self._max_bytes} bytes; record fewer steps or ranks at a time",
                {"limit_bytes": str(self._max_bytes)},
            )
        path = self._stage_path(stage)
        if not settled_bytes:
            make_private_folder(path.parent)
        self._unshare(path, settled_bytes)
        repeat_bytes = min(settled_bytes - offset_bytes, len(data))
        new = memoryview(data)[repeat_bytes:]
        try:
            with open_private(path, "r+b" if settled_bytes else "w+b") as file:
                file.seek(offset_bytes)
                if file.read(repeat_bytes) != data[:repeat_bytes]:
                    raise invalid_field("trace_chunks.data", "differs from the bytes stored at this offset")
                file.seek(settled_bytes)
                file.truncate()
                file.write(new)
                if self._sync_chunks:
                    file.flush()
                    os.fsync(file.fileno())
                    sync(path.parent)
        except OSError:
            with suppress(OSError):
                os.truncate(path, settled_bytes)  # half a chunk would keep a full disk full
            raise
        self._hash_on(stage, settled_bytes, new)
        return size

    def finish(self, stage: str, size_bytes: int) -> str:
        """Store the settled bytes as a blob; returns their SHA-256, hexadecimal. The stage stays until discarded.

        The blob is on the disk when this returns.
        """
        path = self._stage_path(stage)
        with path.open("r+b") as file:
            name = self._hash_of(stage, size_bytes, file)
            file.truncate(size_bytes)
            os.fsync(file.fileno())
        blob = self._blob(name)
        if not blob.exists():
            make_private_folder(blob.parent)
            with tempfile.TemporaryDirectory(dir=self.root, prefix="linking-") as scratch:
                link = Path(scratch, "blob")
                try:
                    os.link(path, link)
                except OSError:  # a file system without links
                    shutil.copy(path, link)  # with its permissions
                    sync(link)
                link.replace(blob)
            for directory in (blob.parent, blob.parent.parent):
                sync(directory)
        return name

    def doubt(self, stage: str) -> None:
        """Note that the last write will not be acknowledged, and that another process may write it again.

        The bytes are read again when the trace ends.
        """
        with self._lock:
            self._hashes.pop(stage, None)

    def discard(self, stage: str) -> None:
        """Delete a stage. Nothing happens if there is none."""
        self.doubt(stage)
        self._stage_path(stage).unlink(missing_ok=True)

    def open(self, content_sha256: str) -> BinaryIO:
        """The bytes of a finished trace.

        Raises
        ------
        NodewiseError
            INVALID_FIELD if no trace of that hash is stored.
        """
        if not is_hash(content_sha256):
            raise not_stored()
        try:
            return self._blob(content_sha256).open("rb")
        except FileNotFoundError:
            raise not_stored() from None

    def holds(self, content_sha256: str) -> int | None:
        """Size of a finished trace in bytes; None = it is not stored."""
        path = self._blob(content_sha256)
        return path.stat().st_size if is_hash(content_sha256) and path.exists() else None

    def keep(self, content_sha256: str, source: BinaryIO) -> None:
        """Store a whole trace; on the disk when this returns.

        Raises
        ------
        NodewiseError
            INVALID_FIELD if the bytes are not those of the hash.
        """
        blob = self._blob(content_sha256)
        make_private_folder(blob.parent)
        with tempfile.TemporaryDirectory(dir=self.root, prefix="keeping-") as scratch:
            copy = Path(scratch, "blob")
            copy_checked(source, copy, content_sha256)
            copy.replace(blob)
        for directory in (blob.parent, blob.parent.parent):
            sync(directory)

    def open_stage(self, trace: UnfinishedTrace) -> BinaryIO:
        """The stored bytes of an unfinished trace, and perhaps more after them."""
        return self._stage_path(trace.stage).open("rb")

    def keep_stage(self, trace: UnfinishedTrace, source: BinaryIO) -> None:
        """Store the bytes of an unfinished trace."""
        path = self._stage_path(trace.stage)
        make_private_folder(path.parent)
        with open_private(path, "w+b") as file:
            shutil.copyfileobj(source, file)
            file.truncate(trace.size_bytes)
            os.fsync(file.fileno())
        sync(path.parent)

    def remove(self, content_sha256: str) -> None:
        """Delete a finished trace and its artefacts. Nothing happens if there is none."""
        if is_hash(content_sha256):
            self._blob(content_sha256).unlink(missing_ok=True)
            self.artefacts.remove(content_sha256)

    def remove_all(self, names: Iterable[str]) -> None:
        """Delete several finished traces."""
        for name in names:
            self.remove(name)

    def check(self) -> str:
        """The known fault of the storage of traces; empty = none."""
        return ""

    def finished_traces(self) -> Iterator[tuple[str, float]]:
        """The hashes of all finished traces, and when each was stored, in seconds since 1970."""
        if self._root is None:
            return
        for path in self._root.glob("blobs/*/*"):
            with suppress(FileNotFoundError):  # removed meanwhile
                yield path.name, path.stat().st_mtime

    def _stage_path(self, stage: str) -> Path:
        if not is_hash(stage):
            raise ValueError("stages are named by stage_name()")
        return self.root / "staged" / stage

    def _blob(self, content_sha256: str) -> Path:
        return self.root / "blobs" / content_sha256[:2] / content_sha256

    def _unshare(self, path: Path, settled_bytes: int) -> None:
        """Separate the stage's file from a blob if it was finished but never acknowledged: blobs do not change."""
        if not path.exists() or path.stat().st_nlink == 1:
            return
        if settled_bytes:
            copy = path.with_suffix(".copy")
            shutil.copy(path, copy)
            copy.replace(path)
        else:
            path.unlink()

    def _hash_on(self, stage: str, settled_bytes: int, new: memoryview) -> None:
        with self._lock:
            entry = self._hashes.pop(stage, None) if settled_bytes else (0, hashlib.sha256())
            if entry is None or entry[0] != settled_bytes:
                return  # started by another process, or incomplete: read again when the trace ends
            entry[1].update(new)
            self._hashes[stage] = (settled_bytes + len(new), entry[1])
            if len(self._hashes) > _RUNNING_HASHES:
                self._hashes.popitem(last=False)

    def _hash_of(self, stage: str, size_bytes: int, file: BinaryIO) -> str:
        with self._lock:
            entry = self._hashes.get(stage)
            if entry is not None and entry[0] == size_bytes:
                return entry[1].hexdigest()
        hasher = hashlib.sha256()
        left = size_bytes
        while left and (piece := file.read(min(left, _READ_BYTES))):
            hasher.update(piece)
            left -= len(piece)
        if left:
            raise OSError(f"stage {stage} is {left} bytes short")
        return hasher.hexdigest()


def sha256_of(file: BinaryIO) -> str:
    """SHA-256 of the rest of a file, hexadecimal."""
    hasher = hashlib.sha256()
    while piece := file.read(_READ_BYTES):
        hasher.update(piece)
    return hasher.hexdigest()


def copy_checked(source: BinaryIO, path: Path, content_sha256: str) -> int:
    """Write a file whose bytes have this hash; returns their number. It is on the disk when this returns.

    Raises
    ------
    NodewiseError
        INVALID_FIELD if they have another hash; the file is removed then.
    """
    hasher, size = hashlib.sha256(), 0
    with open_private(path, "w+b") as file:
        while piece := source.read(_READ_BYTES):
            hasher.update(piece)
            size += file.write(piece)
        file.flush()
        os.fsync(file.fileno())
    if hasher.hexdigest() != content_sha256:
        path.unlink()
        raise invalid_field("traces.content_sha256", f"must match the bytes, but {content_sha256} does not")
    return size


def sync(path: Path) -> None:
    """Force a file or directory to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
