"""From a ProfileSource on the wire to a profile: stored, or in the question and remembered by its bytes.

Inline profiles are known by the digest of their content.
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
"""Largest profile of a question whose reading is remembered."""
_ANY: Final[Mapping[str, int]] = MappingProxyType({})
LOOK_EVERY_S: Final = 0.02
"""Between two looks for a revision that is waited for: another process may commit it. A look reads one counter."""
LONGEST_WAIT_S: Final = 60.0
"""Longest wait for a revision, of calls without a deadline too."""
GRACE_S: Final = 0.05
"""Kept of a call's time to say that its revision was not reached."""


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
        self.generation = reader.generation
        """The store's generation now."""
        self.confirm = reader.confirm
        self._remembered: Callable[[bytes, str], Profile] = lru_cache(maxsize=1024)(self._read)

    def newest_at(self, profile: Profile) -> Hashable | None:
        """A generation of the store in which this object was its profile's newest revision; None = not known."""
        return self._reader.newest_at(profile)

    def at_hand(self, source: profile_pb2.ProfileSource) -> Profile | None:
        """The profile that a question is about, where that takes no waiting and no reading: as nearly always, stored.

        None = ask :meth:`profile`. Raises NodewiseError STORE_UNAVAILABLE.
        """
        if source.WhichOneof("source") != "profile_id" or _states_revision(source):
            return None
        known = self._reader.from_cache(source.profile_id, self.generation())
        return None if known is None or known.is_empty else known

    async def profile(
        self, source: profile_pb2.ProfileSource, call: Call | None = None, path: str = "profile"
    ) -> Profile:
        """The profile that a question is about.

        Parameters
        ----------
        call : Call or None
            Given, a minimum revision is waited for until the call's time is over; None = it is refused at once.

        Raises
        ------
        NodewiseError
            INVALID_FIELD, PROFILE_NOT_FOUND, REVISION_NOT_REACHED, REVISION_NOT_FOUND, EVIDENCE_MISSING (a profile in
            the question that is empty).
        """
        kind = source.WhichOneof("source")
        stated = _revisions(source, path)
        if kind == "profile_id":
            profile = await self._stored_profile(source.profile_id, stated, call, path)
        elif kind == "content":
            data = source.content.SerializeToString()
            known = len(data) <= _REMEMBERED_BYTES
            profile = self._remembered(data, path) if known else self._read(data, path)
        else:
            raise invalid_field(path, "must name a stored profile or hold the content of one")
        if profile.is_empty:
            raise NodewiseError(
                Reason.EVIDENCE_MISSING,
                "the profile is empty: it needs phase timings, observations or facts of the workload",
                {"missing_fields": "phase_timings,observations,workload"},
            )
        return profile

    async def _stored_profile(
        self, profile_id: str, stated: Mapping[str, int], call: Call | None, path: str
    ) -> Profile:
        if "revision" in stated:
            _check_name(profile_id, path)
            exact: Profile = await run_in(self._executor, self._reader.at, profile_id, stated["revision"])
            return exact
        least = stated.get("minimum_revision", 0)
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
                f"profile {profile_id!r} is at revision {profile.revision}, not yet at {least}",
                {"profile_id": profile_id, "revision": str(profile.revision), "minimum_revision": str(least)},
            )
        return profile

    async def _newest(self, profile_id: str, path: str) -> Profile:
        known = self._reader.from_cache(profile_id, self.generation())
        if known is not None:
            return known
        _check_name(profile_id, path)
        loaded: Profile = await run_in(self._executor, self._reader.get, profile_id)
        return loaded

    def _read(self, data: bytes, path: str) -> Profile:
        return read_content(profile_pb2.ProfileContent.FromString(data), f"{path}.content", self._limits)


def _check_name(profile_id: str, path: str) -> None:
    reader = Reader()
    reader.identifier(profile_id, f"{path}.profile_id")
    reader.finish()


def _states_revision(source: profile_pb2.ProfileSource) -> bool:
    return source.HasField("minimum_revision") or source.HasField("revision")


def _revisions(source: profile_pb2.ProfileSource, path: str) -> Mapping[str, int]:
    """The revision that a source asks for, or the least one."""
    if not _states_revision(source):
        return _ANY
    reader = Reader()
    stated = reader.read_scalars(source, f"{path}.")
    if source.WhichOneof("source") != "profile_id":
        reader.wrong(f"{path}.{next(iter(stated))}", "must be absent unless profile_id names a stored profile")
    if len(stated) > 1:
        reader.wrong(f"{path}.minimum_revision", "must be absent where revision says which one")
    reader.finish()
    return stated
