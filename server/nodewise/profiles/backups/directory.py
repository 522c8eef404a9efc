"""A backup: a directory that appears once it is complete on the disk.

It holds a SQLite store, ``store.db``, whatever kind of store was backed up, with its traces in ``traces``
as in every store. ``manifest.json`` lists the content, with the SHA-256 of ``store.db`` and of itself.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import orjson

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.profiles.backups.copying import CopyError, copy_store, referred_traces
from nodewise.profiles.condition import FULL, disk_cause
from nodewise.profiles.private_files import make_private_folder, open_private
from nodewise.profiles.sql_schema import SCHEMA_VERSION
from nodewise.profiles.sql_store import SqlProfileStore
from nodewise.profiles.sqlite_store import SqliteProfileStore
from nodewise.profiles.store import StoreOptions
from nodewise.profiles.traces import TraceStore, sync

__all__ = ["BackupFigures", "back_up", "open_backup"]

FORMAT: Final = "nodewise backup"
FORMAT_VERSION: Final = 2
_MANIFEST: Final = "manifest.json"
_STORE: Final = "store.db"
_ATTEMPTS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupFigures:
    """What a backup holds, what was copied to it, and its digest, which a restore can require."""

    profiles: int
    rows: int
    traces: int
    trace_bytes: int
    copied_bytes: int
    digest: str


def back_up(store: SqlProfileStore, target: Path, version: str, since: Path | None = None) -> BackupFigures:
    """Copy a store as of one moment, while it serves.

    An interrupted backup keeps its traces in a directory with the target's name and ``.partial``, and continues there.

    Parameters
    ----------
    target : path
        Directory, which does not exist yet.
    version : str
        Version of this release, for the manifest.
    since : path or None
        An earlier backup, whose traces are linked instead of copied.

    Raises
    ------
    CopyError
        If the target exists, or traces kept disappearing; NodewiseError and OSError as stores and disks raise them.
    """
    if target.exists():
        raise CopyError(f"{target} exists; name another directory, and pass {target} as --since to reuse its traces")
    if not target.parent.is_dir():
        raise CopyError(f"the directory {target.parent} does not exist")
    if since is not None:
        _manifest(since)  # raises CopyError if it is not a backup
    partial = target.with_name(f"{target.name}.partial")
    make_private_folder(partial)
    if since is not None:
        _link_traces(since / "traces", partial / "traces")
    figures = None
    try:
        for _ in range(_ATTEMPTS):  # a purge may remove a trace meanwhile; the next attempt copies the later state
            figures = figures or _write_all(store, partial, version)
    except (NodewiseError, OSError) as error:
        cause = disk_cause(error) if isinstance(error, OSError) else error.metadata.get("cause")
        if cause != FULL:
            raise
        text = f"{target}: the disk is full; free space, then run the backup again to continue it"
        raise CopyError(text, of_input=False) from None
    if figures is None:
        text = "a trace that rows refer to is missing; run nodewise verify to list what is missing"
        raise CopyError(text, of_input=False)
    partial.rename(target)
    sync(target.parent)
    return figures


def _write_all(store: SqlProfileStore, partial: Path, version: str) -> BackupFigures | None:
    """Write everything; None = a trace that the copied rows refer to was removed meanwhile."""
    for path in partial.glob(f"{_STORE}*"):
        path.unlink()
    shutil.rmtree(partial / "traces" / "staged", ignore_errors=True)
    copy = SqliteProfileStore(partial / _STORE, StoreOptions(durability="power", traces=TraceStore(partial / "traces")))
    try:
        figures = copy_store(store, copy, same_store=True)
        with copy.whole() as connection:
            trace_names = {name for name, _ in referred_traces(connection)}
        copy.traces.remove_all(name for name, _ in list(copy.traces.finished_traces()) if name not in trace_names)
    except (NodewiseError, FileNotFoundError) as error:
        if isinstance(error, NodewiseError) and error.reason is not Reason.INVALID_FIELD:
            raise
        return None
    finally:
        copy.close()
    (partial / f"{_STORE}-id").unlink(missing_ok=True)
    about = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "nodewise": version,
        "create_time_s": time.time(),
        "schema_version": SCHEMA_VERSION,
        "profiles": figures.profiles,
        "rows": figures.rows,
        "traces": figures.traces,
        "trace_bytes": figures.trace_bytes,
        "store_sha256": _sha256_of(partial / _STORE),
    }
    digest = _digest_of(about)
    with open_private(partial / _MANIFEST, "wb") as file:
        file.write(orjson.dumps({**about, "digest": digest}, option=orjson.OPT_INDENT_2))
        file.flush()
        os.fsync(file.fileno())
    sync(partial)
    return BackupFigures(
        profiles=figures.profiles,
        rows=figures.rows,
        traces=figures.traces,
        trace_bytes=figures.trace_bytes,
        copied_bytes=figures.copied_bytes,
        digest=digest,
    )


def _link_traces(earlier: Path, folder: Path) -> None:
    for path in earlier.glob("blobs/*/*"):
        to = folder / path.relative_to(earlier)
        make_private_folder(to.parent)
        with suppress(OSError):  # it exists, or is on another file system
            os.link(path, to)


@contextmanager
def open_backup(folder: Path, digest: str = "") -> Iterator[SqlProfileStore]:
    """The store of a backup: a copy of its rows, and its traces in their place.

    Parameters
    ----------
    digest : str
        Digest that the backup must have; empty = any that matches its content.

    Raises
    ------
    CopyError
        If it is not a backup, is incomplete, is of a newer release, or was changed.
    """
    about = _manifest(folder)
    if digest and digest != about["digest"]:
        raise CopyError(f"{folder}: has the digest {about['digest']}, not {digest}", of_input=False)
    if about["schema_version"] > SCHEMA_VERSION:
        raise CopyError(
            f"{folder}: has schema {about['schema_version']}, this release supports {SCHEMA_VERSION};"
            " restore it with the release that wrote it"
        )
    with TemporaryDirectory() as scratch:
        copy = Path(shutil.copyfile(folder / _STORE, Path(scratch, _STORE)))
        if _sha256_of(copy) != about["store_sha256"]:
            raise CopyError(f"{folder}: {_STORE} was changed after it was written", of_input=False)
        store = SqliteProfileStore(copy, StoreOptions(traces=TraceStore(folder / "traces")))
        try:
            yield store
        finally:
            store.close()


def _manifest(folder: Path) -> Mapping[str, Any]:
    if folder.name.endswith(".partial"):
        raise CopyError(f"{folder}: is incomplete; run the backup again to continue it")
    try:
        about: dict[str, Any] = orjson.loads((folder / _MANIFEST).read_bytes())
        ours, version = about["format"] == FORMAT, about["version"]
    except FileNotFoundError:
        raise CopyError(f"{folder}: is not a backup: it has no {_MANIFEST}") from None
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError):
        raise CopyError(f"{folder}: {_MANIFEST} cannot be read") from None
    if not ours:
        raise CopyError(f"{folder}: is not a backup of Nodewise")
    if version != FORMAT_VERSION:
        raise CopyError(
            f"{folder}: has format {version}, this release reads {FORMAT_VERSION}; use the release that wrote it"
        )
    if about.pop("digest", "") != (digest := _digest_of(about)):
        raise CopyError(f"{folder}: {_MANIFEST} was changed after it was written", of_input=False)
    return {**about, "digest": digest}


def _digest_of(about: Mapping[str, Any]) -> str:
    return hashlib.sha256(orjson.dumps(about, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
