"""Inline profiles: read off a question, and known by the digest of their content."""

from __future__ import annotations

from dataclasses import replace

from nodewise.domain.profile import Profile
from nodewise.mapper.profiles import read_content_parts, read_traces
from nodewise.mapper.reading import Reader
from nodewise.ports.limits import Limits
from nodewise.profiles.digest import content_digest
from nodewise_protos.v1 import profile_pb2 as pb

__all__ = ["read_content"]


def read_content(message: pb.ProfileContent, path: str, limits: Limits) -> Profile:
    """An inline profile; its digest is its revision.

    Raises
    ------
    NodewiseError
        INVALID_FIELD, CONTRADICTORY_FACTS or LIMIT_EXCEEDED.
    """
    reader = Reader()
    parts = read_content_parts(message, path, reader, limits)
    profile = Profile(**parts, traces=read_traces(message, path, reader))
    reader.finish()
    return replace(profile, digest=content_digest(profile))
