"""Logs: one JSON object per line on standard error."""

from __future__ import annotations

import logging
import sys
from typing import Any

import orjson
import structlog

__all__ = ["configure_logging"]


def configure_logging(level: str) -> None:
    """Send structlog's events, from ``level`` on, to standard error as JSON lines."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(serializer=_serialised),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.BytesLoggerFactory(file=sys.stderr.buffer),
        cache_logger_on_first_use=False,
    )


def _serialised(event: Any, **_: Any) -> bytes:
    return orjson.dumps(event, default=str, option=orjson.OPT_NON_STR_KEYS)
