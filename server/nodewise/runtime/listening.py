"""The port that workers share, held for as long as a server lives."""

from __future__ import annotations

import errno
import socket
import time
from typing import Final

from nodewise.runtime.starting import StartError

__all__ = ["reserve_port"]

ENDING_S: Final = 2.0
"""How long another's listening socket is waited for to close: workers whose supervisor was killed close theirs as soon
as they notice, which takes a moment on a busy machine."""
LOOK_EVERY_S: Final = 0.05


def reserve_port(listen: str, setting: str = "listen", patience_s: float = ENDING_S) -> tuple[socket.socket, str]:
    """A socket that holds the port for the workers (it never listens), and the address with its number.

    Connections that a former server left behind (TIME_WAIT and the like) do not matter; a socket that somebody listens
    on does.

    Raises
    ------
    StartError
        If the address cannot be had.
    """
    host, _, port = listen.rpartition(":")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bare = host.strip("[]")
    give_up_s = time.monotonic() + patience_s
    while True:
        try:
            number = _free(family, bare, int(port))
            return _bind(family, bare, number), f"{host}:{number}"
        except (OSError, ValueError) as error:
            is_in_use = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
            if not is_in_use or time.monotonic() >= give_up_s:
                prefix = f"setting {setting}: " if setting != "listen" else ""
                raise StartError(
                    f"{prefix}cannot listen on {listen}: the port is in use or the address is not this machine's",
                    of_input=False,
                ) from None
        time.sleep(LOOK_EVERY_S)


def _free(family: int, host: str, port: int) -> int:
    """Bind the port, if no other socket listens there or holds it. Raises OSError."""
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        # With it the kernel minds listening sockets and bound ones without it, and no connection of the past. Without
        # SO_REUSEPORT it minds those of another server too, whose workers share theirs.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))
        number: int = probe.getsockname()[1]
        return number


def _bind(family: int, host: str, port: int) -> socket.socket:
    """The port, shared with those that share it too. Raises OSError."""
    # Without SO_REUSEADDR where that is possible: the probe of another server then finds the port taken even while no
    # worker listens. Connections that a server without SO_REUSEPORT left behind make it impossible.
    for reuse in (0, 1):
        holder = socket.socket(family, socket.SOCK_STREAM)
        try:
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, reuse)
            holder.bind((host, port))
        except OSError:
            holder.close()
            if reuse:
                raise
        else:
            return holder
    raise AssertionError("one of the two has returned or raised")
