"""The port that workers share, reserved while the server runs."""

from __future__ import annotations

import errno
import socket
import time
from typing import Final

from nodewise.runtime.starting import StartError

__all__ = ["reserve_port"]

ENDING_S: Final = 2.0
"""Seconds to wait until another server's socket closes: workers whose supervisor was killed close theirs soon, but need
a moment on a busy machine."""
LOOK_EVERY_S: Final = 0.05


def reserve_port(listen: str, setting: str = "listen", patience_s: float = ENDING_S) -> tuple[socket.socket, str]:
    """A socket that holds the port for the workers (it never listens), and the address with its number.

    Connections that an earlier server left behind (such as in TIME_WAIT) do not matter; a listening socket does.

    Raises
    ------
    StartError
        If the server cannot listen on the address.
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
                    f"{prefix}cannot listen on {listen}: the port is in use, or this machine lacks the address",
                    of_input=False,
                ) from None
        time.sleep(LOOK_EVERY_S)


def _free(family: int, host: str, port: int) -> int:
    """The number of the port, if no other socket listens on it or reserves it. Raises OSError."""
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        # With SO_REUSEADDR the kernel refuses the port of listening sockets and of bound ones without that option, but
        # ignores old connections. Without SO_REUSEPORT it also refuses the port that another server's workers share.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))
        number: int = probe.getsockname()[1]
        return number


def _bind(family: int, host: str, port: int) -> socket.socket:
    """A socket bound to the port, which workers can share. Raises OSError."""
    # Without SO_REUSEADDR if possible: then another server's probe is refused even while no worker listens. Connections
    # that a server without SO_REUSEPORT left behind make it impossible.
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
