"""Rows of the domain as messages, field by field by their names; what a request may leave out."""

from __future__ import annotations

import math
from typing import Any, Final, TypeVar

from google.protobuf.message import Message

from nodewise.rpc.reading import Reader

__all__ = ["read_budget_s", "stated", "written"]

LONGEST_BUDGET_S: Final = 1e7

MessageT = TypeVar("MessageT", bound=Message)
_SHORTER: Final = (("_per_second", "_per_s"), ("_seconds", "_s"), ("_ratio", ""), ("_count", ""), ("_ordinal", ""))
"""Ends of names on the wire, and what they are in the domain, which writes units shorter."""


_fields_of: Final[dict[tuple[type, type], tuple[tuple[str, str, bool], ...]]] = {}


def _fields(kind: type[Message], of: type) -> tuple[tuple[str, str, bool], ...]:
    """Fields of a message: their names, those in a row of a type, and whether they may be absent."""
    known = _fields_of.get((kind, of))
    if known is None:
        fields = kind.DESCRIPTOR.fields
        known = tuple((field.name, _name(field.name, of), bool(field.has_presence)) for field in fields)
        _fields_of[kind, of] = known
    return known


def _name(field: str, of: type) -> str:
    """The name of a field in a row of a type."""
    shorter = (field.removesuffix(end) + short for end, short in _SHORTER if field.endswith(end))
    return next((name for name in (field, *shorter) if hasattr(of, name)), field)


def written(kind: type[MessageT], row: Any, /, *, absent: float | None = None, **others: Any) -> MessageT:
    """A message that says what a row of the domain says.

    Parameters
    ----------
    absent : float or None
        What the row holds, besides None, where an optional field is absent.
    **others
        Fields that are not the row's, or that it holds otherwise; None = absent.
    """
    held: dict[str, Any] = {}
    for name, known, optional in _fields(kind, type(row)):
        if name not in others:
            value = getattr(row, known)
            held[name] = None if optional and absent is not None and value == absent else value
    return kind(**held, **others)


def stated(message: Any, name: str, default: Any) -> Any:
    """What an optional field holds, or what its absence says."""
    return getattr(message, name) if message.HasField(name) else default


def read_budget_s(message: Any, reader: Reader) -> float:
    """The most seconds that a call may take besides its deadline; infinite where none are stated."""
    if not message.HasField("budget_seconds"):
        return math.inf
    return reader.number(message.budget_seconds, "budget_seconds", above=0.0, most=LONGEST_BUDGET_S)
