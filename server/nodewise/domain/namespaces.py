"""Namespaces of profiles: the first segment of an id, which is the owner."""

from __future__ import annotations

from typing import Final

__all__ = ["UNNAMED", "namespace_of", "owner_of"]

UNNAMED: Final = ""
"""The namespace of ids without a slash, and of profiles that are not stored."""


def namespace_of(profile_id: str) -> str:
    """The part of an id before its first slash; ``UNNAMED`` for an id without one."""
    first, slash, _ = profile_id.partition("/")
    return first if slash else UNNAMED


def owner_of(profile_id: str) -> str:
    """The owner of a profile: its namespace, or the id itself in the unnamed namespace."""
    return namespace_of(profile_id) or profile_id
