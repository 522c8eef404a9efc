"""Whole stores for the command line: backed up, restored, copied, verified. A server may run meanwhile."""

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
"""Profiles grow beyond what one message holds."""


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
    with _faults(), _open(place) as store:
        return back_up(store, target, metadata.version("nodewise"), since)


def restore_backup(place: Place, backup: Path, digest: str = "") -> CopyFigures:
    """Bring a backup into an empty store, if it holds only what could have been sent to a server.

    Parameters
    ----------
    digest : str
        Which the backup must have; empty = any.
    """
    with _faults(), open_backup(backup, digest) as source:
        for problem in verify_store(source, check=_wrong_content).problems:
            raise CopyError(f"{backup}: {problem}; nothing was restored", of_input=False)
        with _open(place, new=True) as store:
            return copy_store(source, store)


def bring_over(place: Place, to: Place) -> CopyFigures:
    """Bring what a store holds into another, which is empty."""
    with _faults(), _open(place) as store, _open(to, new=True) as empty:
        return copy_store(store, empty)


def verify_place(place: Place, backup: Path | None, *, content: bool) -> Verdict:
    """Look at all of a backup, or of a store.

    Raises
    ------
    UncheckedError
    """
    with _faults(), TemporaryDirectory() as fresh:
        # What is in a bucket is fetched from there, whatever copies this machine has.
        source = _open(place, trace_cache=fresh, trace_cache_bytes=0) if backup is None else open_backup(backup)
        try:
            with source as store:
                return verify_store(store, content=content, check=_wrong_content)
        except NodewiseError as error:
            if error.metadata.get("cause") == CORRUPT:
                return Verdict(problems=("the database is damaged: some of it cannot be read",))
            if error.reason is not Reason.STORE_UNAVAILABLE:
                raise
            raise UncheckedError(error.message) from None
        except CopyError as error:
            if error.of_input:
                raise
            return Verdict(problems=(str(error),))


def _wrong_content(profile: Profile) -> str:
    """What of a profile no server would have taken; empty = nothing."""
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
        raise CopyError("a store in memory is gone with its process: name one that lasts")
    if file is not None and not new and not file.exists():
        raise CopyError(f"store {url}: no such file")
    with start_faults(settings):
        store = store_of(settings)
    try:
        if not isinstance(store, SqlProfileStore):
            raise CopyError(f"store {url}: is another's, which brings its own backups")
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
