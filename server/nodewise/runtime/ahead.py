"""The first zygote, started before the command line and the settings are read: it imports meanwhile."""

from __future__ import annotations

import subprocess
from contextlib import suppress

from nodewise.runtime.channel import Channel
from nodewise.runtime.followers import interpreter

__all__ = ["begin_zygote", "taken"]

_begun: list[tuple[Channel, subprocess.Popen[bytes]]] = []


def begin_zygote() -> None:
    """Start one, which ends with this process where nobody takes it."""
    with suppress(OSError):  # the nursery will tell
        _begun.append(interpreter("zygote"))


def taken() -> tuple[Channel, subprocess.Popen[bytes]] | None:
    """The one that was started, once; None = there is none."""
    return _begun.pop() if _begun else None
