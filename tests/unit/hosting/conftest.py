"""Logs are caught, all of them, whatever level another test of this process has set."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from structlog.testing import capture_logs


@pytest.fixture(autouse=True)
def logs() -> Iterator[list[Any]]:
    """What was logged, event by event."""
    before = structlog.get_config() if structlog.is_configured() else None
    structlog.reset_defaults()
    try:
        with capture_logs() as events:
            yield events
    finally:
        if before is not None:
            structlog.configure(**before)
