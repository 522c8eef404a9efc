"""An executor that stores results as they arrive, so that a later run does only what is missing."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

from nodewise.ports.executor import Outcome, ResultT, SharedT, UnitT, Work, WorkExecutor

__all__ = ["ResumableExecutor"]


class ResumableExecutor:
    """Runs units by another executor, except those whose results a file holds.

    A file may hold results of several runs: a unit is found by the version of Nodewise, the work, the shared value and
    the unit itself. Only results that are bytes are stored; failed units run again.

    Parameters
    ----------
    executor : WorkExecutor
        Runs what is missing.
    path : Path
        The file, an SQLite database; created if absent.
    """

    def __init__(self, executor: WorkExecutor, path: Path) -> None:
        self._executor = executor
        self._path = path

    def run(
        self, work: Work[SharedT, UnitT, ResultT], shared: SharedT, units: Sequence[UnitT]
    ) -> Iterator[Outcome[ResultT]]:
        """Yield the stored outcomes, then those of the executor.

        Raises
        ------
        sqlite3.Error
            The file is no such database, or cannot be written; before the first outcome where it is seen.
        """
        common = sha256(repr((version("nodewise"), work.__module__, work.__qualname__, shared)).encode()).digest()
        keys = [sha256(common + repr(unit).encode()).digest() for unit in units]
        with closing(sqlite3.connect(self._path)) as database:
            database.execute("CREATE TABLE IF NOT EXISTS results (unit BLOB PRIMARY KEY, result BLOB NOT NULL)")
            stored = dict(database.execute("SELECT unit, result FROM results"))
            missing = [index for index, key in enumerate(keys) if key not in stored]
            for index in sorted({*range(len(units))} - {*missing}):
                yield Outcome(index=index, result=stored[keys[index]])
            if not missing:
                return
            for outcome in self._executor.run(work, shared, [units[index] for index in missing]):
                index = missing[outcome.index]
                if isinstance(outcome.result, bytes):
                    with database:
                        database.execute("INSERT OR REPLACE INTO results VALUES (?, ?)", (keys[index], outcome.result))
                yield Outcome(index=index, result=outcome.result, fault=outcome.fault)
