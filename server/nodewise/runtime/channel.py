"""What a supervisor and its workers tell each other: one JSON object a line, over a pair of sockets."""

from __future__ import annotations

import json
import select
import socket
import threading
from typing import Any, Final

__all__ = ["Channel", "Say"]

READ_BYTES: Final = 65_536
_HANDED: Final = b"\n"
"""What a descriptor travels with: one byte each, so that none is read with another's."""


class Say:
    """Kinds of messages: the value of `say`."""

    WORK: Final = "work"
    """To a worker, first: `settings` (by name), `listen`, `core` (its own, or null), `patient` (others serve)."""
    SERVE: Final = "serve"
    """To a worker that is warm: open the store and the port."""
    HURRY: Final = "hurry"
    """To a worker that starts while others serve: these are gone, so wait for no plugin that is still being loaded."""
    RELOAD: Final = "reload"
    """To a worker that serves: let what plugins or catalogue there are by now take over, in place if that can be."""

    BORN: Final = "born"
    """Of a worker that was forked, first: its `pid`."""
    WARM: Final = "warm"
    """Of a worker: everything is imported, plugins are loaded; it waits for SERVE. Of the zygote: it can fork."""
    SERVING: Final = "serving"
    """Calls are answered."""
    DRAINING: Final = "draining"
    """It was told to end, by whomever, and takes no more connections."""
    RESTART: Final = "restart"
    """New workers are to take the place of all: what changed cannot be had in those that there are."""
    REFUSED: Final = "refused"
    """It cannot start, or, of the zygote, fork: `text` for the operator; `of_input`, whether what was given is at
    fault. It ends then."""
    DOING: Final = "doing"
    """`what` it is at: the cause that is counted should it die or hang in it. Empty = nothing particular. While it
    starts, `limit_s` of CPU time or sleep may pass until the next message; None = as is usual."""
    BEAT: Final = "beat"
    """Its event loop turns."""


class Channel:
    """One end. Sending may be done by any thread, receiving by one.

    Parameters
    ----------
    connection : socket
        One of a pair; made non-blocking, and closed by :meth:`close`.
    """

    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(0.0)
        self._connection = connection
        self._unread = b""
        self._sending = threading.Lock()

    def fileno(self) -> int:
        """For selectors."""
        return self._connection.fileno()

    def send(self, say: str, **fields: Any) -> bool:
        """Tell the other end; False = it is gone, or has not read for so long that there is no room.

        Never waits. A message is far smaller than the room there is, so it goes as a whole or not at all.
        """
        line = json.dumps({"say": say, **fields}).encode() + b"\n"
        with self._sending:
            try:
                return self._connection.send(line) == len(line)
            except OSError:
                return False

    def hand(self, descriptor: int) -> bool:
        """Give the other end a descriptor; False = it is gone, or has no room."""
        with self._sending:
            try:
                return bool(socket.send_fds(self._connection, [_HANDED], [descriptor]))
            except OSError:
                return False

    def wait_for_descriptor(self) -> int | None:
        """Wait for one that is given; None = the other end is gone."""
        select.select([self._connection], [], [])
        try:
            _, found, _, _ = socket.recv_fds(self._connection, len(_HANDED), 1)
        except OSError:
            return None
        return found[0] if found else None

    def receive(self) -> list[dict[str, Any]] | None:
        """What has arrived by now, oldest first; None = the other end is gone and all was received."""
        try:
            data = self._connection.recv(READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return []
        except OSError:
            return None
        if not data:
            return None
        *lines, self._unread = (self._unread + data).split(b"\n")
        return [json.loads(line) for line in lines]

    def wait(self, timeout_s: float) -> list[dict[str, Any]] | None:
        """As :meth:`receive`, after waiting for something to arrive."""
        ready, _, _ = select.select([self._connection], [], [], timeout_s)
        return self.receive() if ready else []

    def close(self) -> None:
        """Let go of this end."""
        self._connection.close()
