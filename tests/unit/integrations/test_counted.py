"""Numbers as people write them."""

from __future__ import annotations

import pytest

from nodewise_integrations.counts import counted


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("4", (4,)),
        ("1-4", (1, 2, 3, 4)),
        ("8,1,2,4", (1, 2, 4, 8)),
        ("2-8:2", (2, 4, 6, 8)),
        ("pow2:1-20", (1, 2, 4, 8, 16)),
        ("1, pow2:4-8", (1, 4, 8)),
        ("1-3,2-4", (1, 2, 3, 4)),
    ],
)
def test_numbers(text: str, numbers: tuple[int, ...]) -> None:
    assert counted(text) == numbers


@pytest.mark.parametrize(
    "text", ["", "0", "a", "4-1", "1-4:0", "-3", "pow2:1-8:2", "pow2:5-7", "1-9999999", "1;2", "٣"]
)
def test_what_is_no_number_says_what_would_be(text: str) -> None:
    with pytest.raises(ValueError, match=r"whole numbers such as|names no numbers"):
        counted(text)
