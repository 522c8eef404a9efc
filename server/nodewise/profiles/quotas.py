"""Quotas: how much a namespace may store, counted in the transactions that store it, so that none exceeds its quota."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.namespaces import namespace_of
from nodewise.profiles.sql_rows import Connection

__all__ = [
    "BATCH_BYTES",
    "DEFAULT_QUOTAS",
    "NO_USAGE",
    "PROFILE_BYTES",
    "RETRACTED_BYTES",
    "SESSION_BYTES",
    "Counting",
    "StoreQuotas",
    "Usage",
    "usage_by_namespace",
    "usage_of_profile",
]


BATCH_BYTES: Final = 256
PROFILE_BYTES: Final = 1024
SESSION_BYTES: Final = 512
RETRACTED_BYTES: Final = 64
"""Approximate bytes of a row besides its content: keys, hashes and indexes. Empty batches fill a disk as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What is stored, or an increase of it; deleted profiles count until they are purged.

    Attributes
    ----------
    stored_bytes : int
        Bytes of evidence, and about what its rows take besides.
    trace_bytes : int
        Bytes of traces, complete and unfinished; a trace that several sessions sent counts for each of them.
    profiles : int
        Profiles, also those without a commit.
    """

    stored_bytes: int = 0
    trace_bytes: int = 0
    profiles: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            stored_bytes=self.stored_bytes + other.stored_bytes,
            trace_bytes=self.trace_bytes + other.trace_bytes,
            profiles=self.profiles + other.profiles,
        )

    def __neg__(self) -> Usage:
        return Usage(stored_bytes=-self.stored_bytes, trace_bytes=-self.trace_bytes, profiles=-self.profiles)


NO_USAGE: Final = Usage()


@dataclass(frozen=True, kw_only=True)
class StoreQuotas:
    """Limits of what may be stored; 0 = no limit.

    Attributes
    ----------
    stored_bytes : int
        Evidence of a namespace (the first segment of a profile's id; ids without a slash share one), deleted profiles
        included until they are purged. A hundred thousand profiles of a thousand runs each take about 10 GB.
        0 = no limit, as for all quotas.
    trace_bytes : int
        Traces of a namespace, as they were sent, counted per session.
    profiles : int
        Profiles of a namespace.
    total_bytes : int
        Evidence and traces of all namespaces together.
    free_bytes : int
        Bytes that ingest leaves free on the disks of the store and of traces, where these are directories.
    """

    stored_bytes: int = 64 << 30
    trace_bytes: int = 1 << 40
    profiles: int = 1_000_000
    total_bytes: int = 0
    free_bytes: int = 256 << 20


DEFAULT_QUOTAS: Final = StoreQuotas()

_WHAT: Final = {
    "stored_bytes": ("bytes of evidence", "bytes"),
    "trace_bytes": ("bytes of traces", "bytes"),
    "profiles": ("profiles", "profiles"),
}


def _check_quotas(
    quotas: StoreQuotas, namespace: str, usage: Usage, total: Usage, more: Usage, free_bytes: int | None
) -> None:
    """Raise an error for an increase that would exceed a quota.

    Parameters
    ----------
    held, total : Usage
        Current usage of the namespace, and of all namespaces together.
    more : Usage
        The increase.
    free_bytes : int or None
        Free bytes of the disk; None = unknown.

    Raises
    ------
    NodewiseError
        QUOTA_EXCEEDED, with the quota's name, the usage and the limit.
    """
    for name, (what, unit) in _WHAT.items():
        limit, amount = getattr(quotas, name), getattr(usage, name) + getattr(more, name)
        if limit and getattr(more, name) > 0 and amount > limit:
            whose = f"the namespace {namespace!r}" if namespace else "profiles without a namespace"
            raise _quota_error(
                f"{whose} would have {amount} {what}, above quotas.{name} = {limit} {unit};"
                " deleted profiles count until they are purged",
                name,
                amount,
                limit,
                namespace=namespace,
            )
    if quotas.total_bytes:
        amount = total.stored_bytes + total.trace_bytes + more.stored_bytes + more.trace_bytes
        if amount > quotas.total_bytes:
            text = f"all profiles together would have {amount} bytes, above quotas.total_bytes = {quotas.total_bytes}"
            raise _quota_error(text, "total_bytes", amount, quotas.total_bytes)
    if free_bytes is not None:
        left = free_bytes - more.stored_bytes - more.trace_bytes
        if left < quotas.free_bytes:
            text = f"the disk would have {left} bytes free, below quotas.free_bytes = {quotas.free_bytes}"
            raise _quota_error(text, "free_bytes", left, quotas.free_bytes)


def _quota_error(text: str, quota: str, amount: int, limit: int, **beside: str) -> NodewiseError:
    return NodewiseError(
        Reason.QUOTA_EXCEEDED, text, {"quota": quota, "found": str(amount), "limit": str(limit), **beside}
    )


# Counters are rows of `meta`: "usage:KIND:NAMESPACE", and "usage_of_all:KIND" of all together. A store that an earlier
# release wrote has no counters, and no mark that they are complete: they are computed from the tables once.
_COUNTED: Final = "usage_counted"
_KINDS: Final = ("stored_bytes", "trace_bytes", "profiles")
_PREFIX: Final = "usage:"
_TOTALS: Final = tuple(f"usage_of_all:{kind}" for kind in _KINDS)
_TOGETHER: Final = 256
"""Profiles per counting statement, so that no statement takes long."""
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
    """Usage of a profile, from its rows."""
    size_bytes = PROFILE_BYTES
    for statement, each in zip(_PARTS, _PART_BYTES):
        rows, content = connection.execute(statement, (key,)).fetchone()
        size_bytes += int(rows) * each + int(content)
    (traces,) = connection.execute(_TRACES, (key,)).fetchone()
    return Usage(stored_bytes=size_bytes, trace_bytes=int(traces), profiles=1)


def usage_by_namespace(connection: Connection) -> dict[str, Usage]:
    """Usage of each namespace that stores anything."""
    kinds_by_namespace: dict[str, dict[str, int]] = defaultdict(dict)
    has_marker = False
    for name, value in connection.execute("SELECT name, value FROM meta").fetchall():
        if name.startswith(_PREFIX):
            kind, _, namespace = name[len(_PREFIX) :].partition(":")
            kinds_by_namespace[namespace][kind] = int(value)
        has_marker |= name == _COUNTED
    by_namespace = (
        {name: Usage(**kinds) for name, kinds in kinds_by_namespace.items()} if has_marker else _count_again(connection)
    )
    return {name: usage for name, usage in sorted(by_namespace.items()) if usage != NO_USAGE}


def _count_again(connection: Connection) -> dict[str, Usage]:
    usage: dict[str, Usage] = defaultdict(Usage)
    last = -1
    while rows := connection.execute(_PROFILES, (last, _TOGETHER)).fetchall():
        for key, profile_id in rows:
            usage[namespace_of(profile_id)] += usage_of_profile(connection, key)
        last = rows[-1][0]
    return usage


class Counting:
    """The counters within one write transaction; only one runs at a time.

    Parameters
    ----------
    quotas : StoreQuotas
        Limits.
    free_bytes : callable
        Returns the free bytes of the disks, called once; None = unknown.
    """

    def __init__(self, connection: Connection, quotas: StoreQuotas, free_bytes: Callable[[], int | None]) -> None:
        self._connection = connection
        self._quotas = quotas
        self._ask_free_bytes = free_bytes
        self._free_bytes: list[int | None] = []
        self._usage: dict[str, Usage] = {}
        self._total = NO_USAGE
        self._more: dict[str, Usage] = defaultdict(Usage)

    def begin(self, profile_ids: Iterable[str]) -> None:
        """Read the usage of these profiles' namespaces, before the first savepoint."""
        namespaces = sorted({namespace_of(profile_id) for profile_id in profile_ids})
        if not self._look_up(namespaces):
            self._connection.executemany(_ADD, [*_counters(_count_again(self._connection)), (_COUNTED, 1)])
            self._look_up(namespaces)

    def check(self, profile_id: str, more: Usage) -> None:
        """Raise NodewiseError QUOTA_EXCEEDED for an increase that would exceed a quota."""
        namespace = namespace_of(profile_id)
        usage, all_more = self._usage[namespace] + self._more[namespace], sum(self._more.values(), NO_USAGE)
        if not self._free_bytes:
            self._free_bytes.append(self._ask_free_bytes() if self._quotas.free_bytes else None)
        free = self._free_bytes[0]
        if free is not None:
            free -= max(0, all_more.stored_bytes + all_more.trace_bytes)
        _check_quotas(self._quotas, namespace, usage, self._total + all_more, more, free)

    def add(self, profile_id: str, more: Usage) -> None:
        """Count a change of what is stored; negative = removed."""
        self._more[namespace_of(profile_id)] += more

    def settle(self) -> None:
        """Write the counters at the end of the transaction."""
        rows = [row for row in _counters(self._more) if row[1]]
        if rows:
            self._connection.executemany(_ADD, rows)

    def _look_up(self, namespaces: list[str]) -> bool:
        """Read the counters of these, and the total; False = the store has no counters yet."""
        of_all = _TOTALS if self._quotas.total_bytes else ()
        names = [_COUNTED, *of_all, *(_name(kind, each) for each in namespaces for kind in _KINDS)]
        places = ", ".join("?" * len(names))
        statement = f"SELECT name, value FROM meta WHERE name IN ({places})"  # noqa: S608  # places alone
        values = {name: int(value) for name, value in self._connection.execute(statement, names).fetchall()}
        self._total = Usage(
            **{kind: values.get(name, 0) for kind, name in zip(_KINDS, of_all)}
        )  # where a quota needs it
        self._usage = {
            each: Usage(**{kind: values.get(_name(kind, each), 0) for kind in _KINDS}) for each in namespaces
        }
        return _COUNTED in values


def _name(kind: str, namespace: str) -> str:
    return f"{_PREFIX}{kind}:{namespace}"


def _counters(more: Mapping[str, Usage]) -> list[tuple[str, int]]:
    """Rows to add to the counters, the total included."""
    total = sum(more.values(), NO_USAGE)
    rows = [(name, getattr(total, kind)) for kind, name in zip(_KINDS, _TOTALS)]
    return rows + [(_name(kind, each), getattr(usage, kind)) for each, usage in more.items() for kind in _KINDS]
