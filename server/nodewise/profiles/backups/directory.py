"""A backup: a directory that appears once all of it is on the disk.

Files: ``manifest.json`` names the others with the SHA-256 of their bytes: ``rows/<table>.jsonl.gz`` and
``digests.jsonl.gz``. Traces are in ``traces/<first two digits>/<sha256>``, those that arrive in ``staged/<stage>``.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final

import orjson

from nodewise.domain.errors import NodewiseError
from nodewise.profiles.backups.contents import Digest, Rows, StoreContents, StoredTrace, digests_of, from_json, to_json
from nodewise.profiles.sql_store import SqlProfileStore
from nodewise.profiles.traces import Piece, Unfinished, copy_checked

__all__ = ["BackupContents", "BackupError", "BackupFigures", "back_up"]

FORMAT: Final = "nodewise backup"
FORMAT_VERSION: Final = 1
_MANIFEST: Final = "manifest.json"
_ATTEMPTS: Final = 3
_LINES: Final = 1000


class BackupError(Exception):
    """A backup that cannot be made or used; the text is for the operator.

    Attributes
    ----------
    of_input : bool
        Whether other arguments would do.
    """

    def __init__(self, text: str, *, of_input: bool = True) -> None:
        super().__init__(text)
        self.of_input = of_input


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupFigures:
    """What a backup holds, and what making it took anew."""

    profiles: int
    rows: int
    traces: int
    trace_bytes: int
    copied_bytes: int
    generation: int


def back_up(store: SqlProfileStore, target: Path, version: str, since: Path | None = None) -> BackupFigures:
    """Copy a store as it is at one moment, while it serves.

    What was interrupted goes on where it was: its directory has the target's name and ``.partial`` until it is whole.

    Parameters
    ----------
    target : path
        Directory, which does not exist yet.
    version : str
        Of this release, for the manifest.
    since : path or None
        An earlier backup, whose traces are linked instead of copied.

    Raises
    ------
    BackupError
        If the target exists, or traces kept disappearing; NodewiseError and OSError as stores and disks raise them.
    """
    if target.exists():
        raise BackupError(f"{target} exists: name another one, and give this as --since to copy its traces no more")
    if not target.parent.is_dir():
        raise BackupError(f"the directory {target.parent} does not exist")
    if since is not None:
        BackupContents(since)  # says why where it is none
    partial = target.with_name(f"{target.name}.partial")
    partial.mkdir(exist_ok=True)
    with _alone(partial):
        gone = ""
        for _ in range(_ATTEMPTS):
            try:
                figures = _written(store, partial, version, since)
                break
            except _GoneError as error:  # a profile was purged meanwhile: as the store is now, it is not missed
                gone = str(error)
        else:
            text = f"{gone} is gone, and rows refer to it: nodewise verify tells what is missing"
            raise BackupError(text, of_input=False)
        partial.rename(target)
    _sync(target.parent)
    return figures


class _GoneError(Exception):
    """A trace that rows of the moment refer to is not there any more."""


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep a second one from writing the same backup."""
    lock = folder / ".lock"
    with lock.open("w") as file:
        try:
            import fcntl  # noqa: PLC0415  # where there is none, operators see to it
        except ImportError:
            yield
        else:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise BackupError(f"{folder}: is being written by another process", of_input=False) from None
            lock.unlink()
            yield


def _written(store: SqlProfileStore, partial: Path, version: str, since: Path | None) -> BackupFigures:
    for left in ("rows", "staged"):
        shutil.rmtree(partial / left, ignore_errors=True)
        (partial / left).mkdir()
    copied = 0
    with store.whole() as connection:
        contents = StoreContents(store, connection)
        tables: dict[str, dict[str, Any]] = {}
        files: dict[str, str] = {}
        for rows in contents.tables():
            name = f"rows/{rows.table}.jsonl.gz"
            count, files[name] = _packed(partial / name, ([to_json(value) for value in row] for row in rows.rows))
            tables[rows.table] = {"columns": rows.columns, "rows": count, "last_key": rows.last_key}
        digests = (asdict(digest) for digest in digests_of(connection))
        profiles, files["digests.jsonl.gz"] = _packed(partial / "digests.jsonl.gz", digests)
        traces, unfinished = contents.traces(), contents.unfinished()
        for trace in traces:
            copied += _copied(contents, trace, partial, since)
        for arriving in unfinished:
            copied += _staged(contents, arriving, partial)
    manifest = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "nodewise": version,
        "create_time_s": time.time(),
        "schema_version": contents.schema_version,
        "generation": contents.generation,
        "store_id": contents.store_id,
        "profiles": profiles,
        "tables": tables,
        "files": files,
        "traces": [[trace.content_sha256, trace.size_bytes] for trace in traces],
        "unfinished": [asdict(arriving) for arriving in unfinished],
    }
    _write(partial / _MANIFEST, orjson.dumps(manifest, option=orjson.OPT_INDENT_2))
    for folder in (partial, partial / "rows", partial / "staged", *(partial / "traces").glob("*"), partial / "traces"):
        if folder.exists():
            _sync(folder)
    return BackupFigures(
        profiles=profiles,
        rows=sum(table["rows"] for table in tables.values()),
        traces=len(traces),
        trace_bytes=sum(trace.size_bytes for trace in traces),
        copied_bytes=copied,
        generation=contents.generation,
    )


def _copied(contents: StoreContents, trace: StoredTrace, partial: Path, since: Path | None) -> int:
    """Bytes that were copied: none of a trace that is there already, or in an earlier backup."""
    path = _trace_path(partial, trace.content_sha256)
    if path.exists():
        return 0
    path.parent.mkdir(parents=True, exist_ok=True)
    if since is not None:
        with suppress(OSError):  # it holds none, or is on another file system
            os.link(_trace_path(since, trace.content_sha256), path)
            return 0
    copy = partial / "copying"
    try:
        with contents.trace(trace) as source:
            size = copy_checked(source, copy, trace.content_sha256)
    except NodewiseError as error:
        if error.reason == "INVALID_FIELD":
            raise _GoneError(f"trace {trace.content_sha256}") from None
        raise
    copy.replace(path)
    return size


def _staged(contents: StoreContents, arriving: Unfinished, partial: Path) -> int:
    path = partial / "staged" / arriving.stage
    try:
        with contents.staged(arriving) as source, path.open("w+b") as file:
            left = arriving.size_bytes
            while left and (piece := source.read(min(left, 1 << 20))):
                left -= file.write(piece)
            file.flush()
            os.fsync(file.fileno())
    except FileNotFoundError:
        raise _GoneError(f"the beginning of a trace ({arriving.stage})") from None
    if left:
        raise _GoneError(f"the beginning of a trace ({arriving.stage})")
    return arriving.size_bytes


def _packed(path: Path, lines: Iterable[Any]) -> tuple[int, str]:
    """Write lines of JSON, packed: their number, and the SHA-256 of the file."""
    count, left = 0, iter(lines)
    with path.open("w+b") as file:
        with gzip.GzipFile(fileobj=file, mode="wb", compresslevel=1, mtime=0, filename="") as packed:
            while together := list(islice(left, _LINES)):
                packed.write(b"".join(orjson.dumps(line) + b"\n" for line in together))
                count += len(together)
        file.flush()
        os.fsync(file.fileno())
        file.seek(0)
        return count, hashlib.file_digest(file, "sha256").hexdigest()


def _write(path: Path, data: bytes) -> None:
    with path.open("w+b") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _trace_path(folder: Path, content_sha256: str) -> Path:
    return folder / "traces" / content_sha256[:2] / content_sha256


class BackupContents:
    """Implements Contents by a backup.

    Parameters
    ----------
    folder : path
        Of the backup.

    Raises
    ------
    BackupError
        If it is none, is not whole, or is of a newer release.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        if folder.name.endswith(".partial"):
            raise BackupError(f"{folder}: is not whole: make the backup again, and it goes on from there")
        try:
            manifest: Any = orjson.loads((folder / _MANIFEST).read_bytes())
            self._manifest: Mapping[str, Any] = manifest
            ours = manifest["format"] == FORMAT
        except FileNotFoundError:
            raise BackupError(f"{folder}: is no backup: it has no {_MANIFEST}") from None
        except (OSError, orjson.JSONDecodeError, KeyError, TypeError):
            raise BackupError(f"{folder}: its {_MANIFEST} cannot be read") from None
        if not ours:
            raise BackupError(f"{folder}: is no backup of Nodewise")
        if manifest["version"] > FORMAT_VERSION:
            raise BackupError(f"{folder}: was made by {manifest['nodewise']}: use that release or a newer one")
        self.schema_version: int = manifest["schema_version"]
        self.generation: int = manifest["generation"]
        self.store_id: int | None = manifest["store_id"]

    def wrong(self) -> Iterator[str]:
        """What is damaged of its own files, without the traces."""
        for name, sha256 in self._manifest["files"].items():
            try:
                with (self._folder / name).open("rb") as file:
                    if hashlib.file_digest(file, "sha256").hexdigest() != sha256:
                        yield f"{name} is not as it was written"
            except OSError as error:
                yield f"{name} cannot be read ({type(error).__name__})"

    def digests(self) -> Iterator[Digest]:
        """Of every profile, as the store had them."""
        return (Digest(**line) for line in self._lines("digests.jsonl.gz"))

    def tables(self) -> Iterator[Rows]:
        """As the protocol says."""
        for name, about in self._manifest["tables"].items():
            lines = self._lines(f"rows/{name}.jsonl.gz")
            rows = ([from_json(value) for value in line] for line in lines)
            yield Rows(name, about["columns"], rows, about["last_key"])

    def _lines(self, name: str) -> Iterator[Any]:
        with gzip.open(self._folder / name, "rb") as file:
            for line in file:
                yield orjson.loads(line)

    def traces(self) -> list[StoredTrace]:
        """As the protocol says."""
        return [StoredTrace(*trace) for trace in self._manifest["traces"]]

    def trace(self, trace: StoredTrace) -> BinaryIO:
        """As the protocol says."""
        return _trace_path(self._folder, trace.content_sha256).open("rb")

    def unfinished(self) -> list[Unfinished]:
        """As the protocol says."""
        return [
            Unfinished(**arriving | {"pieces": tuple(Piece(**piece) for piece in arriving["pieces"])})
            for arriving in self._manifest["unfinished"]
        ]

    def staged(self, unfinished: Unfinished) -> BinaryIO:
        """As the protocol says."""
        return (self._folder / "staged" / unfinished.stage).open("rb")
