"""A circuit breaker: a server that failed to answer is not asked for a while, by this process or by all of the user."""

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
    """Decides whether to ask, from the time of the last failure.

    Args:
        rest_seconds: seconds without questions after a failure.
        file: its modification time is the time of the last failure, so commands that ask a single question know about
            earlier failures. None = only this process. A file that cannot be written or read is ignored.
    """

    def __init__(self, rest_seconds: float = REST_SECONDS, *, file: Path | None = None) -> None:
        self._rest_seconds: Final = rest_seconds
        self._file: Final = file
        self._failed_at: float | None = None

    def seconds_left(self) -> float:
        """Seconds until the next question may be asked; 0 = now."""
        return max(self._left(self._failed_at, time.monotonic()), self._left(self._file_failed_at(), time.time()))

    def failed(self) -> None:
        """Record that the last question was not answered in time."""
        self._failed_at = time.monotonic()
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._file.touch()
                os.utime(self._file)

    def answered(self) -> None:
        """Record that the last question was answered."""
        self._failed_at = None
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.unlink(missing_ok=True)

    def _left(self, failed_at: float | None, now: float) -> float:
        # A failure in the future means that the clock was set back.
        if failed_at is None or failed_at > now:
            return 0.0
        return max(0.0, failed_at + self._rest_seconds - now)

    def _file_failed_at(self) -> float | None:
        if self._file is None:
            return None
        try:
            return self._file.stat().st_mtime
        except OSError:
            return None


def breaker_file(target: str) -> Path:
    """Return the file in which this user's commands record that a server did not answer.

    It is in NODEWISE_STATE_FOLDER or in the user's cache folder. Other users must not be able to write there, because
    the file decides whether Nodewise is asked.
    """
    named = os.environ.get("NODEWISE_STATE_FOLDER")
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")  # noqa: PTH111, PTH118  # Path.home() raises where there is none
    folder = Path(named) if named else Path(cache) / "nodewise"
    return folder / f"unanswered-{hashlib.sha256(target.encode()).hexdigest()[:16]}"
