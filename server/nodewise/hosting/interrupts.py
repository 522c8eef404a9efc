"""Ctrl-C by the operator, distinguished from a plugin that raises KeyboardInterrupt."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Interrupt", "is_interrupt", "marked_interrupts"]


class Interrupt(KeyboardInterrupt):
    """Ctrl-C, as raised within :func:`marked_interrupts`; no plugin raises it."""


@contextmanager
def marked_interrupts() -> Iterator[None]:
    """Within the block SIGINT raises :class:`Interrupt`, for callers that run plugins in the main thread.

    Changes nothing in other threads, or where another handler of SIGINT is installed.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, _raise)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def is_interrupt(error: BaseException) -> bool:
    """Whether an exception is the operator's Ctrl-C, which must not be caught.

    Python delivers signals to the main thread alone. There a KeyboardInterrupt may be the operator's as long as SIGINT
    has Python's own handler, which raises just that; a server handles SIGINT by its event loop, which raises nothing.
    """
    if isinstance(error, Interrupt):
        return True
    return (
        isinstance(error, KeyboardInterrupt)
        and threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )


def _raise(_number: int, _frame: FrameType | None) -> None:
    raise Interrupt
