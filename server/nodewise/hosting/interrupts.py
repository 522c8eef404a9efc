"""Ctrl-C: the operator's, told apart from a plugin that raises KeyboardInterrupt."""

from __future__ import annotations

import signal
import threading
from types import FrameType

__all__ = ["Interrupt", "is_interrupt", "mark_interrupts"]


class Interrupt(KeyboardInterrupt):
    """Ctrl-C as the handler of :func:`mark_interrupts` raises it: no plugin raises this one."""


def mark_interrupts() -> None:
    """From now on SIGINT raises :class:`Interrupt`; for the main thread of a command, before it does anything else."""
    signal.signal(signal.SIGINT, _raise)


def is_interrupt(error: BaseException) -> bool:
    """Whether an exception is the operator's Ctrl-C, which must pass.

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
