"""From a ProfileSource on the wire to a profile: stored, or inline and cached by its bytes.

The digest of its content identifies an inline profile.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Executor
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from nodewise.domain.errors import NodewiseError, Reason, invalid_field
from nodewise.domain.profile import Profile
from nodewise.mapper.profiles import read_content_parts, read_traces
from nodewise.mapper.reading import Reader
from nodewise.ports.limits import Limits
from nodewise.profiles.digest import content_digest
from nodewise.profiles.reader import ProfileReader
from nodewise.rpc.calls import Call, run_in
from nodewise_protos.v1 import profile_pb2
from nodewise_protos.v1 import profile_pb2 as pb

__all__ = ["ProfileSources", "read_content"]


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


_REMEMBERED_BYTES: Final = 64 * 1024
"""Largest inline profile that is cached."""
_ANY: Final[Mapping[str, int]] = MappingProxyType({})
LOOK_EVERY_S: Final = 0.02
"""Seconds between two checks for an awaited revision, which another process may commit. A check reads one counter."""
LONGEST_WAIT_S: Final = 60.0
"""Longest wait for a revision, of calls without a deadline too."""
GRACE_S: Final = 0.05
"""Seconds of a call's time reserved for the error that its revision was not reached."""


class ProfileSources:
    """Finds the profiles of requests.

    Parameters
    ----------
    reader : ProfileReader
        The store, cached.
    limits : Limits
        Limits of inline profiles.
    executor : Executor
        Threads for reads that reach the disk.
    """

    def __init__(self, reader: ProfileReader, limits: Limits, executor: Executor) -> None:
        self._reader = reader
        self._limits = limits
        self._executor = executor
        self.generation = reader.generation
        """The store's generation now."""
        self.confirm = reader.confirm
        self._read_cached: Callable[[bytes, str], Profile] = lru_cache(maxsize=1024)(self._read)

    def newest_at(self, profile: Profile) -> Hashable | None:
        """A generation of the store in which this object was its profile's newest revision; None = not known."""
        return self._reader.newest_at(profile)

    def at_hand(self, source: profile_pb2.ProfileSource, generation: Hashable = None) -> Profile | None:
        """The stored profile of a question if it is cached, as it nearly always is, and needs no wait for a revision.

        None = call :meth:`profile`. Raises NodewiseError STORE_UNAVAILABLE. ``generation`` is the store's after the
        question came, for calls about many jobs; None = it is read.
        """
        if source.WhichOneof("source") != "profile_id" or _states_revision(source):
            return None
        profile = self._reader.from_cache(source.profile_id, self.generation() if generation is None else generation)
        return None if profile is None or profile.is_empty else profile

    async def profile(
        self, source: profile_pb2.ProfileSource, call: Call | None = None, path: str = "profile"
    ) -> Profile:
        """The profile of a question.

        Parameters
        ----------
        call : Call or None
            The call that waits for a minimum revision until its time is over; None = do not wait.

        Raises
        ------
        NodewiseError
            INVALID_FIELD, PROFILE_NOT_FOUND, REVISION_NOT_REACHED, REVISION_NOT_FOUND, EVIDENCE_MISSING (an empty
            inline profile).
        """
        kind = source.WhichOneof("source")
        revisions = _revisions(source, path)
        if kind == "profile_id":
            profile = await self._stored_profile(source.profile_id, revisions, call, path)
        elif kind == "content":
            data = source.content.SerializeToString()
            is_small = len(data) <= _REMEMBERED_BYTES
            profile = self._read_cached(data, path) if is_small else self._read(data, path)
        else:
            raise invalid_field(path, "must have profile_id, the name of a stored profile, or content")
        if profile.is_empty:
            raise NodewiseError(
                Reason.EVIDENCE_MISSING,
                "the profile is empty: it needs phase timings, observations or facts of the workload",
                {"missing_fields": "phase_timings,observations,workload"},
            )
        return profile

    async def _stored_profile(
        self, profile_id: str, revisions: Mapping[str, int], call: Call | None, path: str
    ) -> Profile:
        if "revision" in revisions:
            _check_name(profile_id, path)
            exact: Profile = await run_in(self._executor, self._reader.at, profile_id, revisions["revision"])
            return exact
        least = revisions.get("minimum_revision", 0)
        profile = await self._newest(profile_id, path)
        left_s = 0.0 if call is None else min(call.remaining_s() - GRACE_S, LONGEST_WAIT_S)
        ends_s = time.monotonic() + left_s
        while profile.revision < least and time.monotonic() + LOOK_EVERY_S < ends_s:
            if call is not None:
                call.step_aside()
            await asyncio.sleep(LOOK_EVERY_S)
            profile = await self._newest(profile_id, path)
        if profile.revision < least:
            raise NodewiseError(
                Reason.REVISION_NOT_REACHED,
                f"profile {profile_id!r} is at revision {profile.revision}, below minimum_revision {least}",
                {"profile_id": profile_id, "revision": str(profile.revision), "minimum_revision": str(least)},
            )
        return profile

    async def _newest(self, profile_id: str, path: str) -> Profile:
        cached = self._reader.from_cache(profile_id, self.generation())
        if cached is not None:
            return cached
        _check_name(profile_id, path)
        profile: Profile = await run_in(self._executor, self._reader.get, profile_id)
        return profile

    def _read(self, data: bytes, path: str) -> Profile:
        return read_content(profile_pb2.ProfileContent.FromString(data), f"{path}.content", self._limits)


def _check_name(profile_id: str, path: str) -> None:
    reader = Reader()
    reader.identifier(profile_id, f"{path}.profile_id")
    reader.finish()


def _states_revision(source: profile_pb2.ProfileSource) -> bool:
    return source.HasField("minimum_revision") or source.HasField("revision")


def _revisions(source: profile_pb2.ProfileSource, path: str) -> Mapping[str, int]:
    """The revision, or the minimum revision, that a source states."""
    if not _states_revision(source):
        return _ANY
    reader = Reader()
    revisions = reader.read_scalars(source, f"{path}.")
    if source.WhichOneof("source") != "profile_id":
        reader.wrong(f"{path}.{next(iter(revisions))}", "must be absent unless profile_id names a stored profile")
    if len(revisions) > 1:
        reader.wrong(f"{path}.minimum_revision", "must be absent if revision is given")
    reader.finish()
    return revisions
