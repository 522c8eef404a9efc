"""Names of metrics, by Prometheus' conventions, and the page that lists them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nodewise.runtime.metrics import COUNTERS, DURATION, GAUGES

PAGE = Path(__file__).parents[3] / "docs" / "guides" / "observability.md"
NAMES = [DURATION[0], *(f"{name}_total" for name, *_ in COUNTERS), *(name for name, *_ in GAUGES)]


def test_each_name_is_there_once_and_has_base_units() -> None:
    assert len(set(NAMES)) == len(NAMES)
    for name in NAMES:
        assert re.fullmatch(r"nodewise(_[a-z]+)+", name)
        assert not re.search(r"_(ms|milliseconds|kilobytes|megabytes|percent|s)(_|$)", name)
    assert not [name for name, *_ in GAUGES if name.endswith(("_total", "_count", "_sum", "_bucket"))]


@pytest.mark.parametrize("name", NAMES)
def test_the_page_lists_it(name: str) -> None:
    assert f"| `{name}` |" in PAGE.read_text(encoding="utf-8")
