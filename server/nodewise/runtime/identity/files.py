"""Detection of changed files."""

from __future__ import annotations

from pathlib import Path

__all__ = ["FileWatch"]

_Look = tuple[tuple[int, int, int, int] | None, ...]


class FileWatch:
    """Detects whether files were changed or replaced since the last check. Empty paths are ignored."""

    def __init__(self, *paths: str) -> None:
        self._paths = [Path(path) for path in paths if path]
        self._last_stamps = self._look()

    def has_changed(self) -> bool:
        """Return whether a file changed since the last check."""
        now = self._look()
        if now == self._last_stamps:
            return False
        self._last_stamps = now
        return True

    def _look(self) -> _Look:
        return tuple(map(_stamp, self._paths))


def _stamp(path: Path) -> tuple[int, int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
