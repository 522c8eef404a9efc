"""Children that have ended, whoever started them."""

from __future__ import annotations

import os
from collections.abc import Iterator

__all__ = ["reaped"]


def reaped() -> Iterator[tuple[int, int]]:
    """Processes that have ended by now, with their exit status, negative = the signal that ended it.

    Orphans among them: processes that a worker left behind, and, in a container, those of everybody.
    """
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return
        yield pid, os.waitstatus_to_exitcode(status)
