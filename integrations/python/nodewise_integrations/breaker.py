"""A circuit breaker: who failed to answer is left alone for a while, by every process of the user if a file says so."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from pathlib import Path
from typing import Final

__all__ = ["CircuitBreaker", "breaker_file"]

REST_SECONDS: Final = 60.0


class CircuitBreaker:
    """Says whether to ask, by when the last question failed.

    Args:
        rest_seconds: how long nobody is asked after a failure.
        file: its modification time is that of the last failure, so that commands which live for one question know of
            those before them. None = only this process counts. A file that cannot be written or read counts as none.
    """

    def __init__(self, rest_seconds: float = REST_SECONDS, *, file: Path | None = None) -> None:
        self._rest_seconds: Final = rest_seconds
        self._file: Final = file
        self._failed_at: float | None = None

    def seconds_left(self) -> float:
        """Seconds until the next question may be asked; 0 = now."""
        return max(self._left(self._failed_at, time.monotonic()), self._left(self._told_by_file(), time.time()))

    def failed(self) -> None:
        """The last question was not answered in time."""
        self._failed_at = time.monotonic()
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._file.touch()
                os.utime(self._file)

    def answered(self) -> None:
        """The last question was answered."""
        self._failed_at = None
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.unlink(missing_ok=True)

    def _left(self, failed_at: float | None, now: float) -> float:
        # A failure to come is a clock that was set back.
        if failed_at is None or failed_at > now:
            return 0.0
        return max(0.0, failed_at + self._rest_seconds - now)

    def _told_by_file(self) -> float | None:
        if self._file is None:
            return None
        try:
            return self._file.stat().st_mtime
        except OSError:
            return None


def breaker_file(target: str) -> Path:
    """Where this user's commands remember that a server did not answer: in NODEWISE_STATE_FOLDER or the cache folder.

    Never a folder that others may write to: what lies there decides whether jobs are asked about.
    """
    named = os.environ.get("NODEWISE_STATE_FOLDER")
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")  # noqa: PTH111, PTH118  # Path.home() raises where there is none
    folder = Path(named) if named else Path(cache) / "nodewise"
    return folder / f"unanswered-{hashlib.sha256(target.encode()).hexdigest()[:16]}"
