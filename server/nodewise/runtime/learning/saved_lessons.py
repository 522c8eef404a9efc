"""Storage on disk for pinned and earlier lessons, shared by all processes of a server.

Lessons follow from the profiles that they were learned from, at their revisions. The files hold only the ids of these
profiles and revisions, and lessons are learned again from them. Each namespace has one file, which is written under a
temporary name and then renamed.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Final

import structlog
from pydantic import BeforeValidator, PlainSerializer, TypeAdapter

from nodewise.domain.errors import NodewiseError
from nodewise.profiles.condition import disk_cause, store_unavailable
from nodewise.runtime.generations.folder import replace_file
from nodewise.runtime.learning.sources import Corpora

__all__ = ["Learnt", "SavedLessons"]

_log = structlog.get_logger(__name__)

REMEMBERED: Final = 5
"""Most earlier lessons of a namespace that a caller can return to."""
_StoredCorpora = Annotated[
    Corpora,
    BeforeValidator(lambda parts: {"own": parts[0], "others": parts[1:]}),
    PlainSerializer(lambda corpora: corpora.parts),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Learnt:
    """A stored record of lessons.

    Attributes
    ----------
    learned_unix_s, pinned_unix_s : float
        Unix times in seconds when the lessons were first learned, and pinned; 0 = they are not pinned.
    """

    namespace: str
    corpora: _StoredCorpora
    learned_unix_s: float = field(compare=False)
    pinned_unix_s: float = field(default=0.0, compare=False)


@cache
def _lessons() -> TypeAdapter[list[Learnt]]:
    """Reads and writes lessons. Made when it is needed, which few commands do, as it takes a while."""
    return TypeAdapter(list[Learnt])


class SavedLessons:
    """Pins and earlier lessons.

    Parameters
    ----------
    folder : Path or None
        Made with the first write; None = records end with this object, and no other process sees them.

    Attributes
    ----------
    lasting : bool
        Whether other processes see the pins, and whether pins survive a restart.
    """

    def __init__(self, folder: Path | None) -> None:
        self.lasting = folder is not None
        self._folder = folder
        self._cache: dict[tuple[str, str], Sequence[Learnt]] = {}
        self._pins: dict[str, Learnt] = {}
        self._read: Hashable = None

    def stamp(self) -> Hashable:
        """Return a value that changes when a process pins or unpins lessons. The call is cheap."""
        if self._folder is None:
            return 0
        try:
            return (self._folder / "pinned").stat().st_mtime_ns
        except OSError:
            return 0

    def pins(self) -> Mapping[str, Learnt]:
        """Return the pinned lessons by namespace."""
        stamp = self.stamp()
        if stamp != self._read:
            lessons_of_pins = [lessons for (kind, _), lessons in self._cache.items() if kind == "pinned"]
            if self._folder is not None:
                lessons_of_pins = [_read(path) for path in sorted((self._folder / "pinned").glob("*.json"))]
            self._pins, self._read = {pin.namespace: pin for lessons in lessons_of_pins for pin in lessons[:1]}, stamp
        return self._pins

    def pin(self, lessons: Learnt) -> None:
        """Pin lessons and replace an earlier pin of their namespace; raises NodewiseError STORE_UNAVAILABLE."""
        self._write("pinned", lessons.namespace, [replace(lessons, pinned_unix_s=time.time())])

    def unpin(self, namespace: str) -> None:
        """Remove the pin of a namespace, so that it learns again; raises NodewiseError STORE_UNAVAILABLE."""
        self._write("pinned", namespace, [])

    def remember(self, lessons: Learnt) -> None:
        """Store lessons, so that a caller can return to them. A failed write is only logged."""
        before = self.before(lessons.namespace)
        if before and before[0] == lessons:
            return
        entries = [lessons, *(each for each in before if each != lessons)][:REMEMBERED]
        with suppress(NodewiseError):  # the write has logged it
            self._write("learned", lessons.namespace, entries, durable=False)

    def before(self, namespace: str) -> Sequence[Learnt]:
        """Return the earlier lessons of a namespace, the latest first."""
        if self._folder is None:
            return self._cache.get(("learned", namespace), ())
        entries = _read(self._folder / "learned" / _name(namespace))
        return entries if entries and entries[0].namespace == namespace else []

    def _write(self, kind: str, namespace: str, lessons: Sequence[Learnt], *, durable: bool = True) -> None:
        if self._folder is None:
            self._cache[kind, namespace] = lessons
        else:
            path = self._folder / kind / _name(namespace)
            try:
                if lessons:
                    replace_file(path, _lessons().dump_json(list(lessons)), durable=durable)
                else:
                    path.unlink(missing_ok=True)
            except OSError as error:
                _log.error("lessons_not_written", reason=str(error))
                raise store_unavailable(disk_cause(error)) from None
        if kind == "pinned":
            self._read = None  # the file system's clock may not advance for some milliseconds


def _name(namespace: str) -> str:
    """Return a file name. It is a hash, because some file systems treat different names as equal."""
    return f"{hashlib.sha256(namespace.encode()).hexdigest()[:32]}.json"


def _read(path: Path) -> list[Learnt]:
    """Return the records of a file; none if it does not exist, or cannot be read (which is logged)."""
    try:
        return _lessons().validate_json(path.read_bytes())
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError, LookupError) as error:
        _log.warning("lessons_unreadable", path=str(path), reason=str(error))
        return []
