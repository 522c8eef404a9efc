"""Quotas: how much a namespace may store, and what is told when it wants more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nodewise.domain.errors import NodewiseError, Reason

__all__ = [
    "BATCH_BYTES",
    "DEFAULT_QUOTAS",
    "NO_USAGE",
    "PROFILE_BYTES",
    "RETRACTED_BYTES",
    "SESSION_BYTES",
    "StoreQuotas",
    "Usage",
    "check_quotas",
]

BATCH_BYTES: Final = 256
PROFILE_BYTES: Final = 1024
SESSION_BYTES: Final = 512
RETRACTED_BYTES: Final = 64
"""What rows take beside their content, roughly: keys, hashes and indexes. Empty batches fill a disk as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What is stored, or comes to it; deleted profiles count until they are purged.

    Attributes
    ----------
    stored_bytes : int
        Evidence as the rows have it, and about what these take beside it.
    trace_bytes : int
        Traces, whole ones and those that are arriving; one that several sessions sent counts for each of them.
    profiles : int
        Profiles, those too of which nothing was committed yet.
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
    """Most that may be stored; 0 = no limit.

    Attributes
    ----------
    stored_bytes : int
        Evidence of a namespace (the first segment of a profile's id; ids without a slash share one), deleted profiles
        included until they are purged. A hundred thousand profiles of a thousand runs each take about 10 GB.
        0 = no limit, as for all quotas.
    trace_bytes : int
        Traces of a namespace, as they were sent, each session's count.
    profiles : int
        Profiles of a namespace.
    total_bytes : int
        Evidence and traces of all namespaces together.
    free_bytes : int
        What ingest leaves free on the disks of the store and of traces, where these are directories.
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


def check_quotas(
    quotas: StoreQuotas, namespace: str, held: Usage, total: Usage, more: Usage, free_bytes: int | None
) -> None:
    """Refuse what would exceed a quota.

    Parameters
    ----------
    held, total : Usage
        What the namespace has by now, and all together.
    more : Usage
        What is to come to it.
    free_bytes : int or None
        On the disk; None = nobody knows.

    Raises
    ------
    NodewiseError
        QUOTA_EXCEEDED, with the quota's name, what was found and what is allowed.
    """
    for name, (what, unit) in _WHAT.items():
        limit, found = getattr(quotas, name), getattr(held, name) + getattr(more, name)
        if limit and getattr(more, name) > 0 and found > limit:
            whose = f"the namespace {namespace!r}" if namespace else "profiles without a namespace"
            raise _exceeded(
                f"{whose} would have {found} {what}, above quotas.{name} = {limit} {unit};"
                " what is deleted counts until it is purged",
                name,
                found,
                limit,
                namespace=namespace,
            )
    if quotas.total_bytes:
        found = total.stored_bytes + total.trace_bytes + more.stored_bytes + more.trace_bytes
        if found > quotas.total_bytes:
            text = f"all profiles together would have {found} bytes, above quotas.total_bytes = {quotas.total_bytes}"
            raise _exceeded(text, "total_bytes", found, quotas.total_bytes)
    if free_bytes is not None:
        left = free_bytes - more.stored_bytes - more.trace_bytes
        if left < quotas.free_bytes:
            text = f"the disk would have {left} bytes free, below quotas.free_bytes = {quotas.free_bytes}"
            raise _exceeded(text, "free_bytes", left, quotas.free_bytes)


def _exceeded(text: str, quota: str, found: int, limit: int, **beside: str) -> NodewiseError:
    return NodewiseError(
        Reason.QUOTA_EXCEEDED, text, {"quota": quota, "found": str(found), "limit": str(limit), **beside}
    )
