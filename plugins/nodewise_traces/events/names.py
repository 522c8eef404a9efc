"""Names of events, each stored once, without the paths, users and hosts that recorders put into them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice
from typing import Final, TypeVar

from nodewise_traces.scanning.decode import text_of

__all__ = ["KeyNumbers", "Names", "public_name"]

KeyT = TypeVar("KeyT")

_PATH: Final = re.compile(
    r"""(?<![\w.:)\]>*])                                # a path begins a word: no division, no relative name
        (?:[A-Za-z]:[\\/]|\\\\|~[\w.-]*[\\/]|/|\.{1,2}[\\/])   # drive, share, home, root, here
        (?:[^\s\\/:*?"'<>|,;()\[\]{}]+[\\/]+)+          # folders
    """,
    re.VERBOSE,
)
"""A path up to its last separator, on Unix and on Windows."""

_HOME: Final = re.compile(r"(?<![\w.])(?:/home/|/Users/|~|[A-Za-z]:\\Users\\)[\w.-]+")
"""A home directory that nothing follows: the user's name itself."""

LONGEST_NAME: Final = 4_096
"""Characters of a name that are stored: demangled templates are long, and the rest helps no reader."""


def public_name(name: str, hosts: Iterable[str] = ()) -> str:
    """Return a name without directories and without the names of hosts: what is left names code, not people."""
    if "/" in name or "\\" in name or "~" in name:
        name = _PATH.sub("", _HOME.sub(_home_left_out, name))
    for host in hosts:
        if host in name:
            name = name.replace(host, "host")
    return name[:LONGEST_NAME]


def _home_left_out(match: re.Match[str]) -> str:
    """Keep a home that folders follow, for its path goes as a whole; a bare one is a user's name."""
    follows = match.string[match.end() : match.end() + 1]
    return match.group() if follows in {"/", "\\"} and follows else "home"


class KeyNumbers(dict[KeyT, int]):
    """The number of each key, given at its first use."""

    def __missing__(self, key: KeyT) -> int:
        """Number a new key."""
        number = self[key] = len(self)
        return number


class Names(KeyNumbers[bytes]):
    """Dictionary of raw names."""

    def texts(self, first: int = 0) -> list[str]:
        """Names as text by number, from ``first`` on."""
        return [text_of(name) for name in islice(self, first, None)]

    def public(self, hosts: Iterable[str] = ()) -> tuple[str, ...]:
        """All names by number, ready to be shown."""
        hosts = [host for host in hosts if len(host) > 1]
        return tuple(public_name(name, hosts) for name in self.texts())
