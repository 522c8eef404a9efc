"""Replies by the bytes of their requests, for as long as the same would be answered: schedulers ask alike every round.

Found before a request is decoded, so that asking again costs little more than gRPC itself.
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
    """A request as it was read, and what was answered.

    Attributes
    ----------
    options, job : ReadOptions, Job
        How to answer, and the question.
    reply : bytes
        b"" = none yet, or none that lasts: it depends on nothing but what is here.
    state : tuple of int or None
        Of the answers, taken before what the reply is made from: a change meanwhile makes the reply unknown.
    profile_id, generation : str, hashable
        The stored profile, and a generation of the store at which the reply was true; None where the profile stands in
        the request.
    rows : int
        Number of the ready rows that the reply tells: as long as these stand, so does it. 0 = it tells none.
    """

    options: ReadOptions
    job: Job
    reply: bytes = b""
    state: tuple[int, int] | None = None
    profile_id: str = ""
    generation: Hashable = None
    rows: int = 0


class ReplyCache:
    """Requests that one generation's rooms were asked, and the replies that they gave.

    Parameters
    ----------
    answers : Answers
        Whose answers the replies tell; what is kept is in the same room of bytes.
    confirm : callable
        From the name of a profile and a generation of the store: the generation now if the profile surely is as it was
        then, else None.
    """

    def __init__(self, answers: Answers, confirm: Callable[[str, Hashable], Hashable | None]) -> None:
        self._answers = answers
        self._confirm = confirm
        self._kept: LruCache[bytes, CachedRequest] = LruCache(answers.space)

    def get(self, request: bytes) -> bytes | None:
        """The reply to a request of these bytes, if the same would be answered now."""
        kept = self._kept.get(request)
        return None if kept is None else self.reply_of(kept)

    def reply_of(self, kept: CachedRequest) -> bytes | None:
        """The same, of a request that was looked up."""
        if not kept.reply or kept.state != self._answers.state:
            return None
        try:
            if kept.generation is not None:
                generation = self._confirm(kept.profile_id, kept.generation)
                if generation is None:
                    return None
                kept.generation = generation
        except NodewiseError:  # the store cannot be asked, which is told to who asks for the profile
            return None
        return kept.reply

    def of(self, request: bytes) -> CachedRequest | None:
        """A request of these bytes, if it was asked before."""
        return self._kept.get(request)

    def keep(self, request: bytes, kept: CachedRequest) -> None:
        """Keep a request as it was read, with its reply if it has one."""
        parts = (part_of_rows(kept.job.configurations),)
        self._kept.put(request, kept, len(request) + len(kept.reply) + ENTRY_BYTES, parts)

    def newest(self, most: int) -> list[bytes]:
        """Requests that were asked last, each once, the last first."""
        return self._kept.newest(most)

    def forget(self) -> None:
        """Let go of everything."""
        self._kept.clear()
