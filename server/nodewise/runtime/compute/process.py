"""What a process of the pool does: the work that comes over its pipe, one piece after the other."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import time
import traceback
from collections.abc import Callable
from ctypes import c_int64
from multiprocessing.connection import Connection
from typing import Final

from nodewise.domain.budget import Budget
from nodewise.domain.errors import NodewiseError
from nodewise.ports.compute import LongRun
from nodewise.rpc.long_call import Workshop
from nodewise.runtime.compute.recent import Recent
from nodewise.runtime.processes import settle

__all__ = ["Frame", "serve"]

NICENESS: Final = 10
"""Of the process: where cores are few, who serves short calls goes first."""


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


def serve(pipe: Connection, gone: c_int64) -> None:
    """Work until the pipe ends, with workshops that stay from one piece of work to the next.

    Parameters
    ----------
    gone : c_int64
        Shared: number of the last piece of work that nobody waits for any more.
    """
    settle()
    # Told together with its parent, which drains first and then ends the pipe.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.nice(NICENESS)
    workshops: Recent[Callable[[], Workshop], Workshop] = Recent(WORKSHOPS)
    try:
        while True:
            pipe.send_bytes(_done(pipe, workshops, gone, pipe.recv_bytes()))
    except (EOFError, OSError):
        return


def _done(pipe: Connection, workshops: Recent[Callable[[], Workshop], Workshop], gone: c_int64, data: bytes) -> bytes:
    """Do a piece of work; the frame that ends it. What keeps a workshop from opening ends the process."""
    opening = pickle.loads(data)  # noqa: S301  # from the parent, as all that comes
    given = pipe.recv_bytes()
    workshop = workshops.get(opening)
    if workshop is None:
        workshop = opening()
        gc.collect()
        gc.freeze()
        pipe.send_bytes(Frame.READY)
    forgotten = workshops.put(opening, workshop)
    if forgotten is not None:
        forgotten.answers.registry.close()  # its hosts would stay
    try:
        number, work, argument, end_s, news = pickle.loads(given)  # noqa: S301
        if news is not None:
            workshop.answers.adopt(news)
        budget = Budget(end_s - time.monotonic(), ended=lambda: gone.value >= number)
        if not budget.ended:
            LongRun(budget, lambda message: pipe.send_bytes(Frame.MESSAGE + message)).do(work, workshop, argument)
    except NodewiseError as error:
        return Frame.REFUSED + pickle.dumps(error)
    except (EOFError, BrokenPipeError):
        raise
    except Exception as error:  # noqa: BLE001  # logged by the parent, under the call that it befell
        return Frame.FAILED + "".join(traceback.format_exception(error)).encode()
    return Frame.DONE
