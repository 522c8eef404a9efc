"""From a ProfileSource on the wire to a profile: stored, or inline and remembered by its bytes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import replace
from functools import lru_cache
from typing import Final

from nodewise.domain.errors import NodewiseError, Reason, invalid_field
from nodewise.domain.profile import Profile
from nodewise.ports.limits import Limits
from nodewise.profiles.reader import ProfileReader
from nodewise.rpc.calls import run_in
from nodewise.rpc.reading import Reader
from nodewise.rpc.wire_profiles import read_content
from nodewise_protos.v1 import profile_pb2

__all__ = ["ProfileSources", "prefixed"]

_REMEMBERED_BYTES: Final = 64 * 1024
"""Largest inline profile whose reading is remembered."""


class ProfileSources:
    """Where profiles come from.

    Parameters
    ----------
    reader : ProfileReader
        The store, cached.
    limits : Limits
        Caps of inline profiles.
    executor : Executor
        Threads for reads that reach the disk.
    """

    def __init__(self, reader: ProfileReader, limits: Limits, executor: Executor) -> None:
        self._reader = reader
        self._limits = limits
        self._executor = executor
        self._remembered: Callable[[bytes], Profile] = lru_cache(maxsize=1024)(self._read)

    async def profile(self, source: profile_pb2.ProfileSource) -> Profile:
        """The profile that a question is about.

        Raises
        ------
        NodewiseError
            INVALID_FIELD, PROFILE_NOT_FOUND, REVISION_NOT_REACHED, EVIDENCE_MISSING (an inline profile that is empty).
        """
        kind = source.WhichOneof("source")
        if kind == "profile_id":
            profile = await self._stored(source.profile_id)
        elif kind == "inline":
            data = source.inline.SerializeToString()
            profile = self._remembered(data) if len(data) <= _REMEMBERED_BYTES else self._read(data)
        else:
            raise invalid_field("profile", "must name a stored profile or hold one inline")
        if source.minimum_revision > profile.revision and kind == "profile_id":
            raise NodewiseError(
                Reason.REVISION_NOT_REACHED,
                f"profile {profile.profile_id!r} is at revision {profile.revision}, "
                f"not yet at {source.minimum_revision}",
                {
                    "profile_id": profile.profile_id,
                    "revision": str(profile.revision),
                    "minimum_revision": str(source.minimum_revision),
                },
            )
        if profile.is_empty:
            raise NodewiseError(
                Reason.EVIDENCE_MISSING,
                "the profile is empty: it needs phase timings, observations or facts of the workload",
                {"missing_fields": "phase_timings,observations,workload"},
            )
        return profile

    async def _stored(self, profile_id: str) -> Profile:
        known = self._reader.cached(profile_id)
        if known is not None:
            return known
        reader = Reader()
        reader.identifier(profile_id, "profile.profile_id")
        reader.finish()
        loaded: Profile = await run_in(self._executor, self._reader.get, profile_id)
        return loaded

    def _read(self, data: bytes) -> Profile:
        return read_content(profile_pb2.ProfileContent.FromString(data), "profile.inline", self._limits)


def prefixed(error: NodewiseError, prefix: str) -> NodewiseError:
    """The same error with its field paths below ``prefix``."""
    if not error.violations:
        return error
    violations = tuple(replace(violation, field=prefix + violation.field) for violation in error.violations)
    return replace(NodewiseError.invalid(violations, error.reason), metadata=error.metadata)
