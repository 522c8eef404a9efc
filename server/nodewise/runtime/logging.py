"""Logs on standard error, written without blocking: JSON objects, one a line, or text where it is a terminal."""

from __future__ import annotations

import asyncio
import logging
import select
import sys
import threading
import warnings
from typing import Any, ClassVar, Final, TextIO

import orjson
import structlog

__all__ = ["configure_logging", "log_unhandled", "write_line"]


ROOM_S: Final = 0.2
"""How long a line waits for the reader of the log; after a timeout no line waits until there is room again."""


def configure_logging(level: str) -> None:
    """Send structlog's events, from ``level`` on, to standard error: as text to a terminal, else as JSON lines."""
    json_lines = structlog.processors.format_exc_info, structlog.processors.JSONRenderer(serializer=_serialise)
    text = (structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback),)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *(text if sys.stderr.isatty() else json_lines),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=_StandardError,
        cache_logger_on_first_use=False,
    )
    warnings.showwarning = _log_warning


def _log_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: object, **__: object
) -> None:
    """Log a library's warning, such as NumPy's of a division by zero; Python itself would write two lines of text."""
    place = f"{filename}:{lineno}"
    structlog.get_logger(__name__).warning("warned", message=str(message), category=category.__name__, place=place)


def write_line(line: str) -> None:
    """Write a line to the log unchanged, at every log level."""
    _StandardError().msg(line)


def log_unhandled(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an exception that was never retrieved as one line: asyncio itself would write a traceback, not JSON.

    If the caller of a reply has gone, gRPC leaves an exception behind; it is no fault, so it is logged at level debug.
    """
    log, error = structlog.get_logger("nodewise.runtime"), context.get("exception")
    if type(error).__module__.startswith("grpc."):
        log.debug("reply_not_written", message=str(error))
    else:
        log.error("unhandled", message=context.get("message", ""), exc_info=error)


class _StandardError:
    """Writes lines to whatever standard error is at that moment: tests and embedding programs replace it."""

    _lock = threading.Lock()
    _lost_count: ClassVar[list[int]] = [0]
    """Lines of all loggers dropped since the last written one."""

    def __init__(self, *_: Any) -> None:
        """Accept and ignore the name of the logger."""

    def msg(self, line: str) -> None:
        """Write one line; a log that cannot be written must neither raise nor block its callers."""
        with self._lock:
            if not _has_room(sys.stderr, 0.0 if self._lost_count[0] else ROOM_S):
                self._lost_count[0] += 1
                return
            if self._lost_count[0]:
                line = f'{{"event":"log_lines_lost","level":"warning","lines":{self._lost_count[0]}}}\n{line}'
                self._lost_count[0] = 0
            try:
                sys.stderr.write(line + "\n")
                sys.stderr.flush()
            except (OSError, ValueError):
                pass

    log = debug = info = warning = error = critical = exception = fatal = msg


def _has_room(stream: TextIO, timeout_s: float) -> bool:
    """Whether a line can be written without waiting: a pipe without a reader fills up, and then blocks its writers."""
    try:
        return bool(select.select([], [stream], [], timeout_s)[1])
    except (OSError, ValueError, TypeError, AttributeError):  # it is no file, or not one that select accepts
        return True


def _serialise(event: Any, **_: Any) -> str:
    return orjson.dumps(event, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
