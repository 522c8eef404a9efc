"""Where hosts are forked: a process that has imported what every host needs, ``python -m ...nest FD PARENT``.

It imports nothing of any plugin's and has one thread, so that there is nothing for a fork to break. A host so costs
some milliseconds in place of half a second, which matters where hosts are replaced again and again, and shares memory.
"""

from __future__ import annotations

import gc
import os
import select
import socket
import sys
import traceback
from contextlib import suppress
from typing import Final

from nodewise.hosting.processes import main as hosted

__all__ = ["main"]

STATUS_BYTES: Final = 4
"""Of the number of a process, and of how it ended: a status, or less than 0 for a signal, as in ``forked``."""
_HANDED: Final = 4
"""Descriptors of an order: the host's end of its socket, where it prints (two), and who hears how it ended."""


class _Nest:
    """The loop: forks as told, and tells how each host ended."""

    def __init__(self, orders: socket.socket) -> None:
        self._orders = orders
        self._events = select.poll()
        self._events.register(orders, select.POLLIN)
        self._living: dict[int, tuple[int, int]] = {}
        """Of each host by its pidfd: its process, and the descriptor of who hears how it ended."""
        self._dead: dict[int, int] = {}
        """Processes that are told to have ended, by that descriptor: nobody else gets their number until it is shut."""

    def run(self) -> None:
        """Until nobody gives orders any more."""
        while True:
            for fd, _ in self._events.poll():
                if fd == self._orders.fileno():
                    if not self._told():
                        return
                elif fd in self._living:
                    self._ended(fd)
                elif fd in self._dead:
                    self._buried(fd)

    def _told(self) -> bool:
        """Fork one more; whether orders go on."""
        content, descriptors, _, _ = socket.recv_fds(self._orders, 1, _HANDED)
        if not content or len(descriptors) != _HANDED:
            return False
        mine = os.getpid()
        try:
            pid = os.fork()
        except OSError:  # no memory or no process to be had
            for each in descriptors:
                os.close(each)
            self._orders.sendall(bytes(STATUS_BYTES))
            return True
        if not pid:
            self._become(mine, descriptors)
        *theirs, hears = descriptors
        for each in theirs:
            os.close(each)
        watched = os.pidfd_open(pid)
        self._living[watched] = pid, hears
        self._events.register(watched, select.POLLIN)
        return True

    def _become(self, nest: int, descriptors: list[int]) -> None:
        """Be a host; never returns."""
        try:
            os.setsid()
            # Told from here: whoever hears it can end the session.
            self._orders.sendall(os.getpid().to_bytes(STATUS_BYTES, "little"))
            nothing = os.open(os.devnull, os.O_RDONLY)
            for number, each in enumerate((nothing, *descriptors[1:3])):
                os.dup2(each, number)
            end = descriptors[0]
            os.closerange(3, end)
            os.closerange(end + 1, 1 << 16)
            hosted.serve(end, nest)
        except BaseException:  # noqa: BLE001  # last stop of the process
            traceback.print_exc()
        finally:
            os._exit(1)

    def _ended(self, watched: int) -> None:
        pid, hears = self._living.pop(watched)
        self._events.unregister(watched)
        os.close(watched)
        found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        status = 0 if found is None else found.si_status
        if found is not None and found.si_code != os.CLD_EXITED:
            status = -status
        with suppress(OSError):
            os.write(hears, status.to_bytes(STATUS_BYTES, "little", signed=True))
        self._dead[hears] = pid
        self._events.register(hears, 0)  # its other end is shut

    def _buried(self, hears: int) -> None:
        os.waitpid(self._dead.pop(hears), 0)
        self._events.unregister(hears)
        os.close(hears)


def main() -> None:
    """Fork hosts until the socket ends."""
    fd, parent = int(sys.argv[1]), int(sys.argv[2])
    hosted.settle(parent)
    sys.argv[1:] = []
    gc.collect()
    gc.freeze()  # a collection in a host would write to pages that it shares
    _Nest(socket.socket(fileno=fd)).run()


if __name__ == "__main__":
    main()
