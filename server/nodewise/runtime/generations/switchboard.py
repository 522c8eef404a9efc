"""The switchboard: which rooms a call enters, decided once, when it begins.

Switching replaces one reference. A call under way ends in the rooms that it began in; these are given up with the last
one. Everything here belongs to the event loop's thread.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from hashlib import blake2b
from inspect import isasyncgenfunction
from typing import Any

from nodewise.domain.errors import NodewiseError
from nodewise.rpc.answering import Answering
from nodewise.rpc.calls import Call
from nodewise.runtime.generations.arriving import awaited
from nodewise.runtime.generations.rooms import Rooms
from nodewise_protos.v1 import profile_pb2

__all__ = ["Switchboard", "Tracks", "names_of", "share_of_job"]


@dataclass(frozen=True, slots=True, eq=False)
class Tracks:
    """Who answers which jobs.

    Attributes
    ----------
    stable : Rooms
        Answers all that no canary does.
    canary : Rooms or None
        Answers a share of the jobs; None = there is none.
    share : float
        Of the jobs, 0 to 1.
    """

    stable: Rooms
    canary: Rooms | None = None
    share: float = 0.0

    @property
    def rooms(self) -> tuple[Rooms, ...]:
        """Of all tracks."""
        return (self.stable,) if self.canary is None else (self.stable, self.canary)

    def of(self, profile: profile_pb2.ProfileSource) -> Rooms:
        """The rooms of a job: the same for as long as the canary and its share stay."""
        if self.canary is None:
            return self.stable
        return self.canary if share_of_job(profile, self.canary.plugged.number) < self.share else self.stable


def share_of_job(profile: profile_pb2.ProfileSource, salt: int) -> float:
    """Where a job stands among all, 0 to 1: by its name, or by its content where that comes with the question.

    Parameters
    ----------
    salt : int
        Another one, another order, so that not the same jobs are always tried first.
    """
    named = profile.WhichOneof("source") == "profile_id"
    content = profile.profile_id.encode() if named else profile.content.SerializeToString(deterministic=True)
    digest = blake2b(content, digest_size=8, salt=salt.to_bytes(8, "big")).digest()
    return int.from_bytes(digest, "big") / 2.0**64


def names_of(tracks: Tracks) -> set[str]:
    """Estimators that answer on some track."""
    return {name for rooms in tracks.rooms for name in rooms.plugged.registry.estimators}


class Switchboard:
    """Passes calls on to the rooms that serve.

    Parameters
    ----------
    tracks : Tracks
        The first ones.
    left : callable
        Told of rooms that were retired, once their last call has ended.
    """

    def __init__(self, tracks: Tracks, left: Callable[[Rooms], None]) -> None:
        self.tracks = tracks
        self._left = left

    def switch(self, tracks: Tracks) -> None:
        """Let calls that begin from now on enter these."""
        before, self.tracks = self.tracks, tracks
        for rooms in before.rooms:
            if rooms not in tracks.rooms:
                rooms.retired = True
                if not rooms.calls:
                    self._left(rooms)

    @property
    def methods(self) -> Mapping[str, Callable[..., Any]]:
        """Behaviours by name, of all methods that rooms have."""
        found = {
            name: self._streaming(name) if isasyncgenfunction(method) else self._unary(name)
            for name, method in self.tracks.stable.methods.items()
        }
        return {**found, "batch_predict": self._batch_predict}

    def known_prediction(self, request: bytes) -> bytes | None:
        """The reply to a Predict of these bytes, where it is known; none while two tracks are compared."""
        tracks = self.tracks
        return None if tracks.canary is not None else tracks.stable.predictions.known.get(request)

    def _unary(self, name: str) -> Callable[..., Any]:
        async def behaviour(request: Any, call: Call) -> Any:
            tracks = self.tracks
            rooms = tracks.stable if tracks.canary is None else _rooms_of(tracks, request)
            rooms.calls += 1
            try:
                return await rooms.methods[name](request, call)
            except NodewiseError as error:
                raise awaited(error, rooms.plugged.registry) from None
            finally:
                self._leave(rooms)

        return behaviour

    def _streaming(self, name: str) -> Callable[..., Any]:
        async def behaviour(request: Any, call: Call) -> AsyncIterator[Any]:
            rooms = _rooms_of(self.tracks, request)
            rooms.calls += 1
            try:
                async with aclosing(rooms.methods[name](request, call)) as messages:
                    async for message in messages:
                        yield message
            except NodewiseError as error:
                raise awaited(error, rooms.plugged.registry) from None
            finally:
                self._leave(rooms)

        return behaviour

    async def _batch_predict(self, request: Any, call: Call) -> bytes:
        """Every job by its own track; a batch of architectures by that of its job."""
        tracks = self.tracks
        rooms = tracks.rooms
        for each in rooms:
            each.calls += 1
        try:
            if tracks.canary is None or request.HasField("architectures"):
                return await tracks.of(request.profile).batches.batch_predict(request, call)

            def answering(profile: profile_pb2.ProfileSource) -> Answering:
                return tracks.of(profile).answering

            return await replace(tracks.stable.batches, answering_of=answering).batch_predict(request, call)
        except NodewiseError as error:
            raise awaited(error, tracks.stable.plugged.registry) from None
        finally:
            for each in rooms:
                self._leave(each)

    def _leave(self, rooms: Rooms) -> None:
        rooms.calls -= 1
        if rooms.retired and not rooms.calls:
            self._left(rooms)


def _rooms_of(tracks: Tracks, request: Any) -> Rooms:
    """By the job that a request is about; what is about several, or about none, is the stable track's."""
    profile = getattr(request, "profile", None)
    return tracks.of(profile) if isinstance(profile, profile_pb2.ProfileSource) else tracks.stable
