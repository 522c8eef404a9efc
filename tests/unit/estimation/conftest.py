"""Logs are caught: a plugin's traceback is for the operator, not for whoever reads test output."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(autouse=True)
def caught(logs: list[Any]) -> None:
    """For every test here."""
