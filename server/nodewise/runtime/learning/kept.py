"""What is kept of lessons on the disk, for all processes of a server: what is pinned, and what was learned before.

Lessons follow from the profiles that they were learned from, at their revisions: those are kept, and learned from anew.
One file for each namespace, written under another name first, and renamed.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson
import structlog

from nodewise.domain.errors import NodewiseError
from nodewise.profiles.condition import store_unavailable
from nodewise.runtime.generations.folder import replaced
from nodewise.runtime.learning.sources import Corpora

__all__ = ["KeptLessons", "Learnt"]

_log = structlog.get_logger(__name__)

REMEMBERED: Final = 5
"""Lessons of a namespace that can be returned to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learnt:
    """Lessons as they are kept.

    Attributes
    ----------
    learned_unix_s, pinned_unix_s : float
        When they were first learned, and pinned; 0 = they are not pinned.
    """

    namespace: str
    corpora: Corpora
    learned_unix_s: float = field(compare=False)
    pinned_unix_s: float = field(default=0.0, compare=False)

    def plain(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "namespace": self.namespace,
            "corpora": self.corpora.plain(),
            "learned_unix_s": self.learned_unix_s,
            "pinned_unix_s": self.pinned_unix_s,
        }

    @staticmethod
    def read(plain: Mapping[str, Any]) -> Learnt:
        """From plain values; raises KeyError, TypeError or ValueError for other ones."""
        return Learnt(
            namespace=str(plain["namespace"]),
            corpora=Corpora.read(plain["corpora"]),
            learned_unix_s=float(plain["learned_unix_s"]),
            pinned_unix_s=float(plain["pinned_unix_s"]),
        )


class KeptLessons:
    """Pins, and lessons of before.

    Parameters
    ----------
    folder : Path or None
        Made with the first write; None = nothing outlives this object, and no other process sees it.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._pins: dict[str, Learnt] = {}
        self._before: dict[str, list[Learnt]] = {}
        self._read: Hashable = None

    def stamp(self) -> Hashable:
        """Another one once any process pinned or let go of something: cheap to ask."""
        if self._folder is None:
            return 0
        try:
            found = (self._folder / "pinned").stat()
        except OSError:
            return 0
        return found.st_mtime_ns

    def pins(self) -> Mapping[str, Learnt]:
        """What is pinned, by namespace."""
        stamp = self.stamp()
        if self._folder is not None and stamp != self._read:
            found = {}
            for path in sorted((self._folder / "pinned").glob("*.json")):
                for pin in _read(path)[:1]:
                    found[pin.namespace] = pin
            self._pins, self._read = found, stamp
        return self._pins

    @property
    def lasting(self) -> bool:
        """Whether other processes see what is pinned, and a restart keeps it."""
        return self._folder is not None

    def pin(self, lessons: Learnt) -> None:
        """Pin lessons in place of what is pinned of their namespace; raises NodewiseError STORE_UNAVAILABLE."""
        pinned = Learnt(
            namespace=lessons.namespace,
            corpora=lessons.corpora,
            learned_unix_s=lessons.learned_unix_s,
            pinned_unix_s=time.time(),
        )
        if self._folder is None:
            self._pins[lessons.namespace] = pinned
        else:
            self._write("pinned", [pinned])
            self._read = None  # a clock of files may stand still for some milliseconds

    def unpin(self, namespace: str) -> None:
        """Let a namespace learn again; raises NodewiseError STORE_UNAVAILABLE."""
        if self._folder is None:
            self._pins.pop(namespace, None)
            return
        try:
            (self._folder / "pinned" / _name(namespace)).unlink(missing_ok=True)
            self._read = None
        except OSError as error:
            _log.error("pins_not_written", reason=str(error))
            raise store_unavailable() from None

    def remember(self, lessons: Learnt) -> None:
        """Keep what was learned, so that it can be returned to; a disk that does not take it costs only that."""
        before = self.before(lessons.namespace)
        if before and before[0] == lessons:
            return
        kept = [lessons, *(each for each in before if each != lessons)][:REMEMBERED]
        if self._folder is None:
            self._before[lessons.namespace] = kept
            return
        with suppress(NodewiseError):  # it was logged
            self._write("learned", kept, durable=False)

    def before(self, namespace: str) -> Sequence[Learnt]:
        """What a namespace learned, the last first."""
        if self._folder is None:
            return self._before.get(namespace, [])
        found = _read(self._folder / "learned" / _name(namespace))
        return found if found and found[0].namespace == namespace else []

    def _write(self, kind: str, lessons: Sequence[Learnt], *, durable: bool = True) -> None:
        assert self._folder is not None
        data = orjson.dumps([each.plain() for each in lessons])
        try:
            replaced(self._folder / kind / _name(lessons[0].namespace), data, durable=durable)
        except OSError as error:
            _log.error("lessons_not_written", reason=str(error))
            raise store_unavailable() from None


def _name(namespace: str) -> str:
    """A file's name: namespaces differ in more than file systems do."""
    return f"{hashlib.sha256(namespace.encode()).hexdigest()[:32]}.json"


def _read(path: Path) -> list[Learnt]:
    """What a file holds; nothing where there is none, or where it cannot be read, which is logged."""
    try:
        return [Learnt.read(each) for each in orjson.loads(path.read_bytes())]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        _log.warning("lessons_unreadable", path=str(path), reason=str(error))
        return []
