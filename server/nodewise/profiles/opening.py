"""From a URL to a store."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from nodewise.domain.errors import invalid_field
from nodewise.profiles.artefacts import DEFAULT_ARTEFACT_BYTES
from nodewise.profiles.sqlite_schema import Durability
from nodewise.profiles.sqlite_store import SqliteProfileStore
from nodewise.profiles.store import DEFAULT_DELETED_KEPT_S, ProfileStore
from nodewise.profiles.traces import TraceStore

__all__ = ["open_store"]

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(.*)", re.DOTALL)
_KNOWN: Final = "memory:, sqlite:PATH, a path or postgresql://HOST/DATABASE"
_POSTGRES: Final = frozenset({"postgresql", "postgres"})


def open_store(
    url: str,
    durability: Durability = "process",
    traces: TraceStore | None = None,
    *,
    scored: bool = True,
    artefact_bytes: int = DEFAULT_ARTEFACT_BYTES,
    deleted_kept_s: float = DEFAULT_DELETED_KEPT_S,
) -> ProfileStore:
    """The store that a URL names.

    ``memory:``, ``sqlite:PATH`` (also ``sqlite:///absolute/path``), a plain path, or ``postgresql://HOST/DATABASE``.

    Parameters
    ----------
    durability : "process" or "power"
        What acknowledged batches survive; see :class:`SqliteProfileStore`.
    traces : TraceStore or None
        Where traces go; None = beside the rows, or in a temporary directory. PostgreSQL needs one.
    scored : bool
        Whether commits are put down to be scored.
    artefact_bytes : int
        Most that is kept of what was read of traces, where ``traces`` is None.
    deleted_kept_s : float
        How long deleted profiles can be brought back.

    Raises
    ------
    NodewiseError
        INVALID_FIELD for another scheme or no path; STORE_UNAVAILABLE if the file cannot be opened.
    StoreFormatError
        If the file is no store of ours, or of a newer release.
    """
    if durability not in {"process", "power"}:
        raise invalid_field("durability", "must be 'process' or 'power'")
    scheme = _SCHEME.fullmatch(url)
    if scheme is not None and scheme[1].lower() in _POSTGRES:
        return _postgres(url, traces, scored=scored, deleted_kept_s=deleted_kept_s)
    return SqliteProfileStore(
        _path(url), durability, traces, scored=scored, artefact_bytes=artefact_bytes, deleted_kept_s=deleted_kept_s
    )


def _postgres(url: str, traces: TraceStore | None, *, scored: bool, deleted_kept_s: float) -> ProfileStore:
    try:
        from nodewise.profiles.postgres_store import PostgresProfileStore  # noqa: PLC0415  # its driver is an extra
    except ImportError:
        needed = "needs the driver of PostgreSQL: pip install 'nodewise[postgresql]'"
        raise invalid_field("store", needed) from None
    if traces is None:
        raise invalid_field("traces", "must name a directory that all replicas share, where the store is PostgreSQL")
    return PostgresProfileStore(url, traces, scored=scored, deleted_kept_s=deleted_kept_s)


def _path(url: str) -> Path | None:
    """The file of a store; None = it is in memory."""
    match = _SCHEME.fullmatch(url)
    scheme, path = ("sqlite", url) if match is None else (match[1].lower(), match[2])
    if scheme == "memory" and not path:
        return None
    if scheme != "sqlite":
        raise invalid_field("store", f"must be {_KNOWN}; {scheme}: is not known")
    if path.startswith("//"):
        path = path[2:]
        if not path.startswith("/"):
            raise invalid_field("store", "must not name a host: write sqlite:PATH or sqlite:///absolute/path")
    if not path or path == ":memory:":
        raise invalid_field("store", f"must be {_KNOWN}; for a store in memory write memory:")
    return Path(path)
