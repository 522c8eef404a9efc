"""Properties run unmeasured: coverage would count every step of Hypothesis too, and nearly double their time.

What they hold to be true is the news; which lines run, the other tests show.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    """Coverage rests for as long as a property is tested."""
    coverage = sys.modules.get("coverage")
    measuring = None if coverage is None else coverage.Coverage.current()
    if measuring is None:
        return (yield)
    measuring.stop()
    try:
        return (yield)
    finally:
        measuring.start()
