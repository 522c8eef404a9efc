"""Time that is left for a piece of work."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from nodewise.domain.errors import NodewiseError, Reason

__all__ = ["Budget"]


class Budget:
    """Time that is left for a piece of work, by a monotonic clock. Work checks it often.

    Parameters
    ----------
    seconds : float
        From now; infinite = no limit.
    ended : callable or None
        Whether no caller waits any more, where that may become known without :meth:`end`.
    clock_s : callable
        The clock, in seconds.
    """

    def __init__(
        self,
        seconds: float = math.inf,
        *,
        ended: Callable[[], bool] | None = None,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock_s = clock_s
        self._end_s = clock_s() + seconds
        self._elsewhere = ended
        self._over = False

    @property
    def ended(self) -> bool:
        """Whether no caller waits any more: no result is of use, not even the best so far."""
        return self._over or (self._elsewhere is not None and self._elsewhere())

    def end(self) -> None:
        """Note that no caller waits any more."""
        self._over = True

    def look_up(self) -> None:
        """End work that no caller waits for. Time that is used up ends none, as the best result so far may be returned.

        Raises
        ------
        NodewiseError
            DEADLINE_EXCEEDED.
        """
        if self.ended:
            raise NodewiseError(Reason.DEADLINE_EXCEEDED, "no caller waits for the answer any more")

    def remaining_s(self) -> float:
        """Seconds left; 0 or less = stop now and return the best result so far."""
        return 0.0 if self.ended else self._end_s - self._clock_s()
