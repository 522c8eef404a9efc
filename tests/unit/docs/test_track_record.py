"""What the pages on reliability name as a test is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
NAMED = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


@pytest.mark.parametrize("page", ["research/track_record.md", "docs/reliability.md"])
def test_every_test_that_is_named_exists(page: str) -> None:
    found = NAMED.findall((ROOT / page).read_text(encoding="utf-8"))
    assert found
    for path, test in found:
        source = (ROOT / path).read_text(encoding="utf-8")
        assert not test or f"def {test}(" in source, (path, test)
