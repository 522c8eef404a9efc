"""Namespaces of profiles: the first segment of an id, which says whose it is."""

from __future__ import annotations

from typing import Final

__all__ = ["UNNAMED", "namespace_of", "owner_of"]

UNNAMED: Final = ""
"""The namespace of ids without a slash, and of whatever is no stored profile."""


def namespace_of(profile_id: str) -> str:
    """What stands before the first slash of an id; ``UNNAMED`` for an id without one."""
    first, slash, _ = profile_id.partition("/")
    return first if slash else UNNAMED


def owner_of(profile_id: str) -> str:
    """Whose profile it is: its namespace's, and in the unnamed namespace each id's own."""
    return namespace_of(profile_id) or profile_id
