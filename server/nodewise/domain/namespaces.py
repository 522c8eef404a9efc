"""Namespaces: whose a profile is, by its name alone."""

from __future__ import annotations

__all__ = ["namespace_of"]


def namespace_of(profile_id: str) -> str:
    """The first segment of a profile's id; empty = ids without a slash, which share the unnamed namespace."""
    first, slash, _ = profile_id.partition("/")
    return first if slash else ""
