"""What namespaces store, counted in the transactions that store it: nobody passes a quota, however many write."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from nodewise.domain.namespaces import namespace_of
from nodewise.profiles.quotas import (
    BATCH_BYTES,
    NO_USAGE,
    PROFILE_BYTES,
    RETRACTED_BYTES,
    SESSION_BYTES,
    StoreQuotas,
    Usage,
    check_quotas,
)
from nodewise.profiles.sql_rows import Connection

__all__ = ["Counting", "usage_by_namespace", "usage_of_profile"]

# Counters are rows of `meta`: "usage:KIND:NAMESPACE", and "usage_of_all:KIND" of all together. A store that an earlier
# release wrote has none of them, nor the mark that they count: they are made of what the tables hold, once.
_COUNTED: Final = "usage_counted"
_KINDS: Final = ("stored_bytes", "trace_bytes", "profiles")
_PREFIX: Final = "usage:"
_TOTALS: Final = tuple(f"usage_of_all:{kind}" for kind in _KINDS)
_TOGETHER: Final = 256
"""Profiles that are counted by one statement: none takes long, however large the store."""
_ADD: Final = (
    "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = meta.value + excluded.value"
)
_PARTS: Final = (
    (
        "SELECT count(*), coalesce(sum(length(b.payload)), 0) FROM sessions s JOIN batches b ON b.session_key = s.key"
        " WHERE s.profile_key = ?"
    ),
    "SELECT count(*), 0 FROM sessions WHERE profile_key = ?",
    "SELECT count(*), coalesce(sum(length(reason)), 0) FROM retractions WHERE profile_key = ?",
    "SELECT count(*), 0 FROM retracted WHERE profile_key = ?",
    "SELECT count(*), 0 FROM retracted_evidence WHERE profile_key = ?",
)
_PART_BYTES: Final = (BATCH_BYTES, SESSION_BYTES, BATCH_BYTES, RETRACTED_BYTES, RETRACTED_BYTES)
_TRACES: Final = (
    "SELECT coalesce(sum(t.size_bytes), 0) FROM sessions s JOIN traces t ON t.session_key = s.key"
    " WHERE s.profile_key = ?"
)
_PROFILES: Final = "SELECT key, profile_id FROM profiles WHERE key > ? ORDER BY key LIMIT ?"


def usage_of_profile(connection: Connection, key: int) -> Usage:
    """What a profile stores, by its rows."""
    stored = PROFILE_BYTES
    for statement, each in zip(_PARTS, _PART_BYTES):
        rows, content = connection.execute(statement, (key,)).fetchone()
        stored += int(rows) * each + int(content)
    (traces,) = connection.execute(_TRACES, (key,)).fetchone()
    return Usage(stored_bytes=stored, trace_bytes=int(traces), profiles=1)


def usage_by_namespace(connection: Connection) -> dict[str, Usage]:
    """What each namespace stores, of those that store anything."""
    counted: dict[str, dict[str, int]] = defaultdict(dict)
    marked = False
    for name, value in connection.execute("SELECT name, value FROM meta").fetchall():
        if name.startswith(_PREFIX):
            kind, _, namespace = name[len(_PREFIX) :].partition(":")
            counted[namespace][kind] = int(value)
        marked |= name == _COUNTED
    found = {name: Usage(**kinds) for name, kinds in counted.items()} if marked else _recounted(connection)
    return {name: usage for name, usage in sorted(found.items()) if usage != NO_USAGE}


def _recounted(connection: Connection) -> dict[str, Usage]:
    found: dict[str, Usage] = defaultdict(Usage)
    last = -1
    while rows := connection.execute(_PROFILES, (last, _TOGETHER)).fetchall():
        for key, profile_id in rows:
            found[namespace_of(profile_id)] += usage_of_profile(connection, key)
        last = rows[-1][0]
    return found


class Counting:
    """The counters in one transaction that writes, which no other runs beside.

    Parameters
    ----------
    quotas : StoreQuotas
        What is allowed.
    free_bytes : callable
        On the disks, asked once; None = nobody knows.
    """

    def __init__(self, connection: Connection, quotas: StoreQuotas, free_bytes: Callable[[], int | None]) -> None:
        self._connection = connection
        self._quotas = quotas
        self._ask_free_bytes = free_bytes
        self._free_bytes: list[int | None] = []
        self._held: dict[str, Usage] = {}
        self._total = NO_USAGE
        self._more: dict[str, Usage] = defaultdict(Usage)

    def begin(self, profile_ids: Iterable[str]) -> None:
        """Look up what the namespaces of these have, outside of what may be taken back by itself."""
        namespaces = sorted({namespace_of(profile_id) for profile_id in profile_ids})
        if not self._look_up(namespaces):
            self._connection.executemany(_ADD, [*_counters(_recounted(self._connection)), (_COUNTED, 1)])
            self._look_up(namespaces)

    def check(self, profile_id: str, more: Usage) -> None:
        """Refuse what would exceed a quota. Raises NodewiseError QUOTA_EXCEEDED."""
        namespace = namespace_of(profile_id)
        held, all_more = self._held[namespace] + self._more[namespace], sum(self._more.values(), NO_USAGE)
        if not self._free_bytes:
            self._free_bytes.append(self._ask_free_bytes() if self._quotas.free_bytes else None)
        free = self._free_bytes[0]
        if free is not None:
            free -= max(0, all_more.stored_bytes + all_more.trace_bytes)
        check_quotas(self._quotas, namespace, held, self._total + all_more, more, free)

    def add(self, profile_id: str, more: Usage) -> None:
        """It is stored; with less than nothing, gone."""
        self._more[namespace_of(profile_id)] += more

    def settle(self) -> None:
        """Write the counters down, as the transaction ends."""
        rows = [row for row in _counters(self._more) if row[1]]
        if rows:
            self._connection.executemany(_ADD, rows)

    def _look_up(self, namespaces: list[str]) -> bool:
        """What these have, and all together; False = the store does not count yet."""
        of_all = _TOTALS if self._quotas.total_bytes else ()
        names = [_COUNTED, *of_all, *(_name(kind, each) for each in namespaces for kind in _KINDS)]
        places = ", ".join("?" * len(names))
        statement = f"SELECT name, value FROM meta WHERE name IN ({places})"  # noqa: S608  # places alone
        found = {name: int(value) for name, value in self._connection.execute(statement, names).fetchall()}
        self._total = Usage(**{kind: found.get(name, 0) for kind, name in zip(_KINDS, of_all)})  # where it matters
        self._held = {each: Usage(**{kind: found.get(_name(kind, each), 0) for kind in _KINDS}) for each in namespaces}
        return _COUNTED in found


def _name(kind: str, namespace: str) -> str:
    return f"{_PREFIX}{kind}:{namespace}"


def _counters(more: Mapping[str, Usage]) -> list[tuple[str, int]]:
    """Rows to add to the counters, those of all together too."""
    total = sum(more.values(), NO_USAGE)
    rows = [(name, getattr(total, kind)) for kind, name in zip(_KINDS, _TOTALS)]
    return rows + [(_name(kind, each), getattr(usage, kind)) for each, usage in more.items() for kind in _KINDS]
