"""Logs are caught: what a plugin costs is told there."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(autouse=True)
def caught(logs: list[Any]) -> None:
    """For every test here."""
