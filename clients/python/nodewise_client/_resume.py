"""How an interrupted stream is resumed or restarted: how often, after which pauses, and on what."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from nodewise_client._errors import Code, NodewiseError, UnavailableError

# Batches are numbered, so sending them again is harmless whatever became of the stream. These are the ends that a new
# stream can be better than: a server that goes away, that cancels what it had not begun with, or whose own limit on the
# length of a stream is over. An overloaded server says when to come back; without that, a message was too large, and
# stays so.
_RESUMABLE: Final = frozenset({Code.UNAVAILABLE, Code.CANCELLED, Code.DEADLINE_EXCEEDED})


def is_full(error: NodewiseError) -> bool:
    """Whether the server's store is full, which lasts until somebody frees space."""
    return error.reason == "STORE_UNAVAILABLE" and error.metadata.get("cause") == "full"


def resumable(error: NodewiseError | None) -> bool:
    """Whether a new stream can be better than the one that ended so; None = it ended without an error."""
    if error is None:
        return True
    if error.code in _RESUMABLE:
        return not is_full(error)
    return error.code is Code.RESOURCE_EXHAUSTED and error.retry_delay_s is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumePolicy:
    """Pauses and limits of resuming. Progress (a batch acknowledged) resets the count and the clock."""

    max_attempts: int = 40
    """Streams opened in a row without progress, the first included."""
    initial_pause_s: float = 0.05
    multiplier: float = 2.0
    max_pause_s: float = 1.0
    jitter: float = 0.2
    """Each pause is longer or shorter by up to this share."""
    deadline_s: float = 30.0
    """Seconds without progress after which no further stream is opened; also how long a writer's call waits."""
    opening_deadline_s: float = 10.0
    """The same before the session was first opened: a restart is waited for, a missing server is reported."""
    uniform: Callable[[], float] = random.random
    """Source of the jitter, in [0, 1)."""

    def patience_s(self, *, opened: bool) -> float:
        """Seconds without progress before the writer gives up."""
        return self.deadline_s if opened else min(self.deadline_s, self.opening_deadline_s)

    def pause_s(self, attempt: int, error: NodewiseError | None) -> float:
        """Seconds before the next stream after this many without progress."""
        pause = min(self.max_pause_s, self.initial_pause_s * self.multiplier ** min(attempt - 1, 60))
        pause *= 1.0 + self.jitter * (2.0 * self.uniform() - 1.0)
        server_delay_s = error.retry_delay_s if error is not None else None
        return max(pause, server_delay_s or 0.0)


# As often as gRPC itself tries a call again, and after the same pauses.
_RESTARTS: Final = ResumePolicy(max_attempts=4)


def restart_pause_s(error: NodewiseError, attempt: int, left_s: float) -> float | None:
    """Seconds before a call that changes nothing is begun again after this many attempts; None = it is not.

    Only a server that went away is worth another attempt. One that is overloaded states a delay, which the caller sees.
    """
    if error.code is not Code.UNAVAILABLE or attempt >= _RESTARTS.max_attempts:
        return None
    pause_s = _RESTARTS.pause_s(attempt, error)
    return pause_s if pause_s < left_s else None


class Restarts:
    """Begins a watch anew for as long as its policy is patient; every reply resets count and clock."""

    def __init__(self, policy: ResumePolicy, clock: Callable[[], float] = time.monotonic) -> None:
        self._policy: Final = policy
        self._clock: Final = clock
        self._is_open = False
        self._attempts = 0
        self._gone_at = 0.0

    def record_reply(self) -> None:
        """Note that the server replied."""
        self._is_open = True
        self._attempts = 0

    def pause_s(self, error: NodewiseError | None) -> float:
        """Seconds before the next attempt after a stream that ended so; raises the error where that would not help."""
        if not self._attempts:
            self._gone_at = self._clock()
        self._attempts += 1
        pause_s = self._policy.pause_s(self._attempts, error)
        away_s = self._clock() - self._gone_at + pause_s
        in_time = away_s <= self._policy.patience_s(opened=self._is_open)
        # An overloaded server says when to come back, to the caller.
        again = error is None or error.code in _RESUMABLE
        if again and in_time and self._attempts < self._policy.max_attempts:
            return pause_s
        raise error or UnavailableError(
            f"the server ended the watch {self._attempts} times without a reply", code=Code.UNAVAILABLE
        )
