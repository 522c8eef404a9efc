"""Files that are read again when they change."""

from __future__ import annotations

from pathlib import Path

__all__ = ["FileWatch"]

_Look = tuple[tuple[int, int, int, int] | None, ...]


class FileWatch:
    """Tells whether any of some files was changed or replaced since it was asked last; empty paths are left out."""

    def __init__(self, *paths: str) -> None:
        self._paths = [Path(path) for path in paths if path]
        self._last_stamps = self._look()

    def has_changed(self) -> bool:
        """Whether one was, since the last look."""
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
