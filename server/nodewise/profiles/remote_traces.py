"""Traces in a bucket, with a local directory for unfinished traces and for copies."""

from __future__ import annotations

import hashlib
import io
import math
import tempfile
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import BinaryIO, Final

import structlog

from nodewise.domain.errors import NodewiseError
from nodewise.profiles.artefacts import DEFAULT_ARTEFACT_BYTES, make_room
from nodewise.profiles.batches import TraceChunk
from nodewise.profiles.private_files import make_private_folder, open_private
from nodewise.profiles.s3_blobs import S3Blobs, unavailable
from nodewise.profiles.traces import (
    DEFAULT_CACHE_BYTES,
    DEFAULT_MAX_TRACE_BYTES,
    TraceStore,
    UnfinishedTrace,
    copy_checked,
    is_hash,
    not_stored,
    sha256_of,
)

__all__ = ["RemoteTraceStore", "S3Blobs"]

GARBAGE_S: Final = 86_400.0
"""Age from which unreferenced files are deleted: the batch that they were written for was stored or abandoned."""
_HELD_S: Final = 3600.0
"""Seconds for which an object that this process wrote or saw is assumed to exist: far less than GARBAGE_S."""
_MOST_HELD: Final = 65_536
_log = structlog.get_logger(__name__)


class RemoteTraceStore(TraceStore):
    """Traces as objects in a bucket, with local files.

    A chunk is an object before it is acknowledged, and so is a trace before its last chunk is: any replica can continue
    a trace that another began. :meth:`prepare` does this before the transaction that stores the batch, because the
    storage may take long and the database allows one writer at a time. In that transaction ``write`` and ``finish`` use
    local files; ``finish`` checks once that the trace exists, as an unreferenced trace may
    have been deleted since, which also happens in a transaction.

    Parameters
    ----------
    blobs : S3Blobs
        The bucket: finished traces in ``blobs/<sha256>``, chunks in ``staged/<folder>/<sha256 of a chunk>-<any>``.
    root : path or None
        Directory for stages, copies of traces and artefacts; None = a temporary one.
    cache_bytes : int
        Most bytes of copies of traces; the least recently used are deleted first.
    """

    away = True

    def __init__(
        self,
        blobs: S3Blobs,
        root: Path | None = None,
        max_bytes: int = DEFAULT_MAX_TRACE_BYTES,
        *,
        artefact_bytes: int = DEFAULT_ARTEFACT_BYTES,
        cache_bytes: int = DEFAULT_CACHE_BYTES,
        now: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(root, max_bytes, artefact_bytes=artefact_bytes)
        self._blobs = blobs
        self._copies: OrderedDict[str, float] = OrderedDict()
        self._closing = False
        self._cache_bytes = cache_bytes
        self._now = now
        self._folders: dict[str, str] = {}
        self._tidying = ThreadPoolExecutor(1, thread_name_prefix="nodewise-traces")

    def close(self) -> None:
        """As for a directory; a running clean-up ends soon, and the next process continues it."""
        self._closing = True
        self._tidying.shutdown(wait=True, cancel_futures=True)
        super().close()

    # --- before the transaction

    def prepare(self, arriving: Iterable[tuple[UnfinishedTrace, Sequence[TraceChunk]]]) -> None:
        """As for a directory; STORE_UNAVAILABLE if the bucket fails."""
        for trace, chunks in arriving:
            if trace.size_bytes and not self._knows(trace.stage, trace.size_bytes):
                self._gather(trace)
            if chunks[-1].last:
                self._upload(trace, chunks)
                continue
            for chunk in chunks:
                self._put_piece(trace.folder, hashlib.sha256(chunk.data).hexdigest(), chunk.data)

    def _put_piece(self, folder: str, sha256: str, data: bytes) -> None:
        """Store a chunk, unless this process did so lately."""
        key = f"{folder}/{sha256}"
        if not self._holds(key):  # by a unique name, which no clean-up deletes
            self._blobs.put(f"staged/{key}-{uuid.uuid4().hex[:8]}", io.BytesIO(data), len(data))
            self._hold(key)

    def _holds(self, key: str) -> bool:
        """Whether this process wrote or saw an object lately."""
        with self._lock:
            return self._copies.get(key, -math.inf) > time.monotonic() - _HELD_S

    def _hold(self, key: str) -> None:
        with self._lock:
            self._copies[key] = time.monotonic()
            self._copies.move_to_end(key)
            if len(self._copies) > _MOST_HELD:
                self._copies.popitem(last=False)

    def _knows(self, stage: str, settled_bytes: int) -> bool:
        """Whether the local file of a stage holds the settled bytes, as written or gathered by this process."""
        with self._lock:
            entry = self._hashes.get(stage)
        return entry is not None and entry[0] == settled_bytes and self._stage_path(stage).exists()

    def _gather(self, trace: UnfinishedTrace) -> None:
        """Write the local file of a stage from its pieces, which came through another process."""
        hasher, size = hashlib.sha256(), 0
        path = self._stage_path(trace.stage)
        make_private_folder(path.parent)
        with tempfile.TemporaryDirectory(dir=self.root, prefix="gathering-") as scratch:
            copy = Path(scratch, "stage")
            with open_private(copy, "w+b") as file:
                for new in self._pieces_of(trace):
                    hasher.update(new)
                    size += file.write(new)
            if size != trace.size_bytes:
                raise unavailable("another replica has more of the trace by now; retry")
            copy.replace(path)
        with self._lock:
            self._hashes[trace.stage] = (size, hasher)
            self._hashes.move_to_end(trace.stage)

    def _pieces_of(self, trace: UnfinishedTrace) -> Iterator[bytes]:
        """The bytes of a trace from its pieces, each once."""
        there = (name for name, _ in self._blobs.list_objects(f"staged/{trace.folder}/"))
        pieces = {name.rpartition("/")[2].partition("-")[0]: name for name in there}
        size = 0
        for piece in trace.pieces():
            data = io.BytesIO()
            is_there = piece.sha256 in pieces and self._blobs.fetch(pieces[piece.sha256], data)
            content = data.getvalue()
            if not is_there or hashlib.sha256(content).hexdigest() != piece.sha256:
                _log.error("trace_piece_lost", piece=piece.sha256, found=is_there)
                raise unavailable("a stored part of the trace is missing; send the trace in a new session")
            new = content[max(0, size - piece.offset_bytes) :]
            size += len(new)
            yield new

    def _upload(self, trace: UnfinishedTrace, chunks: Sequence[TraceChunk]) -> None:
        hasher, size = hashlib.sha256(), trace.size_bytes
        if size:
            with self._lock:
                entry = self._hashes.get(trace.stage)
                if entry is None or entry[0] != size:
                    raise unavailable("another request is writing the trace; retry")
                hasher = entry[1].copy()
            self._folders[trace.stage] = trace.folder
        new = bytearray()
        for chunk in chunks:
            new += chunk.data[max(0, size + len(new) - chunk.offset_bytes) :]
        hasher.update(new)
        name, total = hasher.hexdigest(), size + len(new)
        if self._holds(name) or total > self._max_bytes:  # a trace that is too large is refused where it is written
            return
        if self._blobs.size_bytes(_object(name)) != total:
            with self._stage_path(trace.stage).open("rb") if size else io.BytesIO() as file:
                self._blobs.put(_object(name), _JoinedFile(file, size, new), total)
        self._hold(name)

    # --- inside the transaction

    def write(self, stage: str, settled_bytes: int, offset_bytes: int, data: bytes) -> int:
        """As for a directory; STORE_UNAVAILABLE if the settled bytes are not here."""
        if settled_bytes and not self._knows(stage, settled_bytes):
            raise unavailable("another replica has more of the trace by now; retry")
        return super().write(stage, settled_bytes, offset_bytes, data)

    def finish(self, stage: str, size_bytes: int) -> str:
        """As for a directory; STORE_UNAVAILABLE if the trace is not in the bucket."""
        name = super().finish(stage, size_bytes)
        if self._blobs.size_bytes(_object(name), soon=True) != size_bytes:
            self._copies.pop(name, None)
            raise unavailable("the trace was not stored; retry")
        self._later(self._make_room)
        return name

    def discard(self, stage: str) -> None:
        """Delete a stage, and in the background its pieces."""
        super().discard(stage)
        if (folder := self._folders.pop(stage, None)) is not None:
            self._later(lambda: self._drop_pieces(folder))

    def _drop_pieces(self, folder: str) -> None:
        self._blobs.remove([name for name, _ in self._blobs.list_objects(f"staged/{folder}/")])

    def remove_all(self, names: Iterable[str]) -> None:
        """As for a directory. STORE_UNAVAILABLE if some were not deleted."""
        names = list(names)
        for name in names:
            self._copies.pop(name, None)
        self._blobs.remove(map(_object, names), soon=True)
        for name in names:
            super().remove(name)

    def remove(self, content_sha256: str) -> None:
        """As for a directory. STORE_UNAVAILABLE if it was not deleted."""
        if is_hash(content_sha256):
            self.remove_all([content_sha256])

    def finished_traces(self) -> Iterator[tuple[str, float]]:
        """As for a directory."""
        return iter([(name.rpartition("/")[2], written_s) for name, written_s in self._list("blobs/")])

    def check(self) -> str:
        """As for a directory."""
        return self._blobs.check()

    # --- reading

    def open(self, content_sha256: str) -> BinaryIO:
        """As for a directory: a missing copy is fetched. STORE_UNAVAILABLE if that fails."""
        if not self._has_copy(content_sha256):
            self._fetch(content_sha256)
        file = super().open(content_sha256)
        with suppress(OSError):
            self._blob(content_sha256).touch()  # copies are deleted in order of their last use
        return file

    def _has_copy(self, name: str) -> bool:
        """Whether there is a local copy."""
        return is_hash(name) and self._blob(name).exists()

    def _fetch(self, name: str) -> None:
        if not is_hash(name):
            raise not_stored()
        path = self._blob(name)
        make_private_folder(path.parent)
        with tempfile.TemporaryDirectory(dir=self.root, prefix="fetching-") as scratch:
            copy = Path(scratch, "blob")
            with open_private(copy, "w+b") as file:
                if not self._blobs.fetch(_object(name), file):
                    raise not_stored()
                file.seek(0)
                sha256 = sha256_of(file)
            if sha256 != name:
                _log.error("trace_damaged", trace=name, found=sha256)
                raise unavailable("the stored trace is damaged; the log names it")
            copy.replace(path)
        self._later(self._make_room)

    # --- whole stores

    def holds(self, content_sha256: str) -> int | None:
        """As for a directory: the trace in the bucket, not a local copy."""
        return self._blobs.size_bytes(_object(content_sha256)) if is_hash(content_sha256) else None

    def keep(self, content_sha256: str, source: BinaryIO) -> None:
        """As for a directory; no local copy is kept."""
        with tempfile.TemporaryDirectory(dir=self.root, prefix="keeping-") as scratch:
            copy = Path(scratch, "blob")
            size = copy_checked(source, copy, content_sha256)
            with copy.open("rb") as file:
                self._blobs.put(_object(content_sha256), file, size)

    def open_stage(self, trace: UnfinishedTrace) -> BinaryIO:
        """As for a directory: gathered from its pieces."""
        self._gather(trace)
        return super().open_stage(trace)

    def keep_stage(self, trace: UnfinishedTrace, source: BinaryIO) -> None:
        """As for a directory: in pieces of the chunks' sizes."""
        content = source.read(trace.size_bytes)
        for piece in trace.pieces():
            data = content[piece.offset_bytes : piece.offset_bytes + piece.size_bytes]
            self._put_piece(trace.folder, piece.sha256, data)

    # --- clean-up

    def sweep(self, unfinished: Callable[[], set[str]], referred: Callable[[Sequence[str]], None]) -> None:
        """As for a directory."""
        self._later(lambda: self._sweep(unfinished, referred))

    def _sweep(self, unfinished: Callable[[], set[str]], referred: Callable[[Sequence[str]], None]) -> None:
        before_s = self._now() - GARBAGE_S
        for path in (self.root / "staged").glob("*"):  # a session that continues gathers its stage again
            with suppress(OSError):
                if path.stat().st_mtime < before_s:
                    self.doubt(path.name)
                    path.unlink()
        self._blobs.abandon(before_s)
        if pieces := [name for name, written_s in self._list("staged/") if written_s < before_s]:
            stages = unfinished()
            self._blobs.remove([name for name in pieces if name.split("/")[1] not in stages])
        referred([name for name, written_s in self.finished_traces() if written_s < before_s])

    def _list(self, prefix: str) -> Iterator[tuple[str, float]]:
        return takewhile(lambda _: not self._closing, self._blobs.list_objects(prefix))

    def _later(self, task: Callable[[], None]) -> None:
        def tidy() -> None:
            try:
                task()
            except (NodewiseError, OSError) as error:
                _log.warning("trace_cleanup_failed", error=type(error).__name__, text=str(error))

        with suppress(RuntimeError):  # closing: the next process cleans up
            self._tidying.submit(tidy)

    def _make_room(self) -> None:
        make_room((self.root / "blobs").glob("*/*"), self._cache_bytes)


def _object(content_sha256: str) -> str:
    return f"blobs/{content_sha256}"


class _JoinedFile:
    """The beginning of a file, and bytes that come after it."""

    def __init__(self, file: BinaryIO, size: int, new: bytearray) -> None:
        self._file = file
        self._left = size
        self._new = io.BytesIO(new)

    def read(self, size: int = -1, /) -> bytes:
        first = self._file.read(self._left if size < 0 else min(size, self._left)) if self._left else b""
        self._left -= len(first)
        if self._left and (size < 0 or len(first) < size):
            raise OSError("a stage is shorter than its settled bytes")
        return first + self._new.read(-1 if size < 0 else size - len(first))
