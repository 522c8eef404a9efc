"""Whether a plugin's text is fit for callers: reasons of the catalogue, values that are strings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from nodewise.domain.errors import NodewiseError, Reason, Refusal, Violation

__all__ = ["MOST_NAME", "MOST_TEXT", "as_text", "is_a", "is_name", "is_sound_error", "is_sound_refusal", "is_text"]

MOST_NAME: Final = 64
MOST_TEXT: Final = 16_384
"""Characters of a name (of a part, a station, a reason) and of a text for people."""

is_a: Final[Callable[[Any, type], bool]] = isinstance
"""For attributes of a plugin's values, whose types may differ from their annotations."""


def is_name(name: Any) -> bool:
    """Whether a value is a name: printable, not empty, not too long."""
    return isinstance(name, str) and 0 < len(name) <= MOST_NAME and name.isprintable()


def is_text(text: Any) -> bool:
    """Whether a text can be sent: not too long, and without lone surrogates, which have no encoding."""
    return isinstance(text, str) and len(text) <= MOST_TEXT and (text.isprintable() or _has_bytes(text))


def as_text(text: Any, most: int) -> str:
    """A text as it can be sent: truncated, lone surrogates marked; "" = the value is not a string."""
    return text[:most].encode(errors="replace").decode() if isinstance(text, str) else ""


def is_sound_refusal(refusal: Any) -> bool:
    """Whether a plugin's refusal is fit for callers: a reason of the catalogue, values that are strings."""
    return (
        is_a(refusal, Refusal)
        and is_a(refusal.reason, Reason)
        and is_text(refusal.message)
        and is_a(refusal.missing_fields, tuple)
        and all(is_text(name) for name in refusal.missing_fields)
    )


def is_sound_error(error: NodewiseError) -> bool:
    """Whether an error that a plugin raised is fit for callers as it is."""
    return (
        is_a(error.reason, Reason)
        and is_text(error.message)
        and is_a(error.metadata, Mapping)
        and all(is_text(key) and is_text(value) for key, value in error.metadata.items())
        and is_a(error.violations, tuple)
        and all(
            is_a(violation, Violation) and is_text(violation.field) and is_text(violation.description)
            for violation in error.violations
        )
    )


def _has_bytes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
