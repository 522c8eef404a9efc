"""Names and texts that others chose, as data: in one line, without markup, of bounded length."""

from __future__ import annotations

import json
import unicodedata
from typing import Final

__all__ = ["LONGEST_NAME", "LONGEST_TEXT", "clean", "quote"]

LONGEST_NAME: Final = 80
LONGEST_TEXT: Final = 240
_MARKUP: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "`": "\\u0060", "](": "]\\u0028", "://": ":\\/\\/"}
"""What a reader could render, as JSON may write it too."""
_SELECTORS: Final = (range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))
"""Characters that are not seen, and in which others can hide text; all others are of the categories C."""


def clean(text: str, most: int = LONGEST_TEXT) -> str:
    """A text in one line, without control, format and other invisible characters, of at most so many characters."""
    spaced = (" " if letter.isspace() else letter for letter in text[: 8 * most])
    line = " ".join("".join(letter for letter in spaced if _is_visible(letter)).split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def quote(text: str, most: int = LONGEST_TEXT) -> str:
    """The clean text as a JSON string without markup. It may be longer than ``most`` by its escapes."""
    written = json.dumps(clean(text, most), ensure_ascii=False)
    for markup, escape in _MARKUP.items():
        written = written.replace(markup, escape)
    return written


def _is_visible(letter: str) -> bool:
    return unicodedata.category(letter)[0] != "C" and not any(ord(letter) in each for each in _SELECTORS)
