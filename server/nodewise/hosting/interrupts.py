"""Ctrl-C: the operator's, told apart from a plugin that raises KeyboardInterrupt."""

from __future__ import annotations

import signal
import threading

__all__ = ["is_interrupt"]


def is_interrupt(error: BaseException) -> bool:
    """Whether an exception is the operator's Ctrl-C, which must pass.

    Python delivers signals to the main thread alone. There a KeyboardInterrupt may be the operator's as long as SIGINT
    has Python's own handler, which raises just that; a server handles SIGINT by its event loop, which raises nothing.
    The command line asks no plugin in its main thread.
    """
    return (
        isinstance(error, KeyboardInterrupt)
        and threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
