"""Whole stores for the command line: backed up, restored, copied, verified. A server may run meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.profiles.backups.contents import StoreContents
from nodewise.profiles.backups.directory import BackupContents, BackupError, BackupFigures, back_up
from nodewise.profiles.backups.filling import FillFigures, fill
from nodewise.profiles.backups.verifying import Verdict, verify_backup, verify_store
from nodewise.profiles.opening import sqlite_file
from nodewise.profiles.sql_store import SqlProfileStore
from nodewise.runtime.assembly import start_faults, store_of
from nodewise.runtime.logging import configure_logging
from nodewise.runtime.settings import Settings, load_settings, redacted_url
from nodewise.runtime.starting import StartError

__all__ = [
    "BackupFigures",
    "FillFigures",
    "Place",
    "UncheckedError",
    "Verdict",
    "backed_up",
    "copied",
    "restored",
    "verified",
]


class UncheckedError(Exception):
    """What was to be verified does not answer, so nothing can be said of it; the text is for the operator."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a store is: settings that say so, each over what the file and the environment say."""

    config: Path | None = None
    store: str | None = None
    traces: str | None = None

    def settings(self, **more: Any) -> Settings:
        """All of them."""
        return load_settings(self.config, store=self.store, traces=self.traces, **more)


def backed_up(place: Place, target: Path, since: Path | None) -> BackupFigures:
    """Copy a store to a directory that does not exist yet.

    Raises
    ------
    StartError
        With a text for the operator, as all of these do.
    """
    with _faults(), _opened(place) as store:
        return back_up(store, target, metadata.version("nodewise"), since)


def restored(place: Place, backup: Path) -> FillFigures:
    """Bring a backup into an empty store."""
    with _faults():
        contents = BackupContents(backup)
        for problem in contents.wrong():
            raise BackupError(f"{backup}: {problem}; nothing was restored", of_input=False)
        with _opened(place, new=True) as store:
            return fill(store, contents)


def copied(place: Place, to: Place) -> FillFigures:
    """Bring what a store holds into another, which is empty."""
    with _faults(), _opened(place) as store, _opened(to, new=True) as empty, store.whole() as connection:
        return fill(empty, StoreContents(store, connection))


def verified(place: Place, backup: Path | None, *, content: bool) -> Verdict:
    """Look at all of a backup, or of a store.

    Raises
    ------
    UncheckedError
    """
    with _faults():
        if backup is not None:
            return verify_backup(BackupContents(backup), content=content)
        try:
            # What is in a bucket is fetched from there, whatever copies this machine has.
            with TemporaryDirectory() as fresh, _opened(place, trace_cache=fresh, trace_cache_bytes=0) as store:
                return verify_store(store, content=content)
        except NodewiseError as error:
            if error.reason is not Reason.STORE_UNAVAILABLE:
                raise
            raise UncheckedError(error.message) from None


@contextmanager
def _opened(place: Place, *, new: bool = False, **more: Any) -> Iterator[SqlProfileStore]:
    settings = place.settings(**more)
    named = redacted_url(settings.store)
    file = sqlite_file(settings.store)
    if settings.store == "memory:":
        raise BackupError("a store in memory is gone with its process: name one that lasts")
    if file is not None and not new and not file.exists():
        raise BackupError(f"store {named}: no such file")
    with start_faults(settings):
        store = store_of(settings)
    try:
        if not isinstance(store, SqlProfileStore):
            raise BackupError(f"store {named}: is another's, which brings its own backups")
        yield store
    finally:
        store.close()


@contextmanager
def _faults() -> Iterator[None]:
    configure_logging("warning")
    with start_faults():
        try:
            yield
        except BackupError as error:
            raise StartError(str(error), of_input=error.of_input) from None
        except OSError as error:
            raise StartError(f"{error.filename or 'the disk'}: {error.strerror or error}", of_input=False) from None
