"""Files that are read again when they change."""

from __future__ import annotations

from pathlib import Path

__all__ = ["Watched"]

_Look = tuple[tuple[int, int, int, int] | None, ...]


class Watched:
    """Tells whether any of some files was changed or replaced since it was asked last; empty paths are left out."""

    def __init__(self, *paths: str) -> None:
        self._paths = [Path(path) for path in paths if path]
        self._seen = self._look()

    def changed(self) -> bool:
        """Whether one was, since the last look."""
        now = self._look()
        if now == self._seen:
            return False
        self._seen = now
        return True

    def _look(self) -> _Look:
        return tuple(map(_stamp, self._paths))


def _stamp(path: Path) -> tuple[int, int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
