"""Logs are caught: a plugin's traceback is for the operator, not for whoever reads test output."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from structlog.testing import capture_logs


@pytest.fixture(autouse=True)
def logs() -> Iterator[list[Any]]:
    """What was logged, event by event."""
    with capture_logs() as events:
        yield events
