"""Opening the store of a URL."""

from __future__ import annotations

import re
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

import structlog

from nodewise.domain.errors import invalid_field
from nodewise.profiles.artefacts import DEFAULT_ARTEFACT_BYTES
from nodewise.profiles.sqlite_store import SqliteProfileStore
from nodewise.profiles.store import ProfileStore, StoreOptions
from nodewise.profiles.traces import DEFAULT_CACHE_BYTES, TraceStore

__all__ = ["StoreOptions", "open_store", "open_traces", "sqlite_file"]

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(.*)", re.DOTALL)
_KNOWN: Final = "memory:, sqlite:PATH, a path or postgresql://HOST/DATABASE"
_POSTGRES: Final = frozenset({"postgresql", "postgres"})
_SQLITE: Final = frozenset({"", "memory", "sqlite"})
_USUAL: Final = StoreOptions()
_GROUP: Final = "nodewise.stores"
"""Group of entry points, named by scheme: functions of the URL and :class:`StoreOptions` that return a ProfileStore."""

_log = structlog.get_logger(__name__)


def open_store(url: str, options: StoreOptions = _USUAL) -> ProfileStore:
    """The store that a URL names.

    ``memory:``, ``sqlite:PATH`` (also ``sqlite:///absolute/path``), a plain path, ``postgresql://HOST/DATABASE``, or a
    scheme for which an installed distribution has an entry point of the group ``nodewise.stores``.

    Raises
    ------
    NodewiseError
        INVALID_FIELD for another scheme or no path; STORE_UNAVAILABLE if the file cannot be opened.
    StoreFormatError
        If the file is not a store of Nodewise, or has the schema of a newer release.
    """
    scheme = _scheme(url)
    if scheme in _POSTGRES:
        return _postgres(url, options)
    if scheme in _SQLITE:
        return SqliteProfileStore(_path(url), options)
    return _open_installed(scheme, url, options)


def open_traces(
    where: str,
    cache: Path | None = None,
    *,
    sync_chunks: bool = False,
    artefact_bytes: int = DEFAULT_ARTEFACT_BYTES,
    cache_bytes: int = DEFAULT_CACHE_BYTES,
) -> TraceStore:
    """The store of traces of a URL: a directory, or ``s3://BUCKET/PREFIX``.

    Parameters
    ----------
    cache : path or None
        Directory for local copies of traces in a bucket; None = a temporary one.
    sync_chunks : bool
        Whether chunks in a directory survive a power loss.
    artefact_bytes, cache_bytes : int
        Most bytes of artefacts of traces, and of local copies of traces in a bucket.

    Raises
    ------
    NodewiseError
        INVALID_FIELD for another scheme, or if its client is not installed.
    """
    scheme, colon, _ = where.partition("://")
    if not colon:
        return TraceStore(Path(where), sync_chunks=sync_chunks, artefact_bytes=artefact_bytes)
    if scheme.lower() != "s3":
        raise invalid_field("traces", "must be a directory or s3://BUCKET/PREFIX")
    try:
        from nodewise.profiles.remote_traces import RemoteTraceStore, S3Blobs  # noqa: PLC0415  # boto3 is an extra
    except ImportError:
        raise invalid_field("traces", "needs the S3 client: pip install 'nodewise[s3]'") from None
    return RemoteTraceStore(S3Blobs(where), cache, artefact_bytes=artefact_bytes, cache_bytes=cache_bytes)


def sqlite_file(url: str) -> Path | None:
    """The file of a SQLite store; None = the store is of another kind.

    Raises
    ------
    NodewiseError
        INVALID_FIELD for a URL without a path.
    """
    return _path(url) if _scheme(url) in _SQLITE else None


def _open_installed(scheme: str, url: str, options: StoreOptions) -> ProfileStore:
    entries = [entry for entry in entry_points(group=_GROUP) if entry.name.lower() == scheme]
    if len(entries) != 1:
        which = "is not a known scheme" if not entries else "is a scheme that several distributions register"
        raise invalid_field("store", f"must be {_KNOWN}; {scheme}: {which}")
    try:
        opening = entries[0].load()
    except Exception as error:  # noqa: BLE001 - whatever its import raises stops the start with a text
        _log.exception("store_not_loaded", scheme=scheme, error=type(error).__name__)
        raise invalid_field("store", f"the plugin for {scheme}: cannot be loaded; the log says why") from None
    store: ProfileStore = opening(url, options)
    return store


def _postgres(url: str, options: StoreOptions) -> ProfileStore:
    try:
        from nodewise.profiles.postgres_store import PostgresProfileStore  # noqa: PLC0415  # its driver is an extra
    except ImportError:
        message = "needs the PostgreSQL driver: pip install 'nodewise[postgresql]'"
        raise invalid_field("store", message) from None
    if options.traces is None:
        text = "must name a directory that all replicas share or s3://BUCKET/PREFIX, where the store is PostgreSQL"
        raise invalid_field("traces", text)
    return PostgresProfileStore(url, options.traces, options)


def _scheme(url: str) -> str:
    """The scheme in lower case; empty for a plain path."""
    match = _SCHEME.fullmatch(url)
    return "" if match is None else match[1].lower()


def _path(url: str) -> Path | None:
    """The file of a SQLite store; None = it is in memory."""
    scheme = _scheme(url)
    path = url.partition(":")[2] if scheme else url
    if scheme == "memory":
        if path:
            raise invalid_field("store", f"must be {_KNOWN}; a store in memory has no path")
        return None
    if path.startswith("//"):
        path = path[2:]
        if not path.startswith("/"):
            raise invalid_field("store", "must not name a host: write sqlite:PATH or sqlite:///absolute/path")
    if not path or path == ":memory:":
        raise invalid_field("store", f"must be {_KNOWN}; for a store in memory write memory:")
    return Path(path)
