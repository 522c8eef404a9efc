"""Traffic router: assigns each call to a generation when the call begins.

A switch replaces one reference. A call ends in the generation in which it began; that generation is closed after its
last call. All of this runs in the event loop's thread.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

from nodewise.domain.errors import NodewiseError
from nodewise.hosting.registry import Registry
from nodewise.rpc.answering import Answering
from nodewise.rpc.calls import Call
from nodewise.rpc.services import STREAMS
from nodewise.runtime.generations.arriving import error_while_loading
from nodewise.runtime.generations.serving_state import ServingState
from nodewise_protos.v1 import profile_pb2

__all__ = ["Tracks", "TrafficRouter", "names_of", "share_of_job"]


@dataclass(frozen=True, slots=True, eq=False)
class Tracks:
    """The generations that answer, and their shares of the jobs.

    Attributes
    ----------
    stable : ServingState
        Answers all jobs that the canary does not answer.
    canary : ServingState or None
        Answers a share of the jobs; None = there is none.
    share : float
        Share of the jobs that the canary answers, 0 to 1.
    """

    stable: ServingState
    canary: ServingState | None = None
    share: float = 0.0

    @property
    def serving_states(self) -> tuple[ServingState, ...]:
        """Serving states of all tracks."""
        return (self.stable,) if self.canary is None else (self.stable, self.canary)

    @property
    def registries(self) -> tuple[Registry, ...]:
        """Plugins of all tracks."""
        return tuple(each.loaded_plugins.registry for each in self.serving_states)

    def of(self, profile: profile_pb2.ProfileSource) -> ServingState:
        """Return the generation of a job. It stays the same as long as the canary and its share do."""
        if self.canary is None:
            return self.stable
        return self.canary if share_of_job(profile, self.canary.loaded_plugins.number) < self.share else self.stable


def share_of_job(profile: profile_pb2.ProfileSource, salt: int) -> float:
    """Return the position of a job among all jobs, 0 to 1, by a hash of its id, or of its content if it has no id.

    Parameters
    ----------
    salt : int
        Changes the order of jobs, so that different jobs are the first ones for each canary.
    """
    has_id = profile.WhichOneof("source") == "profile_id"
    content = profile.profile_id.encode() if has_id else profile.content.SerializeToString(deterministic=True)
    digest = blake2b(content, digest_size=8, salt=salt.to_bytes(8, "big")).digest()
    return int.from_bytes(digest, "big") / 2.0**64


def names_of(tracks: Tracks) -> set[str]:
    """Return the names of estimators on any track."""
    return {name for registry in tracks.registries for name in registry.estimators}


class TrafficRouter:
    """Passes calls to the generations that serve.

    Parameters
    ----------
    tracks : Tracks
        Initial tracks.
    left : callable
        Called with each retired serving state after its last call.
    """

    def __init__(self, tracks: Tracks, left: Callable[[ServingState], None]) -> None:
        self.tracks = tracks
        self._left = left

    def switch(self, tracks: Tracks) -> None:
        """Send new calls to these tracks."""
        before, self.tracks = self.tracks, tracks
        for serving_state in before.serving_states:
            if serving_state not in tracks.serving_states:
                serving_state.is_retired = True
                if not serving_state.calls:
                    self._left(serving_state)

    @property
    def methods(self) -> Mapping[str, Callable[..., Any]]:
        """Implementations of all methods of a serving state, by name."""
        names = self.tracks.stable.methods
        result = {name: self._streaming(name) if name in STREAMS else self._unary(name) for name in names}
        return {**result, "predict": self._predict, "batch_predict": self._batch_predict}

    def known_prediction(self, request: bytes) -> bytes | None:
        """Return the cached reply to a Predict of these bytes; None = not cached, or there is a canary."""
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
        """Return the reply at once, or an awaitable if the call must wait."""
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
        """Answer each job on its own track, and a batch of architectures on the track of its job."""
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
    """Return the serving state of a request's job; requests with no job or several jobs go to the stable track."""
    profile = getattr(request, "profile", None)
    return tracks.of(profile) if isinstance(profile, profile_pb2.ProfileSource) else tracks.stable
