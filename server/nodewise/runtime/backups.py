"""Operations on whole stores for the command line: back up, restore, copy, verify. A server may run meanwhile."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.profile import Profile
from nodewise.mapper.profiles import write_profile
from nodewise.mapper.reading import Reader
from nodewise.ports.limits import Limits
from nodewise.profiles.backups.copying import CopyError, CopyFigures, copy_store
from nodewise.profiles.backups.directory import BackupFigures, back_up, open_backup
from nodewise.profiles.backups.verifying import Verdict, verify_store
from nodewise.profiles.condition import CORRUPT
from nodewise.profiles.opening import sqlite_file
from nodewise.profiles.sql_store import SqlProfileStore
from nodewise.profiles.store import StoreFormatError
from nodewise.rpc.sources import read_content
from nodewise.runtime.assembly import start_faults, store_of
from nodewise.runtime.logging import configure_logging
from nodewise.runtime.settings import Settings, load_settings, redacted_url
from nodewise.runtime.starting import StartError

__all__ = [
    "BackupFigures",
    "CopyFigures",
    "Place",
    "UncheckedError",
    "Verdict",
    "backed_up",
    "bring_over",
    "restore_backup",
    "verify_place",
]

_ANY_ROWS: Final = Limits(rows_per_batch=sys.maxsize)
"""Profiles of a store may have more rows than one message may have."""


class UncheckedError(Exception):
    """The store does not answer, so it cannot be verified; the text is for the operator."""


@dataclass(frozen=True, slots=True)
class Place:
    """Settings that locate a store; each takes precedence over the file and the environment."""

    config: Path | None = None
    store: str | None = None
    traces: str | None = None

    def settings(self, **more: Any) -> Settings:
        """The complete settings."""
        return load_settings(self.config, store=self.store, traces=self.traces, **more)


def backed_up(place: Place, target: Path, since: Path | None) -> BackupFigures:
    """Copy a store to a directory that does not exist yet.

    Raises
    ------
    StartError
        With a text for the operator, as in all functions below.
    """
    with _faults(), _open(place) as store:
        return back_up(store, target, metadata.version("nodewise"), since)


def restore_backup(place: Place, backup: Path, digest: str = "") -> CopyFigures:
    """Copy a backup to an empty store, if a server would accept all its content.

    Parameters
    ----------
    digest : str
        The digest that the backup must have; empty = any.
    """
    with _faults(), open_backup(backup, digest) as source:
        for problem in verify_store(source, check=_wrong_content).problems:
            raise CopyError(f"{backup}: {problem}; nothing was restored", of_input=False)
        with _open(place, new=True) as store:
            return copy_store(source, store)


def bring_over(place: Place, to: Place) -> CopyFigures:
    """Copy a store to another, empty store."""
    with _faults(), _open(place) as store, _open(to, new=True) as empty:
        return copy_store(store, empty)


def verify_place(place: Place, backup: Path | None, *, content: bool) -> Verdict:
    """Verify all of a backup, or of a store.

    Raises
    ------
    UncheckedError
    """
    with _faults(), TemporaryDirectory() as fresh:
        # A fresh cache, so that traces in a bucket are read from the bucket and not from copies on this machine.
        source = _open(place, trace_cache=fresh, trace_cache_bytes=0) if backup is None else open_backup(backup)
        try:
            with source as store:
                return verify_store(store, content=content, check=_wrong_content)
        except NodewiseError as error:
            if error.metadata.get("cause") == CORRUPT:
                return Verdict(problems=("the database is damaged: parts of it cannot be read",))
            if error.reason is not Reason.STORE_UNAVAILABLE:
                raise
            raise UncheckedError(error.message) from None
        except CopyError as error:
            if error.of_input:
                raise
            return Verdict(problems=(str(error),))


def _wrong_content(profile: Profile) -> str:
    """Why a server would refuse a profile; empty = it would accept it."""
    message = write_profile(profile)
    reader = Reader()
    reader.identifier(profile.profile_id, "profile_id")
    try:
        reader.finish()
        read_content(message, "content", _ANY_ROWS)
    except NodewiseError as error:
        return error.message
    return ""


@contextmanager
def _open(place: Place, *, new: bool = False, **more: Any) -> Iterator[SqlProfileStore]:
    settings = place.settings(**more)
    url = redacted_url(settings.store)
    file = sqlite_file(settings.store)
    if settings.store == "memory:":
        raise CopyError("setting store: memory: ends with its process; name a store that lasts, such as sqlite:PATH")
    if file is not None and not new and not file.exists():
        raise CopyError(f"store {url}: no such file")
    try:
        store = store_of(settings)
    except StoreFormatError as error:
        raise CopyError(f"store {url}: {error}", of_input=False) from None
    try:
        if not isinstance(store, SqlProfileStore):
            raise CopyError(f"store {url}: this kind of store comes from a plugin, which has its own backups")
        yield store
    finally:
        store.close()


@contextmanager
def _faults() -> Iterator[None]:
    configure_logging("warning")
    with start_faults():
        try:
            yield
        except CopyError as error:
            raise StartError(str(error), of_input=error.of_input) from None
        except OSError as error:
            raise StartError(f"{error.filename or 'the disk'}: {error.strerror or error}", of_input=False) from None
