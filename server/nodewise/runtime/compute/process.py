"""What a process of the pool does: the work that comes over its channel, one piece after the other."""

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
"""Before the number of a piece of work that no caller waits for any more; every other message is work."""


class Frame:
    """First byte of what is sent back."""

    READY: Final = b"o"
    """The workshop is open: sent once for each, before anything else of its first work."""
    MESSAGE: Final = b"m"
    DONE: Final = b"d"
    REFUSED: Final = b"r"
    FAILED: Final = b"f"


WORKSHOPS: Final = 2
"""Workshops that are kept, each with its caches: of the generation that serves, and of one that is tried beside it."""


class _Orders:
    """What the parent sends, read in a thread of its own: it ends this process as soon as the parent lets go."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._work: SimpleQueue[bytes] = SimpleQueue()
        self.last_cancelled = 0
        """Number of the last piece of work that no caller waits for any more."""
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
        """The next piece of work, after waiting for it."""
        return self._work.get()


def serve(descriptor: int) -> None:
    """Work until the channel ends, with workshops that stay from one piece of work to the next."""
    # It gets the signal together with its parent, which drains first and then ends the channel.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    channel = Channel(descriptor)
    orders = _Orders(channel)
    workshops: Recent[Callable[[], Workshop], Workshop] = Recent(WORKSHOPS)
    while True:
        channel.send(_do_work(channel, workshops, orders, orders.next()))


def _do_work(
    channel: Channel, workshops: Recent[Callable[[], Workshop], Workshop], orders: _Orders, order: bytes
) -> bytes:
    """Do a piece of work; the frame that ends it. What keeps a workshop from opening ends the process."""
    opening_bytes, arguments = pickle.loads(order)  # noqa: S301  # from the parent, as all that comes
    opening = pickle.loads(opening_bytes)  # noqa: S301
    workshop = workshops.get(opening)
    if workshop is None:
        workshop = opening()
        gc.collect()
        gc.freeze()
        channel.send(Frame.READY)
    old_workshop = workshops.put(opening, workshop)
    if old_workshop is not None:
        old_workshop.answers.registry.close()  # its hosts would stay
    try:
        number, work, argument, end_s, news = pickle.loads(arguments)  # noqa: S301
        if news is not None:
            workshop.answers.adopt(news)
        budget = Budget(end_s - time.monotonic(), ended=lambda: orders.last_cancelled >= number)
        if not budget.ended:
            LongRun(budget, lambda message: channel.send(Frame.MESSAGE + message)).do(work, workshop, argument)
    except NodewiseError as error:
        return Frame.REFUSED + pickle.dumps(error)
    except Exception as error:  # noqa: BLE001  # logged by the parent, under the call that it befell
        return Frame.FAILED + "".join(traceback.format_exception(error)).encode()
    return Frame.DONE
