"""The caller's identity and rights: roles, and prefixes of profiles."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

__all__ = ["ANYONE", "EVERYTHING", "Principal", "Role", "normal_prefix"]

EVERYTHING: Final = ("",)
"""Prefixes of a caller with rights to every profile."""


class Role(StrEnum):
    """Role of a caller. ``admin`` includes every other role."""

    READ = "read"
    INGEST = "ingest"
    SCHEDULE = "schedule"
    ADMIN = "admin"


def normal_prefix(prefix: str) -> str:
    """A prefix of profile ids by whole segments: ``team-a`` and ``team-a/`` are ``team-a/``, which has no ``team-ab``.

    ``*`` is all profiles, which is the empty prefix.
    """
    return "" if prefix == "*" else prefix.rstrip("/") + "/"


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated caller, or any caller of a server without authentication.

    Attributes
    ----------
    subject : str
        Identifies the caller in logs and quotas, such as ``token:k3f9``; holds no secret. Empty = not authenticated.
    roles : frozenset of Role
        The caller's roles.
    prefixes : tuple of str
        Prefixes of the profile ids that the caller may use; ``EVERYTHING`` = all, empty = none.
    expire_time_s : float
        Seconds since 1970 after which calls are refused.
    """

    subject: str
    roles: frozenset[Role]
    prefixes: tuple[str, ...] = ()
    expire_time_s: float = math.inf

    @property
    def is_known(self) -> bool:
        """Whether the caller is authenticated."""
        return bool(self.subject)

    @property
    def everywhere(self) -> bool:
        """Whether the caller may use every profile."""
        return "" in self.prefixes

    @property
    def namespace(self) -> str:
        """The namespace of the caller's quota: the common first segment of all prefixes; empty = none."""
        first = {prefix.partition("/")[0] for prefix in self.prefixes}
        return first.pop() if len(first) == 1 else ""

    def has(self, roles: Iterable[Role]) -> bool:
        """Whether the caller has one of these roles."""
        return Role.ADMIN in self.roles or not self.roles.isdisjoint(roles)

    def covers(self, profile_id: str) -> bool:
        """Whether the caller may use the profile of this id, which need not exist."""
        return profile_id.startswith(self.prefixes)

    def reaches(self, namespace: str) -> bool:
        """Whether the caller may use any profile of a namespace; the unnamed one needs rights to every profile."""
        within = f"{namespace}/"
        return self.everywhere or (bool(namespace) and any(_meet(within, prefix) for prefix in self.prefixes))

    def scopes(self, name_prefix: str) -> tuple[str, ...]:
        """The caller's prefixes within a prefix, sorted, none inside another."""
        prefixes = {max(name_prefix, own, key=len) for own in self.prefixes if _meet(name_prefix, own)}
        return tuple(
            sorted(each for each in prefixes if not any(each != other and each.startswith(other) for other in prefixes))
        )

    def is_expired(self, now_s: float | None = None) -> bool:
        """Whether the credentials have expired: now, or at a given time (seconds since 1970)."""
        return (time.time() if now_s is None else now_s) >= self.expire_time_s


def _meet(first: str, second: str) -> bool:
    return first.startswith(second) or second.startswith(first)


ANYONE: Final = Principal("", frozenset(Role), EVERYTHING)
"""Any caller of a server without authentication: it has all rights."""
