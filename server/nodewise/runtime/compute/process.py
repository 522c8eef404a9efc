"""The main loop of a process of the pool: it does the work from its channel, one piece after the other."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import threading
import time
import traceback
from collections.abc import Callable
from queue import SimpleQueue
from typing import Final

from nodewise.domain.budget import Budget
from nodewise.domain.errors import NodewiseError
from nodewise.ports.compute import LongRun
from nodewise.processes.channel import Channel
from nodewise.rpc.long_call import Workshop
from nodewise.runtime.compute.recent import Recent

__all__ = ["CANCEL", "WORKSHOPS", "Frame", "serve"]

CANCEL: Final = b"c"
"""Prefix of the number of a piece of work to cancel; every other message is work."""


class Frame:
    """First byte of each message to the parent."""

    READY: Final = b"o"
    """The workshop is open: sent once for each workshop, before any other message of its first work."""
    MESSAGE: Final = b"m"
    DONE: Final = b"d"
    REFUSED: Final = b"r"
    FAILED: Final = b"f"


WORKSHOPS: Final = 2
"""Workshops that a process keeps open, each with its caches: of the serving generation, and of one under test beside
it."""


class _Orders:
    """Messages of the parent, read in a separate thread, which ends the process when the channel closes."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._work: SimpleQueue[bytes] = SimpleQueue()
        self.last_cancelled = 0
        """Number of the last piece of work that was cancelled."""
        threading.Thread(target=self._read, name="nodewise-orders", daemon=True).start()

    def _read(self) -> None:
        try:
            while True:
                message = self._channel.receive()
                if message.startswith(CANCEL):
                    self.last_cancelled = int(message[len(CANCEL) :])
                else:
                    self._work.put(message)
        except (EOFError, OSError):
            os._exit(0)

    def next(self) -> bytes:
        """Wait for the next piece of work and return it."""
        return self._work.get()


def serve(descriptor: int) -> None:
    """Do work until the channel ends; workshops stay open between pieces of work."""
    # The process gets SIGTERM together with its parent, which first drains its calls and then ends the channel.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    channel = Channel(descriptor)
    orders = _Orders(channel)
    workshops: Recent[Callable[[], Workshop], Workshop] = Recent(WORKSHOPS)
    while True:
        channel.send(_do_work(channel, workshops, orders, orders.next()))


def _do_work(
    channel: Channel, workshops: Recent[Callable[[], Workshop], Workshop], orders: _Orders, order: bytes
) -> bytes:
    """Do a piece of work and return the frame that ends it. An error while a workshop opens ends the process."""
    opening_bytes, arguments = pickle.loads(order)  # noqa: S301  # from the parent, as all messages
    opening = pickle.loads(opening_bytes)  # noqa: S301
    workshop = workshops.get(opening)
    if workshop is None:
        workshop = opening()
        gc.collect()
        gc.freeze()
        channel.send(Frame.READY)
    old_workshop = workshops.put(opening, workshop)
    if old_workshop is not None:
        old_workshop.answers.registry.close()  # closes its plugin hosts, which would stay otherwise
    try:
        number, work, argument, end_s, news = pickle.loads(arguments)  # noqa: S301
        if news is not None:
            workshop.answers.adopt(news)
        budget = Budget(end_s - time.monotonic(), ended=lambda: orders.last_cancelled >= number)
        if not budget.ended:
            LongRun(budget, lambda message: channel.send(Frame.MESSAGE + message)).do(work, workshop, argument)
    except NodewiseError as error:
        return Frame.REFUSED + pickle.dumps(error)
    except Exception as error:  # noqa: BLE001  # the parent logs it with the call
        return Frame.FAILED + "".join(traceback.format_exception(error)).encode()
    return Frame.DONE
