"""Values of the contract as the command line's JSON: the same, with its shorter names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from nodewise_client import numbers_by_name
from nodewise_values.value import Value

__all__ = ["fields_of", "plain", "short"]

_ENDINGS: Final = {"_per_second": "_per_s", "_seconds": "_s", "_count": "", "_ratio": "", "_ordinal": "", "_value": ""}
_NUMBERS: Final = "tuple[NamedNumber, ...]"
_BRITISH: Final = {"utilization": "utilisation"}
"""Keys keep the spelling that they had before the contract's."""


def short(name: str) -> str:
    """The command line's name of a field: units are shortened, suffixes of counts are dropped."""
    for long, brief in _ENDINGS.items():
        if name.endswith(long):
            name = name.removesuffix(long) + brief
            break
    return _BRITISH.get(name, name)


def fields_of(value: Value, *left_out: str) -> dict[str, Any]:
    """A value as a JSON object, without some of its fields. What is not known is null."""
    return {
        short(each.name): numbers_by_name(getattr(value, each.name))
        if each.type == _NUMBERS
        else plain(getattr(value, each.name))
        for each in fields(value)  # type: ignore[arg-type]  # a dataclass
        if each.name not in left_out
    }


def plain(value: Any) -> Any:
    """The same of anything that a value holds."""
    if isinstance(value, Value):
        return fields_of(value)
    if isinstance(value, Mapping):
        return {key: plain(entry) for key, entry in value.items()}
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value
