"""Replies by the bytes of their requests, while they are still valid: schedulers repeat their requests every round.

The lookup precedes decoding, so a repeated request costs little more than gRPC itself.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from nodewise.domain.errors import NodewiseError
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.weights import ENTRY_BYTES, part_of_rows
from nodewise.ports.cache import LruCache
from nodewise.rpc.options import ReadOptions
from nodewise.rpc.questions import Job

__all__ = ["CachedRequest", "ReplyCache"]


@dataclass(slots=True, eq=False)
class CachedRequest:
    """A request as it was read, and its reply.

    Attributes
    ----------
    options, job : ReadOptions, Job
        How to answer, and the question.
    reply : bytes
        b"" = no reply yet, or none that may be cached: it depends on nothing but these fields.
    state : tuple of int or None
        State of the answers before the reply was computed, so that a change meanwhile makes the reply invalid.
    profile_id, generation : str, hashable
        The stored profile, and a generation of the store at which the reply was valid; None if the profile is in the
        request.
    rows : int
        Number of the cached rows in the reply, which is valid as long as they are. 0 = it has none.
    """

    options: ReadOptions
    job: Job
    reply: bytes = b""
    state: tuple[int, int] | None = None
    profile_id: str = ""
    generation: Hashable = None
    rows: int = 0


class ReplyCache:
    """Requests to one generation of plugins, and its replies.

    Parameters
    ----------
    answers : Answers
        The answers in the replies; both share the bytes of one cache.
    confirm : callable
        From the name of a profile and a generation of the store: the current generation if the profile has certainly
        not changed since, else None.
    """

    def __init__(self, answers: Answers, confirm: Callable[[str, Hashable], Hashable | None]) -> None:
        self._answers = answers
        self._confirm = confirm
        self._kept: LruCache[bytes, CachedRequest] = LruCache(answers.space)

    def get(self, request: bytes) -> bytes | None:
        """The reply to a request of these bytes, if it is still valid."""
        kept = self._kept.get(request)
        return None if kept is None else self.reply_of(kept)

    def reply_of(self, kept: CachedRequest) -> bytes | None:
        """The reply to a cached request, if it is still valid."""
        if not kept.reply or kept.state != self._answers.state:
            return None
        try:
            if kept.generation is not None:
                generation = self._confirm(kept.profile_id, kept.generation)
                if generation is None:
                    return None
                kept.generation = generation
        except NodewiseError:  # the store does not answer; the caller gets that error when the profile is read
            return None
        return kept.reply

    def of(self, request: bytes) -> CachedRequest | None:
        """The cached request of these bytes."""
        return self._kept.get(request)

    def keep(self, request: bytes, kept: CachedRequest) -> None:
        """Cache a request as it was read, with its reply if it has one."""
        parts = (part_of_rows(kept.job.configurations),)
        self._kept.put(request, kept, len(request) + len(kept.reply) + ENTRY_BYTES, parts)

    def newest(self, most: int) -> list[bytes]:
        """The last distinct requests, the newest first."""
        return self._kept.newest(most)

    def forget(self) -> None:
        """Clear the cache."""
        self._kept.clear()
