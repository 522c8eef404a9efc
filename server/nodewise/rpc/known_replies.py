"""Replies by the bytes of their requests, for as long as the same would be answered: schedulers ask alike every round.

Found before a request is decoded, so that asking again costs little more than gRPC itself.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from nodewise.domain.errors import NodewiseError
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.weights import ENTRY_BYTES
from nodewise.ports.cache import LruCache

__all__ = ["KnownReplies", "State"]


@dataclass(frozen=True, slots=True)
class State:
    """What answers depend on besides their request and the store.

    Attributes
    ----------
    adoptions : int
        How often something learned was adopted.
    epoch : int
        Another number after each change of who is left alone.
    """

    adoptions: int
    epoch: int


class KnownReplies:
    """Replies that one generation's rooms gave.

    Parameters
    ----------
    answers : Answers
        Whose answers the replies tell; the replies are in the same room of bytes.
    generation : callable
        The store's generation now.
    """

    def __init__(self, answers: Answers, generation: Callable[[], Hashable]) -> None:
        self._answers = answers
        self._generation = generation
        self._kept: LruCache[bytes, tuple[bytes, State, Hashable]] = LruCache(answers.space)

    @property
    def state(self) -> State:
        """As it is now. Read it before what a reply is made from: what changes meanwhile makes the reply unknown."""
        return State(self._answers.adoptions, self._answers.estimators.epoch)

    @property
    def requests(self) -> LruCache[bytes, tuple[bytes, State, Hashable]]:
        """What is kept, by the bytes of requests."""
        return self._kept

    def get(self, request: bytes) -> bytes | None:
        """The reply to a request of these bytes, if the same would be answered now."""
        kept = self._kept.get(request)
        if kept is None:
            return None
        reply, state, generation = kept
        answers = self._answers
        if state.adoptions != answers.adoptions or state.epoch != answers.estimators.epoch:
            return None
        try:
            return reply if generation is None or generation == self._generation() else None
        except NodewiseError:  # the store cannot be asked, which is told to who asks for the profile
            return None

    def keep(self, request: bytes, reply: bytes, state: State, generation: Hashable) -> None:
        """Keep a reply that depends on nothing else than this.

        Parameters
        ----------
        generation : hashable or None
            Of the store, in which the profile was read; None = the profile stands in the request.
        """
        self._kept.put(request, (reply, state, generation), len(request) + len(reply) + ENTRY_BYTES)

    def forget(self) -> None:
        """Let go of everything."""
        self._kept.clear()
