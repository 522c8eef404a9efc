"""The traffic router: which generation a call enters, decided once, when it begins.

Switching replaces one reference. A call under way ends in the generation that it began in, which is given up with its
last call. Everything here belongs to the event loop's thread.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2b
from inspect import isasyncgenfunction
from typing import Any

from nodewise.domain.errors import NodewiseError
from nodewise.hosting.registry import Registry
from nodewise.rpc.answering import Answering
from nodewise.rpc.calls import Call
from nodewise.runtime.generations.arriving import error_while_loading
from nodewise.runtime.generations.serving_state import ServingState
from nodewise_protos.v1 import profile_pb2

__all__ = ["Tracks", "TrafficRouter", "names_of", "share_of_job"]


@dataclass(frozen=True, slots=True, eq=False)
class Tracks:
    """Which generation answers which jobs.

    Attributes
    ----------
    stable : ServingState
        Answers all that no canary does.
    canary : ServingState or None
        Answers a share of the jobs; None = there is none.
    share : float
        Of the jobs, 0 to 1.
    """

    stable: ServingState
    canary: ServingState | None = None
    share: float = 0.0

    @property
    def serving_states(self) -> tuple[ServingState, ...]:
        """Of all tracks."""
        return (self.stable,) if self.canary is None else (self.stable, self.canary)

    @property
    def registries(self) -> tuple[Registry, ...]:
        """Plugins of all tracks."""
        return tuple(each.loaded_plugins.registry for each in self.serving_states)

    def of(self, profile: profile_pb2.ProfileSource) -> ServingState:
        """The generation of a job: the same for as long as the canary and its share stay."""
        if self.canary is None:
            return self.stable
        return self.canary if share_of_job(profile, self.canary.loaded_plugins.number) < self.share else self.stable


def share_of_job(profile: profile_pb2.ProfileSource, salt: int) -> float:
    """Where a job stands among all, 0 to 1: by its name, or by its content where that comes with the question.

    Parameters
    ----------
    salt : int
        Another one, another order, so that not the same jobs are always tried first.
    """
    has_id = profile.WhichOneof("source") == "profile_id"
    content = profile.profile_id.encode() if has_id else profile.content.SerializeToString(deterministic=True)
    digest = blake2b(content, digest_size=8, salt=salt.to_bytes(8, "big")).digest()
    return int.from_bytes(digest, "big") / 2.0**64


def names_of(tracks: Tracks) -> set[str]:
    """Estimators that answer on some track."""
    return {name for registry in tracks.registries for name in registry.estimators}


class TrafficRouter:
    """Passes calls on to the generations that serve.

    Parameters
    ----------
    tracks : Tracks
        The first ones.
    left : callable
        Called with each serving state that was retired, once its last call has ended.
    """

    def __init__(self, tracks: Tracks, left: Callable[[ServingState], None]) -> None:
        self.tracks = tracks
        self._left = left

    def switch(self, tracks: Tracks) -> None:
        """Let calls that begin from now on enter these."""
        before, self.tracks = self.tracks, tracks
        for serving_state in before.serving_states:
            if serving_state not in tracks.serving_states:
                serving_state.is_retired = True
                if not serving_state.calls:
                    self._left(serving_state)

    @property
    def methods(self) -> Mapping[str, Callable[..., Any]]:
        """Behaviours by name, of all methods that a serving state has."""
        result = {
            name: self._streaming(name) if isasyncgenfunction(method) else self._unary(name)
            for name, method in self.tracks.stable.methods.items()
        }
        return {**result, "predict": self._predict, "batch_predict": self._batch_predict}

    def known_prediction(self, request: bytes) -> bytes | None:
        """The reply to a Predict of these bytes, where it is known; none while two tracks are compared."""
        tracks = self.tracks
        return None if tracks.canary is not None else tracks.stable.predictions.known.get(request)

    def _unary(self, name: str) -> Callable[..., Any]:
        async def behaviour(request: Any, call: Call) -> Any:
            serving_state = _serving_state_of(self.tracks, request)
            with self._count_call(serving_state):
                return await serving_state.methods[name](request, call)

        return behaviour

    def _streaming(self, name: str) -> Callable[..., Any]:
        async def behaviour(request: Any, call: Call) -> AsyncIterator[Any]:
            serving_state = _serving_state_of(self.tracks, request)
            with self._count_call(serving_state):
                async with aclosing(serving_state.methods[name](request, call)) as messages:
                    async for message in messages:
                        yield message

        return behaviour

    def _predict(self, request: Any, call: Call) -> bytes | Awaitable[bytes]:
        """The reply, which no other call comes between; an awaitable where something is waited for."""
        tracks = self.tracks
        serving_state = tracks.stable if tracks.canary is None else _serving_state_of(tracks, request)
        try:
            answered = serving_state.predictions.answer(request, call)
        except NodewiseError as error:
            raise error_while_loading(error, serving_state.loaded_plugins.registry) from None
        return answered if isinstance(answered, bytes) else self._wait(answered, serving_state)

    async def _wait(self, answered: Awaitable[bytes], serving_state: ServingState) -> bytes:
        with self._count_call(serving_state):
            return await answered

    async def _batch_predict(self, request: Any, call: Call) -> bytes:
        """Every job by its own track; a batch of architectures by that of its job."""
        tracks = self.tracks

        def answering(profile: profile_pb2.ProfileSource) -> Answering:
            return tracks.of(profile).answering

        with self._count_call(*tracks.serving_states):
            batches = tracks.stable.batches
            if request.HasField("architectures"):
                batches = tracks.of(request.profile).batches
            elif tracks.canary is not None:
                batches = replace(batches, answering_of=answering)
            return await batches.batch_predict(request, call)

    @contextmanager
    def _count_call(self, *serving_states: ServingState) -> Iterator[None]:
        for each in serving_states:
            each.calls += 1
        try:
            yield
        except NodewiseError as error:
            raise error_while_loading(error, serving_states[0].loaded_plugins.registry) from None
        finally:
            for each in serving_states:
                self._leave(each)

    def _leave(self, serving_state: ServingState) -> None:
        serving_state.calls -= 1
        if serving_state.is_retired and not serving_state.calls:
            self._left(serving_state)


def _serving_state_of(tracks: Tracks, request: Any) -> ServingState:
    """By the job that a request is about; what is about several, or about none, is the stable track's."""
    profile = getattr(request, "profile", None)
    return tracks.of(profile) if isinstance(profile, profile_pb2.ProfileSource) else tracks.stable
