"""The mark of tests that start a program which is no part of Python."""

from __future__ import annotations

import pytest

from nodewise_conformance.programs import why_not_any

__all__ = ["needs"]


def needs(*commands: str) -> pytest.MarkDecorator:
    """Skip a test with a reason where one of its programs does not run."""
    why = why_not_any(commands)
    return pytest.mark.skipif(bool(why), reason=why)
