"""Names of events, each kept once, without the paths, users and hosts that recorders put into them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

__all__ = ["Names", "public_name"]

_PATH: Final = re.compile(
    r"""(?<![\w.:)\]>*])            # a path begins a word: not the second half of a division or of a relative name
        (?:[A-Za-z]:[\\/]|\\\\|~[\w.-]*/|/|\.{1,2}/)   # drive, share, home, root, here
        (?:[^\s\\/:*?"'<>|,;()\[\]{}]+[\\/]+)+     # folders
    """,
    re.VERBOSE,
)
"""An absolute path up to its last separator, on Unix and on Windows."""

LONGEST_NAME: Final = 4_096
"""Characters of a name that are kept: demangled templates are long, and beyond this nobody reads them."""


def public_name(name: str, hosts: Iterable[str] = ()) -> str:
    """Return a name without directories and without the names of hosts: what is left names code, not people."""
    if "/" in name or "\\" in name:
        name = _PATH.sub("", name)
    for host in hosts:
        if host in name:
            name = name.replace(host, "host")
    return name[:LONGEST_NAME]


class Names(dict[str, int]):
    """Dictionary of names: the number of each, given at its first use."""

    def __missing__(self, name: str) -> int:
        """Number a new name."""
        number = len(self)
        self[name] = number
        return number

    def public(self, hosts: Iterable[str]) -> tuple[str, ...]:
        """All names by number, ready to be shown."""
        hosts = [host for host in hosts if len(host) > 1]
        return tuple(public_name(name, hosts) for name in self)
